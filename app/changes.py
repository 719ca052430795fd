"""Pending recipe change, undo/redo and rejected changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.queries import Slot
from lowerscope.app.history import Change, History, history_after
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.recipe import Recipe, applies_schedules, without_schedules
from lowerscope.core.records.snapshot import Snapshot

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class Changes(QObject):
    """The recipe shown, the pending one, and those before and after.

    Signals
    -------
    wanted_changed
        `wanted` changed, or became the recipe shown.
    opening(object)
        The recipe of another source is about to be requested.
    reloading
        The files are about to be read again.

    Attributes
    ----------
    recipe
        The recipe whose records are shown.
    under_way
        The change requested from the engine.
    """

    wanted_changed = Signal()
    opening = Signal(object)
    reloading = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self.recipe: Recipe | None = None
        self.under_way: Change | None = None
        self._slot = Slot(workspace.queries)
        self._history = History()

    @property
    def wanted(self) -> Recipe | None:
        """The recipe that the user requested last: the pending one, or the one shown."""
        return self.recipe if self.under_way is None else self.under_way.recipe

    @property
    def history(self) -> History:
        """The recipes before and after `wanted`."""
        return self._history if self.under_way is None else self.under_way.history

    def open(self, recipe: Recipe) -> None:
        """Open another source. The current document stays until the new one's records arrive."""
        self.opening.emit(recipe)
        self._want(recipe, History())

    def change(self, recipe: Recipe) -> None:
        """Request a changed recipe of the same source, as one undo step."""
        if self.recipe is None:
            self.open(recipe)
        elif recipe == self.recipe:
            self._give_up()
        elif recipe != self.wanted:
            self._go_over(recipe, history_after(self.recipe, self._history, self.under_way))

    def amend(self, recipe: Recipe) -> None:
        """Request a recipe in place of the wanted one, without an undo step of its own."""
        if self.recipe is not None and recipe != self.wanted:
            self._go_over(recipe, self.history)

    def retry(self, recipe: Recipe) -> None:
        """Resubmit a rejected recipe, corrected; it counts as the same undo step."""
        refused = self._workspace.trouble.refused
        assert refused is not None
        self._want(recipe, refused.history)

    def reload(self) -> None:
        """Derive everything anew from the current files.

        That is the pending change if there is one, or else the rejected one, or the recipe shown.
        """
        self.reloading.emit()
        refused = self._workspace.trouble.refused
        if self.under_way is None and refused is not None:
            self._want(refused.recipe, refused.history)
        elif self.wanted is not None:
            self._want(self.wanted, self.history)

    @property
    def can_undo(self) -> bool:
        """Return whether there is a step to undo."""
        return bool(self.history.undo) or (self.under_way is not None and self.under_way.opens)

    @property
    def can_redo(self) -> bool:
        """Return whether there is a step to redo."""
        return bool(self.history.redo)

    @property
    def before(self) -> Recipe | None:
        """The recipe that `undo` returns to from the one shown."""
        return self._history.undo[-1] if self._history.undo else None

    def undo(self) -> None:
        """Undo the last change of the recipe, pending or not."""
        recipe, history = self.wanted, self.history
        if recipe is not None and history.undo:
            self._go_over(*history.back_from(recipe))
        elif self.under_way is not None and self.under_way.opens:
            self._give_up()

    def redo(self) -> None:
        """Redo the change that was undone last."""
        recipe, history = self.wanted, self.history
        if recipe is not None and history.redo:
            self._go_over(*history.forward_from(recipe))

    def settle(self, change: Change) -> None:
        """Complete a change: its recipe is now the one shown."""
        self.recipe, self._history = change.recipe, change.history

    def refuse_shown(self, problem: Problem) -> None:
        """Show why the recipe shown can no longer be derived."""
        if self.recipe is not None:
            self._workspace.trouble.show(problem, Change(self.recipe, self._history))

    def accept_shown(self) -> None:
        """Note that the recipe shown has been derived again after a failure."""
        trouble = self._workspace.trouble
        if trouble.refused is not None and trouble.refused.recipe == self.recipe:
            trouble.clear()

    def _go_over(self, recipe: Recipe, history: History) -> None:
        shown = self.recipe
        same_model = shown is not None and without_schedules(shown) == without_schedules(recipe)
        if recipe != shown and (not same_model or applies_schedules(recipe)):
            self._want(recipe, history)
            return
        # The model is unchanged: there is nothing to derive.
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
        self._slot.ask(
            SnapshotQuery(recipe=recipe, metrics=workspace.metrics),
            self._accept,
            self._refuse,
            workspace.say,
        )
        self.under_way = Change(recipe, history)
        self.wanted_changed.emit()

    def _give_up(self) -> None:
        """Discard the pending recipe; the document stays as shown."""
        if self._abandon():
            self._workspace.say("")
            self.wanted_changed.emit()
        if self.recipe is None:
            self._workspace.runs.give_up()
        self._workspace.recovering.resume()

    def _abandon(self) -> bool:
        change, self.under_way = self.under_way, None
        self._slot.supersede()
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
        """Resubmit the lost change to the restarted engine, without the part that crashed it."""
        history = lost.history
        if self.recipe is None and recipe != lost.recipe:
            # Undo returns to the recipe that was opened; otherwise to the one shown.
            history = history.changed_from(lost.recipe)
        self._want(recipe, history)
