"""Undo and redo: two lists of recipes around the one that is open, or that is on its way."""

from __future__ import annotations

from dataclasses import dataclass

from lowerscope.core.recipe import Recipe


@dataclass(frozen=True)
class History:
    """The recipes before the open one, the last at the end, and those that were taken back."""

    undo: tuple[Recipe, ...] = ()
    redo: tuple[Recipe, ...] = ()

    def changed_from(self, current: Recipe) -> History:
        """Return the history after `current` was changed into another recipe."""
        return History((*self.undo, current))

    def back_from(self, current: Recipe) -> tuple[Recipe, History]:
        """Return the recipe before `current`, and the history once that is open."""
        return self.undo[-1], History(self.undo[:-1], (*self.redo, current))

    def forward_from(self, current: Recipe) -> tuple[Recipe, History]:
        """Return the recipe that was taken back last, and the history once that is open."""
        return self.redo[-1], History((*self.undo, current), self.redo[:-1])


@dataclass(frozen=True)
class Change:
    """A recipe on its way: it becomes the document's when the engine has derived its records."""

    recipe: Recipe
    history: History
    request: int

    @property
    def opens(self) -> bool:
        """Whether it is another source, which undo gives up."""
        return self.history == History()


def history_after(shown: Recipe, history: History, coming: Change | None) -> History:
    """Return the history once what is wanted has been changed by the user.

    What was never shown is no step of its own, unless it is where undo goes, or another source.

    Parameters
    ----------
    shown, history
        The recipe that is open, and those around it.
    coming
        What is on its way.
    """
    if coming is not None and (
        coming.recipe.source != shown.source or len(coming.history.undo) < len(history.undo)
    ):
        return coming.history.changed_from(coming.recipe)
    return history.changed_from(shown)
