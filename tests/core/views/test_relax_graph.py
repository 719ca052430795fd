"""A Relax function as a picture."""

from __future__ import annotations

import networkx
import pytest
import tvm

from lowerscope.core.ir.relax import bound_in
from lowerscope.core.model.graph import DEFAULT, GraphRecord, Region
from lowerscope.core.views.graph.hierarchy import Opening
from lowerscope.core.views.graph.relax_graph import relax_graph


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


def test_another_function_can_be_drawn(relax_modules: dict[str, tvm.IRModule]) -> None:
    graph = picture_of(relax_modules["branches"], "helper")
    assert [box.id for box in graph.boxes] == [
        "relax:helper/x",
        "relax:helper/y",
        "relax:helper/return",
    ]


@pytest.mark.parametrize("name", ["resnet legalised", "attention high-level"])
def test_boxes_are_the_bindings_and_edges_their_uses(
    relax_modules: dict[str, tvm.IRModule], name: str
) -> None:
    module = relax_modules[name]
    graph = picture_of(module)
    bound = bound_in("main", module["main"])
    assert {box.id for box in graph.boxes} == {"relax:main/inp_0", *(each.id for each in bound)}
    known = networkx.DiGraph([(edge.source, edge.target) for edge in graph.edges])
    assert networkx.is_directed_acyclic_graph(known)
    output = graph.boxes[-1].id
    # Nothing is computed in vain here but the statistics that batch norms return.
    ancestors = networkx.ancestors(known, output)
    assert {"relax:main/inp_0", bound[0].id} <= ancestors


def test_a_module_without_relax_functions_has_an_empty_graph(
    relax_modules: dict[str, tvm.IRModule],
) -> None:
    module = relax_modules["mlp legalised"]
    alone = tvm.IRModule({"matmul": module["matmul"]})
    assert picture_of(alone).boxes == ()


BLOCKS = """
# from tvm.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 4), "float32"),
             b: R.Tensor((4,), "float32"), unread: R.Tensor((4,), "float32")):
        with R.dataflow():
            lv0 = R.matmul(x, w)
            alone = R.exp(b)
            gv0 = R.nn.relu(lv0)
            R.output(gv0, alone)
        printed: R.Tuple = R.print(gv0, format="{}")
        with R.dataflow():
            lv1 = R.add(gv0, b)
            lv2 = R.multiply(lv1, R.const(2.0, "float32"))
            out = R.add(lv2, alone)
            R.output(out)
        again: R.Tuple = R.print(out, format="{}")
        return out
"""


def test_data_flow_blocks_with_a_side_effect_between_them_are_regions() -> None:
    graph = picture_of(tvm.script.from_source(BLOCKS))
    places = {box.title: box for box in graph.boxes}
    first, second = graph.regions
    assert [region.title for region in graph.regions] == ["dataflow 1", "dataflow 2"]

    def inside(name: str, region: Region) -> bool:
        box = places[name]
        across = region.x < box.x and box.x + box.width < region.x + region.width
        down = region.y < box.y and box.y + box.height < region.y + region.height
        return across and down

    def beside(name: str, region: Region) -> bool:
        box = places[name]
        return box.y + box.height <= region.y or region.y + region.height <= box.y

    members = {"lv0": first, "alone": first, "gv0": first}
    members |= {"lv1": second, "lv2": second, "out": second}
    for name in places:
        for region in graph.regions:
            if members.get(name) == region:
                assert inside(name, region), name
            else:
                assert beside(name, region), name
    assert first.y + first.height < places["printed"].y < second.y
    assert second.y + second.height < places["again"].y
    assert min(region.x for region in graph.regions) > 0
    assert max(region.x + region.width for region in graph.regions) < graph.width
    assert max(region.y + region.height for region in graph.regions) < graph.height
    for edge in graph.edges:
        assert [y for _, y in edge.points] == sorted(y for _, y in edge.points)


def test_an_input_stands_above_the_block_that_reads_it_first() -> None:
    graph = picture_of(
        tvm.script.from_source(BLOCKS.replace("R.add(gv0, b)", "R.add(gv0, unread)"))
    )
    places = {box.title: box for box in graph.boxes}
    first, second = graph.regions
    assert first.y + first.height <= places["unread"].y
    assert places["unread"].y + places["unread"].height <= second.y


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


def test_weights_and_scalars_are_in_the_boxes_that_use_them() -> None:
    graph = picture_of(tvm.script.from_source(FUSED))
    boxes = {box.title: box for box in graph.boxes}
    assert list(boxes) == ["x", "lv", "lv1", "lv2", "return"]
    assert boxes["lv1"].description == "R.add · w 2×8"
    assert boxes["lv1"].members == ("relax:main/w",)
    assert boxes["lv2"].description == "R.multiply · const 2.5"


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
