"""Undo and redo: two lists of recipes around the one that is open, and a change of it."""

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
    """A recipe on its way: it becomes the document's when the engine has derived its records.

    Attributes
    ----------
    history
        What is before and after it, once it is open.
    request
        Of the engine.
    """

    recipe: Recipe
    history: History
    request: int
