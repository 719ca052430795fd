"""The schedule that a rule writes for the function at the workbench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.children.requests import Requests
from lowerscope.core.engine.schedule_params import ByRuleParams
from lowerscope.core.errors import Problem
from lowerscope.core.records.schedule import ByRule

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class SchedulingByRule(QObject):
    """Asks the engine for the steps, and has them as a variant of the function's schedule."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._requests = Requests()
        self._request: int | None = None
        self._function = ""

    def ask(self) -> None:
        """Have a rule write a schedule for the function that is scheduled."""
        scheduling = self._workspace.scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return
        if self._request is not None:
            self._requests.drop(self._request)
        self._function = scheduling.function
        params = ByRuleParams(recipe=scheduling.recipe, function=scheduling.function)
        self._request = self._requests.ask(
            self._workspace.engine, "by_rule", params, self._take, self._take_problem
        )

    def _take(self, ruled: ByRule) -> None:
        self._request = None
        workspace = self._workspace
        if workspace.scheduling.function != self._function:
            # Another function is looked at by now.
            return
        if not ruled.primitives:
            text = self.tr("No rule schedules {0}: {1}").format(self._function, ruled.reason)
            workspace.announced.emit(text, "wrong")
            return
        workspace.variants.add_with(self.tr("by rule"), ruled.primitives)
        count = len(ruled.primitives)
        steps = self.tr("1 step") if count == 1 else self.tr("{0} steps").format(count)
        text = self.tr("The rule {0} has written {1}; the comments say why.").format(
            ruled.rule, steps
        )
        workspace.announced.emit(text, "info")

    def _take_problem(self, problem: Problem) -> None:
        self._request = None
        if problem.code not in ("cancelled", "crashed"):
            self._workspace.announced.emit(problem.line(), "wrong")
