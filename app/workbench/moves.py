"""The moves that there are for what is selected of the function that is scheduled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.recovering import TWICE
from lowerscope.app.children.requests import Requests
from lowerscope.app.workbench.order import Place
from lowerscope.core.engine.schedule_params import MovesParams
from lowerscope.core.errors import Problem
from lowerscope.core.records.schedule import Move
from lowerscope.core.schedules import Reference, references_of

if TYPE_CHECKING:
    from lowerscope.app.workbench.scheduling import Scheduling
    from lowerscope.app.workspace import Workspace

Question = tuple[Place, tuple[Reference, ...]]


class Moves(QObject):
    """What could come next.

    Signals
    -------
    changed
        `all` is new.

    Attributes
    ----------
    all
        The moves for what is selected; those that are not legal as well.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace, scheduling: Scheduling) -> None:
        super().__init__(scheduling)
        self._workspace = workspace
        self._scheduling = scheduling
        self._requests = Requests()
        self._request: int | None = None
        self._asked: Question | None = None
        self._step = ""
        # How many engines have died of a question: one may be killed from outside.
        self._deadly: Counter[Question] = Counter()
        self.all: tuple[Move, ...] = ()
        workspace.selection_changed.connect(self.follow)

    @property
    def are_coming(self) -> bool:
        """Whether `all` is about something else still."""
        return self._request is not None

    def follow(self) -> None:
        """Go over to the moves of what is selected now."""
        scheduling = self._scheduling
        if not scheduling.active or scheduling.shown is None or self._step:
            return
        references = tuple(each.reference for each in scheduling.chosen)
        if self._asked != (scheduling.shown, references):
            self._ask((scheduling.shown, references))

    @property
    def are_deadly(self) -> bool:
        """Whether engines died when they looked for the moves of what is selected."""
        return self._asked is not None and self._deadly[self._asked] >= TWICE

    def forget(self) -> None:
        """Have no moves: there is another function, or another engine."""
        self._drop()
        self._asked = None
        if self.all:
            self.all = ()
            self.changed.emit()

    def ask_again(self) -> None:
        """Ask anew what an engine that died was asked for."""
        self._asked = None
        self.follow()

    def ask_for_step(self, step: str, place: int) -> None:
        """Ask for what was offered where a step stands, so that it can be edited."""
        scheduling = self._scheduling
        assert scheduling.recipe is not None
        references = references_of(scheduling.primitives[place])
        self._ask(((scheduling.recipe, scheduling.function, place), references))
        self._step = step

    def _ask(self, question: Question) -> None:
        self._drop()
        self._asked = question
        if self._deadly[question] >= TWICE:
            self.all = ()
            self.changed.emit()
            return
        (recipe, function, index), references = question
        params = MovesParams(recipe=recipe, function=function, index=index, chosen=references)
        self._request = self._requests.ask(
            self._workspace.engine, "moves", params, self._take, self._take_problem
        )
        self.changed.emit()

    def _drop(self) -> None:
        self._step = ""
        if self._request is not None:
            self._requests.drop(self._request)
            self._request = None

    def _take(self, moves: tuple[Move, ...]) -> None:
        self._request = None
        if self._asked is not None:
            self._deadly.pop(self._asked, None)
        if self._step:
            step, self._step = self._step, ""
            self._asked = None
            self._scheduling.trying.open_step(step, moves)
            self.follow()
            return
        self.all = moves
        self.changed.emit()

    def _take_problem(self, problem: Problem) -> None:
        self._request = None
        self._step = ""
        self.all = ()
        if problem.code == "crashed" and self._asked is not None:
            # The next engine is asked as well, and would it die of it, none any more.
            self._deadly[self._asked] += 1
        self.changed.emit()
        if problem.code not in ("cancelled", "crashed"):
            self._workspace.announced.emit(problem.line(), "wrong")
