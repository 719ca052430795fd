"""What is compared with what: two pins on steps, of one recipe or of two."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.stepping import Stepping
from lowerscope.core.recipe import Recipe, Step, Strategy
from lowerscope.core.records.difference import Side
from lowerscope.core.records.steps import Moment


class Pins(QObject):
    """The two sides of the comparison.

    With nothing pinned, they are the module before and after the step that is looked at, or before
    and after all passes. With the first pin alone, they are what is pinned, and what is looked at,
    whatever step or recipe that becomes.

    Parameters
    ----------
    shown
        Returns the recipe that is shown, if there is one.
    stepping
        The moment that is looked at.

    Signals
    -------
    changed
        `sides` are others.
    wanted
        The user asked for a comparison: it is to be seen.
    """

    changed = Signal()
    wanted = Signal()

    def __init__(
        self,
        shown: Callable[[], Recipe | None],
        stepping: Stepping,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._shown = shown
        self._stepping = stepping
        self._first: Side | None = None
        self._second: Side | None = None
        stepping.moment_changed.connect(self._follow)

    @property
    def first(self) -> Side | None:
        """What is pinned."""
        return self._first

    @property
    def second(self) -> Side | None:
        """What it is compared with, where that is pinned as well."""
        return self._second

    @property
    def sides(self) -> tuple[Side, Side] | None:
        """The old and the new side; ``None`` while nothing is open."""
        recipe, moment = self._shown(), self._stepping.moment
        if recipe is None:
            return None
        here = Side(recipe=recipe, moment=moment)
        if self._first is not None:
            return self._first, self._second or here
        if moment is None:
            return Side(recipe=recipe, moment=Moment(clock="passes", index=0)), here
        if moment.index == 0:
            return here, here
        return Side(recipe=recipe, moment=moment, before=True), here

    def pin(self, moment: Moment | None) -> None:
        """Pin a moment of the recipe that is shown; ``None`` for the module after all steps."""
        recipe = self._shown()
        if recipe is not None:
            self._set(Side(recipe=recipe, moment=moment), None)

    def pin_here(self) -> None:
        """Pin what is looked at."""
        self.pin(self._stepping.moment)

    def compare(self, moment: Moment | None) -> None:
        """Compare what is pinned with a moment of the recipe that is shown."""
        recipe = self._shown()
        if recipe is not None and self._first is not None:
            self._set(self._first, Side(recipe=recipe, moment=moment))
            self.wanted.emit()

    def compare_here(self) -> None:
        """Compare what is pinned with what is looked at, and keep to that."""
        self.compare(self._stepping.moment)

    def compare_with(self, recipe: Recipe) -> None:
        """Compare another recipe with the one that is shown, both after all their steps."""
        self._set(Side(recipe=recipe), None)
        self.wanted.emit()

    def compare_recipes(self, old: Recipe, new: Recipe) -> None:
        """Compare two recipes, both after all their steps, and keep to these."""
        self._set(Side(recipe=old), Side(recipe=new))
        self.wanted.emit()

    def compare_lowering(self, lowering: Strategy) -> None:
        """Compare another default strategy, for all nodes, with what is shown."""
        recipe = self._shown()
        if recipe is not None:
            self.compare_with(msgspec.structs.replace(recipe, lowering=lowering, overrides=()))

    def compare_steps(self, steps: tuple[Step, ...]) -> None:
        """Compare another pipeline with what is shown."""
        recipe = self._shown()
        if recipe is not None:
            self.compare_with(msgspec.structs.replace(recipe, steps=steps))

    def swap(self) -> None:
        """Let the old side be the new one; both are pinned then."""
        sides = self.sides
        if sides is not None:
            self._set(sides[1], sides[0])

    def clear(self) -> None:
        """Pin nothing any more: follow the step that is looked at."""
        self._set(None, None)

    def take(self) -> None:
        """Go over to another recipe that is shown; pins on another source are gone."""
        recipe, first = self._shown(), self._first
        if recipe is None or (first is not None and first.recipe.source != recipe.source):
            self._first = self._second = None
        self.changed.emit()

    def _set(self, first: Side | None, second: Side | None) -> None:
        if (first, second) != (self._first, self._second):
            self._first, self._second = first, second
            self.changed.emit()

    def _follow(self) -> None:
        if self._first is None or self._second is None:
            self.changed.emit()
