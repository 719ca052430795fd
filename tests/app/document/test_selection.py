"""Ids that belong together."""

from __future__ import annotations

import pytest

from lowerscope.app.document.selection import Links, Selection
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.files.sources import sample_path
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.snapshot import FunctionRecord, PieceRecord
from lowerscope.core.stages import Pipeline

SAMPLE = sample_path("fashion_mlp")


@pytest.fixture(scope="module")
def links() -> Links:
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
    return Links(Pipeline().answer(SnapshotQuery(recipe, DEFAULT)))


def test_a_node_has_its_bindings_functions_module_and_parameters(links: Links) -> None:
    assert links.select(("fx:linear0",)).linked == {
        "fx:linear0",
        "relax:main/lv",
        "relax:main/lv1",
        "tir:dense",
        "tir:add",
        "module:linear0",
        "param:linear0.weight",
        "param:linear0.bias",
        f"torch:{SAMPLE}:41",
    }


def test_a_binding_has_its_own_node_and_function_alone(links: Links) -> None:
    selection = links.select(("relax:main/lv1",))
    line = f"torch:{SAMPLE}:41"
    assert selection.linked == {"relax:main/lv1", "fx:linear0", "tir:add", line}
    assert selection.of_kind("fx") == ("fx:linear0",)


def test_a_loop_belongs_to_its_function(links: Links) -> None:
    selection = links.select(("tir:dense/T_matmul_NT/k",))
    assert selection.chosen == ("tir:dense/T_matmul_NT/k",)
    assert selection.linked >= {"tir:dense/T_matmul_NT/k", "tir:dense", "fx:linear0"}
    assert "fx:linear1" not in selection.linked


def test_the_root_module_has_all_nodes(links: Links) -> None:
    nodes = links.select(("module:",)).of_kind("fx")
    assert nodes == ("fx:linear0", "fx:linear1", "fx:relu")


def test_functions_of_a_step_belong_to_what_became_their_calls(links: Links) -> None:
    fused = FunctionRecord(
        id="tir:fused", name="fused", kind="tensorir", calls=("relax:main/lv", "relax:main/lv1")
    )
    # Another function has the name at the step.
    dense = FunctionRecord(id="tir:dense", name="dense", kind="tensorir", calls=("relax:main/lv2",))
    there = links.at_step((fused, dense))
    assert there.select(("tir:fused",)).of_kind("relax") == ("relax:main/lv", "relax:main/lv1")
    assert there.select(("tir:fused/block",)).of_kind("fx") == ("fx:linear0",)
    assert there.select(("tir:fused",)).of_kind("tir") == ("tir:fused",)
    assert there.select(("tir:dense",)).of_kind("fx") == ("fx:relu",)
    # What becomes their calls is linked to them, and not to what it becomes after all steps.
    assert there.select(("fx:linear0",)).of_kind("tir") == ("tir:fused",)
    assert there.select(("relax:main/lv2",)).of_kind("tir") == ("tir:dense",)
    assert there.at_step(()).select(("fx:linear0",)) == links.select(("fx:linear0",))
    assert links.select(("tir:fused",)) == Selection()
    # What called it stays selected where it is gone.
    again = links.select_again(("tir:fused", "tir:dense"), there)
    assert again.chosen == ("relax:main/lv", "relax:main/lv1", "tir:dense")
    assert links.select_again(("tir:dense",), there).of_kind("fx") == ("fx:linear0",)


def test_parts_of_a_function_of_several_belong_to_their_own_bindings(links: Links) -> None:
    pieces = (
        PieceRecord(parts=("tir:f/a", "tir:f/a/i", "tir:f//buffer"), bindings=("relax:main/lv",)),
        PieceRecord(parts=("tir:f/b",), bindings=("relax:main/lv2",)),
    )
    calls = ("relax:main/lv", "relax:main/lv1", "relax:main/lv2")
    untied = "was changed by P"
    function = FunctionRecord(
        id="tir:f", name="f", kind="tensorir", calls=calls, pieces=pieces, untied=untied
    )
    there = links.at_step((function,))
    assert there.select(("tir:f/a/i",)).of_kind("fx") == ("fx:linear0",)
    assert there.select(("tir:f/b",)).of_kind("fx") == ("fx:relu",)
    assert there.select(("fx:relu",)).linked & {"tir:f/a", "tir:f/b"} == {"tir:f/b"}
    assert "tir:f//buffer" in there.select(("fx:linear0",)).linked
    # What is in no piece may be of any.
    unknown = there.select(("tir:f/c",))
    assert unknown.linked == {"tir:f/c", "tir:f"}
    # What is pointed at in the function is marked alone.
    assert there.select(("tir:f/a/i",)).of_kind("tir") == ("tir:f", "tir:f/a/i")
    assert there.owner_of("tir:f/b") == "relax:main/lv2"
    assert there.owner_of("tir:f/c") == ""
    assert there.at_step(()).owner_of("tir:f/b") == links.owner_of("tir:f/b")


def test_a_loop_of_a_schedule_belongs_to_what_packing_made_of_its_function() -> None:
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), steps=steps)
    links = Links(Pipeline().answer(SnapshotQuery(recipe, DEFAULT)))
    loop = "tir:fused_matmul_add_relu1/matmul/k"
    selection = links.select((loop,))
    assert selection.chosen == (loop,)
    assert selection.of_kind("fx") == ("fx:linear0", "fx:relu")
    assert "tir:fused_matmul_add_relu1_prepacked" in selection.linked
    # At an earlier step, the function itself is there.
    unpacked = FunctionRecord(
        id="tir:fused_matmul_add_relu1", name="fused_matmul_add_relu1", kind="tensorir"
    )
    assert links.at_step((unpacked,)).function_at_step(loop) == unpacked


def test_what_is_gone_is_not_selected(links: Links) -> None:
    assert links.select(("fx:gone", "tir:gone/block")) == Selection()
    assert Links().select(("fx:linear0",)) == Selection()
