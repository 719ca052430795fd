"""Rule-based scheduling of the whole model: the pipeline's step, and each function's rule."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import RulesQuery
from lowerscope.core.recipe import Recipe, ruled_in_model
from lowerscope.core.records.schedule import RuledFunction
from lowerscope.core.records.snapshot import Snapshot
from lowerscope.core.schedules import APPLY_RULES


class RulesInModel(QObject):
    """The rule of each function, queried while it is shown.

    Signals
    -------
    changed
        `functions`, `problem` or `busy` changed.

    Attributes
    ----------
    functions
        Functions of the recipe shown; empty before they were queried.
    problem
        The problem that prevented them.
    busy
        Description of the current work; empty for none.
    """

    changed = Signal()

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document)
        self._document = document
        self._slot = Slot(queries)
        self._of: tuple[Recipe, Snapshot] | None = None
        self.functions: tuple[RuledFunction, ...] = ()
        self.problem: Problem | None = None
        self.busy = ""

    @property
    def in_model(self) -> bool:
        """Return whether the model is scheduled by rules."""
        recipe = self._document.wanted
        return recipe is not None and any(
            step.name == APPLY_RULES and step.on for step in recipe.steps
        )

    def set_in_model(self, on: bool) -> None:
        """Add the step that schedules the model by rules to the pipeline's end, or remove it."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(ruled_in_model(recipe, on))

    def ask(self) -> None:
        """Query the rules' results for the functions, unless cached for the recipe shown."""
        recipe, snapshot = self._document.recipe, self._document.snapshot
        if recipe is None or snapshot is None:
            return
        # Derived again, the same recipe may have other functions.
        if self._of is not None and self._of[0] == recipe and self._of[1] is snapshot:
            return
        self._of, self.functions, self.problem = (recipe, snapshot), (), None
        self.busy = self.tr("Scheduling by rules")
        self._slot.ask(
            RulesQuery(recipe=recipe),
            self._take,
            self._take_problem,
        )
        self.changed.emit()

    def _take(self, functions: tuple[RuledFunction, ...]) -> None:
        self.busy = ""
        self.functions = functions
        self.changed.emit()

    def _take_problem(self, problem: Problem) -> None:
        self.busy = ""
        self._of, self.functions, self.problem = None, (), problem
        self.changed.emit()
