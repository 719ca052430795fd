"""The pane Run: its pages beside the summary of the last run, above the calls over time."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.bar_controls import Pill
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.commands import plain
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.split import Split
from lowerscope.app.panes.common.run_figures import verdict_state
from lowerscope.app.panes.run.bisecting import Bisecting
from lowerscope.app.panes.run.calls_strip import CallsStrip
from lowerscope.app.panes.run.runs import Faults, Runs
from lowerscope.app.panes.run.summary_view import WIDTH, SummaryView
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.formatting import estimate_text
from lowerscope.core.model.queries import RunEstimateQuery
from lowerscope.core.model.run_records import RunEstimate
from lowerscope.core.model.texts import _

NEED_A_RUN = ("compare", "time", "memory")
"""Pages that show nothing before the first run."""

WITH_CALLS = ("compare", "time")
"""Pages above the calls over time."""

FOLDED = 1250
"""Width below which the verdict in the header takes the place of the summary."""

STRIP, LOW_STRIP = 176, 136
LOW = 720
"""Height below which the calls are low."""


class RunView(Pane):
    """A pane whose pages share the summary of the last run."""

    def __init__(
        self,
        document: Document,
        runs: Runs,
        faults: Faults,
        bisecting: Bisecting,
        parent: QWidget | None = None,
    ) -> None:
        self._key = ""
        super().__init__(_("Run"), parent)
        self._document = document
        self._runs = runs
        self._faults = faults
        self.header.title.hide()
        self.header.is_movable = False
        self.summary = SummaryView(document, runs, faults, bisecting)
        self.calls = CallsStrip(document, runs)
        self.verdict = Pill()
        self.empty = EmptyState()
        self.run = self.empty.add_action(_("Run"), self._run_or_stop, primary=True)
        self.optimise = self.empty.add_action(_("Optimise for CPU"), self._optimise)
        self._stack.addWidget(self.empty)
        self._slow = ""
        self._estimate = runs.queries.watch(
            self, self._estimate_query, self._take_estimate, lambda _problem: None
        )
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self._upper = Split(across, self.summary, self._stack, sizes=(WIDTH, 1100), shares=(0, 1))
        self._rows = Split(down, self._upper, self.calls, sizes=(500, STRIP), shares=(1, 0))
        self._is_moved = False
        self._rows.splitterMoved.connect(self._note_moved)
        body = QWidget()
        column_of(body, (self._rows, 1))
        layout = self.layout()
        assert layout is not None
        layout.addWidget(body)
        self.add_corner(self.verdict)
        document.on(("run", "running", "recipe", "snapshot"), self._show)
        document.on(("jobs",), self._show_progress)
        faults.changed.connect(self._show)
        self._show()

    # Pane

    def add_page(self, key: str, label: str, widget: QWidget) -> None:
        super().add_page(key, label, widget)
        self.set_current(self._key or key)

    def set_current(self, key: str) -> None:
        changed, self._key = key != self._key, key
        self.header.tabs.set_current(key)
        self._show()
        if changed:
            self.page_changed.emit(key)

    def current(self) -> str:
        return self._key

    def add_command(self, word: str, action: QAction) -> None:
        """Add a button for a command at the right end of the header."""
        button = push_button(word, act=action.trigger)
        button.setToolTip(
            f"{plain(action.text())} ({action.shortcut().toString()})".removesuffix(" ()")
        )
        button.setAccessibleName(plain(action.text()))
        button.setEnabled(action.isEnabled())
        action.enabledChanged.connect(button.setEnabled)
        self.add_corner(button)

    # Content

    def _show(self) -> None:
        """Show the current page with what belongs to it, or that nothing has run yet."""
        snapshot = self._document.snapshot
        generates = snapshot is not None and snapshot.model.generates
        self.header.tabs.set_absent("tokens", not generates)
        if self._key == "tokens" and snapshot is not None and not generates:
            self.set_current(self.pages()[0])
        has_run = self._runs.newest is not None
        is_empty = not has_run and self._key in NEED_A_RUN
        if self._key:
            self._stack.setCurrentWidget(self.empty if is_empty else self.page(self._key))
        folded = self.width() < FOLDED
        self.summary.setVisible(has_run and not folded)
        self.calls.setVisible(has_run and self._key in WITH_CALLS)
        self._show_verdict(folded)
        self._estimate.update()
        self._say_empty()

    def _estimate_query(self) -> RunEstimateQuery | None:
        """Return the query for the time of a first run on this machine."""
        recipe, self._slow = self._document.recipe, ""
        if recipe is None or self._runs.newest is not None or recipe.remote is not None:
            return None
        return None if self._document.is_changing else RunEstimateQuery(recipe)

    def _take_estimate(self, estimate: RunEstimate) -> None:
        recipe = self._document.recipe
        self._slow = "" if recipe is None else estimate_text(estimate, recipe.measuring)
        self._say_empty()

    def _optimise(self) -> None:
        """Apply the steps that schedule all functions; they replace those of the recipe."""
        self._document.change_fields(steps=find_pipeline("optimise-cpu").steps)

    def _show_verdict(self, folded: bool) -> None:
        record, failed = self._runs.newest, self._faults.failed
        self.verdict.setVisible(folded and record is not None)
        if failed is not None:
            self.verdict.set_state("wrong", _("failed"), "", failed.line())
        elif record is not None:
            role, words, figure = verdict_state(record)
            outdated = self._runs.outdated
            shown = _("{words}, before", words=words) if outdated else words
            tip = "\n".join(each for each in (outdated, record.reason) if each)
            self.verdict.set_state("neutral" if outdated else role, shown, figure, tip)

    def _say_empty(self) -> None:
        running, failed = self._document.running, self._faults.failed
        self.optimise.setVisible(bool(self._slow) and not running)
        self.run.setText(_("Stop") if running else _("Run"))
        self.run.setEnabled(self._document.wanted is not None)
        if running:
            self.empty.set_text(_("Run in progress"), self._document.job.words)
        elif failed is not None:
            self.empty.set_text(failed.headline, failed.todo)
        else:
            about = _(
                "Run (F5) compiles the module, runs it on the inputs, and compares its outputs "
                "and each node with torch."
            )
            self.empty.set_text(_("Not run yet"), f"{about}\n{self._slow}".rstrip())

    def _show_progress(self) -> None:
        if self._document.running and self.empty.isVisible():
            self._say_empty()

    def _run_or_stop(self) -> None:
        if self._document.running:
            self._runs.cancel()
        else:
            self._runs.run()

    def _note_moved(self) -> None:
        self._is_moved = True

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show()
        if not self._is_moved:
            strip = LOW_STRIP if self.height() < LOW else STRIP
            self._rows.setSizes([max(1, self._rows.height() - strip), strip])
