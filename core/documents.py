"""Identity of the open document. This module imports neither torch nor TVM."""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import Recipe


def document_of(recipe: Recipe | None) -> tuple[str, str] | None:
    """Return the source and the entry that a recipe opens, which identify its document."""
    return None if recipe is None else (recipe.source.spec, recipe.source.entry)


def with_trust(recipe: Recipe, *, trust: bool) -> Recipe:
    """Return a recipe whose source may run code when it is opened, or may not."""
    source = msgspec.structs.replace(recipe.source, trust=trust)
    return msgspec.structs.replace(recipe, source=source)
