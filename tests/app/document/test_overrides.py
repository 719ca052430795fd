"""Strategies of single nodes, as changes of a recipe."""

from __future__ import annotations

from lowerscope.app.document.document import calls_among, with_strategy
from lowerscope.core.model.recipe import Override, Recipe, Source
from lowerscope.core.model.snapshot import FxNode, ModelRecord, Snapshot, TextRecord

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


def test_what_is_no_call_has_no_strategy() -> None:
    def node(opcode: str, name: str) -> FxNode:
        fields = dict.fromkeys(("target", "args", "kwargs", "dtype", "type", "label"), "")
        return FxNode(id=f"fx:{name}", name=name, opcode=opcode, shape=None, **fields)

    fx = (node("placeholder", "x"), node("call_module", "relu"), node("output", "output"))
    model = ModelRecord(title="", path="", kind="torch", description="", inputs=())
    empty = TextRecord(text="", language="python")
    snapshot = Snapshot(
        model=model, fx=fx, tracer="fx", fx_graph=None, relax=empty, functions=(), links=()
    )
    chosen = ["fx:x", "fx:relu", "fx:output", "module:relu"]
    assert calls_among(snapshot, chosen) == ["fx:relu"]
