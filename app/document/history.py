"""Undo and redo: two lists of recipes around the open or pending one."""

from __future__ import annotations

from dataclasses import dataclass

from lowerscope.core.model.recipe import Recipe, without_steps


@dataclass(frozen=True)
class History:
    """The recipes before the open one, the last at the end, and the undone ones."""

    undo: tuple[Recipe, ...] = ()
    redo: tuple[Recipe, ...] = ()

    def changed_from(self, current: Recipe) -> History:
        """Return the history after `current` was changed to another recipe."""
        return History((*self.undo, current))

    def back_from(self, current: Recipe) -> tuple[Recipe, History]:
        """Return the recipe before `current`, and the history once it is open."""
        return self.undo[-1], History(self.undo[:-1], (*self.redo, current))

    def forward_from(self, current: Recipe) -> tuple[Recipe, History]:
        """Return the recipe that was undone last, and the history once it is open."""
        return self.redo[-1], History((*self.undo, current), self.redo[:-1])


@dataclass(frozen=True)
class Version:
    """A recipe, and the history around it.

    ``reads_files`` is set where the recipe is derived anew because its files may have changed.
    """

    recipe: Recipe
    history: History = History()
    reads_files: bool = False

    @property
    def opens(self) -> bool:
        """Return whether it opens a source, which undo cancels."""
        return self.history == History()


def history_after(shown: Recipe, history: History, coming: Version | None) -> History:
    """Return the history after the user changed the wanted recipe.

    A recipe that was never shown is no step, unless undo leads to it, it has another source, or it
    is shown without its steps until these are applied.

    Args:
        shown, history: The open recipe, and those around it.
        coming: The pending version.
    """
    if coming is not None and (
        coming.recipe.source != shown.source
        or len(coming.history.undo) < len(history.undo)
        or (coming.history == history and without_steps(coming.recipe) == shown)
    ):
        return coming.history.changed_from(coming.recipe)
    return history.changed_from(shown)
