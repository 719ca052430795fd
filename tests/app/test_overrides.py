"""Strategies of single nodes, as changes of a recipe."""

from __future__ import annotations

from lowerscope.app.overrides import with_strategy
from lowerscope.core.recipe import Override, Recipe, Source

RECIPE = Recipe(
    source=Source(spec="sample:conv_net"), overrides=(Override(pattern="conv*", strategy="te"),)
)


def test_a_node_has_one_strategy_of_its_own() -> None:
    te = with_strategy(RECIPE, ["fx:relu", "fx:relu"], "te")
    assert [each.pattern for each in te.overrides] == ["conv*", "fx:relu"]
    library = with_strategy(te, ["fx:relu"], "library")
    assert library.overrides[1:] == (Override(pattern="fx:relu", strategy="library"),)


def test_resetting_a_node_leaves_patterns_and_other_nodes() -> None:
    both = with_strategy(RECIPE, ["fx:relu", "fx:conv"], "te")
    assert with_strategy(both, ["fx:conv"], None).overrides == (
        *RECIPE.overrides,
        Override(pattern="fx:relu", strategy="te"),
    )
