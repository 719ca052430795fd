"""The panes of an open document, as docks that can be moved, closed, restored and saved."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, Qt, QTimer
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from lowerscope.app.kit.help_key import set_page
from lowerscope.app.kit.pane import Pane
from lowerscope.app.panes.difference.difference_view import DifferenceView
from lowerscope.app.panes.fx.fx_view import FxView
from lowerscope.app.panes.inputs.inputs_page import InputsPage
from lowerscope.app.panes.log.log_view import LogView
from lowerscope.app.panes.log.problems_view import ProblemsView
from lowerscope.app.panes.model.details_view import DetailsView
from lowerscope.app.panes.model.model_view import ModelView
from lowerscope.app.panes.relax.node_map import NodeMap
from lowerscope.app.panes.relax.relax_view import RelaxView
from lowerscope.app.panes.relax.translation_page import TranslationPage
from lowerscope.app.panes.run.compare_page import ComparePage
from lowerscope.app.panes.run.result_view import ResultView
from lowerscope.app.panes.run.run_step_page import RunStepPage
from lowerscope.app.panes.run.time_page import TimePage
from lowerscope.app.panes.run.variants_page import VariantsPage
from lowerscope.app.panes.schedule.schedule_script import ScheduleScript
from lowerscope.app.panes.schedule.schedule_view import ScheduleView
from lowerscope.app.panes.steps.pipeline_view import PipelineView
from lowerscope.app.panes.steps.timeline_view import TimelineView
from lowerscope.app.panes.tensorir.tensorir_view import TensorIRView
from lowerscope.app.panes.tuning.tune_page import TunePage
from lowerscope.app.shell.dock_layout import ABOVE, BELOW, DockLayout, name_tabs
from lowerscope.app.shell.features import Features
from lowerscope.core.model.comparison_records import TensorPlace
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import RunRecord

OUTCOME_WIDTH = 320
"""Minimum width of the outcome pane, beside the workbench."""

DIFFERENCE_SHARE = 0.45
"""Minimum share of the panes' height for a requested difference, and for the workbench."""

TENSOR_SHARE = 0.5
"""Minimum share of the panes' height for the values of a node."""


class Panes(QMainWindow):
    """The area below the tool bar: a window of docks around the timeline."""

    # A class attribute, since Qt sends the first events before the instance has any.
    _settled = False

    def __init__(self, features: Features, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # A main window inside another has to be made a plain widget.
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        # Without animation, keys pressed in quick succession find every pane in place.
        self.setAnimated(False)
        self.model = ModelView(features.document)
        self.fx = FxView(
            features.document,
            features.queries,
            features.run_steps,
            features.colouring,
        )
        self.relax = RelaxView(
            features.document,
            features.queries,
            features.stepping,
            features.run_steps,
            features.colouring,
            features.build,
        )
        self.scheduled = ScheduleScript(
            features.document, features.stepping, features.scheduling, features.colouring
        )
        self.tensorir = TensorIRView(
            features.document,
            features.queries,
            features.stepping,
            features.scheduling,
            self.scheduled,
            features.colouring,
            features.build,
        )
        self.result = ResultView(features.document, features.runs)
        self.problems = ProblemsView(
            features.document, features.variants.notes, features.faults.remedies
        )
        features.variants.left_over.changed.connect(self.problems.show_problems)
        self.log = LogView(features.document, features.processes)
        self.details = DetailsView(
            features.document,
            features.queries,
            features.stepping,
        )
        self.call = RunStepPage(
            features.document, features.queries, features.run_steps, self.details.set_busy
        )
        self.details.add_page("call", self.tr("Call"), self.call)
        self.pipeline = PipelineView(
            features.document, features.queries, features.stepping, features.pins, features.build
        )
        self.schedule = ScheduleView(
            features.document,
            features.stepping,
            features.scheduling,
            features.variants,
            features.measurements,
            features.runs.run,
        )
        self.timeline = TimelineView(
            features.document, features.stepping, features.scheduled, features.run_steps
        )
        # Between the top and the bottom docks, with its fixed height.
        self.setCentralWidget(self.timeline)
        self.timeline_action = QAction(self.tr("Timeline"), self, checkable=True, checked=True)
        self.timeline_action.toggled.connect(self._show_timeline)
        self.outcome = Pane(self.tr("Outcome"))
        # The difference page would request more; the user can give it more.
        self.outcome.setMinimumWidth(OUTCOME_WIDTH)
        self._fill_outcome(features)
        self._features = features
        self._document = features.document
        self._saved, self._same_size = QByteArray(), True
        self._shown_run: RunRecord | None = None
        self.docks: dict[str, QDockWidget] = {
            name: pane.make_dock(name, self)
            for name, pane in (
                ("model", self.model),
                ("fx", self.fx),
                ("relax", self.relax),
                ("tensorir", self.tensorir),
                ("schedule", self.schedule),
                ("pipeline", self.pipeline),
                ("outcome", self.outcome),
                ("details", self.details),
            )
        }
        self.dock_layout = DockLayout(self, self.docks, self.timeline)
        for name, dock in self.docks.items():
            dock.dockLocationChanged.connect(self.note_moved)
            # Each page of the outcome has its own help page.
            set_page(dock, "result" if name == "outcome" else name)
        set_page(self.timeline, "timeline")
        set_page(self.schedule.numbers, "numbers")
        self._busy = False
        self._scheduling = False
        self.arrange()
        features.stepping.list_changed.connect(self._follow_section)
        self.docks["schedule"].toggleViewAction().triggered.connect(self._choose_workbench)
        features.document.on(("problems",), self._show_problems)
        features.document.on(("snapshot",), self._show_problems)
        features.document.on(("run", "running"), self._show_result)
        features.pins.wanted.connect(self.show_difference)
        features.document.on(("recipe", "pending"), self._show_busy)
        # Problems from before the panes existed are shown as well.
        self._show_problems()

    def _fill_outcome(self, features: Features) -> None:
        """Add the pages of the outcome pane; if space is short, the last ones are in a menu."""
        self.compare = ComparePage(
            features.document,
            features.queries,
            features.stepping,
            self.outcome.set_busy,
        )
        self.time = TimePage(features.document)
        self.tune = TunePage(features.document, features.tuning)
        self.tune.in_model_wanted.connect(features.variants.set_in_model)
        self.variants = VariantsPage(
            features.document, features.queries, features.runs, self.outcome.set_busy
        )
        self.inputs = InputsPage(features.document, features.queries, features.inputs)
        self.translation = TranslationPage(
            features.document, features.queries, self.outcome.set_busy
        )
        self.node_map = NodeMap(features.document)
        self.difference = DifferenceView(
            features.document, features.queries, features.pins, self.outcome.set_busy
        )
        for key, title, page in (
            ("result", self.tr("Result"), self.result),
            ("compare", self.tr("Compare"), self.compare),
            ("time", self.tr("Time"), self.time),
            ("variants", self.tr("Variants"), self.variants),
            ("tune", self.tr("Tune"), self.tune),
            ("inputs", self.tr("Input"), self.inputs),
            ("problems", self.tr("Problems"), self.problems),
            ("translation", self.tr("Translation"), self.translation),
            ("node-map", self.tr("Node map"), self.node_map),
            ("difference", self.tr("Difference"), self.difference),
            ("log", self.tr("Log"), self.log),
        ):
            self.outcome.add_page(key, title, page)
            set_page(page, key)
        self.compare.translation_wanted.connect(self._show_translation)
        self.compare.rule_wanted.connect(self.details.rule_wanted)
        self.compare.tensor_wanted.connect(self.show_tensor)
        self.call.tensor_wanted.connect(self._show_tensor_of_call)
        self.variants.text_wanted.connect(self._show_difference_of)
        features.runs.variants.ended.connect(self._show_variants)
        self.node_map.node_wanted.connect(self._show_translation)

    def show_page(self, key: str) -> None:
        """Show a page of the outcome pane, even if that was closed."""
        self.bring("outcome")
        self.outcome.set_current(key)

    def bring(self, name: str) -> None:
        """Make a pane visible, whether closed, behind a tab, or behind a maximised one."""
        if not self.dock_layout.is_in_front(name):
            self.take_back()
            self.docks[name].show()
            self.docks[name].raise_()

    def arrange(self) -> None:
        """Reset all docks to their default places."""
        self.dock_layout.forget()
        self.dock_layout.reset()
        self._saved = QByteArray()
        self._details_before = True
        top, bottom = Qt.DockWidgetArea.TopDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        for area, row in ((top, ABOVE), (bottom, BELOW)):
            previous: QDockWidget | None = None
            for name in row:
                dock = self.docks[name]
                dock.setFloating(False)
                dock.show()
                if previous is None:
                    self.addDockWidget(area, dock)
                else:
                    self.splitDockWidget(previous, dock, Qt.Orientation.Horizontal)
                previous = dock
        self._show_workbench(self._scheduling)
        self.timeline_action.setChecked(True)
        self.timeline.show()
        self._settle_soon()

    def restore(self, state: QByteArray, *, same_size: bool = True) -> None:
        """Restore a state of the docks.

        Args:
            same_size: Whether the window has the same size as when `state` was saved; otherwise
                docks in the default rows get default widths. Qt would give all additional width to
                the first of a row.
        """
        self.take_back()
        self._saved, self._same_size = state, same_size
        self._settle_soon()

    def state(self) -> QByteArray:
        """Return the state of the docks, for `restore`; with one maximised, the state before
        that.
        """
        return self.dock_layout.state()

    def maximise(self, name: str) -> None:
        """Maximise a pane over the other docked ones, until `take_back`."""
        self.dock_layout.maximise(name)
        self.timeline.hide()

    def take_back(self) -> None:
        """Restore the panes hidden by a maximised one, if any."""
        if self.dock_layout.is_maximised:
            self.timeline.setVisible(self.timeline_action.isChecked())
            self.dock_layout.restore()

    def note_moved(self) -> None:
        """Store the sizes of the panes as set by the user, once they are laid out."""
        QTimer.singleShot(0, self, self._note_height)

    def _settle_soon(self) -> None:
        # Sizes count only once the docks are shown and have been laid out.
        self._settled = False
        if self.isVisible():
            QTimer.singleShot(0, self, self._settle)

    def _settle(self) -> None:
        if self._settled or not self.isVisible():
            return
        self.dock_layout.reset()
        if not self._saved.isEmpty():
            self.restoreState(self._saved)
            self.dock_layout.set_corners()
            self._settled = True
            self._note_height()
            if not self._scheduling and not self.docks["schedule"].isHidden():
                # It was closed in the workbench; it reopens with the steps of the passes.
                self._show_workbench(False)
                self.dock_layout.lay_out(False)
            if not self._same_size and self.dock_layout.are_usual:
                self.dock_layout.reset()
                self.dock_layout.lay_out(self._scheduling)
                self.dock_layout.keep_height()
        else:
            self.dock_layout.lay_out(self._scheduling)
            self.dock_layout.keep_height()
        self._settled = True
        QTimer.singleShot(0, self, self._note_height)

    def _note_height(self) -> None:
        if self._settled:
            self.dock_layout.note_height()

    def _follow_section(self) -> None:
        """Show the workbench in place of the pipeline while the schedule's timeline is current."""
        scheduling = self._features.stepping.section == "schedule"
        if scheduling == self._scheduling:
            return
        self._scheduling = scheduling
        self.take_back()
        if scheduling:
            self.dock_layout.leave_usual(DIFFERENCE_SHARE)
            self._details_before = not self.docks["details"].isHidden()
        else:
            self.dock_layout.return_to_usual()
        self._show_workbench(scheduling)
        if self._settled:
            self.dock_layout.lay_out(scheduling)
            self.dock_layout.keep_height()

    def _show_workbench(self, shown: bool) -> None:
        self.docks["schedule"].setVisible(shown)
        self.docks["pipeline"].setVisible(not shown)
        self.docks["details"].setVisible(not shown and self._details_before)

    def _choose_workbench(self, shown: bool) -> None:
        self._features.stepping.set_section("schedule" if shown else "passes")

    def _show_timeline(self, shown: bool) -> None:
        self.timeline.setVisible(shown)
        self.dock_layout.keep_height()

    def _show_translation(self) -> None:
        self.show_page("translation")

    def _show_problems(self) -> None:
        if self.outcome.current() == "inputs" and self._features.inputs.problem is not None:
            # The input pane reports it.
            return
        if self._document.problems or any(note.code for note in self._document.notes):
            self.show_page("problems")
        elif self.outcome.current() == "problems":
            self.outcome.set_current("result")

    def show_difference(self) -> None:
        """Show the difference and give it the keyboard focus."""
        self._show_high("difference", DIFFERENCE_SHARE)
        self.difference.page.diff.setFocus()

    def show_tuning(self) -> None:
        """Show the progress of tuning, high enough for its curve."""
        self._show_high("tune", DIFFERENCE_SHARE)

    def _show_difference_of(self, old: Recipe, new: Recipe, function: str) -> None:
        self.difference.filter.setText(function)
        self._features.pins.compare_recipes(old, new)

    def _show_variants(self) -> None:
        self.show_page("variants")

    def show_tensor(self) -> None:
        """Show the values of the selected node."""
        self.compare.tensor.look_at_selection()
        self._show_values()

    def _show_tensor_of_call(self, place: TensorPlace, name: str) -> None:
        self.compare.tensor.look_at(place, name)
        self._show_values()

    def _show_values(self) -> None:
        self.compare.show_part("tensor")
        self._show_high("compare", TENSOR_SHARE)

    def _show_high(self, key: str, share: float) -> None:
        """Show a page that needs height, with at least a share of it."""
        dock = self.docks["outcome"]
        self.show_page(key)
        if not dock.isFloating() and dock.height() < self.height() * share:
            self.dock_layout.raise_to(share)
            self.dock_layout.keep_height()

    def _show_result(self) -> None:
        record, shown = self._document.run_record, self._shown_run
        self._shown_run = record
        if record is not None and record is not shown and self.outcome.current() != "inputs":
            self.outcome.set_current("result")

    def _show_busy(self) -> None:
        document = self._document
        busy = document.recipe is not None and document.wanted != document.recipe
        if busy == self._busy:
            # Raising a pane repaints it and everything below.
            return
        self._busy = busy
        for pane in (self.fx, self.relax, self.tensorir):
            pane.set_busy(busy)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._settled:
            QTimer.singleShot(0, self, self._settle)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._settled:
            # The graphs and scripts absorb a change in height; once it is laid out.
            QTimer.singleShot(0, self, self.dock_layout.keep_height)

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if self._settled and event.type() == QEvent.Type.MouseButtonRelease:
            # The user may have dragged the handle between the rows.
            self._note_height()
        if event.type() == QEvent.Type.ChildPolished and isinstance(event, QChildEvent):
            name_tabs(event.child())
        return handled
