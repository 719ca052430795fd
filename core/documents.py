"""What is open: the document that a recipe is of. This module imports neither torch nor TVM."""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import Recipe


def document_of(recipe: Recipe | None) -> tuple[str, str] | None:
    """Return what a recipe opens, whatever it does with it: a source, and the entry in it."""
    return None if recipe is None else (recipe.source.spec, recipe.source.entry)


def with_trust(recipe: Recipe, *, trust: bool) -> Recipe:
    """Return a recipe whose source may run code when it is opened, or may not."""
    source = msgspec.structs.replace(recipe.source, trust=trust)
    return msgspec.structs.replace(recipe, source=source)
