"""Graphs of recipes: with modules expanded, and at a step of the passes."""

from __future__ import annotations

import pytest

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Recipe, Source, Step
from lowerscope.core.rendering.hierarchy import Opening
from lowerscope.core.rendering.metrics import DEFAULT
from lowerscope.core.step_records import Moment

RESNET = Recipe(source=Source(spec="sample:resnet18"))
FUSED = Recipe(
    source=Source(spec="sample:transformer_block"),
    lowering="te",
    steps=(Step(name="AnnotateTIROpPattern"), Step(name="FuseOps")),
)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline()


def test_modules_of_resnet_collapse_and_expand(pipeline: Pipeline) -> None:
    closed = pipeline.derived_graph(RESNET, DEFAULT, Silent(), "fx", None, Opening(()))
    assert [box.title for box in closed.boxes if box.kind == "group"] == [
        "layer1",
        "layer2",
        "layer3",
        "layer4",
    ]
    assert closed.boxes[5].subtitle == "Sequential · 16 nodes"
    wanted = ("module:layer2", "module:layer2.0")
    opened = pipeline.derived_graph(RESNET, DEFAULT, Silent(), "fx", None, Opening(wanted))
    assert opened.expanded == wanted
    assert [region.title for region in opened.regions] == ["layer2 · Sequential", "0 · BasicBlock"]
    assert {box.id for box in closed.boxes} - {box.id for box in opened.boxes} == {"module:layer2"}
    # The trunk runs straight down through all frames.
    trunk = [box for box in opened.boxes if "shortcut" not in box.id]
    assert len({round(box.x + box.width / 2, 3) for box in trunk}) == 1


def test_a_source_without_torch_says_that_it_has_no_fx_graph(pipeline: Pipeline) -> None:
    recipe = Recipe(source=Source(spec="sample:mlp_tvmscript"))
    with pytest.raises(LowerscopeError, match="no FX graph"):
        pipeline.derived_graph(recipe, DEFAULT, Silent(), "fx")


def test_a_fused_module_has_a_box_for_each_group_within_its_module(pipeline: Pipeline) -> None:
    runs = pipeline.stages(FUSED).transformed.runs
    last = next(number for number, run in enumerate(runs, 1) if run.name == "FuseOps")
    moment = Moment(clock="passes", index=last)
    everything = Opening(("module:attention",))
    graph = pipeline.derived_graph(FUSED, DEFAULT, Silent(), "relax", moment, everything)
    calls = {box.subtitle.split(" · ")[0]: box for box in graph.boxes}
    group = calls["call fused_matmul_divide"]
    (frame,) = graph.regions
    assert frame.id == "module:attention"
    assert frame.x < group.x < frame.x + frame.width
    assert frame.y < group.y < frame.y + frame.height
    assert len(group.members) == 2
    assert all(each.startswith("relax:fused_matmul_divide/") for each in group.members)
    outside = calls["call fused_dense1_add2_gelu"]
    assert outside.y > frame.y + frame.height
