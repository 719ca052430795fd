"""The TensorIR pane: the functions of the selection, and the list of all with their call sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.document.shared import Shared
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.code.code_editor import Heading
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import (
    fate_text,
    line_text,
    moment_text,
    names_of,
    nothing_words,
    origin_text,
)
from lowerscope.app.panes.common.entity_table import EntityTable
from lowerscope.app.panes.common.script_page import CodeFooter, CompiledPage, ScriptPage
from lowerscope.core.model.compact_script import LANGUAGE
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import FunctionsQuery, FunctionTextsQuery
from lowerscope.core.model.snapshot import (
    Card,
    FunctionRecord,
    LibraryRecord,
    Span,
    TextRecord,
    View,
)
from lowerscope.core.model.texts import _, _n, capitalized

# --- Texts of functions below one another, each under a heading; those that are closed are rows ---


class FunctionTexts(QWidget):
    """A page with the texts of some functions, in one view.

    Args:
        view: Kind of text.
        name: Accessible name of the code view.
        set_busy: Called with whether texts are being fetched.
    """

    toggled = Signal(str)  # Open or close a function: its name.
    acted = Signal(str)  # The action of a function's heading was clicked.

    def __init__(
        self, shared: Shared, view: View, name: str, set_busy: Callable[[bool], None]
    ) -> None:
        super().__init__()
        self._document = shared.document
        self._view = view
        self._headings: tuple[Heading, ...] = ()
        self._moment: Moment | None = None
        self._texts: dict[str, TextRecord] = {}
        self._names: tuple[str, ...] = ()  # Functions of the last request, and of `_texts`.
        self._shown_first = ""  # Name of the first function that is shown.
        self._watch = shared.queries.watch(
            self, self._query, self._take_texts, self._take_problem, set_busy
        )
        self.script = ScriptPage(shared, name)
        self.script.code.heading_clicked.connect(self._click)
        column_of(self, self.script)

    def show_functions(self, headings: Sequence[Heading], moment: Moment | None) -> None:
        """Show the functions of some headings: the texts of those that are open, once visible."""
        names = tuple(each.key for each in headings if each.is_open)
        same = (names, moment) == (self._names, self._moment)
        self._headings, self._names, self._moment = tuple(headings), names, moment
        self._watch.update()
        if same or not names:
            self._show()

    @property
    def is_current(self) -> bool:
        """Return whether the requested texts are shown."""
        return self._watch.is_current

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._headings, self._names, self._texts = (), (), {}
        self._shown_first = ""
        self._watch.update()
        if title:
            self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _query(self) -> FunctionTextsQuery | None:
        recipe = self._document.recipe
        if recipe is None or not self._names:
            return None
        return FunctionTextsQuery(recipe, self._names, self._view, self._moment)

    def _take_texts(self, records: tuple[TextRecord, ...]) -> None:
        self._texts = dict(zip(self._names, records, strict=True))
        self._show()

    def _take_problem(self, problem: Problem) -> None:
        self._texts = {}
        self.script.code.empty.set_problem(problem, self._watch.refresh)
        self.script.show_text(None)

    def _show(self) -> None:
        headings = [
            replace(each, is_open=each.is_open and each.key in self._texts)
            for each in self._headings
        ]
        record, lines = joined(headings, self._texts)
        whole = tuple(f"tir:{each.key}" for each in headings)
        # With the same function first, another one was opened, or all are at another step.
        first = headings[0].key if headings else ""
        stays, self._shown_first = bool(first) and first == self._shown_first, first
        self.script.show_text(record, whole, headings=lines, stay=stays)

    def _click(self, name: str, is_action: bool) -> None:
        (self.acted if is_action else self.toggled).emit(name)


def joined(
    headings: Sequence[Heading], texts: Mapping[str, TextRecord]
) -> tuple[TextRecord, dict[int, Heading]]:
    """Return the texts of functions as one, and its lines that are headings, from 0."""
    lines: list[str] = []
    at: dict[int, Heading] = {}
    parts: list[tuple[TextRecord, int]] = []
    for heading in headings:
        at[len(lines)] = heading
        # The height of the row is that of its character.
        lines.append(" ")
        if heading.is_open:
            record = texts[heading.key]
            parts.append((record, len(lines)))
            lines += record.text.split("\n")
    changed = [
        line + by for record, by in parts if record.changed is not None for line in record.changed
    ]
    known = any(record.changed is not None for record, _ in parts)
    joined = TextRecord(
        text="\n".join(lines),
        language=parts[0][0].language if parts else LANGUAGE,
        spans=tuple(_moved(each, by) for record, by in parts for each in record.spans),
        cards=tuple(_moved(each, by) for record, by in parts for each in record.cards),
        changed=tuple(changed) if known else None,
    )
    return joined, at


Lines = TypeVar("Lines", Span, Card)


def _moved(lines: Lines, by: int) -> Lines:
    return msgspec.structs.replace(lines, first=lines.first + by, last=lines.last + by)


# --- The page of external functions: where they are registered, and their callers ---


class LibraryPage(QWidget):
    """A table of the library functions, linked to the selection."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.table = EntityTable(
            document,
            _("Library functions"),
            (
                Column(_("function"), width=150),
                Column(_("registered"), width=150),
                Column(_("called by"), width=110),
                Column(_("nodes"), stretch=True, width=110),
            ),
            "ext",
        )
        column_of(self, self.table)
        document.on(("snapshot", "nothing"), self._show_snapshot)
        document.on(("selection", "snapshot"), self.table.show_selection)
        self._show_snapshot()

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        words = (
            _("No library functions"),
            _("Nothing outside of the module is called by name."),
        )
        self.table.set_empty(*(nothing_words(self._document) if snapshot is None else words))
        records = () if snapshot is None else snapshot.library
        self.table.set_rows([_library_row(each) for each in records])
        self.table.show_selection()


def _library_row(each: LibraryRecord) -> Row:
    place = f"{each.line.file}:{each.line.line}" if each.line else origin_text(each)
    return Row(
        each.id,
        (
            Cell(each.name, bold=True, tooltip=each.name),
            Cell(
                line_text(each.line) if each.line else origin_text(each),
                role="wrong" if each.origin == "missing" else "quiet",
                tooltip=place,
            ),
            Cell(
                names_of(each.calls) or "nothing",
                role="quiet",
                tooltip=names_of(each.calls, most=60),
            ),
            Cell(names_of(each.nodes), role="quiet", tooltip=names_of(each.nodes, most=60)),
        ),
    )


OFFERED = 5
"""Maximum number of functions that are open by themselves."""

COMPILED = ("llvm", "asm")
"""Pages that show one function."""

KINDS = {"tensorir": "TensorIR", "external": _("library"), "relax": "Relax"}


class TensorIRView(Pane):
    """The pane with the functions after the passes."""

    rules_wanted = Signal()  # Schedule all functions by rules.
    schedule_wanted = Signal(str)  # Schedule a function: its id.

    def __init__(self, shared: Shared) -> None:
        super().__init__(_("TensorIR"))
        self._document = document = shared.document
        self._stepping = stepping = shared.stepping
        self._colouring = shared.colouring
        self._function = ""
        # The functions of the snapshot, or those at the current step.
        self._functions: tuple[FunctionRecord, ...] = ()
        self._watch = shared.queries.watch(
            self, self._query, self._take_functions, self._take_problem, while_hidden=True
        )
        # Those of the selection, which come first, and those that are open, by name.
        self._first: tuple[str, ...] = ()
        self._open: frozenset[str] = frozenset()
        self.compiled_function = QComboBox()
        self.compiled_function.setAccessibleName(_("Function to show"))
        self.compiled_function.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.compiled_function.activated.connect(self._show_compiled)
        names: dict[View, str] = {
            "script": _("TensorIR script"),
            "numpy": _("NumPy loops"),
            "te": _("Tensor expressions"),
            "llvm": _("LLVM IR"),
            "asm": _("Assembly"),
        }
        self.texts: dict[str, FunctionTexts] = {}
        self.compiled: dict[str, CompiledPage] = {}
        for view, name in names.items():
            if view in COMPILED:
                self.compiled[view] = CompiledPage(shared, view, name, self.set_busy)
            else:
                page = FunctionTexts(shared, view, name, self.set_busy)
                page.toggled.connect(self._toggle)
                page.acted.connect(self._schedule)
                self.texts[view] = page
        self.script = self.texts["script"].script
        self.functions = Table(
            _("Functions"),
            (
                Column(_("function"), width=170),
                Column(_("kind")),
                Column(_("blocks"), numeric=True),
                Column(_("loops"), numeric=True),
                Column(_("calls"), numeric=True),
                Column(_("called by"), stretch=True, width=110),
            ),
        )
        self.functions.row_clicked.connect(self._select)
        self.functions.row_activated.connect(self._show_script)
        self.add_page("script", _("Script"), self.texts["script"])
        self.add_page("numpy", _("NumPy"), self.texts["numpy"])
        self.add_page("te", _("TE"), self.texts["te"])
        self.add_page("llvm", _("LLVM"), self.compiled["llvm"])
        self.add_page("asm", _("Assembly"), self.compiled["asm"])
        self.add_page("functions", _("Functions"), self._functions_page())
        self.library = LibraryPage(document)
        self.add_page("library", _("Library"), self.library)
        self._strip = QWidget()
        row_of(self._strip, (self.compiled_function, 1), margins=(8, 4, 8, 4))
        self.compiled["llvm"].column.insertWidget(0, self._strip)
        self.follows = check_box(
            _("Follow"), _("Open the functions of the selection, and close others")
        )
        self.follows.clicked.connect(self._set_follows)
        self.footer = CodeFooter(document, self.follows)
        column = self.layout()
        assert column is not None
        column.addWidget(self.footer)
        self._show_page(self.current())
        self.page_changed.connect(self._show_page)
        document.on(("code_form",), self._show_follows)
        self._show_follows()
        document.on(("snapshot", "nothing"), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_selection)
        stepping.moment_changed.connect(self._show_moment)
        self._show_snapshot()

    def _functions_page(self) -> QWidget:
        """Return the page with the table of all functions, and the commands on all."""
        self.by_rules = push_button(
            _("All by rules"),
            _("Schedule the whole model by rules, and list the rule of each function"),
            self.rules_wanted.emit,
        )
        page = QWidget()
        row = row_of(None, self.by_rules, STRETCH, margins=(8, 4, 8, 4))
        column_of(page, row, (self.functions, 1))
        return page

    def _show_page(self, page: str) -> None:
        """Move the choice of a function above the visible text, and show the footer."""
        if page in self.compiled:
            self.compiled[page].column.insertWidget(0, self._strip)
        self.footer.setVisible(page in self.texts and self._document.snapshot is not None)
        self.footer.set_script(page == "script")
        self._show_selection()

    def _set_follows(self, on: bool) -> None:
        self._document.set(code_form=replace(self._document.code_form, follows=on))

    def _show_follows(self) -> None:
        follows = self._document.code_form.follows
        if follows and not self.follows.isChecked():
            self._show_selection()
        self.follows.setChecked(follows)

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        self._function = ""
        self._first, self._open = (), frozenset()
        words = (
            nothing_words(self._document)
            if snapshot is None
            else (
                _("No function selected"),
                _("Click a node, a binding or a function to see its TensorIR."),
            )
        )
        self._say(*words)
        self.by_rules.setEnabled(snapshot is not None)
        self.footer.setVisible(self.current() in self.texts and snapshot is not None)
        if snapshot is None:
            self.functions.set_empty(*words)
            self.functions.set_rows(())
            self.set_context("")
            return
        self._show_moment()

    def _show_moment(self) -> None:
        document = self._document
        snapshot, moment = document.snapshot, self._stepping.moment
        self._watch.refresh()
        if snapshot is not None and moment is None:
            self._show_functions_of(snapshot.functions)
            document.show_functions(())
            self._colouring.renew()

    def _query(self) -> FunctionsQuery | None:
        recipe, moment = self._document.recipe, self._stepping.moment
        if recipe is None or moment is None:
            return None
        return FunctionsQuery(recipe, moment)

    def _take_functions(self, functions: tuple[FunctionRecord, ...]) -> None:
        self._show_functions_of(functions)
        self._document.show_functions(functions)
        self._colouring.renew()

    def _show_functions_of(self, functions: tuple[FunctionRecord, ...]) -> None:
        self._functions = functions
        self.functions.set_rows([_row(each) for each in functions])
        self._show_selection()

    def _take_problem(self, problem: Problem) -> None:
        self._functions = ()
        self.functions.set_rows(())
        self._say(problem.headline, problem.todo)

    def _show_selection(self) -> None:
        selection = self._document.selection
        if self._document.snapshot is None:
            return
        linked = [each for each in self._functions if self._is_linked(each)]
        callable_ = [each for each in linked if each.kind != "relax"]
        if self.current() == "functions":
            self.functions.set_selection([each.id for each in linked])
            if linked:
                self.functions.reveal(linked[0].id)
        shown = [each for each in callable_ if each.kind == "tensorir"]
        fate = "" if callable_ else fate_text(self._document, self._stepping)
        if fate:
            self._show_gone(fate)
            return
        if not shown and (not selection.chosen or self._stepping.moment is not None):
            # Keep the functions that are open, or their counterparts at this step; by default, show
            # the one with the most work.
            everything = [each for each in self._functions if each.kind == "tensorir"]
            kept = [each for each in everything if each.name in self._first]
            shown = callable_ = kept or sorted(everything, key=_work)[-1:]
        self._show_context(callable_)
        if shown:
            names = [each.name for each in shown]
            chosen = [each for each in shown if each.id in selection.chosen]
            if self._document.code_form.follows or not self._open:
                most = sorted(shown, key=_work)[-OFFERED:]
                self._first = tuple(names)
                self._open = frozenset(each.name for each in (*most, *chosen))
            stays = self._function in names and not chosen
            self._function = self._function if stays else max(chosen or shown, key=_work).name
            self._show_texts()
        elif self._stepping.moment is not None:
            self._show_none_yet()
        elif selection.chosen:
            self._show_nothing(callable_)

    def _is_linked(self, function: FunctionRecord) -> bool:
        selection = self._document.selection
        if self._stepping.moment is None:
            return function.id in selection.linked
        # Another function may have had the name at this step: compare the calls.
        return function.id in selection.chosen or any(
            call in selection.linked for call in function.calls
        )

    def _show_texts(self) -> None:
        """Show the functions of the selection, and the others as rows below."""
        selection = self._document.selection
        functions = {each.name: each for each in self._functions if each.kind == "tensorir"}
        first = [name for name in self._first if name in functions]
        snapshot = self._document.snapshot
        last = () if snapshot is None else {each.id for each in snapshot.functions}
        headings = []
        for name in dict.fromkeys((*first, *functions)):
            function, is_open = functions[name], name in self._open
            nodes = self._document.links.nodes_of(function.id)
            origin = _("from {calls}", calls=names_of(function.calls, most=3))
            note = origin if is_open else names_of(nodes or function.calls, most=3)
            headings.append(
                Heading(
                    name,
                    name,
                    note if function.calls else _("not called"),
                    _("Schedule ›") if is_open and function.id in last else "",
                    is_open,
                    bool(selection.chosen) and self._is_linked(function),
                )
            )
        self._offer(first, [name for name in functions if name not in first])
        for page in self.texts.values():
            page.show_functions(headings, self._stepping.moment)
        for compiled in self.compiled.values():
            compiled.show_text_of(self._function, self._stepping.moment)
        count = sum(each.is_open for each in headings)
        parts = [_("{count} of {headings}", count=count, headings=len(headings))]
        if self._stepping.moment is None and snapshot is not None and snapshot.passes:
            parts.append(_("after the passes"))
        self.footer.figure.set_whole(" · ".join(parts))

    def _toggle(self, name: str) -> None:
        """Open or close a function."""
        self._open = self._open ^ {name}
        if name in self._open:
            self._function = name
        self._show_texts()

    def _schedule(self, name: str) -> None:
        self.schedule_wanted.emit(f"tir:{name}")

    def _offer(self, first: Sequence[str], others: Sequence[str]) -> None:
        """Offer the compiled code of the functions of the selection, and of all others."""
        choice = self.compiled_function
        choice.clear()
        choice.addItems(first)
        if first and others:
            choice.insertSeparator(choice.count())
        choice.addItems(others)
        choice.setCurrentIndex(choice.findText(self._function))

    def _show_compiled(self, place: int) -> None:
        """Show the compiled code of another function."""
        self._function = self.compiled_function.itemText(place)
        self._show_texts()

    def _say(self, title: str, hint: str) -> None:
        """Show no function, and a reason."""
        self._first, self._open = (), frozenset()
        self.compiled_function.clear()
        self.footer.figure.set_whole("")
        for page in self.texts.values():
            page.show_nothing(title, hint)
        for compiled in self.compiled.values():
            compiled.show_nothing(title, hint)

    def _show_none_yet(self) -> None:
        self._say(
            _("No TensorIR function at this step"),
            _("LegalizeOps makes one of each operator."),
        )

    def _show_gone(self, fate: str) -> None:
        self._function = ""
        name = name_of(self._document.selection.chosen[0])
        self.set_context(_("nothing here for {name} ({fate})", name=name, fate=fate))
        sentence = _("{sentence}.", sentence=capitalized(fate))
        self._say(_("Nothing here for {name}", name=name), sentence)

    def _show_nothing(self, external: list[FunctionRecord]) -> None:
        self._function = ""
        name = self._document.selection.chosen[0].partition(":")[2]
        if external:
            title = _("{name} is a library function", name=external[0].name)
            hint = _("It is called by name, so there is no TensorIR to show.")
        else:
            title = _("No TensorIR for {name}", name=name)
            hint = _("It calls no function of the module.")
            chosen = self._document.selection.chosen
            if any(each.kind == "relax" and each.id in chosen for each in self._functions):
                hint = _("Select one of its bindings to see the function that it calls.")
        self._say(title, hint)

    def _show_context(self, functions: list[FunctionRecord]) -> None:
        moment = moment_text(self._stepping)
        untied = self._untied_text(functions)
        if untied:
            self.set_context(untied)
        elif moment:
            self.set_context(moment)
        elif len(functions) == 1:
            self.set_context(_call_text(functions[0], self._document))
        elif functions:
            self.set_context(_n("1 function", "{count} functions", len(functions)))
        else:
            self.set_context("")

    def _untied_text(self, functions: list[FunctionRecord]) -> str:
        """Show why the selection's lines are not marked in a function of several bindings."""
        selection = self._document.selection
        lost = [
            each
            for each in functions
            if each.untied
            and each.id not in selection.chosen
            and not any(
                binding in selection.linked for piece in each.pieces for binding in piece.bindings
            )
        ]
        if not lost or not selection.chosen:
            return ""
        return _(
            "The lines of {name} are not known: {name2} {untied}",
            name=name_of(selection.chosen[0]),
            name2=lost[0].name,
            untied=lost[0].untied,
        )

    def _show_script(self) -> None:
        self.set_current("script")

    def _select(self, entity: str, modifiers: Qt.KeyboardModifier) -> None:
        self._document.select((entity,), extend=bool(modifiers & EXTENDING))


def _work(function: FunctionRecord) -> tuple[int, int, str]:
    return (function.runs, function.loops, function.name)


def _call_text(function: FunctionRecord, document: Document) -> str:
    callers = names_of(document.links.nodes_of(function.id) or function.calls, most=3)
    return f"{function.name} · {callers}" if callers else function.name


def _row(function: FunctionRecord) -> Row:
    sizes = function.kind == "tensorir"
    callers = names_of(function.calls, most=12)
    return Row(
        function.id,
        (
            Cell(function.name, bold=True),
            Cell(KINDS[function.kind], role="quiet"),
            str(function.blocks) if sizes else "",
            str(function.loops) if sizes else "",
            str(len(function.calls)),
            Cell(callers, role="quiet", tooltip=names_of(function.calls, most=60)),
        ),
    )
