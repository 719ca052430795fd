"""The difference of two graphs: what became what, and one drawing for both."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.module_steps import ComparedModule, GraphDifference, Moment
from lowerscope.core.model.queries import GraphDifferenceQuery
from lowerscope.core.model.recipe import Override, Recipe, Source
from lowerscope.core.stages import Pipeline

FUSE = next(preset.steps for preset in PRESETS if preset.name == "fuse")
RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"), steps=FUSE)


def compare(
    pipeline: Pipeline, old: ComparedModule, new: ComparedModule, function: str = "main"
) -> GraphDifference:
    """Return the difference of two graphs, whose boxes are those of its nodes."""
    found = pipeline.answer(GraphDifferenceQuery(old, new, DEFAULT, function))
    boxes = {box.id: box for box in found.graph.boxes}
    assert sorted(boxes) == sorted(node.id for node in found.nodes)
    for node in found.nodes:
        assert boxes[node.id].strategy == ("" if node.status == "same" else node.status)
    for edge in found.graph.edges:
        assert boxes[edge.source].y < boxes[edge.target].y
    return found


def step(pipeline: Pipeline, name: str) -> GraphDifference:
    """Return what a step of the recipe did to the graph of main."""
    runs = pipeline.stages(RECIPE).transformed.runs
    number = next(i for i, run in enumerate(runs, 1) if run.name == name and not run.depth)
    moment = Moment(section="passes", index=number)
    old = ComparedModule(recipe=RECIPE, moment=moment, before=True)
    return compare(pipeline, old, ComparedModule(recipe=RECIPE, moment=moment))


def nodes(found: GraphDifference, status: str) -> list[tuple[str, str, str]]:
    """Return name, before and after of the nodes with a status."""
    return [(node.name, node.before, node.after) for node in found.nodes if node.status == status]


def test_legalised_bindings_have_changed(pipeline: Pipeline) -> None:
    found = step(pipeline, "LegalizeOps")
    assert Counter(node.status for node in found.nodes) == {"changed": 7, "same": 2}
    assert ("lv3", "R.nn.relu", "call_tir relu") in nodes(found, "changed")
    assert found.nodes[0].name == "x"
    assert found.nodes[-1].name == "return"


@pytest.mark.parametrize("sample", ["conv_net", "transformer_block"])
def test_two_lowerings_of_every_sample_make_a_graph_without_cycles(
    pipeline: Pipeline, sample: str
) -> None:
    recipe = Recipe(source=Source(spec=f"sample:{sample}"))
    other = msgspec.structs.replace(recipe, lowering="te")
    found = compare(pipeline, ComparedModule(recipe=recipe), ComparedModule(recipe=other))
    old = pipeline.stages(recipe).transformed.module["main"]
    bindings = {binding.var.name for block in old.body.blocks for binding in block.bindings}
    listed = {node.old.removeprefix("relax:main/") for node in found.nodes if node.old}
    # All bindings of the old side, but for those that only name what is returned.
    assert len(bindings - listed) <= 2


def test_what_changed_is_drawn_with_its_neighbours(pipeline: Pipeline) -> None:
    source = Source(spec="sample:transformer_block")
    old, new = (
        ComparedModule(recipe=Recipe(source=source, overrides=chosen))
        for chosen in ((), (Override(pattern="fx:linear1", strategy="te"),))
    )
    found = compare(pipeline, old, new)
    part = pipeline.answer(GraphDifferenceQuery(old, new, DEFAULT, whole=False))
    changed = {node.id for node in found.nodes if node.status != "same"}
    touching = [
        {edge.source, edge.target}
        for edge in found.graph.edges
        if changed & {edge.source, edge.target}
    ]
    assert touching
    assert {box.id for box in part.graph.boxes} == changed.union(*touching)
    assert {node.id for node in part.nodes} == changed.union(*touching)
    assert 0 < len(part.nodes) < len(found.nodes) / 2
    same = pipeline.answer(GraphDifferenceQuery(old, old, DEFAULT, whole=False))
    assert (same.graph.boxes, same.nodes) == ((), ())


def test_boxes_stand_for_what_became_both_sides(pipeline: Pipeline) -> None:
    runs = pipeline.stages(RECIPE).transformed.runs
    number = next(i for i, run in enumerate(runs, 1) if run.name == "FuseOps" and not run.depth)
    moment = Moment(section="passes", index=number)
    found = compare(
        pipeline,
        ComparedModule(recipe=RECIPE, moment=moment, before=True),
        ComparedModule(recipe=RECIPE, moment=moment),
    )
    boxes = {box.id: set(box.entities) for box in found.graph.boxes}
    # Before the step, bindings have the names of the lowered module.
    for node in found.nodes:
        if node.status == "removed":
            assert boxes[node.id] == {node.old}
    (fused,) = [node for node in found.nodes if "fused_matmul_add_relu" in node.after]
    assert {"relax:main/lv1", "relax:main/lv2", "relax:main/lv3"} <= boxes[fused.id]
    # The same names in a module that was lowered in another way are other bindings.
    other = msgspec.structs.replace(RECIPE, lowering="te")
    before = ComparedModule(recipe=RECIPE, moment=Moment(section="passes", index=0))
    found = compare(pipeline, before, ComparedModule(recipe=other))
    removed = [node.id for node in found.nodes if node.status == "removed"]
    assert removed
    assert all(not box.entities for box in found.graph.boxes if box.id in removed)
    assert any(box.entities for box in found.graph.boxes if box.id not in removed)
