"""A Relax function as a picture."""

from __future__ import annotations

import tvm

from lowerscope.core.model.graph import DEFAULT, GraphRecord
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
