"""Pages of code: a text of the document, linked to the selection, or compiled code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QMenu, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.document.shared import Shared
from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import check_box
from lowerscope.app.kit.code.code_editor import NO_HEADINGS, Heading, NamedPlace
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.code.marks import Span
from lowerscope.app.kit.hover_card import CardText
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.app.panes.common.descriptions import names_of
from lowerscope.core.model.compact_script import LANGUAGE, compact_script
from lowerscope.core.model.line_difference import matching_lines
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import TextQuery
from lowerscope.core.model.snapshot import Card, TextRecord, View
from lowerscope.core.model.texts import _

WRAPPED = ("tvmscript", "python")
"""Languages whose long lines are wrapped."""


class ScriptPage(QWidget):
    """A code view that shows a text; lines of the selection are marked.

    Args:
        name: Accessible name of the code view.
    """

    def __init__(self, shared: Shared, name: str) -> None:
        super().__init__()
        self._document = document = shared.document
        self._whole: Collection[str] = ()
        self._headings: Mapping[int, Heading] = NO_HEADINGS
        self.record: TextRecord | None = None  # The text shown.
        # The bindings that begin with each line, computed on demand.
        self._bindings: dict[int, list[str]] | None = None
        self._first_lines: dict[str, int] = {}
        self._changed: list[int] = []
        self._here = 0
        self._revealed_at = -1  # First visible line after the selection was scrolled to.
        # Whether the marks are outdated: the selection changed while the page was hidden.
        self._is_stale = False
        #: Whether a text is shown from the first line on that belongs to something.
        self.begins_at_spans = False
        #: Whether the text is always shown as it is, neither compact nor wrapped.
        self.as_printed = False
        self.code = CodeView(name)
        column_of(self, self.code)
        self.code.entity_clicked.connect(self._select)
        self.code.menu_opening.connect(self._add_to_menu)
        self.code.editor.arranged.connect(self._reveal_again)
        self.code.editor.set_describing(self._belongs_to)
        self._colouring = shared.colouring
        self._colouring.changed.connect(self._colour)
        self._colour()
        document.on(("selection", "snapshot"), self.show_selection)
        document.on(("code_form",), self._show_form)

    def show_text(
        self,
        record: TextRecord | None,
        whole: Collection[str] = (),
        *,
        headings: Mapping[int, Heading] = NO_HEADINGS,
        stay: bool = False,
    ) -> None:
        """Show a text, or the empty state for ``None``.

        Args:
            whole: Ids of entities whose lines can be clicked, but are not marked: of one that the
                whole text shows, or whose heading is marked.
            headings: Lines that are headings, by number from 0.
            stay: Whether it is another state of the same text, so that the scroll position is kept.
        """
        before, self.record = self.record, record
        self._bindings = None
        self._whole, self._headings = whole, headings
        if record is None:
            self.code.set_text("")
            self.code.set_spans(())
            self._first_lines = {}
            return
        place = self.code.place() if stay else None
        self._set_text(record, keep_folds=stay)
        self.code.set_spans([Span(span.entity, span.first, span.last) for span in record.spans])
        self.code.set_cards([_place(card) for card in record.cards])
        self._first_lines = {span.entity: span.first for span in reversed(record.spans)}
        self._mark_changes(before, record)
        if place is None:
            if self.begins_at_spans and record.spans:
                self.code.reveal(record.spans[0].entity)
            self.show_selection()
        else:
            self.code.set_selection(self._marked())
            self.code.set_place(place)
        if self._here:
            self.code.point_at(self._here)

    def point_at(self, line: int) -> None:
        """Point at a line of this text and of subsequent ones, from 1; 0 for none."""
        if line != self._here:
            self._here = line
            self.code.point_at(line)

    def _set_text(self, record: TextRecord, *, keep_folds: bool = False) -> None:
        """Show a text in the current form."""
        form, wanted = None, self._document.code_form
        if wanted.compact and record.language == LANGUAGE and not self.as_printed:
            form = compact_script(record.text, record.constants, types=wanted.types)
        wraps = wanted.wraps and record.language in WRAPPED and not self.as_printed
        self.code.set_text(
            record.text,
            record.language,
            form,
            wraps=wraps,
            headings=self._headings,
            keep_folds=keep_folds,
        )

    def _show_form(self) -> None:
        """Show the same text in another form."""
        if self.record is not None:
            self._set_text(self.record)

    def show_selection(self) -> None:
        """Mark the lines of the selection, and scroll to the first one."""
        self._is_stale = not self.isVisible()
        if self._is_stale:
            return
        selection = self._document.selection
        marked = self._marked()
        self.code.set_selection(marked)
        chosen = [entity for entity in selection.chosen if entity in marked]
        if marked and not self._here:
            self.code.reveal(min(chosen or marked, key=self._first_lines.__getitem__))
            self._revealed_at = self.code.place()[0]

    def _reveal_again(self) -> None:
        """Keep the selection in view in another width, unless the user has scrolled since."""
        if self.code.place()[0] == self._revealed_at:
            self.show_selection()

    def _mark_changes(self, before: TextRecord | None, record: TextRecord) -> None:
        """Mark the lines that the step changed; for other views, the new lines."""
        same_thing = before is not None and (
            [span.entity for span in before.spans[:1]] == [span.entity for span in record.spans[:1]]
        )
        if self._document.module_moment is not None and record.changed is not None:
            self._changed = list(record.changed)
        elif self._document.module_moment is None or before is None or not same_thing:
            self._changed = []
        elif before is not record:
            self._changed = _changed(before.text, record.text)
        self.code.set_changed_lines(self._changed)

    def _belongs_to(self, entity: str) -> str:
        """Return a text naming the nodes of a line; empty if the whole text is of one entity."""
        if entity in self._whole:
            return ""
        linked = self._document.linked_to(*self._sharing(entity)) | {entity}
        nodes = tuple(sorted(each for each in linked if each.startswith("fx:")))
        return _("of {nodes}", nodes=names_of(nodes, most=2)) if nodes else ""

    def _colour(self) -> None:
        self.code.set_tint(self._colouring.number_of if self._colouring.on else None)

    def _add_to_menu(self, entity: str, menu: QMenu) -> None:
        menu.addSeparator()
        colours = menu.addAction(_("Colour lines by node"))
        colours.setCheckable(True)
        colours.setChecked(self._colouring.on)
        colours.triggered.connect(self._colouring.toggle)

    def _marked(self) -> frozenset[str]:
        return (self._document.selection.linked & self._first_lines.keys()) - {*self._whole}

    def _select(self, entity: str, modifiers: Qt.KeyboardModifier) -> None:
        self._document.select(self._meant_by(entity), extend=bool(modifiers & EXTENDING))

    def _meant_by(self, entity: str) -> tuple[str, ...]:
        """Return the entities a click selects: for a line of the user's file, the nodes it creates.

        A call of a fused function is the line of all bindings that were fused into it.
        """
        snapshot = self._document.snapshot
        if snapshot is None or not entity.startswith("torch:"):
            return self._sharing(entity)
        linked = self._document.linked_to(entity)
        return tuple(node.id for node in snapshot.fx if node.id in linked)

    def _sharing(self, entity: str) -> tuple[str, ...]:
        """Return the bindings on the same line as the one at the caret."""
        if self.record is None or not entity.startswith("relax:") or "/" not in entity:
            return (entity,)
        line = self.code.caret_line()
        if self._bindings is None:
            self._bindings = {}
            for span in self.record.spans:
                if span.entity.startswith("relax:") and "/" in span.entity:
                    self._bindings.setdefault(span.first, []).append(span.entity)
        found = self._bindings.get(line, [])
        return tuple(dict.fromkeys(found)) if entity in found else (entity,)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self.show_selection()


_WORDS = {
    "buffer": _("buffer"),
    "loop": _("loop"),
    "constant": _("constant"),
    "extent": _("extent"),
    "kind": _("kind"),
    "from": _("from"),
    "thread": _("thread"),
    "scope": _("scope"),
    "shape": _("shape"),
    "size": _("size"),
}
"""Kinds of names, and labels of facts on them."""


def _place(card: Card) -> NamedPlace:
    facts = tuple((_WORDS.get(label, label), value) for label, value in card.facts)
    text = CardText(f"{card.name} · {_WORDS[card.kind]}", facts)
    return NamedPlace(card.name, card.first, card.last, text, card.entity)


def _changed(before: str, after: str) -> list[int]:
    """Return the lines, from 1, that are new in comparison with the text before."""
    lines = after.split("\n")
    changed = set(range(1, len(lines) + 1))
    for _before, first, length in matching_lines(before.split("\n"), lines):
        changed.difference_update(range(first + 1, first + length + 1))
    return sorted(changed)


# --- A text that is fetched from the engine when it is visible ---


class FetchedPage(QWidget):
    """A script page for one kind of text.

    Args:
        view: Kind of text.
        name: Accessible name of the code view.
        set_busy: Called with whether a text is being fetched.
        kind: Kind of the functions: ``"tir"`` or ``"relax"``.
    """

    def __init__(
        self,
        shared: Shared,
        view: View,
        name: str,
        set_busy: Callable[[bool], None],
        *,
        kind: str = "tir",
    ) -> None:
        super().__init__()
        self._document = shared.document
        self._view: View = view
        self._kind = "relax" if view == "bytecode" else kind
        self._name: str | None = None
        self.moment: Moment | None = None  # The step of the text; ``None`` for the final module.
        self._shown_name: str | None = None
        self._watch = shared.queries.watch(
            self, self._query, self._take_text, self._take_problem, set_busy, self._note_progress
        )
        self.script = ScriptPage(shared, name)
        self.column = column_of(self, (self.script, 1))

    def show_text_of(self, name: str, moment: Moment | None = None) -> None:
        """Show the text of a function or file, once visible; empty for the module.

        The same function at another `moment` keeps its scroll position.
        """
        self._name, self.moment = name, moment
        self._watch.update()

    @property
    def is_current(self) -> bool:
        """Return whether the requested text is shown."""
        return self._watch.is_current

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._name = self._shown_name = None
        self._watch.update()
        if title:
            self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _query(self) -> TextQuery | None:
        recipe = self._document.recipe
        if recipe is None or self._name is None:
            return None
        return TextQuery(recipe, self._name, self._view, self.moment)

    def _note_progress(self, text: str, fraction: float | None) -> None:
        """Show the child's progress."""

    def _take_text(self, record: TextRecord) -> None:
        stays = self._shown_name == self._name and bool(self.script.code.text())
        name = self._shown_name = self._name
        whole = (f"{self._kind}:{name}",) if name and self._view != "source" else ()
        self.script.show_text(record, whole, stay=stays)

    def _take_problem(self, problem: Problem) -> None:
        self._shown_name = None
        self.script.code.empty.set_problem(problem, self._watch.refresh)
        self.script.show_text(None)


# --- Footer of a pane of code ---

HEIGHT = 28


class CodeFooter(QWidget):
    """Switches for the form of all code, below a pane.

    Args:
        with_types: Whether the pane shows bindings, whose types can be hidden.
        more: Switches of the pane's own.
    """

    def __init__(self, document: Document, *more: QCheckBox, with_types: bool = False) -> None:
        super().__init__()
        self._document = document
        self.setFixedHeight(HEIGHT)
        self.compact = check_box(
            _("Compact"),
            _(
                "Parameters by name, numbers without their types, shapes at the right "
                "edge.\nOff: TVM's exact text. Copied and exported text is always TVM's exact text."
            ),
        )
        self.wraps = check_box(_("Wrap"), _("Continue long lines below, indented, marked ↳"))
        self.types = check_box(_("Types"), _("Show the types of bindings in their lines"))
        if not with_types:
            self.types.hide()
        self.figure = ElidedLabel(role="quiet")
        self.figure.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        switches = (*more, self.compact, self.wraps, self.types)
        for switch in (*switches, self.figure):
            switch.setFont(ui_font(12))
        row_of(self, *switches, (self.figure, 1), margins=(10, 1, 10, 0), spacing=12)
        for switch in (self.compact, self.wraps, self.types):
            switch.clicked.connect(self._set_form)
        document.on(("code_form",), self._show)
        theme.notifier().changed.connect(self.update)
        self._show()

    def set_script(self, is_script: bool) -> None:
        """Offer the compact form where a script is shown, which alone has one."""
        self.compact.setEnabled(is_script)
        self.types.setEnabled(is_script and self._document.code_form.compact)

    def _set_form(self, on: bool) -> None:
        fields = {self.compact: "compact", self.wraps: "wraps", self.types: "types"}
        changed = {fields[switch]: on for switch in fields if switch is self.sender()}
        self._document.set(code_form=replace(self._document.code_form, **changed))

    def _show(self) -> None:
        form = self._document.code_form
        self.compact.setChecked(form.compact)
        self.wraps.setChecked(form.wraps)
        # A script has all types as printed.
        self.types.setChecked(form.types or not form.compact)
        self.types.setEnabled(form.compact and self.compact.isEnabled())

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.panel))
        painter.fillRect(0, 0, self.width(), 1, QColor(colours.line))


# --- Compiled code of a function: bytecode, LLVM IR or assembly ---

WAITING_MS = 150
"""Delay before a request shows its progress."""


class CompiledPage(FetchedPage):
    """A fetched page that shows the worker's progress, and can cancel it.

    It shows the result of TVM's build, and the scheduled function compiled by itself, at its
    current step. At a step before the end of the build there is no code.
    """

    def __init__(
        self, shared: Shared, view: View, name: str, set_busy: Callable[[bool], None]
    ) -> None:
        super().__init__(shared, view, name, self._note_busy)
        self._build = shared.build
        self._set_busy = set_busy
        self.cancel = self.script.code.empty.add_action(_("Cancel"), self._watch.cancel)
        self.cancel.hide()
        self._timer = QTimer(self, singleShot=True, interval=WAITING_MS)
        self._timer.timeout.connect(self._show_waiting)

    def show_text_of(self, name: str, moment: Moment | None = None) -> None:
        """Show the code of a function, compiled once the page is visible."""
        if moment is None or moment.section == "schedule":
            super().show_text_of(name, moment)
            return
        hint = _("Code is generated at the end of the build. Leave the step (Esc) to see it.")
        self.show_nothing(_("Not compiled yet at this step"), hint)

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._timer.stop()
        self.cancel.hide()
        super().show_nothing(title, hint)

    def _note_busy(self, busy: bool) -> None:
        if busy:
            self._timer.start()
        else:
            self._timer.stop()
        self._set_busy(busy)

    def _show_waiting(self) -> None:
        busy = self._document.running
        hint = _("The worker is running the model; this follows.") if busy else ""
        self._say(_("Building…"), hint)

    def _note_progress(self, text: str, _fraction: float | None) -> None:
        if not self._timer.isActive():
            self._say(_("Building…"), text)

    def _say(self, title: str, hint: str) -> None:
        self.cancel.show()
        self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _take_text(self, record: TextRecord) -> None:
        self.cancel.hide()
        super()._take_text(record)
        if self.moment is None:
            self._build.note_built()

    def _take_problem(self, problem: Problem) -> None:
        self.cancel.hide()
        super()._take_problem(problem)
