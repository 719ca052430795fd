"""All models of the window, made and connected: the document, its queries, and the features."""

from __future__ import annotations

from PySide6.QtCore import QObject

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.shared import Shared
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.document.timelines import BuildSteps, NodeSteps, RunSteps
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.recovery import Changes, Recovering
from lowerscope.app.engine.watchdog import AtWork, Hanging
from lowerscope.app.panes.inputs.model import Inputs
from lowerscope.app.panes.run.bisecting import Bisecting
from lowerscope.app.panes.run.rounding_page import Rounding
from lowerscope.app.panes.run.runs import Faults, Generations, Runs
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.core.model.problems import Problem


class Features(QObject):
    """The models of the window.

    They follow the document in the order in which they are made here, and before all views. Each
    is given what it needs; none is given this.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.document = document = Document(self)
        self.processes = children = Children(self)
        self.queries = queries = Queries(children.engine, children.worker, self)
        self.recovering = Recovering(document, queries, children)
        self.changes = Changes(document, queries, self.recovering)
        self.runs = Runs(document, queries, children, self.recovering, self._tuning_measures)
        self.faults = Faults(document)
        self.bisecting = Bisecting(document, queries)
        self.rounding = Rounding(document, queries)
        self.stepping = Stepping(document)
        self.build = BuildSteps(document, queries, self.stepping)
        self.scheduling = Scheduling(document, queries, self.stepping, self.recovering)
        self.variants = Variants(document, queries, self.scheduling)
        self.measurements = Measurements(
            document,
            queries,
            children.worker,
            self.scheduling,
            self._tuning_holds_back,
        )
        self.tuning = Tuning(document, queries, children, self.measurements.seconds_of)
        self.pins = Pins(document)
        self.colouring = Colouring(document)
        self.inputs = Inputs(document, queries, self.runs.run)
        self.generations = Generations(document, queries)
        self.run_steps = RunSteps(document, self.stepping, self._failure)
        self.shared = Shared(
            document, queries, self.stepping, self.colouring, self.pins, self.build, self.run_steps
        )
        self.node_steps = NodeSteps(document, queries, self.stepping, self.run_steps)
        self.at_work = AtWork(document, children)
        Hanging(document, children.engine)
        self.recovering.replayed.connect(queries.retry)
        self.changes.rejected.connect(self.runs.give_up)
        self.runs.failed.connect(self.faults.take)
        self.faults.changed.connect(self.run_steps.take_run)
        self.tuning.held_back.connect(self.measurements.follow_tuning)
        self.tuning.made_way.connect(self.runs.run_if_waiting)

    def scheduled(self) -> str:
        """Return the name of the scheduled function; empty for none."""
        return self.scheduling.function

    def active_function(self) -> str:
        """Return the scheduled function while the workbench is in use; empty for none."""
        return self.scheduling.function if self.scheduling.active else ""

    def _failure(self) -> Problem | None:
        return self.faults.failed

    def _tuning_measures(self) -> bool:
        return self.tuning.measures

    def _tuning_holds_back(self) -> bool:
        return self.tuning.holds_back

    # Start and end

    def start(self) -> None:
        """Start the engine; the worker is started when the engine is ready."""
        self.processes.start()

    def stop(self) -> None:
        """Stop all processes."""
        self.tuning.close()
        self.processes.stop()

    def restart(self) -> None:
        """Restart both children, whatever they are doing, and derive the recipe shown again."""
        self.processes.restart()
        self.recovering.replay()

    def cancel(self) -> None:
        """Cancel the current work; the document stays open."""
        self.document.cancel_jobs()
        self.inputs.cancel()
        self.at_work.cancel()
