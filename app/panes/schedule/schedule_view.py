"""The Schedule mode: loops, primitives, form, code, history, variants and roofline in one view."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFocusEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QStackedWidget, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.shared import Shared
from lowerscope.app.kit.bar_controls import Field, Part, Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.layouts import column_of, row_of, stack_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import names_of, nothing_words
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.metrics import Figures, RooflineView, Standing, VariantTable
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_code import ScheduleCode
from lowerscope.app.panes.schedule.schedule_form import ScheduleForm
from lowerscope.app.panes.schedule.schedule_history import ScheduleHistory
from lowerscope.app.panes.schedule.schedule_moves_page import (
    ScheduleMenu,
    ScheduleMovesPage,
    ScheduleTree,
)
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.schedule import name_before_packing, shown_name
from lowerscope.core.model.snapshot import FunctionRecord
from lowerscope.core.model.texts import _

LEFT, MIDDLE = 320, 292
"""Widths of the loops and primitives, and of the form and figures."""

FIELD = 28
"""Height of the boxes in the tool bar."""

DOCK, LOW_DOCK = 190, 124
"""Heights of the history, the variants and the roofline."""

NARROW, LOW = 1180, 560
"""Sizes below which the form replaces the primitives, and the dock is low."""


class ScheduleView(Pane):
    """The workbench for one function; without a function, the list of those to choose from."""

    def __init__(
        self,
        shared: Shared,
        scheduling: Scheduling,
        variants: Variants,
        measurements: Measurements,
    ) -> None:
        super().__init__(_("Schedule"))
        self._document = document = shared.document
        self._variants = variants
        self._scheduling = scheduling
        # Unknown before the first layout.
        self._narrow: bool | None = None
        self._low: bool | None = None
        self.tree = ScheduleTree(document, scheduling)
        self.moves = ScheduleMovesPage(document, scheduling, measurements)
        self.form = ScheduleForm(document, scheduling, measurements)
        self.figures = Figures(document, shared.queries, scheduling, measurements)
        self.code = ScheduleCode(shared, scheduling, measurements)
        self.history = ScheduleHistory(document, shared.stepping, scheduling, measurements)
        self.variants = VariantTable(scheduling, variants, measurements)
        self.roofline = RooflineView(scheduling, measurements)
        self.menu = ScheduleMenu(document, scheduling, measurements, self)
        self.function, self.variant = Field(_("Function")), Field(_("Variant"))
        self.function_menu, self.variant_menu = QMenu(self), QMenu(self)
        self.function.set_menu(self.function_menu)
        self.variant.set_menu(self.variant_menu)
        self.by_rule = push_button(
            _("Auto-schedule"),
            _("Schedule the function by a rule: a variant whose steps give their reasons"),
        )
        self.tune = push_button(
            _("Tune…"), _("Try many schedules on this machine and keep the fastest")
        )
        self.left_over = QPushButton()
        self.left_over.setMenu(QMenu(self))
        self.left_over.hide()
        self.in_model = check_box(
            _("Apply to the model"),
            _("Add the step ApplySchedules to the end of the pipeline, so that Run uses it"),
        )
        self.standing = Standing(measurements)
        self.chooser = FunctionChooser(document, scheduling)
        self._lay_out()
        self.function_menu.aboutToShow.connect(self._fill_functions)
        self.in_model.clicked.connect(variants.set_in_model)
        self.by_rule.clicked.connect(variants.by_rule.ask)
        self.tree.menu_wanted.connect(self.open_menu)
        self.tree.row_activated.connect(self._enter_moves)
        self.moves.done.connect(self._leave_moves)
        scheduling.changed.connect(self._show)
        scheduling.trying.draft_changed.connect(self._show_draft)
        document.on(("recipe", "pending"), self._show)
        variants.left_over.changed.connect(self._show_left_over)
        self.code.header.maximise_wanted.connect(self._switch_code_alone)
        self.code.header.window_wanted.connect(self.header.window_wanted)
        self._show()

    def _lay_out(self) -> None:
        bar = strip_of(
            self.function,
            self.variant,
            self.by_rule,
            self.tune,
            self.in_model,
            self.left_over,
            (self.standing, 1),
        )
        for field in (self.function, self.variant):
            field.setFixedHeight(FIELD)
        self.offered = stack_of(self.moves)
        self.left = Split(Qt.Orientation.Vertical, self.tree, self.offered, shares=(1, 1))
        self.middle = stack_of(self.figures, self.form)
        self.columns = Split(
            Qt.Orientation.Horizontal, self.left, self.middle, self.code, shares=(0, 0, 1)
        )
        # In a narrow window, the figures and the roofline share the place of the variants.
        self.facts = SegmentedSwitch(
            _("Properties of the function"),
            (
                Segment("variants", _("Variants")),
                Segment("figures", _("Metrics")),
                Segment("roofline", _("Roofline")),
            ),
        )
        self.facts.changed.connect(self._show_facts)
        self.facts.setParent(self)
        self.facts.hide()
        self.side = stack_of(self.variants)
        self.dock = Split(
            Qt.Orientation.Horizontal,
            *(self.history, self.side, self.roofline),
            shares=(7, 4, 2),
        )
        self.rows = Split(Qt.Orientation.Vertical, self.columns, self.dock, shares=(1, 0))
        self.whole = stack_of(self.chooser, self.rows)
        page = QWidget()
        column_of(page, bar, (self.whole, 1))
        self.add_page("schedule", _("Schedule"), page)
        # The tool bar names the function, and has what a header has.
        self.header.hide()
        for widget, width in ((self.left, 220), (self.middle, 240), (self.code, 300)):
            widget.setMinimumWidth(width)
        for part, width in ((self.history, 240), (self.side, 220), (self.roofline, 160)):
            part.setMinimumSize(width, 60)

    # Sizes

    def _fit(self) -> None:
        """Arrange the parts for the size of the window."""
        narrow, low = self.width() < NARROW, self.height() < LOW
        if narrow != self._narrow:
            self._narrow = narrow
            self._set_narrow(narrow)
            rest = max(1, self.width() - LEFT - (0 if narrow else MIDDLE))
            self.columns.setSizes([LEFT, 0 if narrow else MIDDLE, rest])
            shares = (54, 46, 0) if narrow else (52, 30, 18)
            self.dock.setSizes([self.width() * share // 100 for share in shares])
        if low != self._low:
            self._low = low
            height = LOW_DOCK if low else DOCK
            above = max(1, self.height() - height)
            self.rows.setSizes([above, height])
            self.left.setSizes([above * 9 // 20, above * 11 // 20])

    def _set_narrow(self, narrow: bool) -> None:
        self.middle.setVisible(not narrow)
        if narrow:
            self.offered.addWidget(self.form)
            self.side.addWidget(self.figures)
            self.side.addWidget(self.roofline)
        else:
            self.middle.addWidget(self.figures)
            self.middle.addWidget(self.form)
            self.dock.addWidget(self.roofline)
            self.roofline.show()
        self.facts.setVisible(narrow)
        self._show_facts(self.facts.current() if narrow else "variants")
        self._show_draft()

    def _switch_code_alone(self) -> None:
        """Show the code alone, or all parts again."""
        alone = not self.dock.isHidden()
        self.dock.setVisible(not alone)
        self.left.setVisible(not alone)
        self.middle.setVisible(not alone and not self._narrow)

    def _show_facts(self, key: str) -> None:
        parts: dict[str, Figures | VariantTable | RooflineView] = {
            "variants": self.variants,
            "figures": self.figures,
            "roofline": self.roofline,
        }
        for part in parts.values():
            part.title.setVisible(not self._narrow)
        if self._narrow:
            # In the place of the title.
            row = parts[key].head.layout()
            assert isinstance(row, QHBoxLayout)
            row.insertWidget(0, self.facts)
        self.side.setCurrentWidget(parts[key])

    # Content

    def _show(self) -> None:
        scheduling, variants = self._scheduling, self._variants
        record, schedule = scheduling.record, scheduling.schedule
        has_function = bool(scheduling.function)
        self.whole.setCurrentWidget(self.rows if has_function else self.chooser)
        shown = scheduling.function or _("none selected")
        self.function.set_lines((Part(_("Function"), "quiet"), Part(shown, "strong")))
        name = _("unscheduled") if schedule is None else shown_name(schedule.variant)
        self.variant.set_lines((Part(_("Variant"), "quiet"), Part(name, "strong")))
        self.function.setEnabled(bool(scheduling.functions))
        for widget in (self.variant, self.by_rule, self.tune, self.in_model):
            widget.setEnabled(record is not None)
        self.in_model.setChecked(variants.in_model)
        self.standing.keep_room(has_function)

    def _fill_functions(self) -> None:
        menu = self.function_menu
        menu.clear()
        for each in self._scheduling.functions:
            action = menu.addAction(literal(each.name), partial(self._document.select, (each.id,)))
            action.setCheckable(True)
            action.setChecked(name_before_packing(each.name) == self._scheduling.function)

    def _show_left_over(self) -> None:
        left_over = self._variants.left_over
        count = len(left_over.all)
        self.left_over.setVisible(count > 0)
        self.left_over.setText(_("⚠ {count} orphaned", count=count))
        head = _("Schedules of functions that no longer exist:")
        self.left_over.setToolTip("\n".join((head, *map(left_over.title, left_over.all))))

    def _show_draft(self) -> None:
        drafted = self._scheduling.trying.draft is not None
        stack, other = (self.offered, self.moves) if self._narrow else (self.middle, self.figures)
        if drafted:
            stack.setCurrentWidget(self.form)
        elif stack.currentWidget() is not other:
            had_focus = self.form.isAncestorOf(self.window().focusWidget() or self)
            stack.setCurrentWidget(other)
            if had_focus:
                self.tree.setFocus()

    # Going to parts

    def entrance(self) -> QWidget:
        return self.tree if self._scheduling.function else self.chooser.table

    def show_numbers(self) -> None:
        """Go to the figures of the function."""
        self._scheduling.trying.cancel_draft()
        if self._narrow:
            self.facts.set_current("figures")
            self._show_facts("figures")
        self.figures.table.setFocus()

    def _enter_moves(self) -> None:
        """Move the focus to the primitives of the activated row."""
        self._scheduling.trying.cancel_draft()
        self.moves.choices.line.setFocus()
        self.moves.choices.point_at_first()

    def _leave_moves(self) -> None:
        """Move the focus back to the loops; a form takes it from there."""
        if self.moves.isAncestorOf(self.window().focusWidget() or self):
            self.tree.setFocus()

    def open_menu(self, place: QPoint) -> None:
        """Open the primitives for the selection as a menu."""
        if self._scheduling.record is not None:
            self._scheduling.trying.cancel_draft()
            self.menu.open_at(place)

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would skip the widgets before it.
        self.entrance().setFocus(event.reason())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.isVisible():
            self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()


class FunctionChooser(QWidget):
    """The TensorIR functions of the model, to choose the one to schedule."""

    def __init__(self, document: Document, scheduling: Scheduling) -> None:
        super().__init__()
        self._document = document
        self._scheduling = scheduling
        self.title = Label(role="title")
        self.hint = Label(role="quiet", wraps=True)
        self.table = Table(
            _("Functions to schedule"),
            (
                Column(_("function"), width=220),
                Column(_("blocks"), numeric=True),
                Column(_("loops"), numeric=True),
                Column(_("iterations"), numeric=True, tooltip=_("in one call")),
                Column(_("calls"), numeric=True),
                Column(_("called by"), stretch=True, width=160),
            ),
        )
        self.empty = EmptyState()
        words = column_of(None, self.title, self.hint, margins=(10, 14, 10, 10), spacing=4)
        listed = QWidget()
        column_of(listed, words, (self.table, 1))
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(listed)
        row_of(self, (self._stack, 1))
        self.table.row_clicked.connect(self._choose)
        self.table.row_activated.connect(self._choose)
        document.on(("snapshot", "selection"), self._show)
        document.on(("recipe", "pending"), self._show)
        scheduling.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        functions = self._scheduling.functions
        self._stack.setCurrentIndex(int(bool(functions)))
        if not functions:
            self.empty.set_text(*self._nothing())
            return
        chosen = self._document.selection.chosen
        if chosen:
            self.title.setText(_("{name} has no TensorIR function", name=name_of(chosen[0])))
        else:
            self.title.setText(_("No function selected"))
        self.hint.setText(_("Choose the function to schedule; the longest are at the top."))
        self.table.set_rows([self._row(each) for each in functions])

    def _nothing(self) -> tuple[str, str]:
        if self._document.snapshot is None:
            return nothing_words(self._document)
        return (
            _("The model has no TensorIR function"),
            _("Lower a node by TE, or add LegalizeOps to the pipeline."),
        )

    def _choose(self, key: str) -> None:
        self._document.select((key,))

    def _row(self, function: FunctionRecord) -> Row:
        callers = self._document.links.nodes_of(function.id) or function.calls
        counts = (function.blocks, function.loops, function.runs, len(function.calls))
        return Row(
            function.id,
            (
                Cell(function.name, bold=True),
                *(Cell(f"{count:,}", value=count) for count in counts),
                Cell(names_of(callers, most=12), "quiet", tooltip=names_of(callers, most=60)),
            ),
        )
