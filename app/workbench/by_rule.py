"""Schedules written by a rule for the scheduled function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.document.queries import Slot
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import ByRuleQuery
from lowerscope.core.records.schedule import ByRule

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class SchedulingByRule(QObject):
    """Requests the steps from the engine, and adds them as a variant."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._slot = Slot(workspace.queries)
        self._function = ""

    def ask(self) -> None:
        """Request a rule's schedule for the scheduled function."""
        scheduling = self._workspace.scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return
        self._function = scheduling.function
        params = ByRuleQuery(recipe=scheduling.recipe, function=scheduling.function)
        self._slot.ask(params, self._take, self._take_problem)

    def _take(self, ruled: ByRule) -> None:
        workspace = self._workspace
        if workspace.scheduling.function != self._function:
            # Another function is scheduled by now.
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
        if problem.code not in ("cancelled", "crashed"):
            self._workspace.announced.emit(problem.line(), "wrong")
