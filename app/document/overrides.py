"""Strategies of single nodes, as recipe changes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lowerscope.core.model.recipe import Override, Recipe, Strategy
from lowerscope.core.model.snapshot import Snapshot


def calls_among(snapshot: Snapshot, entities: Iterable[str]) -> list[str]:
    """Return the ids of the nodes that are calls; inputs and outputs have no strategy."""
    calls = {node.id for node in snapshot.fx if node.opcode.startswith("call")}
    return [each for each in entities if each in calls]


def with_strategy(recipe: Recipe, nodes: Iterable[str], strategy: Strategy | None) -> Recipe:
    """Return `recipe` with another strategy for some nodes.

    Args:
        nodes: Their ids, ``fx:NAME``.
        strategy: ``None`` for the one from the patterns or the default.
    """
    chosen = tuple(dict.fromkeys(nodes))
    kept = tuple(each for each in recipe.overrides if each.pattern not in chosen)
    added = (
        ()
        if strategy is None
        else tuple(Override(pattern=node, strategy=strategy) for node in chosen)
    )
    return msgspec.structs.replace(recipe, overrides=(*kept, *added))


def switched(recipe: Recipe, override: Override) -> Recipe:
    """Return `recipe` with one of its overrides enabled or disabled."""
    other = msgspec.structs.replace(override, on=not override.on)
    overrides = tuple(other if each == override else each for each in recipe.overrides)
    return msgspec.structs.replace(recipe, overrides=overrides)
