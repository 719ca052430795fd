"""What the window does when a child has died: it replays what was open, and leaves out what killed.

Whatever was under way is tried once more, since a child may be killed from outside. The part of the
recipe that was being applied when a second one died is switched off.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.child_process import Ending
from lowerscope.core.engine.protocol import Role, SnapshotParams
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe, applies_schedules
from lowerscope.core.recipe_parts import Part, part_of, without_part
from lowerscope.core.records.snapshot import Snapshot

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

TWICE = 2
"""So many children have to die of something before nobody is asked for it any more."""


class Recovering(QObject):
    """The way back from the death of an engine or of a worker.

    Signals
    -------
    replayed
        A new engine has derived what is shown: what it was asked for before can be asked again.
    """

    replayed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._request: int | None = None
        # Whether the engine has not derived yet what is shown.
        self._lost = False
        # How many have died in a row at what is known of where they were.
        self._deaths: Counter[tuple[str, str]] = Counter()
        self._last: tuple[str, str] = ("", "")
        workspace.engine.killed.connect(self._note_killed)
        workspace.engine.crashed.connect(self._note_death)
        workspace.worker.crashed.connect(self._note_death)

    # What has died

    def _note_killed(self) -> None:
        self._lost = True
        self.resume()

    def _note_death(self, ending: Ending) -> None:
        workspace = self._workspace
        self._last = (ending.role, ending.call.part)
        self._deaths[self._last] += 1
        workspace.announced.emit(workspace.faults.crash_text(ending), "wrong")
        if ending.role == "engine":
            # Whether a lost change is tried again is told by its problem, which comes later.
            self._lost = True
            if not workspace.changing and self._request is None:
                self.replay()
            return
        recipe = workspace.wanted
        part = None if recipe is None else self._deadly(recipe)
        if recipe is not None and part is not None:
            workspace.change(without_part(recipe, part))
            self._say_off(part)

    def remedy(self, recipe: Recipe) -> Recipe | None:
        """Return what to go on with after the engine has died that derived this recipe.

        That is the recipe as it is, once; then without the part that the engine has died of twice;
        ``None`` where that is not known.
        """
        if self._workspace.engine.state == "failed":
            return None
        if self._deaths[self._last] < TWICE:
            return recipe
        part = self._deadly(recipe)
        if part is None:
            del self._deaths[self._last]
            return None
        self._say_off(part)
        return without_part(recipe, part)

    def _deadly(self, recipe: Recipe) -> Part | None:
        """Return the part of a recipe that two have died of, the last one just now."""
        return None if self._deaths[self._last] < TWICE else part_of(recipe, self._last[1])

    def _say_off(self, part: Part) -> None:
        role, _ = self._last
        del self._deaths[self._last]
        if part.kind == "step":
            what = self.tr("step {0}, {1}").format(part.place + 1, part.name)
            where = self.tr("its mark in Pipeline")
        elif part.kind == "primitive":
            what = self.tr("{0} in the schedule of {1}").format(part.name, part.function)
            where = self.tr("its mark in Schedule")
        else:
            name = part.name.removeprefix("fx:")
            what = self.tr("the lowering that was chosen for {0}").format(name)
            where = self.tr("the menu of overrides above")
        text = self.tr(
            "Two {0}s have died one after the other at {1}: it is switched off, and kept."
            " To switch it on again there is {2}, or Undo."
        )
        self._workspace.announced.emit(text.format(role, what, where), "wrong")

    def survived(self, role: Role, *kinds: str) -> None:
        """Forget how others have died of what a child has done now.

        Parameters
        ----------
        kinds
            See `Part`; ``""`` for what is none of these.
        """
        for each in tuple(self._deaths):
            if each[0] == role and each[1].partition(" ")[0] in kinds:
                del self._deaths[each]

    # The replay

    def replay(self) -> None:
        """Let the engine derive what is shown, so that what is asked for next is there."""
        workspace, self._lost = self._workspace, True
        if workspace.recipe is None or self._request is not None:
            return
        params = SnapshotParams(recipe=workspace.recipe, metrics=workspace.metrics)
        self._request = workspace.engine.request(
            "snapshot", params, self._accept, self._refuse, partial(workspace.say, of="replay")
        )

    def resume(self) -> None:
        """Replay what is shown, if the engine has not derived it and nothing else is on its way."""
        if self._lost and not self._workspace.changing:
            self.replay()

    def give_up(self, recipe: Recipe | None) -> None:
        """Go back to what is shown, unless the engine could not derive the same anew."""
        if recipe == self._workspace.recipe:
            self._lost = False
        self.resume()

    def abandon(self) -> None:
        """Do not replay what was shown: something else is wanted."""
        request, self._request = self._request, None
        self._workspace.say("", of="replay")
        self._workspace.abandon(self._workspace.engine, request)

    def take(self, recipe: Recipe) -> None:
        """Note that the engine has derived a recipe, which is shown now."""
        self.survived("engine", "", "step", "override")
        if applies_schedules(recipe):
            self.survived("engine", "primitive")
        if self._lost:
            self._lost = False
            self.replayed.emit()

    def _accept(self, _snapshot: Snapshot) -> None:
        self._request = None
        self._workspace.say("", of="replay")
        recipe = self._workspace.recipe
        assert recipe is not None
        self._workspace.changes.accept_shown()
        self.take(recipe)

    def _refuse(self, problem: Problem) -> None:
        self._request = None
        self._workspace.say("", of="replay")
        recipe = self._workspace.recipe
        again = None
        if recipe is not None and problem.code == "crashed":
            again = self.remedy(recipe)
        if again is not None and again != recipe:
            self._workspace.change(again)
        elif again is not None:
            self.replay()
        else:
            self._lost = False
            if problem.code != "cancelled":
                self._workspace.changes.refuse_shown(problem)
