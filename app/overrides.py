"""Strategies of single nodes, as changes of a recipe."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lowerscope.core.recipe import Override, Recipe, Strategy


def with_strategy(recipe: Recipe, nodes: Iterable[str], strategy: Strategy | None) -> Recipe:
    """Return `recipe` with another strategy for some nodes.

    Parameters
    ----------
    nodes
        Their ids, ``fx:NAME``.
    strategy
        ``None`` for what the patterns and the default say.
    """
    chosen = tuple(dict.fromkeys(nodes))
    kept = tuple(each for each in recipe.overrides if each.pattern not in chosen)
    added = (
        ()
        if strategy is None
        else tuple(Override(pattern=node, strategy=strategy) for node in chosen)
    )
    return msgspec.structs.replace(recipe, overrides=(*kept, *added))
