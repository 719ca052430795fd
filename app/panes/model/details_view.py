"""The inspector: facts about the last selected entity, in sections, and the lowering of a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import IconButton, push_button
from lowerscope.app.kit.glossary import link, term_of
from lowerscope.app.kit.layouts import column_of, row_of, scrolled
from lowerscope.app.kit.pane import ElidedLabel, Pane
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, MarkupLabel, breakable, join_markup, markup
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font
from lowerscope.app.panes.common.descriptions import (
    RANDOM,
    Facts,
    find_node,
    find_part,
    in_order,
    line_text,
    origin_text,
    parts_text,
    tensor_of,
)
from lowerscope.app.panes.common.run_figures import ERROR, TIME, run_facts
from lowerscope.app.panes.common.values_panel import ValuesPanel
from lowerscope.core.model.formatting import (
    bytes_text,
    duration_text,
    error_text,
    shape_text,
)
from lowerscope.core.model.graph import STRATEGY_NAMES, name_of
from lowerscope.core.model.recipe import Strategy
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.model.snapshot import (
    FunctionRecord,
    FxNode,
    FxPart,
    LibraryRecord,
    ParameterRecord,
    Snapshot,
)
from lowerscope.core.model.texts import _, _n

# --- Facts about a selected entity, in sections, for the inspector ---


@dataclass(frozen=True)
class Fact:
    """A label with its value: a text, or entities to select."""

    label: str
    text: str = ""
    note: str = ""  # Behind the text, quieter.
    entities: tuple[str, ...] = ()  # Shown by their names.
    code: bool = False  # A line of code, over the whole width.
    action: str = ""  # A link that the text is: ``"source"`` or ``"rule"``.
    role: str = ""  # Role of the text's colour.

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to show."""
        return not self.text and not self.entities


@dataclass(frozen=True)
class Section:
    """Facts under a title."""

    title: str
    facts: tuple[Fact, ...]


def sections_of(
    snapshot: Snapshot,
    entity: str,
    linked: frozenset[str],
    function: FunctionRecord | None = None,
    run: RunRecord | None = None,
) -> tuple[Section, ...]:
    """Return the facts about an entity.

    Args:
        linked: Ids of what it is linked with.
        function: The function that it is at the current step.
        run: The last run.
    """
    found = _Inspected(snapshot, entity, linked, function, run)
    sections = (
        Section(title, tuple(fact for fact in facts if not fact.is_empty))
        for title, facts in found.sections()
    )
    return tuple(section for section in sections if section.facts)


class _Inspected:
    def __init__(
        self,
        snapshot: Snapshot,
        entity: str,
        linked: frozenset[str],
        function: FunctionRecord | None,
        run: RunRecord | None,
    ) -> None:
        self._snapshot = snapshot
        self._entity = entity
        self._linked = linked
        self._functions = snapshot.functions if function is None else (function,)
        self._run = run

    def sections(self) -> Iterator[tuple[str, list[Fact]]]:
        """Yield titles and facts, empty ones included."""
        node = find_node(self._snapshot, self._entity)
        part = find_part(self._snapshot, self._entity)
        if node is not None:
            yield from self._of_node(node)
        elif part is not None:
            yield from self._of_part(*part)
        else:
            yield from self._of_other()
        yield _("Last run"), list(self._run_facts())

    # Nodes

    def _of_node(self, node: FxNode) -> Iterator[tuple[str, list[Fact]]]:
        operator = node.label.partition(" · ")[0]
        line = node.line
        yield (
            _("Node"),
            [
                Fact(_("operator"), operator if operator != node.opcode else ""),
                Fact(_("opcode"), node.opcode),
                Fact(_("target"), node.target if node.opcode.startswith("call_f") else ""),
                Fact(_("args"), node.args if node.args != "()" else ""),
                Fact(_("kwargs"), node.kwargs if node.kwargs != "{}" else ""),
                Fact(_("source"), line_text(line) if line else "", action="source"),
                Fact("", line.text.strip() if line else "", code=True),
            ],
        )
        yield _("Shapes"), list(self._shapes(node))
        yield (
            _("Lowering of this node"),
            [
                Fact(_("rule"), node.rule, action="rule"),
                Fact(_("reason"), node.reason),
                Fact(_("random"), RANDOM if node.random else ""),
                Fact(_("parts"), parts_text(node)),
            ],
        )
        yield _("Became"), self._became(node.bindings, self._called(node.functions))

    def _shapes(self, node: FxNode) -> Iterator[Fact]:
        nodes = self._snapshot.nodes
        for source in self._snapshot.operands.get(node.id, ()):
            if source in nodes and nodes[source].shape is not None:
                yield Fact(_("in"), nodes[source].title, _form(nodes[source]))
        for parameter in self._snapshot.model.parameters:
            if parameter.id in self._linked:
                name = parameter.name.rpartition(".")[2]
                yield Fact(name, shape_text(parameter.shape), bytes_text(parameter.size))
        yield Fact(_("out"), shape_text(node.shape) or node.type, node.dtype)

    def _became(self, bindings: Sequence[str], functions: Sequence[str]) -> list[Fact]:
        library = tuple(each for each in functions if each.startswith("ext:"))
        own = tuple(each for each in functions if each not in library)
        return [
            Fact(_("bindings"), entities=tuple(bindings)),
            Fact(_("functions"), entities=own),
            Fact(_("library"), entities=library),
        ]

    def _of_part(self, node: FxNode, part: FxPart) -> Iterator[tuple[str, list[Fact]]]:
        yield (
            _("Part of a node"),
            [
                Fact(_("node"), entities=(node.id,)),
                Fact(_("target"), part.target),
                Fact(_("args"), part.args),
                Fact(_("out"), shape_text(part.shape), part.dtype),
                Fact(_("rule"), part.rule),
            ],
        )
        yield _("Became"), self._became(part.bindings, self._called(part.functions))

    def _called(self, functions: Sequence[str]) -> Sequence[str]:
        """Return the functions that are called, in their order: at a step, those of the step."""
        linked = {each for each in self._linked if each.startswith(("tir:", "ext:"))}
        linked = {each for each in linked if "/" not in each}
        return (*(each for each in functions if each in linked), *sorted(linked - {*functions}))

    # Everything else

    def _of_other(self) -> Iterator[tuple[str, list[Fact]]]:
        entity, model = self._entity, self._snapshot.model
        parameters = (*model.parameters, *self._snapshot.constants)
        tensor = next((each for each in parameters if each.id == entity), None)
        library = next((each for each in self._snapshot.library if each.id == entity), None)
        function = next((each for each in self._functions if each.id == entity), None)
        module = next((each for each in model.modules if each.id == entity), None)
        if library is not None:
            yield _("Library function"), _library_facts(library)
        elif function is not None:
            yield _("Function"), _function_facts(function)
        elif tensor is not None:
            yield _TENSORS.get(tensor.kind, tensor.kind), _tensor_facts(tensor)
        elif module is not None:
            count = f"{module.parameters:,}"
            yield _("Module"), [Fact(_("kind"), module.kind), Fact(_("parameters"), count)]
        elif entity.startswith("tir:"):
            yield from self._of_place()
        elif entity.startswith("relax:"):
            yield _("Binding"), [Fact(_("function"), entity[6:].partition("/")[0])]
        given = [each for each in model.inputs if f"fx:{each.name}" in self._linked]
        yield _("Input"), [Fact(each.name, shape_text(each.shape), each.dtype) for each in given]
        yield (
            _("Linked with"),
            [
                Fact(_("nodes"), entities=self._tied("fx:")),
                Fact(_("bindings"), entities=self._tied("relax:")),
                Fact(_("functions"), entities=self._tied("tir:", whole=True)),
                Fact(_("library"), entities=self._tied("ext:")),
            ],
        )

    def _of_place(self) -> Iterator[tuple[str, list[Fact]]]:
        """Yield the facts about a block, a loop or a buffer of a TensorIR function."""
        owner, _slash, part = self._entity.removeprefix("tir:").partition("/")
        block, slash, loop = part.partition("/")
        facts = [Fact(_("block"), block)]
        if slash:
            around = Fact(_("block"), block)
            facts = [Fact(_("loop"), loop), around] if block else [Fact(_("buffer"), loop)]
        made_of = next((each for each in self._functions if each.id == f"tir:{owner}"), None)
        if made_of is not None and made_of.untied and not self._tied("fx:"):
            facts.append(Fact(_("nodes"), _("not known: {untied}", untied=made_of.untied)))
        yield _("Part of a function"), facts

    def _tied(self, kind: str, *, whole: bool = False) -> tuple[str, ...]:
        found = (each for each in self._linked if each.startswith(kind) and each != self._entity)
        return in_order(self._snapshot, (each for each in found if not whole or "/" not in each))

    def _run_facts(self) -> Iterator[Fact]:
        if self._run is None:
            return
        runs = [each for each in self._run.nodes if each.id == self._entity]
        found = runs[0] if runs else None
        if found is not None and found.matches is not None:
            mark = "✓" if found.matches else "✕"
            yield Fact(
                ERROR,
                f"{mark} {error_text(found.max_abs_error)}",
                _("{max_rel_error} relative", max_rel_error=error_text(found.max_rel_error)),
                role="right" if found.matches else "wrong",
            )
            yield Fact(_("why"), "" if found.matches else found.reason)
        for label, text in run_facts(self._run, (self._entity,)):
            if label == TIME:
                time, _dot, note = text.partition(" · ")
                yield Fact("TVM", time, note)
            elif label != ERROR or found is None or found.matches is None:
                yield Fact(label, text)
        if found is not None and found.torch_ms is not None:
            yield Fact(self._snapshot.model.engine, duration_text(found.torch_ms))


def _form(node: FxNode) -> str:
    return f"{shape_text(node.shape)} {node.dtype}".strip()


def _library_facts(outside: LibraryRecord) -> list[Fact]:
    at = line_text(outside.line) if outside.line else origin_text(outside)
    return [
        Fact(_("registered"), at),
        Fact(_("called by"), "" if outside.calls else _("nothing"), entities=outside.calls),
    ]


_TENSORS = {"parameter": _("Parameter"), "buffer": _("Buffer"), "constant": _("Constant")}
_FUNCTIONS = {
    "relax": _("Relax function"),
    "tensorir": _("TensorIR function"),
    "external": _("Library function"),
}


def _function_facts(function: FunctionRecord) -> list[Fact]:
    is_tensorir = function.kind == "tensorir"
    loops = _n("{count:,} loop", "{count:,} loops", function.loops)
    blocks = _n("{count:,} block", "{count:,} blocks", function.blocks)
    return [
        Fact(_("kind"), _FUNCTIONS[function.kind]),
        Fact(
            _("size"), _("{loops} in {blocks}", loops=loops, blocks=blocks) if is_tensorir else ""
        ),
        Fact(
            _("called by"),
            "" if function.calls or not is_tensorir else _("nothing"),
            entities=function.calls,
        ),
    ]


def _tensor_facts(tensor: ParameterRecord) -> list[Fact]:
    return [
        Fact(_("shape"), shape_text(tensor.shape), tensor.dtype),
        Fact(_("size"), bytes_text(tensor.size)),
        Fact(_("also"), _(", ").join(tensor.aliases)),
    ]


MOST = 12
"""Entities of a fact that are shown by name."""

MOST_PAGES = 12
"""Sets of facts whose widgets are kept: to make these takes most of the time of a selection."""

_LABELS = 68
_CHIP = 130
_TITLE = 112
_PIXELS = 12.0


class DetailsView(Pane):
    """The pane with the facts, which has its place only while something is selected."""

    rule_wanted = Signal()  # Show the rule of the node.
    source_wanted = Signal()  # Show the line of the node in the model's file.
    compare_wanted = Signal()  # Show the values of the node.
    schedule_wanted = Signal(str)  # Schedule a function: its id.
    close_wanted = Signal()

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(_("Inspector"))
        self._document = document
        self._sections: tuple[Section, ...] = ()
        self._values: Facts = ()
        # Of the last selections, the least recent first.
        self._kept: dict[object, _Page] = {}
        self._function = ""
        self.pin = IconButton("pin", _("Keep the inspector without a selection"))
        self.pin.setCheckable(True)
        close = IconButton("close", _("Close the inspector (I)"))
        close.clicked.connect(self.close_wanted)
        for button in (self.pin, close):
            self.add_corner(button)
        self.lowering = SegmentedSwitch(_("Lowering of this node"))
        self.lowering.set_segments(
            [Segment(key, label, shade=_SHADES[key]) for key, label in _LABELLED]
        )
        self.lowering.changed.connect(self._lower)
        self.scope = Label(role="quiet", wraps=True)
        self.scope.setFont(ui_font(11))
        self.usual = push_button(_("As the model"), act=self._lower_as_usual, look="quiet")
        self._lowering = QWidget()
        column_of(self._lowering, self.lowering, self.scope, self.usual, spacing=4)
        self.values = ValuesPanel(document, queries, self._add_values, self.set_busy)
        self.compare = push_button(_("Compare values"), act=self.compare_wanted.emit)
        self.schedule = push_button(_("Schedule"), act=self._schedule)
        self._area = scrolled(sideways=False)
        buttons = QWidget()
        row_of(buttons, (self.compare, 1), (self.schedule, 1), margins=(12, 8, 12, 8), spacing=6)
        self._page = QWidget()
        column_of(self._page, (self._area, 1), self.values, buttons)
        self._empty = EmptyState(
            _("Nothing is selected"),
            _("Click a box of the graph, a line of code, or an item of the outline."),
        )
        either = QWidget()
        column_of(either, (self._page, 1), (self._empty, 1))
        self.add_page("details", _("Selection"), either)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("recipe", "pending"), self._show_lowering)
        document.on(("run", "running"), self._show_selection)
        theme.notifier().changed.connect(self._renew)
        self._show_selection()

    @property
    def has_content(self) -> bool:
        """Return whether something is selected."""
        return self._document.snapshot is not None and bool(self._document.selection.chosen)

    def facts(self) -> dict[str, str]:
        """Return the values that are shown, by label."""
        facts = (fact for section in self._shown() for fact in section.facts)
        return {
            fact.label: _(", ").join(map(name_of, fact.entities))
            or f"{fact.text} {fact.note}".strip()
            for fact in facts
        }

    def _show_selection(self) -> None:
        snapshot, chosen = self._document.snapshot, self._document.selection.chosen
        self._values, self._sections = (), ()
        self._page.setVisible(self.has_content)
        self._empty.setVisible(not self.has_content)
        if snapshot is None or not chosen:
            self.header.title.setText(_("Inspector"))
            self.header.title.setToolTip("")
            self.values.show_nothing()
            self._fill()
            return
        entity = chosen[-1]
        linked = self._document.linked_to(entity)
        function = self._document.function_at_step(entity)
        run = self._document.run_record
        self._sections = sections_of(snapshot, entity, linked, function, run)
        node = find_node(snapshot, entity)
        name = name_of(entity) if node is None else node.title
        metrics = TextMetrics(self.header.title.font())
        self.header.title.setText(metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, _TITLE))
        self.header.title.setToolTip(name)
        tensorir = [each.id for each in snapshot.functions if each.kind == "tensorir"]
        owner, final = entity.partition("/")[0], self._document.links.at_step(()).of(entity)
        found = [each for each in tensorir if each in final or each == owner]
        self._function = owner if owner in found else found[0] if found else ""
        self.schedule.setEnabled(bool(self._function))
        self.compare.setEnabled(node is not None and run is not None)
        self.compare.setToolTip("" if run is not None else _("Run first (F5)"))
        self._fill()
        tensor = tensor_of(entity, linked)
        if tensor:
            self.values.show_tensor(tensor)
        else:
            self.values.show_nothing()

    def _node(self) -> FxNode | None:
        snapshot, chosen = self._document.snapshot, self._document.selection.chosen
        return find_node(snapshot, chosen[-1]) if snapshot is not None and chosen else None

    def _add_values(self, facts: Facts) -> None:
        self._values = facts
        self._fill()

    def _shown(self) -> tuple[Section, ...]:
        if not self._values:
            return self._sections
        values = Section(_("Values"), tuple(Fact(label, text) for label, text in self._values))
        return (*self._sections[:1], values, *self._sections[1:])

    # Lowering

    def _show_lowering(self) -> None:
        """Show the strategy that is wanted for the node, and whether it is its own."""
        node, recipe = self._node(), self._document.wanted
        if node is None or recipe is None or not node.strategy:
            return
        own = next((each for each in recipe.overrides if each.pattern == node.id), None)
        wanted = own.strategy if own is not None else node.strategy
        self.lowering.set_current(wanted)
        name = STRATEGY_NAMES[wanted]
        self.scope.setText(
            _("{name}, for this node only.", name=name)
            if own is not None
            else _("{name}, as the model. Another choice applies to this node only.", name=name)
        )
        self.usual.setVisible(own is not None)

    def _lower(self, strategy: str) -> None:
        node = self._node()
        if node is not None:
            wanted: dict[str, Strategy] = {"high-level": "high-level", "te": "te"}
            self._document.lower_nodes((node.id,), wanted.get(strategy, "library"))

    def _lower_as_usual(self) -> None:
        node = self._node()
        if node is not None:
            self._document.lower_nodes((node.id,), None)

    # Content

    def _renew(self) -> None:
        """Build the sections anew, in other colours."""
        self._kept.clear()
        self._fill()

    def _fill(self) -> None:
        """Show the sections, in the widgets of an earlier selection with the same facts if any."""
        sections, node = self._shown(), self._node()
        lowers = node is not None and bool(node.strategy)
        shape = lowers, tuple((each.title, tuple(map(_kind, each.facts))) for each in sections)
        page = self._kept.pop(shape, None)
        if page is None:
            page = self._built(sections, lowers)
        self._kept[shape] = page
        facts = (fact for section in sections for fact in section.facts)
        for widget, fact in zip(page.values, facts, strict=True):
            _put(widget, fact)
        if self._area.widget() is not page.widget:
            # The pages outlive it.
            self._area.takeWidget()
            self._area.setWidget(page.widget)
        if page.switch >= 0:
            if self._lowering.parentWidget() is not page.widget:
                page.column.insertWidget(page.switch, self._lowering)
                self._lowering.show()
            self._show_lowering()
        while len(self._kept) > MOST_PAGES:
            oldest = self._kept.pop(next(iter(self._kept)))
            if self._lowering.parentWidget() is oldest.widget:
                self._lowering.setParent(None)

    def _built(self, sections: tuple[Section, ...], lowers: bool) -> _Page:
        widget = QWidget()
        column = QVBoxLayout(widget)
        column.setContentsMargins(12, 8, 12, 12)
        column.setSpacing(4)
        page = _Page(widget, column)
        for number, section in enumerate(sections):
            title = Label(section.title)
            title.setFont(ui_font(_PIXELS, QFont.Weight.DemiBold))
            if number:
                column.addSpacing(10)
            link(title, section.title)
            column.addWidget(title)
            if lowers and section.title == _("Lowering of this node"):
                page.switch = column.count()
            column.addLayout(self._grid(section, page))
        column.addStretch(1)
        return page

    def _grid(self, section: Section, page: _Page) -> QGridLayout:
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4)
        grid.setVerticalSpacing(4)
        grid.setColumnMinimumWidth(0, _LABELS)
        grid.setColumnStretch(1, 1)
        for row, fact in enumerate(section.facts):
            value = self._value(fact)
            page.values.append(value)
            if fact.code:
                grid.addWidget(value, row, 0, 1, 2)
                continue
            label = ElidedLabel(role="quiet")
            label.setFont(ui_font(_PIXELS))
            label.set_whole(fact.label)
            link(label, fact.label)
            grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, row, 1)
        return grid

    def _value(self, fact: Fact) -> QLabel:
        """Return a widget for a value; `_put` fills it."""
        if fact.code:
            return _CodeLine()
        value: QLabel
        if fact.entities or fact.action:
            value = MarkupLabel(wraps=True)
            value.linkActivated.connect(self._follow)
            value.setTextInteractionFlags(
                Qt.TextInteractionFlag.LinksAccessibleByMouse
                | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
            )
            value.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        elif fact.note:
            value = MarkupLabel(role=fact.role, wraps=True)
        elif " " in fact.text:
            value = Label(role=fact.role, wraps=True)
        else:
            # A single name is elided, and not broken.
            value = name = ElidedLabel(role=fact.role)
            link(name, fact.text)
        if not isinstance(value, ElidedLabel):
            value.setMinimumWidth(1)
        value.setFont(ui_font(_PIXELS))
        return value

    def _follow(self, link: str) -> None:
        kind, _sep, entity = link.partition(" ")
        if kind == "select":
            self._document.select((entity,))
        elif kind == "rule":
            self.rule_wanted.emit()
        else:
            self.source_wanted.emit()

    def _schedule(self) -> None:
        self.schedule_wanted.emit(self._function)


_LABELLED = tuple(STRATEGY_NAMES.items())
_SHADES = {"high-level": "accent", "te": "te", "library": "library"}


@dataclass
class _Page:
    """Widgets of sections: those of the values in order, and the place of the lowering switch."""

    widget: QWidget
    column: QVBoxLayout
    values: list[QLabel] = field(default_factory=list)
    switch: int = -1


def _kind(fact: Fact) -> tuple[object, ...]:
    """Return what the widgets of a fact depend on, besides its text."""
    term = fact.text if term_of(fact.text) is not None else ""
    is_link = bool(fact.entities or fact.action)
    return fact.label, fact.code, is_link, bool(fact.note), " " in fact.text, fact.role, term


def _put(widget: QLabel, fact: Fact) -> None:
    """Show a value in the widget that was made for one like it."""
    if isinstance(widget, ElidedLabel):
        widget.set_whole(fact.text)
    elif fact.entities or fact.action:
        widget.setText(_chips(fact) if fact.entities else _link(fact))
    elif fact.note:
        pattern = '{0} <span style="color:{1}">{2}</span>'
        quiet = theme.current().quiet
        widget.setText(markup(pattern, breakable(fact.text), quiet, breakable(fact.note)))
        widget.setToolTip(f"{fact.text} {fact.note}")
    else:
        widget.setText(breakable(fact.text))


class _CodeLine(ElidedLabel):
    """A line of code on a ground of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.setFont(code_font())
        self.setContentsMargins(8, 4, 8, 4)
        self.setAutoFillBackground(True)
        self.setProperty("ground", "code")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(0, 26)


def _chips(fact: Fact) -> str:
    """Return links that select entities, as HTML."""
    colours, metrics = theme.current(), TextMetrics(code_font())
    chips: list[str] = []
    for entity in fact.entities[:MOST]:
        name = metrics.elidedText(name_of(entity), Qt.TextElideMode.ElideMiddle, _CHIP)
        style = f"background-color:{colours.accent_ground}; color:{colours.accent};"
        chips.append(
            markup(
                '<a href="select {0}" style="{1} text-decoration:none">&nbsp;{2}&nbsp;</a>',
                entity,
                style,
                name,
            )
        )
    more = len(fact.entities) - MOST
    if more > 0:
        chips.append(_("and {more} more", more=more))
    return join_markup(" ", chips)


def _link(fact: Fact) -> str:
    style = f"color:{theme.current().accent}; text-decoration:none"
    text = breakable(fact.text)
    if fact.action == "rule":
        return markup('{0} · <a href="rule" style="{1}">{2}</a>', text, style, _("show"))
    return markup('<a href="{0}" style="{1}">{2}</a>', fact.action, style, text)
