"""The whole model by rules: the step of the pipeline, and what the rules make of each function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.requests import Requests
from lowerscope.core.engine.schedule_params import RulesParams
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe, ruled_in_model
from lowerscope.core.records.schedule import RuledFunction
from lowerscope.core.records.snapshot import Snapshot
from lowerscope.core.schedules import APPLY_RULES

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class RulesInModel(QObject):
    """Which rule schedules which function, asked for while somebody looks.

    Signals
    -------
    changed
        `functions`, `problem` or `busy` is new.

    Attributes
    ----------
    functions
        Those of the recipe that is shown; empty before they were asked for.
    problem
        Why they do not come.
    busy
        What is being done for them, in words; empty for nothing.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._requests = Requests()
        self._request: int | None = None
        self._of: tuple[Recipe, Snapshot] | None = None
        self.functions: tuple[RuledFunction, ...] = ()
        self.problem: Problem | None = None
        self.busy = ""

    @property
    def in_model(self) -> bool:
        """Whether the model is scheduled by rules."""
        recipe = self._workspace.wanted
        return recipe is not None and any(
            step.name == APPLY_RULES and step.on for step in recipe.steps
        )

    def set_in_model(self, on: bool) -> None:
        """Schedule the model by rules, or not: the step is at the end of the pipeline."""
        recipe = self._workspace.wanted
        if recipe is not None:
            self._workspace.change(ruled_in_model(recipe, on))

    def ask(self) -> None:
        """Ask what the rules make of the functions, unless that is known of what is shown."""
        recipe, snapshot = self._workspace.recipe, self._workspace.snapshot
        if recipe is None or snapshot is None:
            return
        # Derived anew, the same recipe may have other functions.
        if self._of is not None and self._of[0] == recipe and self._of[1] is snapshot:
            return
        if self._request is not None:
            self._requests.drop(self._request)
        self._of, self.functions, self.problem = (recipe, snapshot), (), None
        self.busy = self.tr("Scheduling by rules")
        self._request = self._requests.ask(
            self._workspace.engine,
            "rules",
            RulesParams(recipe=recipe),
            self._take,
            self._take_problem,
        )
        self.changed.emit()

    def _take(self, functions: tuple[RuledFunction, ...]) -> None:
        self._request, self.busy = None, ""
        self.functions = functions
        self.changed.emit()

    def _take_problem(self, problem: Problem) -> None:
        self._request, self.busy = None, ""
        self._of, self.functions, self.problem = None, (), problem
        self.changed.emit()
