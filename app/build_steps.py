"""The passes of TVM's own build, which the worker lists when they are looked at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from lowerscope.app.engine_client import EngineClient
from lowerscope.app.stepping import Stepping
from lowerscope.core.engine.protocol import BuildParams
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.steps import PassRecord


class BuildSteps(QObject):
    """Asks for the list of the clock ``"build"``, and puts it into the stepping.

    Parameters
    ----------
    worker
        Who builds.
    shown
        Returns the recipe that is shown, if there is one.

    Signals
    -------
    changed
        `busy` or `problem` is new.
    """

    changed = Signal()

    def __init__(
        self,
        worker: EngineClient,
        shown: Callable[[], Recipe | None],
        stepping: Stepping,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker = worker
        self._shown = shown
        self._stepping = stepping
        self._looked_at = False
        self._is_built = False
        self._request: int | None = None
        self._problem: Problem | None = None
        stepping.list_changed.connect(self._note_clock)

    @property
    def busy(self) -> bool:
        """Whether the list is on its way."""
        return self._request is not None

    @property
    def problem(self) -> Problem | None:
        """Why there is no list."""
        return self._problem

    def look(self, looked_at: bool) -> None:
        """Say whether the list is looked at: while it is, it is that of what is shown."""
        self._looked_at = looked_at
        self._ask()

    def note_built(self) -> None:
        """Say that the worker has built what is shown, for something else: its list is there."""
        self._is_built = True
        self._ask()

    def take(self) -> None:
        """Go over to another recipe that is shown: its build is another one."""
        self._is_built = False
        if self._request is not None:
            self._worker.drop(self._request)
            self._request = None
        self._problem = None
        self.changed.emit()
        self._ask()

    def _note_clock(self) -> None:
        self._ask()

    def _ask(self) -> None:
        recipe = self._shown()
        looked_at = self._looked_at or self._is_built or self._stepping.clock == "build"
        there = self.busy or self._problem is not None or self._stepping.lines("build")
        if recipe is None or not looked_at or there:
            return
        self._request = self._worker.request(
            "build_steps", BuildParams(recipe=recipe), self._accept, self._refuse
        )
        self.changed.emit()

    def _accept(self, records: tuple[PassRecord, ...]) -> None:
        self._request = None
        self._stepping.take_build(records)
        self.changed.emit()

    def _refuse(self, problem: Problem) -> None:
        self._request, self._problem = None, problem
        self.changed.emit()
