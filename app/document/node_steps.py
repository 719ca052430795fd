"""The passes that change something of a node: for playing until one, and for breakpoints."""

from __future__ import annotations

from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.document.run_steps import RunSteps, can_break
from lowerscope.app.document.stepping import Stepping
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import TouchingStepsQuery
from lowerscope.core.model.texts import _


class NodeSteps(QObject):
    """Plays until a pass changes the selection, and tells the stepping where breakpoints are."""

    def __init__(
        self, document: Document, queries: Queries, stepping: Stepping, run_steps: RunSteps
    ) -> None:
        super().__init__(document)
        self._document = document
        self._stepping = stepping
        self._run_steps = run_steps
        self._wanted = Slot(queries)
        self._touched = Slot(queries)
        run_steps.breaks_changed.connect(self._ask_touched)

    def selected(self) -> tuple[str, ...]:
        """Return the selected nodes or bindings; of a function, its nodes."""
        selection = self._document.selection
        chosen = tuple(each for each in selection.chosen if can_break(each))
        return chosen or tuple(selection.of_kind("fx"))

    def play_until_changed(self) -> None:
        """Play the passes until one changes something of the selection."""
        recipe, entities = self._document.recipe, self.selected()
        if recipe is not None and entities:
            self._stepping.pause()
            self._wanted.ask(TouchingStepsQuery(recipe, entities), self._play, self._refuse)

    def _play(self, numbers: tuple[int, ...]) -> None:
        stepping = self._stepping
        here = stepping.moment
        index = here.index if here is not None and here.section == "passes" else 0
        later = [number for number in numbers if number > index]
        if not later:
            words = _("No later pass changes the selection.")
            self._document.notify(words, "info")
            return
        if here is None or here.section != "passes":
            stepping.go(Moment(section="passes", index=0))
        stepping.play(until=later[:1])

    def _refuse(self, problem: Problem) -> None:
        self._document.report(problem)

    def _ask_touched(self) -> None:
        recipe, breaks = self._document.recipe, tuple(sorted(self._run_steps.breaks))
        if recipe is None or not breaks:
            self._touched.drop()
            self._stepping.set_touched(())
            return
        query = TouchingStepsQuery(recipe, breaks)
        self._touched.ask(query, self._stepping.set_touched, self._refuse)
