"""The way from one recipe to another: what is on its way, what is taken back, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.history import Change, History, history_after
from lowerscope.core.engine.protocol import SnapshotParams
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe, applies_schedules, without_schedules
from lowerscope.core.records.snapshot import Snapshot

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class Changes(QObject):
    """The recipe that is shown, the one on its way, and those before and after.

    Signals
    -------
    wanted_changed
        `wanted` is another recipe, or it has become the one that is shown.
    opening(object)
        The recipe of another source is about to be asked for.
    reloading
        The files are about to be read again.

    Attributes
    ----------
    recipe
        The recipe whose records are shown.
    under_way
        The change that the engine is asked for.
    """

    wanted_changed = Signal()
    opening = Signal(object)
    reloading = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self.recipe: Recipe | None = None
        self.under_way: Change | None = None
        self._history = History()

    @property
    def wanted(self) -> Recipe | None:
        """The recipe that the user asked for last: the one on its way, or the one shown."""
        return self.recipe if self.under_way is None else self.under_way.recipe

    @property
    def history(self) -> History:
        """What is before and after `wanted`."""
        return self._history if self.under_way is None else self.under_way.history

    def open(self, recipe: Recipe) -> None:
        """Open another source. What is open stays until the new one's records are there."""
        self.opening.emit(recipe)
        self._want(recipe, History())

    def change(self, recipe: Recipe) -> None:
        """Go over to a changed recipe of the same source, as one step of undo."""
        if self.recipe is None:
            self.open(recipe)
        elif recipe == self.recipe:
            self._give_up()
        elif recipe != self.wanted:
            self._go_over(recipe, history_after(self.recipe, self._history, self.under_way))

    def amend(self, recipe: Recipe) -> None:
        """Go over to a recipe in place of the one that is wanted: no step of undo of its own."""
        if self.recipe is not None and recipe != self.wanted:
            self._go_over(recipe, self.history)

    def retry(self, recipe: Recipe) -> None:
        """Ask again for what was refused, mended; it counts as the same step of undo."""
        refused = self._workspace.trouble.refused
        assert refused is not None
        self._want(recipe, refused.history)

    def reload(self) -> None:
        """Derive everything anew from the files as they are now: what is on its way, if anything
        is, or else what was refused, or what is shown."""
        self.reloading.emit()
        refused = self._workspace.trouble.refused
        if self.under_way is None and refused is not None:
            self._want(refused.recipe, refused.history)
        elif self.wanted is not None:
            self._want(self.wanted, self.history)

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return bool(self.history.undo) or (self.under_way is not None and self.under_way.opens)

    @property
    def can_redo(self) -> bool:
        """Whether a step was taken back."""
        return bool(self.history.redo)

    @property
    def before(self) -> Recipe | None:
        """The recipe that `undo` goes back to from the one that is shown."""
        return self._history.undo[-1] if self._history.undo else None

    def undo(self) -> None:
        """Take the last change of the recipe back, be it on its way still."""
        recipe, history = self.wanted, self.history
        if recipe is not None and history.undo:
            self._go_over(*history.back_from(recipe))
        elif self.under_way is not None and self.under_way.opens:
            self._give_up()

    def redo(self) -> None:
        """Make the change again that was taken back last."""
        recipe, history = self.wanted, self.history
        if recipe is not None and history.redo:
            self._go_over(*history.forward_from(recipe))

    def settle(self, change: Change) -> None:
        """Count a change as done: its recipe is the one that is shown."""
        self.recipe, self._history = change.recipe, change.history

    def refuse_shown(self, problem: Problem) -> None:
        """Show why what is shown cannot be derived any more."""
        if self.recipe is not None:
            self._workspace.trouble.show(problem, Change(self.recipe, self._history, 0))

    def accept_shown(self) -> None:
        """Note that what is shown has been derived anew, after it could not be."""
        trouble = self._workspace.trouble
        if trouble.refused is not None and trouble.refused.recipe == self.recipe:
            trouble.clear()

    def _go_over(self, recipe: Recipe, history: History) -> None:
        shown = self.recipe
        same_model = shown is not None and without_schedules(shown) == without_schedules(recipe)
        if recipe != shown and (not same_model or applies_schedules(recipe)):
            self._want(recipe, history)
            return
        # The model is what it was: there is nothing to derive.
        self._give_up()
        self.recipe, self._history = recipe, history
        self._workspace.trouble.clear()
        self.wanted_changed.emit()

    def _want(self, recipe: Recipe, history: History) -> None:
        workspace = self._workspace
        self._abandon()
        workspace.runs.abandon()
        workspace.recovering.abandon()
        workspace.say(self.tr("Opening"))
        request = workspace.engine.request(
            "snapshot",
            SnapshotParams(recipe=recipe, metrics=workspace.metrics),
            self._accept,
            self._refuse,
            workspace.say,
        )
        self.under_way = Change(recipe, history, request)
        self.wanted_changed.emit()

    def _give_up(self) -> None:
        """Forget the recipe that is on its way; what is shown stays."""
        if self._abandon():
            self._workspace.say("")
            self.wanted_changed.emit()
        if self.recipe is None:
            self._workspace.runs.give_up()
        self._workspace.recovering.resume()

    def _abandon(self) -> bool:
        change, self.under_way = self.under_way, None
        if change is not None:
            self._workspace.abandon(self._workspace.engine, change.request)
        return change is not None

    def _accept(self, snapshot: Snapshot) -> None:
        change, self.under_way = self.under_way, None
        assert change is not None
        self._workspace.take(change, snapshot)

    def _refuse(self, problem: Problem) -> None:
        workspace = self._workspace
        change, self.under_way = self.under_way, None
        workspace.say("")
        if change is not None and problem.code == "crashed":
            again = workspace.recovering.remedy(change.recipe)
            if again is not None:
                self._want_again(again, change)
                return
        if problem.code != "cancelled":
            workspace.trouble.show(problem, change)
        workspace.runs.give_up()
        workspace.recovering.give_up(None if change is None else change.recipe)
        self.wanted_changed.emit()

    def _want_again(self, recipe: Recipe, lost: Change) -> None:
        """Ask the next engine for what was on its way, whole or without what was deadly."""
        history = lost.history
        if self.recipe is None and recipe != lost.recipe:
            # Undo goes back to what was opened; otherwise to what is shown.
            history = history.changed_from(lost.recipe)
        self._want(recipe, history)
