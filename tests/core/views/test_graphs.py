"""Graphs of recipes: with modules expanded, and at a step of the passes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.ir.script import relax_text
from lowerscope.core.model.graph import DEFAULT, GraphRecord
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.queries import GraphQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source, Strategy
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.graph.hierarchy import Opening

RESNET = Recipe(source=Source(spec="sample:resnet18"))


MANY = """
import torch


class Many(torch.nn.Module):
    def forward(self, x):
        return tuple(x + index for index in range({count}))


example_inputs = (torch.rand(4),)
"""

EVERYTHING = Opening(None, (1e9, 1e9))
SEEN = (
    ("fashion_mlp", "fuse", "high-level"),
    ("conv_net", "fuse", "high-level"),
    ("transformer_block", "fuse", "te"),
    ("fashion_mlp", "cpu", "te"),
)


def test_modules_of_resnet_collapse_and_expand(pipeline: Pipeline) -> None:
    closed = pipeline.answer(
        GraphQuery(RESNET, DEFAULT, "fx", None, Opening(()).expanded, Opening(()).fits)
    )
    assert [box.title for box in closed.boxes if box.kind == "group"] == [
        "layer1",
        "layer2",
        "layer3",
        "layer4",
    ]
    assert closed.boxes[5].description == "Sequential · 16 nodes"
    wanted = ("module:layer2", "module:layer2.0")
    opened = pipeline.answer(
        GraphQuery(RESNET, DEFAULT, "fx", None, Opening(wanted).expanded, Opening(wanted).fits)
    )
    assert opened.expanded == wanted
    assert [region.title for region in opened.regions] == ["layer2 · Sequential", "0 · BasicBlock"]
    assert {box.id for box in closed.boxes} - {box.id for box in opened.boxes} == {"module:layer2"}
    # The trunk runs straight down through all frames.
    trunk = [box for box in opened.boxes if "shortcut" not in box.id]
    assert len({round(box.x + box.width / 2, 3) for box in trunk}) == 1


@pytest.mark.parametrize(("count", "text"), [(2, "(4 f32, 4 f32)"), (5, "4 f32, 4 f32 and 3 more")])
def test_the_box_of_many_outputs_is_as_wide_as_that_of_a_few(
    pipeline: Pipeline, tmp_path: Path, count: int, text: str
) -> None:
    file = tmp_path / "model.py"
    file.write_text(MANY.format(count=count))
    recipe = Recipe(source=Source(spec=str(file)))
    graph = pipeline.answer(GraphQuery(recipe, DEFAULT, "fx", None, ()))
    (box,) = (each for each in graph.boxes if each.kind == "output")
    assert [name for name, _value in box.rows] == [text]


@pytest.mark.parametrize(("sample", "preset", "lowering"), SEEN)
def test_boxes_at_a_step_stand_for_what_the_lines_of_the_script_do(
    pipeline: Pipeline, sample: str, preset: str, lowering: Strategy
) -> None:
    steps = next(each.steps for each in PRESETS if each.name == preset)
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), lowering=lowering, steps=steps)
    stages = pipeline.stages(recipe)
    lowered = stages.lowered
    assert lowered is not None
    for moment in _after_steps(pipeline, recipe):
        graph, whole = _graphs_at(pipeline, recipe, moment)
        lines = _lines_of_main(relax_text(stages.module_at(moment)))
        marked = _lines_of_main(pipeline.answer(TextQuery(recipe, "", "script", moment)))
        drawn = [box for box in graph.boxes if box.id in lines]
        assert drawn
        for node, record in lowered.nodes.items():
            bindings = [f"relax:main/{each}" for each in record.bindings]
            selected = [box for box in drawn if {*box.entities, *box.members} & {*bindings}]
            assert _all(lines, [box.id for box in selected]) == _all(marked, bindings), node
        for box in drawn:
            # A click selects what its own lines came from, and nothing else.
            came = {each for each, found in marked.items() if found & lines[box.id]}
            assert set(box.entities) == came, (moment, box.id)
        _check_inside(graph, whole)


def _graphs_at(
    pipeline: Pipeline, recipe: Recipe, moment: Moment
) -> tuple[GraphRecord, GraphRecord]:
    """The graph with all modules expanded, and with all fused functions as well."""
    whole = pipeline.answer(
        GraphQuery(recipe, DEFAULT, "relax", moment, EVERYTHING.expanded, EVERYTHING.fits)
    )
    modules = Opening(tuple(each for each in whole.expanded if each.startswith("module:")))
    return pipeline.answer(
        GraphQuery(recipe, DEFAULT, "relax", moment, modules.expanded, modules.fits)
    ), whole


def _check_inside(graph: GraphRecord, whole: GraphRecord) -> None:
    """What is inside of the call of a fused function is all that it came from, and nothing else."""
    frames = {region.id: region for region in whole.regions}
    for call in (box for box in graph.boxes if box.kind == "fused"):
        frame = frames[call.id]
        inside = [box for box in whole.boxes if box.id.startswith(f"{call.id}/")]
        assert len(inside) > 1
        for box in inside:
            assert frame.x < box.x < box.x + box.width < frame.x + frame.width
            assert frame.y < box.y < box.y + box.height < frame.y + frame.height
            assert box.entities
        came = [each for box in inside for each in box.entities]
        assert len(came) == len(set(came))
        # Other names of the value that it gives are members of a box.
        held = {each for box in inside for each in (*box.entities, *box.members)}
        assert {*came} <= {*call.entities} <= held
        assert frame.origins == call.entities
        # What flows out of the call does so still.
        mine = {box.id for box in inside}
        assert any(edge.source in mine and edge.target not in mine for edge in whole.edges)


def test_the_call_of_a_fused_function_is_looked_into(pipeline: Pipeline) -> None:
    steps = next(each.steps for each in PRESETS if each.name == "fuse")
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), steps=steps)
    runs = pipeline.stages(recipe).transformed.runs
    for name in ("FuseOps", "FuseTIR"):
        number = next(place for place, run in enumerate(runs, 1) if run.name == name)
        moment = Moment(section="passes", index=number)
        closed = pipeline.answer(GraphQuery(recipe, DEFAULT, "relax", moment))
        assert closed.collapsible
        first, second = (box for box in closed.boxes if box.kind == "fused")
        opened = pipeline.answer(
            GraphQuery(
                recipe,
                DEFAULT,
                "relax",
                moment,
                Opening((first.id,)).expanded,
                Opening((first.id,)).fits,
            )
        )
        assert opened.expanded == (first.id,)
        titles = {box.id: box.title for box in opened.boxes}
        edges = [(titles[edge.source], titles[edge.target]) for edge in opened.edges]
        assert set(edges) == {
            ("gv", second.title),
            ("lv1", "lv2"),
            ("lv2", "gv"),
            (second.title, "return"),
            ("x", "lv1"),
        }
        # A constant that the call is given is that of the one that reads it.
        words = {
            box.title: box.description for box in opened.boxes if box.id.startswith(f"{first.id}/")
        }
        assert words["lv1"] == "call_tir matmul · const 784×128"
        assert words["lv2"] == "call_tir add · const 128"
        assert words["gv"] == "call_tir relu"


def _after_steps(pipeline: Pipeline, recipe: Recipe) -> list[Moment]:
    """Before the first step, and after each of the recipe's."""
    runs = pipeline.stages(recipe).transformed.runs
    steps = [number for number, run in enumerate(runs, start=1) if run.depth == 0]
    return [Moment(section="passes", index=index) for index in (0, *steps)]


def _lines_of_main(text: TextRecord) -> dict[str, set[int]]:
    """The lines of each binding in ``main``."""
    main = next(span for span in text.spans if span.entity == "relax:main")
    found: dict[str, set[int]] = {}
    for span in text.spans:
        if "/" in span.entity and main.first <= span.first <= main.last:
            found.setdefault(span.entity, set()).update(range(span.first, span.last + 1))
    return found


def _all(lines: dict[str, set[int]], entities: Iterable[str]) -> set[int]:
    return {line for each in entities for line in lines.get(each, ())}
