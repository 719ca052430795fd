"""All paths in a recipe: files of models, inputs, extensions and databases."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lowerscope.core.passes.databases import with_database
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.spec import is_file
from lowerscope.core.user_paths import user_path


def with_absolute_paths(recipe: Recipe) -> Recipe:
    """Return a recipe with absolute paths, which are valid from any working directory."""
    return with_paths(recipe, lambda path: str(user_path(path).absolute()))


def with_paths(recipe: Recipe, change: Callable[[str], str]) -> Recipe:
    """Return a recipe with each path in it changed; samples and models in memory have none."""

    def changed(path: str) -> str:
        return change(path) if path else path

    replace = msgspec.structs.replace
    source = recipe.source
    spec = changed(source.spec) if is_file(source.spec) else source.spec
    return replace(
        recipe,
        source=replace(source, spec=spec, params=changed(source.params)),
        inputs=tuple(replace(each, file=changed(each.file)) for each in recipe.inputs),
        extensions=tuple(replace(each, path=changed(each.path)) for each in recipe.extensions),
        steps=tuple(with_database(each, changed) for each in recipe.steps),
    )
