"""Graphs of recipes: with modules expanded, and at a step of the passes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import tvm

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.ir.relax import calls_of
from lowerscope.core.ir.script import relax_text
from lowerscope.core.model.graph import DEFAULT, GraphRecord
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.queries import GraphQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source, Strategy
from lowerscope.core.model.snapshot import FunctionRecord, TextRecord
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.functions import function_records
from lowerscope.core.views.graph.hierarchy import Opening
from lowerscope.core.views.graph.relax_graph import relax_graph

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
    """Inside the call of a fused function is all that it came from, and nothing else."""
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


# The list of functions, and who calls them


def test_functions_of_an_mlp_in_the_order_of_their_calls(
    relax_modules: dict[str, tvm.IRModule],
) -> None:
    module = relax_modules["mlp legalised"]
    records = function_records(module, calls_of(module))
    assert [record.name for record in records] == [
        "main",
        "transpose",
        "matmul",
        "add",
        "relu",
        "transpose1",
        "matmul1",
        "add1",
    ]
    assert records[0].kind == "relax"
    assert records[2] == FunctionRecord(
        id="tir:matmul",
        name="matmul",
        kind="tensorir",
        calls=("relax:main/lv1",),
        blocks=1,
        loops=3,
        runs=128 * 784,
    )


# A Relax function as a picture


def picture_of(module: tvm.IRModule, function: str = "main") -> GraphRecord:
    return relax_graph(module, DEFAULT, lambda: None, function)


def test_branches_tuples_and_libraries(relax_modules: dict[str, tvm.IRModule]) -> None:
    graph = picture_of(relax_modules["branches"])
    boxes = {box.title: (box.operator, box.strategy) for box in graph.boxes}
    assert boxes == {
        "x": ("", ""),
        "c": ("", ""),
        "w": ("", ""),
        "w1": ("match_cast", ""),
        "r": ("if c", ""),
        "a": ("R.add", "high-level"),
        "tup": ("tuple", ""),
        "q": ("tup[0]", ""),
        "cc": ("call_dps_packed env.relu", "library"),
        "gv": ("R.add", "high-level"),
        "h": ("call helper", ""),
        "z": ("call_pure_packed env.f", "library"),
        "return": ("", ""),
    }
    into = {edge.source for edge in graph.edges if edge.target == "relax:main/r"}
    assert into == {"relax:main/x", "relax:main/c", "relax:main/w1"}
    assert graph.boxes[-1].id == "relax:main/return"


def test_a_call_of_a_fused_group_is_the_box_of_all_that_is_in_it() -> None:
    module = tvm.script.from_source(FUSED)
    (box,) = [box for box in picture_of(module).boxes if box.title == "lv"]
    assert (box.operator, box.strategy) == ("call fused_exp_relu", "high-level")
    assert box.members == ("relax:fused_exp_relu/a", "relax:fused_exp_relu/b")


FUSED = """
# from tvm.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function(private=True)
    def fused_exp_relu(x: R.Tensor((2, 8), "float32")) -> R.Tensor((2, 8), "float32"):
        R.func_attr({"Primitive": True})
        with R.dataflow():
            a = R.exp(x)
            b = R.nn.relu(a)
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((2, 8), "float32")):
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            lv = cls.fused_exp_relu(x)
            lv1 = R.add(lv, w)
            lv2 = R.multiply(lv1, R.const(2.5, "float32"))
            R.output(lv2)
        return lv2
"""


def test_bindings_are_collapsed_by_the_module_that_they_come_from() -> None:
    paths = {f"relax:main/{name}": "head.scale" for name in ("lv1", "lv2")}
    module = tvm.script.from_source(FUSED)
    kinds = {"head.scale": "Scale"}
    collapsed = relax_graph(
        module, DEFAULT, lambda: None, paths=paths, kinds=kinds, opening=Opening(())
    )
    assert collapsed.collapsible
    (group,) = [box for box in collapsed.boxes if box.kind == "group"]
    assert (group.id, group.title) == ("module:head", "head")
    assert group.description == "2 bindings"
    assert set(group.members) == {"relax:main/lv1", "relax:main/lv2", "relax:main/w"}
    opened = relax_graph(
        module, DEFAULT, lambda: None, paths=paths, kinds=kinds, opening=Opening(collapsed.expanded)
    )
    assert opened.expanded == ()
    opened = relax_graph(
        module, DEFAULT, lambda: None, paths=paths, kinds=kinds, opening=Opening((group.id,))
    )
    assert opened.expanded == (group.id,)
    assert {box.title for box in opened.boxes} == {"x", "lv", "lv1", "lv2", "return"}
