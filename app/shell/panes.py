"""The panes of an open document, in four modes, above a drawer with problems and log."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.help_key import set_page
from lowerscope.app.kit.layouts import row_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.split import Split
from lowerscope.app.panes.difference.difference_view import DifferenceView
from lowerscope.app.panes.fx.fx_view import FxView
from lowerscope.app.panes.inputs.inputs_page import InputsPage
from lowerscope.app.panes.log.log_view import LogView, ProblemsView
from lowerscope.app.panes.model.details_view import DetailsView
from lowerscope.app.panes.model.model_view import ModelView, OutlineStrip
from lowerscope.app.panes.relax.relax_view import RelaxView
from lowerscope.app.panes.relax.translation_page import NodeMap, TranslationPage
from lowerscope.app.panes.run.compare_page import ComparePage
from lowerscope.app.panes.run.rounding_page import RoundingPage
from lowerscope.app.panes.run.run_step_page import RunStepPage
from lowerscope.app.panes.run.run_view import RunView
from lowerscope.app.panes.run.time_page import MemoryPage, TimePage
from lowerscope.app.panes.run.tokens_page import TokensPage
from lowerscope.app.panes.run.variants_page import VariantsPage
from lowerscope.app.panes.schedule.schedule_view import ScheduleView
from lowerscope.app.panes.steps.pass_dialog import FusionDialog
from lowerscope.app.panes.steps.pipeline_view import PipelineView
from lowerscope.app.panes.tensorir.tensorir_view import TensorIRView
from lowerscope.app.panes.tuning.tune_page import TunePage
from lowerscope.app.shell.features import Features
from lowerscope.app.shell.modes import BY_KEY, MODES, MOST, NARROW, ModeArea
from lowerscope.core.model.comparison_records import TensorPlace
from lowerscope.core.model.explanation_records import BisectRecord
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Recipe, WindowLayout
from lowerscope.core.model.texts import _

HELP_PAGES = {
    "outcome": "compare",
    "memory": "time",
    "rounding": "compare#error-budget",
    "tokens": "sources#language-models",
    "pipeline": "timeline",
    "changes": "difference",
    "call": "details",
    "node-map": "translation#node-map",
    "drawer": "problems",
    "log": "problems#log",
}
"""Help page, or section of one, of a pane or tab whose name is another one."""

DRAWER_HEIGHT = 220
"""Height of the drawer when it is opened for the first time."""

LEAST_DRAWER = 80


class Panes(QWidget):
    """The area below the tool bar: the panes of the current mode, and the drawer."""

    mode_changed = Signal()  # Another mode became current.
    arranged = Signal()  # A pane, or the drawer, was shown, closed, maximised or resized.

    def __init__(self, features: Features) -> None:
        super().__init__()
        self._features = features
        self._document = features.document
        self.model = ModelView(features.document)
        self.fx = FxView(features.shared)
        self.relax = RelaxView(features.shared)
        self.tensorir = TensorIRView(features.shared)
        self.problems = ProblemsView(
            features.document, features.variants.notes, features.faults.remedies
        )
        features.variants.left_over.changed.connect(self.problems.show_problems)
        self.log = LogView(features.document, features.processes)
        self.details = DetailsView(features.document, features.queries)
        self.pipeline = PipelineView(features.shared)
        self.schedule = ScheduleView(
            features.shared, features.scheduling, features.variants, features.measurements
        )
        self.outcome = RunView(
            features.document, features.runs, features.faults, features.bisecting
        )
        self.summary = self.outcome.summary
        self.changes = Pane(_("Changes"))
        # Its pages name the step themselves.
        self.changes.header.hide()
        self.drawer = Pane(_("Messages"))
        self._fill(features)
        self.by_name: dict[str, Pane] = {
            "model": self.model,
            "fx": self.fx,
            "relax": self.relax,
            "pipeline": self.pipeline,
            "changes": self.changes,
            "schedule": self.schedule,
            "tensorir": self.tensorir,
            "outcome": self.outcome,
            "details": self.details,
        }
        self.area = ModeArea(self.by_name)
        self.strip = OutlineStrip()
        self.strip.clicked.connect(self._open_outline)
        self.model.close_wanted.connect(self._open_outline)
        self._lay_out()
        self.area.placing.connect(self._show_strip)
        self.arranged.connect(self._show_strip)
        for name, pane in (*self.by_name.items(), ("drawer", self.drawer)):
            set_page(pane, HELP_PAGES.get(name, name))
        set_page(self.summary, "result")
        set_page(self.outcome.calls, "time")
        for part in (self.schedule.figures, self.schedule.variants, self.schedule.roofline):
            set_page(part, "schedule#metrics")
        self._busy = self._opened_for_problems = False
        self._drawer_height = DRAWER_HEIGHT
        self._before_schedule = "explore"
        self._step_before: Moment | None = None  # The step before the mode of schedules.
        self.set_mode("explore")
        features.stepping.section_changed.connect(self._follow_section)
        features.document.on(("selection", "snapshot"), self._show_details)
        features.document.on(("snapshot",), self._show_fx)
        self._show_details()
        self._show_fx()
        self.details.close_wanted.connect(self._close_details)
        self.details.pin.toggled.connect(self._show_details)
        features.document.on(("problems",), self._show_problems)
        features.document.on(("snapshot",), self._show_problems)
        features.pins.wanted.connect(self.show_difference)
        features.document.on(("recipe", "pending"), self._show_busy)
        # Problems from before the panes existed are shown as well.
        self._show_problems()

    def _lay_out(self) -> None:
        above = QWidget()
        self._above = above
        self.away = EmptyState(_("In a window of its own"))
        self.away.add_action(_("Put it back"), self._put_back)
        self.away.hide()
        row_of(above, self.strip, (self.area, 1), (self.away, 1))
        self.area.emptied.connect(self.away.setVisible)
        self.area.emptied.connect(self.area.setHidden)
        self.drawer.setMinimumHeight(LEAST_DRAWER)
        self.drawer.setProperty("ground", "panel")
        self.drawer.setProperty("edge", "top")
        self.drawer.setContentsMargins(0, 1, 0, 0)
        self.drawer.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.drawer.header.is_movable = False
        close = IconButton("close", _("Close (Ctrl+J)"))
        close.clicked.connect(self.close_drawer)
        self.drawer.add_corner(close)
        self.drawer.hide()
        self.rows = Split(Qt.Orientation.Vertical, above, self.drawer, shares=(1, 0))
        self.rows.setHandleWidth(1)
        self.rows.splitterMoved.connect(self._note_drawer)
        self.area.splitterMoved.connect(self.arranged)
        for pane in self.by_name.values():
            pane.header.maximise_wanted.connect(self._arrange)
            pane.header.window_wanted.connect(self._arrange)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.rows)

    def _fill(self, features: Features) -> None:
        """Make the pages that several features share a pane for."""
        document, queries = features.document, features.queries
        self.compare = ComparePage(
            document, queries, features.stepping, features.runs, self.outcome.set_busy
        )
        self.time = TimePage(document, features.runs)
        self.memory = MemoryPage(document, features.runs)
        self.rounding = RoundingPage(document, features.rounding)
        self.tune = TunePage(document, features.tuning)
        self.tune.in_model_wanted.connect(features.variants.set_in_model)
        self.variants = VariantsPage(document, queries, features.runs, self.outcome.set_busy)
        self.tokens = TokensPage(document, features.generations)
        self.inputs = InputsPage(document, queries, features.inputs)
        self.translation = TranslationPage(document, queries, self.relax.set_busy)
        self.node_map = NodeMap(document)
        self.difference = DifferenceView(features.shared, self.changes.set_busy)
        self.call = RunStepPage(document, queries, features.run_steps, self.changes.set_busy)
        for pane, key, title, page in (
            (self.outcome, "compare", _("Compare"), self.compare),
            (self.outcome, "time", _("Time"), self.time),
            (self.outcome, "memory", _("Memory"), self.memory),
            (self.outcome, "rounding", _("Rounding"), self.rounding),
            (self.outcome, "variants", _("Variants"), self.variants),
            (self.outcome, "inputs", _("Inputs"), self.inputs),
            (self.outcome, "tokens", _("Tokens"), self.tokens),
            (self.outcome, "tune", _("Tune"), self.tune),
            (self.relax, "translation", _("Translation"), self.translation),
            (self.relax, "node-map", _("Node map"), self.node_map),
            (self.changes, "difference", _("Difference"), self.difference),
            (self.changes, "call", _("Call"), self.call),
            (self.drawer, "problems", _("Problems"), self.problems),
            (self.drawer, "log", _("Log"), self.log),
        ):
            pane.add_page(key, title, page)
            set_page(page, HELP_PAGES.get(key, key))
        self.tensorir.schedule_wanted.connect(self._schedule)
        self.details.schedule_wanted.connect(self._schedule)
        self.details.compare_wanted.connect(self.show_tensor)
        self.details.source_wanted.connect(self.fx.show_source)
        self.compare.translation_wanted.connect(self._show_translation)
        self.compare.rule_wanted.connect(self.details.rule_wanted)
        self.compare.node_wanted.connect(self._show_node)
        self.tokens.node_wanted.connect(self._show_node)
        self.summary.wrong_step.node_wanted.connect(self._show_node)
        self.summary.first_difference.translation_wanted.connect(self._show_translation)
        self.summary.wrong_step.step_wanted.connect(self._show_wrong_step)
        self.call.tensor_wanted.connect(self._show_tensor_of_call)
        self.difference.filter_wanted.connect(self.pipeline.focus_filter)
        for each in (self.difference, self.fx.graph, self.relax.graph):
            each.why_wanted.connect(self._explain_fusion)
        self.variants.text_wanted.connect(self._show_difference_of)
        features.runs.variants.ended.connect(self._show_variants)
        self.node_map.node_wanted.connect(self._show_translation)

    # Modes

    @property
    def mode(self) -> str:
        """Key of the current mode."""
        return self.area.mode.key

    def set_mode(self, key: str) -> None:
        """Switch to a mode; the selection and the current step stay."""
        stepping = self._features.stepping
        if key == "schedule" and self.mode != "schedule":
            self._before_schedule = self.mode
        self.area.set_mode(key)
        if (stepping.section == "schedule") != (key == "schedule"):
            before, self._step_before = self._step_before, None
            if key == "schedule":
                self._step_before = stepping.moment
                stepping.set_section("schedule")
            elif before is not None:
                stepping.go(before)
            else:
                stepping.set_section("passes")
        self._show_changes()
        self.mode_changed.emit()
        self.arranged.emit()

    def _show_details(self) -> None:
        """Give the inspector its place while something is selected, or it is pinned."""
        pinned = self.details.pin.isChecked()
        self.area.set_empty("details", not pinned and not self.details.has_content)

    def _show_fx(self) -> None:
        """Give the FX graph its place, unless the source builds an IRModule and has none."""
        snapshot = self._document.snapshot
        self.area.set_empty("fx", snapshot is not None and not snapshot.fx)

    def _open_outline(self) -> None:
        """Open the outline, or close it."""
        self.switch_closed("model")

    def _show_strip(self) -> None:
        """Show the strip of the outline where that is closed."""
        belongs = "model" in dict(self.area.mode.panes) and not self.area.maximised
        hidden = not belongs or self.area.has_place("model")
        layout = self._above.layout()
        if hidden != self.strip.isHidden() and layout is not None:
            self.strip.setHidden(hidden)
            # At once: the panes would be laid out, and painted, for the width before as well.
            layout.activate()

    def _close_details(self) -> None:
        self.switch_closed("details")

    def _schedule(self, function: str) -> None:
        self._document.select((function,))
        self.set_mode("schedule")

    def _follow_section(self) -> None:
        """Show the mode of the section that became current."""
        scheduling = self._features.stepping.section == "schedule"
        if scheduling != (self.mode == "schedule"):
            self.set_mode("schedule" if scheduling else self._before_schedule)
        self._show_changes()

    def _show_changes(self) -> None:
        """Show what the steps of the current section do: the calls of a run change no module."""
        runs = self._features.stepping.section == "run"
        self.changes.set_current("call" if runs else "difference")

    def mode_of(self, name: str) -> str:
        """Return a mode that shows a pane: the current one, if it does."""
        modes = (self.area.mode, *MODES)
        return next(mode.key for mode in modes if name in dict(mode.panes))

    def bring(self, name: str) -> None:
        """Make a pane visible, whichever mode it belongs to."""
        mode = self.mode_of(name)
        if mode != self.mode and not self.area.is_in_window(name):
            self.set_mode(mode)
        self.area.bring(name)
        self.arranged.emit()

    def show_page(self, key: str) -> None:
        """Show a page, whichever pane and mode it belongs to."""
        if key in self.drawer.pages():
            self.open_drawer(key)
            return
        name, pane = next(
            (name, pane) for name, pane in self.by_name.items() if key in pane.pages()
        )
        self.bring(name)
        pane.set_current(key)

    # The drawer

    def open_drawer(self, key: str = "") -> None:
        """Open the drawer, on a page if one is named."""
        if key:
            self.drawer.set_current(key)
        if self.drawer.isHidden() or self._floats():
            self.rows.addWidget(self.drawer)
            self.drawer.show()
            height = self.rows.height()
            self.rows.setSizes([max(1, height - self._drawer_height), self._drawer_height])
        self._opened_for_problems = False
        self.arranged.emit()

    def drawer_page(self) -> str:
        """Return the key of the page that the drawer shows; empty while it is closed."""
        return "" if self.drawer.isHidden() else self.drawer.current()

    def _float_drawer(self) -> None:
        """Show the problems over the panes, whose sizes they do not change."""
        self.drawer.set_current("problems")
        if self.drawer.isHidden():
            self._opened_for_problems = True
            self.drawer.setParent(self)
            self._place_drawer()
            self.drawer.show()
            self.drawer.raise_()
        self.arranged.emit()

    def _floats(self) -> bool:
        return self.drawer.parentWidget() is self

    def _place_drawer(self) -> None:
        height = min(self._drawer_height, self.height())
        self.drawer.setGeometry(0, self.height() - height, self.width(), height)

    def close_drawer(self) -> None:
        self._opened_for_problems = False
        if not self.drawer.isHidden():
            self.drawer.hide()
        self.arranged.emit()

    def _note_drawer(self) -> None:
        self._drawer_height = max(LEAST_DRAWER, self.drawer.height())
        self.arranged.emit()

    # The layout

    def switch_closed(self, name: str) -> None:
        """Close a pane at the side, or show it."""
        if name == "details" and not self.area.shows(name) and not self.details.has_content:
            # It stays, and says what to do.
            self.details.pin.setChecked(True)
            self.area.bring(name)
        else:
            self.area.switch(name)
        self._arrange()

    def switch_maximised(self, name: str) -> None:
        """Give a pane of this mode the whole area, or restore the others."""
        self.area.maximise("" if self.area.maximised else name)
        self._arrange()

    def switch_window(self, name: str) -> None:
        """Show a pane in a window of its own, or put it back."""
        self.area.switch_window(name)
        self._arrange()

    def _put_back(self) -> None:
        """Put back the panes of the mode that are in windows of their own."""
        for name in dict(self.area.mode.panes):
            if self.area.is_in_window(name):
                self.area.switch_window(name)
        self._arrange()

    def _arrange(self) -> None:
        self.arranged.emit()

    def reset(self) -> None:
        """Put all panes back to their usual places and widths."""
        self.details.pin.setChecked(False)
        self.area.reset()
        self._drawer_height = DRAWER_HEIGHT
        self.close_drawer()
        self.settle()
        self._arrange()

    def settle(self) -> None:
        """Close the outline in a narrow window, where the code needs its room."""
        if self.window().width() < NARROW:
            self.area.set_closed("model", True)
            self.arranged.emit()

    def layout_of_panes(self) -> WindowLayout:
        """Return the mode, and the sizes of the panes."""
        return WindowLayout(
            mode=self.mode,
            widths=self.area.widths(),
            closed=tuple(sorted(self.area.closed)),
            pinned=self.details.pin.isChecked(),
            drawer=self._drawer_height,
        )

    def restore(self, layout: WindowLayout) -> None:
        """Apply a stored layout; what it does not have, or is absurd, stays as it is."""
        if layout.mode not in BY_KEY:
            return
        self.area.restore(layout.widths, layout.closed)
        self.details.pin.setChecked(layout.pinned)
        if LEAST_DRAWER <= layout.drawer < MOST:
            self._drawer_height = layout.drawer
        self.set_mode(layout.mode)

    def _show_translation(self) -> None:
        self.show_page("translation")

    def _show_wrong_step(self, record: BisectRecord) -> None:
        """Show the step that a search has found, where it can be stepped through."""
        if record.moment is None:
            return
        if record.entity or record.function:
            self._document.select((record.entity or record.function,))
        self.set_mode("schedule" if record.moment.section == "schedule" else "step")
        self._features.stepping.go(record.moment)

    def _show_problems(self) -> None:
        if self._features.inputs.problem is not None and self.inputs.isVisible():
            # The input pane reports it.
            return
        if self._document.problems or any(note.code for note in self._document.notes):
            # A dialog that has led to it shows it beside its field.
            if QApplication.activeModalWidget() is None:
                self._float_drawer()
        elif self._opened_for_problems:
            self.close_drawer()

    def show_difference(self) -> None:
        """Show the difference and give it the keyboard focus."""
        self.show_page("difference")
        self.difference.page.diff.setFocus()

    def _explain_fusion(self, one: str, other: str) -> None:
        queries = self._features.queries
        FusionDialog(self._document, queries, one, other, self.window()).pop_up()

    def show_tuning(self) -> None:
        """Show the progress of tuning."""
        self.show_page("tune")

    def _show_difference_of(self, old: Recipe, new: Recipe, function: str) -> None:
        self.difference.show_only(function)
        self._features.pins.compare_recipes(old, new)

    def _show_variants(self) -> None:
        self.show_page("variants")

    def show_tensor(self) -> None:
        """Show the values of the selected node."""
        self.compare.tensor.look_at_selection()
        self._show_values()

    def show_alone(self) -> None:
        """Run the selected node alone, and show its error."""
        self.show_tensor()
        self.compare.tensor.show_alone()

    def _show_tensor_of_call(self, place: TensorPlace, name: str) -> None:
        self.compare.tensor.look_at(place, name)
        self._show_values()

    def _show_values(self) -> None:
        self.show_page("compare")

    def _show_node(self) -> None:
        self.set_mode("explore")

    def _show_busy(self) -> None:
        document = self._document
        busy = document.recipe is not None and document.wanted != document.recipe
        if busy == self._busy:
            # Raising a pane repaints it and everything below.
            return
        self._busy = busy
        for pane in (self.fx, self.relax, self.tensorir):
            pane.set_busy(busy)

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_strip()
        if self._floats():
            self._place_drawer()


# --- The layout of the window in a session: stored, restored and watched ---


def layout_of(window: QWidget, panes: Panes | None, chosen: tuple[str, ...]) -> WindowLayout:
    """Return the layout of a window with its selection."""
    layout = WindowLayout() if panes is None else panes.layout_of_panes()
    size = window.normalGeometry().size()
    return msgspec.structs.replace(
        layout,
        size=(size.width(), size.height()),
        maximised=window.isMaximized(),
        selection=chosen,
    )


def lay_out(window: QWidget, panes: Panes, layout: WindowLayout) -> None:
    """Apply a session's layout to a window; parts of it that are unknown or absurd are ignored."""
    least, most = window.minimumSize(), window.screen().availableSize()
    width, height = layout.size
    if layout.maximised:
        window.showMaximized()
    elif least.width() <= width <= most.width() and least.height() <= height <= most.height():
        window.resize(width, height)
    panes.restore(layout)


def stored(panes: Panes) -> str:
    """Return the layout of the panes as JSON, for the settings.

    The window begins in the first mode: a model that is opened next has not been run.
    """
    layout = msgspec.structs.replace(panes.layout_of_panes(), mode=MODES[0].key)
    return msgspec.json.encode(layout).decode()


def restore(panes: Panes, text: str) -> None:
    """Apply a layout of the settings; the usual one if there is none that can be read."""
    try:
        panes.restore(msgspec.json.decode(text, type=WindowLayout))
    except msgspec.MsgspecError:
        panes.settle()


class LayoutWatch(QObject):
    """Notifies the session when the window or its panes are arranged otherwise."""

    def __init__(self, window: QWidget, panes: Panes, note: Callable[[], None]) -> None:
        super().__init__(panes)
        self._note = note
        window.installEventFilter(self)
        panes.arranged.connect(note)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._note()
        return super().eventFilter(watched, event)
