"""The Schedule mode: loops, primitives, form, code, history, variants and roofline in one view."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFocusEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QStackedWidget, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.shared import Shared
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.bar_controls import Field, Part, Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.charts.step_strip import StepCell, StepStrip
from lowerscope.app.kit.layouts import column_of, row_of, stack_of
from lowerscope.app.kit.pane import Pane, PartsLabel
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.split import Split, head_of, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import names_of, nothing_words
from lowerscope.app.panes.schedule.measurements import START, Measurements, Scheduled
from lowerscope.app.panes.schedule.metrics import (
    AdviceList,
    Figures,
    RooflineView,
    Standing,
    VariantTable,
)
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_code import ScheduleCode
from lowerscope.app.panes.schedule.schedule_form import ScheduleForm
from lowerscope.app.panes.schedule.schedule_moves_page import (
    ScheduleMenu,
    ScheduleMovesPage,
    ScheduleTree,
)
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.schedule import name_before_packing, shown_name
from lowerscope.core.model.schedule_records import ScheduleStep, Verdict
from lowerscope.core.model.snapshot import FunctionRecord
from lowerscope.core.model.texts import _, _n

# --- The history of a schedule: its steps side by side, with the time after each ---

SAME: dict[Verdict, tuple[str, str, str]] = {
    "same": (_("✓ same"), "right", _("checked: the result is the same after this step")),
    "differs": (_("✕ differs"), "wrong", _("checked: the result differs after this step")),
    "inconclusive": (
        _("? inconclusive"),
        "unsure",
        _("checked: there was no finite value to compare"),
    ),
    "unknown": (_("? not known"), "", _("the check after this step had no result")),
}
"""Mark, role and text for a step, by the verdict on the function after it."""


class ScheduleHistory(QWidget):
    """The steps of the schedule, of which the current one is marked."""

    def __init__(
        self,
        document: Document,
        stepping: Stepping,
        scheduling: Scheduling,
        measurements: Measurements,
    ) -> None:
        super().__init__()
        self._document = document
        self._scheduling = scheduling
        self._stepping = stepping
        self._measurements = measurements
        self.context = PartsLabel()
        self.context.set_role("quiet")
        self.automatic = check_box(
            _("Measure after each step"), _("Check and measure each step automatically")
        )
        self.all = push_button(
            _("Measure all"),
            _("Check and measure the function after each step that was not measured yet"),
        )
        self.undo = push_button(_("Undo"), _("Undo the last change of the schedule (Ctrl+Z)"))
        self.keep = push_button(_("Save"), _("Copy, save or load the schedule"))
        self.keep.setMenu(QMenu(self))
        self.strip = StepStrip(_("Steps of the schedule"))
        head = head_of(
            Label(_("History"), role="title"),
            (self.context, 1),
            self.automatic,
            self.all,
            self.undo,
            self.keep,
        )
        column_of(self, head, (self.strip, 1))
        editing = scheduling.editing
        queued = Qt.ConnectionType.QueuedConnection
        self.automatic.clicked.connect(measurements.set_automatic)
        self.all.clicked.connect(self.measure_all)
        self.undo.clicked.connect(document.undo)
        self.strip.stepped.connect(self._go, queued)
        self.strip.row_activated.connect(self._edit, queued)
        self.strip.switched.connect(editing.switch)
        self.strip.moved.connect(editing.move, queued)
        self.strip.removed.connect(editing.remove)
        self.strip.inserted.connect(self._insert_before)
        self.strip.menu_wanted.connect(self._open_menu)
        scheduling.changed.connect(self._show)
        measurements.changed.connect(self._show_cells)
        stepping.schedule_moved.connect(self._show)
        document.on(("recipe", "pending"), self._show_undo)
        self._show()

    # Content

    def _show(self) -> None:
        scheduling = self._scheduling
        record, schedule = scheduling.record, scheduling.schedule
        self._show_cells()
        count = 0 if record is None else len(record.steps)
        name = _("unscheduled") if schedule is None else shown_name(schedule.variant)
        steps = _n("1 step", "{count} steps", count)
        words = (name, steps, _("time after each, on a log scale"))
        self.context.set_whole("" if record is None else " · ".join(words))
        for button in (self.all, self.keep):
            button.setEnabled(record is not None)
        self._show_undo()

    def _show_undo(self) -> None:
        self.undo.setEnabled(self._scheduling.can_undo)

    def _show_cells(self) -> None:
        record, measurements = self._scheduling.record, self._measurements
        self.automatic.setChecked(measurements.automatic)
        if record is None:
            self.strip.set_cells(())
            return
        after = measurements.prefixes()
        cells = [self._start_cell(after.get(START))]
        for place, step in enumerate(record.steps):
            cells.append(self._cell(place, step, after.get(step.id)))
        torch, level = measurements.torch, None
        if torch is not None and torch.torch_ms and not torch.torch_does_more:
            time = duration_text(torch.torch_ms, about=torch.disturbed)
            words = _("torch {torch}", torch=time)
            level = (self._document.named_engine(words), torch.torch_ms)
        self.strip.set_cells(cells, level)
        index = self._stepping.schedule_index
        place = len(record.steps) if index is None else min(index, len(record.steps))
        self.strip.select(record.steps[place - 1].id if place else START)

    def _start_cell(self, of: Scheduled | None) -> StepCell:
        value, text, unsure = self._time(of)
        return StepCell(
            START,
            _("unscheduled"),
            value,
            text,
            unsure,
            mark=_("start"),
            quiet=True,
            tooltip=_("Before the first step"),
        )

    def _cell(self, place: int, step: ScheduleStep, of: Scheduled | None) -> StepCell:
        value, text, unsure = self._time(of)
        mark, role, said = self._mark(step, of)
        note = step.error.message.partition("\n")[0] if step.error is not None else step.comment
        lines = (step.title, step.code, note, text and _("takes {text}", text=text), said)
        return StepCell(
            step.id,
            step.title,
            value,
            text,
            unsure,
            mark,
            role,
            quiet=step.status != "done",
            place=place,
            said=note or said,
            tooltip="\n".join(filter(None, lines)),
        )

    def _time(self, of: Scheduled | None) -> tuple[float | None, str, bool]:
        measured = None if of is None else self._measurements.measured(of)
        if measured is None:
            return None, "", False
        return measured.milliseconds, duration_text(measured.milliseconds), measured.disturbed

    def _mark(self, step: ScheduleStep, of: Scheduled | None) -> tuple[str, str, str]:
        """Return the mark of a step, its role, and what it says in words."""
        if step.status == "off":
            return _("○ off"), "", _("switched off")
        if step.status == "failed":
            return _("✕ failed"), "wrong", ""
        checked = None if of is None else self._measurements.checked(of)
        return ("", "", "") if checked is None else SAME[checked.verdict]

    # Editing

    def measure_all(self) -> None:
        """Check and measure the function after each step."""
        measurements = self._measurements
        measurements.measure_all(
            tuple(each.primitives for each in measurements.prefixes().values())
        )

    def _go(self, key: str) -> None:
        # Not the step that is current by now: a time that was measured may have come in between.
        record = self._scheduling.record
        if record is None:
            return
        places = {each.id: place for place, each in enumerate(record.steps, start=1)}
        place, count = places.get(key, 0), len(record.steps)
        at_end = self._stepping.schedule_index is None and place == count
        if not at_end or (count and record.steps[-1].status == "failed"):
            self._scheduling.go(place)

    def _edit(self, key: str) -> None:
        if key != START:
            self._scheduling.trying.edit(key)

    def current(self) -> str:
        """Return the id of the selected step, or ``""``."""
        key = self.strip.current_key()
        return "" if key == START else key

    def edit_step(self) -> None:
        """Show the form of the selected step."""
        if self.current():
            self._edit(self.current())

    def switch_step(self) -> None:
        """Enable or disable the selected step."""
        self._scheduling.editing.switch(self.current())

    def remove_step(self) -> None:
        """Remove the selected step."""
        self._scheduling.editing.remove(self.current())

    def move_step(self, by: int) -> None:
        """Move the selected step forward or back."""
        cell = self.strip.cell(self.strip.current_key())
        if cell is not None and cell.place >= 0:
            self._scheduling.editing.move(cell.place, cell.place + by)

    def insert_before(self) -> None:
        """Insert the next applied primitive before the selected step."""
        self._insert_before(self.strip.current_key())

    def _insert_before(self, key: str) -> None:
        cell = self.strip.cell(key)
        if cell is not None and cell.place >= 0:
            self._scheduling.go(cell.place)

    def _open_menu(self, key: str, place: QPoint) -> None:
        if key == START:
            return
        record = self._scheduling.record
        steps = () if record is None else record.steps
        off = any(each.id == key and each.status == "off" for each in steps)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(_("Edit…"), self.edit_step)
        menu.addAction(_("Switch on") if off else _("Switch off"), self.switch_step)
        menu.addAction(_("Insert before it"), self.insert_before)
        menu.addSeparator()
        menu.addAction(_("Delete"), self.remove_step)
        menu.popup(place)


LEFT, MIDDLE = 320, 292
"""Widths of the loops and primitives, and of the form and figures."""

FIELD = 28
"""Height of the boxes in the tool bar."""

DOCK, LOW_DOCK = 190, 124
"""Heights of the history, the variants and the roofline."""

NARROW, LOW = 1180, 560
"""Sizes below which the form replaces the primitives, and the dock is low."""


# --- The mode, and the choice of a function where none is selected ---


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
        advice = AdviceList(document, shared.queries, scheduling, measurements)
        self.figures = Figures(document, measurements, advice)
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
