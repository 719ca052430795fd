"""Schedules written by a rule for the scheduled function."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.workbench.order import Primitives
from lowerscope.app.workbench.scheduling import Scheduling
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import ByRuleQuery
from lowerscope.core.records.schedule import ByRule


class SchedulingByRule(QObject):
    """Requests the steps from the engine, and adds them as a variant."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        scheduling: Scheduling,
        add_variant: Callable[[str, Primitives], None],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._scheduling = scheduling
        self._add_variant = add_variant
        self._slot = Slot(queries)
        self._function = ""

    def ask(self) -> None:
        """Request a rule's schedule for the scheduled function."""
        scheduling = self._scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return
        self._function = scheduling.function
        params = ByRuleQuery(recipe=scheduling.recipe, function=scheduling.function)
        self._slot.ask(params, self._take, self._take_problem)

    def _take(self, ruled: ByRule) -> None:
        document = self._document
        if self._scheduling.function != self._function:
            # Another function is scheduled by now.
            return
        if not ruled.primitives:
            text = self.tr("No rule schedules {0}: {1}").format(self._function, ruled.reason)
            document.notify(text, "wrong")
            return
        self._add_variant(self.tr("by rule"), ruled.primitives)
        count = len(ruled.primitives)
        steps = self.tr("1 step") if count == 1 else self.tr("{0} steps").format(count)
        text = self.tr("The rule {0} has written {1}; the comments say why.").format(
            ruled.rule, steps
        )
        document.notify(text, "info")

    def _take_problem(self, problem: Problem) -> None:
        if problem.code not in ("cancelled", "crashed"):
            self._document.notify(problem.line(), "wrong")
