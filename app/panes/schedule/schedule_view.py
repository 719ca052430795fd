"""The Schedule pane: a function's loops, the applicable primitives, and the history."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QStackedWidget, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.layouts import STRETCH, column_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.typefaces import TextMetrics
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.numbers_page import NumbersPage, VerdictPill
from lowerscope.app.panes.schedule.schedule_form import ScheduleForm
from lowerscope.app.panes.schedule.schedule_moves_page import ScheduleMenu, ScheduleMovesPage
from lowerscope.app.panes.schedule.schedule_tree import ScheduleHistory, ScheduleTree
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.model.schedule import is_shared, shown_name

VARIANT_WIDTH = 170
VERDICT_WIDTH = 150


class ScheduleView(Pane):
    """The workbench: loop tree, primitives or form, and history side by side, next to the code."""

    def __init__(
        self,
        document: Document,
        stepping: Stepping,
        scheduling: Scheduling,
        variants: Variants,
        measurements: Measurements,
        run: Callable[[], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(self.tr("Schedule"), parent)
        self._document = document
        self._variants = variants
        self._run_model = run
        self._scheduling = scheduling
        self.tree = ScheduleTree(document, scheduling)
        self.moves = ScheduleMovesPage(document, scheduling)
        self.form = ScheduleForm(document, scheduling)
        self.history = ScheduleHistory(stepping, scheduling, measurements)
        self.menu = ScheduleMenu(document, scheduling, self)
        self.variant = QPushButton()
        self.variant.setToolTip(self.tr("The variants of this function's schedule"))
        self.variant.setMenu(QMenu(self))
        self.variant.setProperty("align", "left")
        # Fixed size: a button that changes size would lay out all docks of the window again.
        self.variant.setFixedSize(VARIANT_WIDTH, self.variant.sizeHint().height())
        self.by_rule = push_button(
            self.tr("By rule"),
            self.tr("Have a rule schedule the function: a variant whose steps say why"),
        )
        self.tune = push_button(
            self.tr("Tune…"), self.tr("Try many schedules on this machine, and keep the fastest")
        )
        self.keep = push_button(self.tr("Keep"), self.tr("Copy, save or load the schedule"))
        self.keep.setMenu(QMenu(self))
        self.left_over = QPushButton()
        self.left_over.setMenu(QMenu(self))
        self.left_over.hide()
        self.everywhere = check_box(
            "",
            self.tr(
                "Ticked: all functions of the same structure share the schedule.\n"
                "Unticked: this one has a schedule of its own, and the others keep theirs."
            ),
        )
        self.in_model = check_box(
            self.tr("Apply to the model"),
            self.tr("Have the step ApplySchedules at the end of the pipeline, so that Run runs it"),
        )
        self.run = push_button(self.tr("Run"), self.tr("Run the model and compare it with torch"))
        self.code = CodeView(self.tr("The schedule as Python"))
        self.code.set_empty(
            self.tr("No step yet"), self.tr("The steps of the schedule stand here as Python.")
        )
        self.numbers = NumbersPage(document, scheduling, variants, measurements)
        self.verdict = VerdictPill(measurements)
        # Fixed size for all its texts, for the same reason as the button of the variants.
        self.verdict.setFixedSize(VERDICT_WIDTH, self.verdict.sizeHint().height())
        stays = self.verdict.sizePolicy()
        stays.setRetainSizeWhenHidden(True)
        self.verdict.setSizePolicy(stays)
        self.middle = QStackedWidget()
        self.middle.addWidget(self.moves)
        self.middle.addWidget(self.form)
        self._lay_out()
        self.everywhere.clicked.connect(variants.set_everywhere)
        self.in_model.clicked.connect(variants.set_in_model)
        self.run.clicked.connect(self._run)
        self.by_rule.clicked.connect(variants.by_rule.ask)
        self.verdict.clicked.connect(self.show_numbers)
        self.tree.menu_wanted.connect(self.open_menu)
        self.tree.row_activated.connect(self._enter_moves)
        self.page_changed.connect(self._show_code)
        self._scheduling.changed.connect(self._show)
        self._scheduling.busy_changed.connect(self._show_busy)
        self._scheduling.trying.draft_changed.connect(self._show_draft)
        document.on(("recipe", "pending"), self._show)
        document.on(("run", "running"), self._show)
        variants.left_over.changed.connect(self._show_left_over)
        self._show()

    def _lay_out(self) -> None:
        strip = strip_of(
            self.variant,
            self.by_rule,
            self.tune,
            self.keep,
            self.left_over,
            STRETCH,
            self.everywhere,
            self.in_model,
            self.run,
        )
        left = Split(
            Qt.Orientation.Vertical, self.tree, self.history, sizes=(420, 280), shares=(3, 2)
        )
        self.split = Split(
            Qt.Orientation.Horizontal, left, self.middle, sizes=(430, 330), shares=(4, 3)
        )
        page = QWidget()
        column_of(page, strip, (self.split, 1))
        self.add_page("loops", self.tr("Loops"), page)
        self.add_page("numbers", self.tr("Numbers"), self.numbers)
        self.add_page("python", self.tr("Python"), self.code)
        self.add_corner(self.verdict)
        self.tree.setMinimumWidth(230)
        self.middle.setMinimumWidth(180)
        self.history.setMinimumWidth(150)

    def _show(self) -> None:
        scheduling, variants = self._scheduling, self._variants
        record = scheduling.record
        schedule = scheduling.schedule
        self.set_context(scheduling.function)
        name = self.tr("unscheduled") if schedule is None else shown_name(schedule.variant)
        whole = self.tr("Variant: {0}").format(name)
        room = VARIANT_WIDTH - 32
        right = Qt.TextElideMode.ElideRight
        shown = TextMetrics(self.variant.font()).elidedText(whole, right, room)
        self.variant.setText(literal(shown))
        self.variant.setAccessibleName(whole)
        for widget in (
            *(self.variant, self.by_rule, self.tune),
            *(self.keep, self.in_model, self.run),
        ):
            widget.setEnabled(record is not None)
        twins = () if record is None else record.twins
        self.everywhere.setVisible(bool(twins))
        self._show_alike(len(twins) + 1)
        self.everywhere.setAccessibleDescription(", ".join(twins))
        self.everywhere.setChecked(schedule is None or is_shared(schedule))
        self.in_model.setChecked(variants.in_model)
        self.run.setEnabled(record is not None and not self._document.running)
        self._show_code()

    def _run(self) -> None:
        if self._scheduling.primitives and not self._variants.in_model:
            text = self.tr(
                "The model runs unscheduled: tick “Apply to the model” to change it too."
            )
            self._document.notify(text, "info")
        self._run_model()

    def _show_left_over(self) -> None:
        left_over = self._variants.left_over
        count = len(left_over.all)
        self.left_over.setVisible(count > 0)
        self.left_over.setText(self.tr("⚠ {0} left over").format(count))
        head = self.tr("Schedules of functions that are not there any more:")
        self.left_over.setToolTip("\n".join((head, *map(left_over.title, left_over.all))))

    def _show_alike(self, functions: int) -> None:
        schedule, alike = self._scheduling.schedule, self._variants.alike
        if schedule is None or not is_shared(schedule) or alike == functions:
            text = self.tr("all {0} alike").format(functions)
        else:
            text = self.tr("{0} of {1} alike").format(alike, functions)
        self.everywhere.setText(text)

    def _show_code(self, _page: str = "") -> None:
        record = self._scheduling.record
        if self.current() == "python":
            self.code.set_text("" if record is None or not record.steps else record.code, "python")

    def _show_busy(self) -> None:
        self.set_busy(self._scheduling.busy)

    def _show_draft(self) -> None:
        drafted = self._scheduling.trying.draft is not None
        if drafted:
            self.middle.setCurrentWidget(self.form)
        elif self.middle.currentWidget() is self.form:
            had_focus = self.form.isAncestorOf(QApplication.focusWidget() or self)
            self.middle.setCurrentWidget(self.moves)
            if had_focus:
                self.tree.setFocus()

    def show_numbers(self) -> None:
        """Show the metrics of the function and the verdict on it."""
        self.set_current("numbers")

    def _enter_moves(self) -> None:
        """Move the focus to the primitives of the activated row."""
        self._scheduling.trying.cancel_draft()
        # The previous search text would hide the others.
        self.moves.choices.line.clear()
        self.moves.choices.line.setFocus()
        self.moves.choices.point_at_first()

    def open_menu(self, place: QPoint) -> None:
        """Open the primitives for the selection as a menu."""
        if self._scheduling.record is not None:
            self._scheduling.trying.cancel_draft()
            self.menu.open_at(place)

    def open_menu_here(self) -> None:
        """Open the primitives for the selection beside its row of the tree."""
        self.set_current("loops")
        self.tree.open_menu()

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would skip the widgets before it.
        self.tree.setFocus(event.reason())
