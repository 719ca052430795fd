"""The two sides of a comparison: pins on steps, of one recipe or of two."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.recipe import Recipe, Step, Strategy


class Pins(QObject):
    """The two sides of the comparison.

    With nothing pinned, they are the module before and after the current step, or before and after
    all passes. With the first pin alone, they are the pinned and the current module, following the
    current step and recipe.
    """

    changed = Signal()  # `sides` changed.
    wanted = Signal()  # The user requested a comparison: show it.

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self.first: ComparedModule | None = None  # The pinned side, if any.
        # The side that `first` is compared with, if pinned as well.
        self.second: ComparedModule | None = None
        document.on(("moment",), self._follow)
        document.on(("snapshot",), self._take)

    @property
    def sides(self) -> tuple[ComparedModule, ComparedModule] | None:
        """The old and the new side; ``None`` while nothing is open."""
        return self.sides_at(self._document.module_moment)

    def sides_at(self, moment: Moment | None) -> tuple[ComparedModule, ComparedModule] | None:
        """Return the two sides as they are at a step."""
        recipe = self._document.recipe
        if recipe is None:
            return None
        here = ComparedModule(recipe=recipe, moment=moment)
        if self.first is not None:
            return self.first, self.second or here
        if moment is None:
            return ComparedModule(recipe=recipe, moment=Moment(section="passes", index=0)), here
        if moment.index == 0:
            return here, here
        return ComparedModule(recipe=recipe, moment=moment, before=True), here

    def pin(self, moment: Moment | None) -> None:
        """Pin a step of the recipe shown; ``None`` for the module after all steps."""
        recipe = self._document.recipe
        if recipe is not None:
            self._set(ComparedModule(recipe=recipe, moment=moment), None)

    def pin_here(self) -> None:
        """Pin the current step."""
        self.pin(self._document.module_moment)

    def compare(self, moment: Moment | None) -> None:
        """Compare the pinned side with a step of the recipe shown."""
        recipe = self._document.recipe
        if recipe is not None and self.first is not None:
            self._set(self.first, ComparedModule(recipe=recipe, moment=moment))
            self.wanted.emit()

    def compare_here(self) -> None:
        """Compare the pinned side with the current step, and pin that as well."""
        self.compare(self._document.module_moment)

    def compare_with(self, recipe: Recipe) -> None:
        """Compare another recipe with the one shown, both after all their steps."""
        self._set(ComparedModule(recipe=recipe), None)
        self.wanted.emit()

    def compare_recipes(self, old: Recipe, new: Recipe) -> None:
        """Compare two recipes, both after all their steps, and pin both."""
        self._set(ComparedModule(recipe=old), ComparedModule(recipe=new))
        self.wanted.emit()

    def compare_lowering(self, lowering: Strategy) -> None:
        """Compare the recipe shown with another default strategy, for all nodes."""
        recipe = self._document.recipe
        if recipe is not None:
            self.compare_with(msgspec.structs.replace(recipe, lowering=lowering, overrides=()))

    def compare_steps(self, steps: tuple[Step, ...]) -> None:
        """Compare the recipe shown with another pipeline."""
        recipe = self._document.recipe
        if recipe is not None:
            self.compare_with(msgspec.structs.replace(recipe, steps=steps))

    def swap(self) -> None:
        """Swap the old and the new side; both are pinned then."""
        sides = self.sides
        if sides is not None:
            self._set(sides[1], sides[0])

    def clear(self) -> None:
        """Remove the pins: follow the current step."""
        self._set(None, None)

    def _take(self) -> None:
        """Switch to another recipe shown; pins on another source are removed."""
        recipe, first = self._document.recipe, self.first
        if recipe is None or (first is not None and first.recipe.source != recipe.source):
            self.first = self.second = None
        self.changed.emit()

    def _set(self, first: ComparedModule | None, second: ComparedModule | None) -> None:
        if (first, second) != (self.first, self.second):
            self.first, self.second = first, second
            self.changed.emit()

    def _follow(self) -> None:
        if self.first is None or self.second is None:
            self.changed.emit()
