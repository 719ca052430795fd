"""A Relax function as a picture."""

from __future__ import annotations

import networkx
import pytest
import tvm

from lowerscope.core.records import GraphRecord
from lowerscope.core.relax_bindings import bound_in
from lowerscope.core.rendering.metrics import DEFAULT
from lowerscope.core.rendering.relax_graph import relax_graph


def picture_of(module: tvm.IRModule, function: str = "main") -> GraphRecord:
    return relax_graph(module, DEFAULT, lambda: None, function)


def test_mlp_in_operators(relax_modules: dict[str, tvm.IRModule]) -> None:
    graph = picture_of(relax_modules["mlp high-level"])
    assert [(box.id, box.title, box.subtitle, box.kind, box.strategy) for box in graph.boxes] == [
        ("relax:main/inp_0", "inp_0", "1×784 f32", "input", ""),
        ("relax:main/lv", "lv", "R.permute_dims · const 128×784", "constant", "high-level"),
        ("relax:main/lv1", "lv1", "R.matmul", "call", "high-level"),
        ("relax:main/lv2", "lv2", "R.add · const 128", "call", "high-level"),
        ("relax:main/lv3", "lv3", "R.nn.relu", "call", "high-level"),
        ("relax:main/lv4", "lv4", "R.permute_dims · const 10×128", "constant", "high-level"),
        ("relax:main/lv5", "lv5", "R.matmul", "call", "high-level"),
        ("relax:main/lv6", "lv6", "R.add · const 10", "call", "high-level"),
        ("relax:main/gv", "return", "gv · 1×10 f32", "output", ""),
    ]
    assert {(edge.source, edge.target): edge.label for edge in graph.edges} == {
        ("relax:main/inp_0", "relax:main/lv1"): "1×784 f32",
        ("relax:main/lv", "relax:main/lv1"): "784×128 f32",
        ("relax:main/lv1", "relax:main/lv2"): "1×128",
        ("relax:main/lv2", "relax:main/lv3"): "1×128",
        ("relax:main/lv3", "relax:main/lv5"): "1×128",
        ("relax:main/lv4", "relax:main/lv5"): "128×10 f32",
        ("relax:main/lv5", "relax:main/lv6"): "1×10",
        ("relax:main/lv6", "relax:main/gv"): "1×10",
    }


def test_calls_of_tensorir_functions(relax_modules: dict[str, tvm.IRModule]) -> None:
    boxes = {box.title: box for box in picture_of(relax_modules["mlp legalised"]).boxes}
    assert (boxes["lv1"].subtitle, boxes["lv1"].strategy) == ("call_tir matmul", "te")
    assert boxes["lv2"].subtitle == "call_tir add · const 128"


def test_branches_tuples_and_libraries(relax_modules: dict[str, tvm.IRModule]) -> None:
    graph = picture_of(relax_modules["branches"])
    boxes = {box.title: (box.subtitle, box.strategy) for box in graph.boxes}
    assert boxes == {
        "x": ("2×3 f32", ""),
        "c": ("parameter", ""),
        "w": ("parameter", ""),
        "w1": ("match_cast", ""),
        "r": ("if c", ""),
        "a": ("R.add", "high-level"),
        "tup": ("tuple", ""),
        "q": ("tup[0]", ""),
        "cc": ("call_dps_packed env.relu", "library"),
        "gv": ("R.add", "high-level"),
        "h": ("call helper", ""),
        "z": ("call_pure_packed env.f", "library"),
        "return": ("z · 2×3 f32", ""),
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


def test_titles_are_the_names_of_the_script(relax_modules: dict[str, tvm.IRModule]) -> None:
    module = relax_modules["resnet legalised"]
    text = module["main"].script()
    titles = [box.title for box in picture_of(module).boxes if box.kind in ("call", "constant")]
    assert len(titles) == len(set(titles))
    for title in titles:
        assert f"        {title} = " in text or f"        {title}: " in text


def test_a_module_without_relax_functions_has_an_empty_graph(
    relax_modules: dict[str, tvm.IRModule],
) -> None:
    module = relax_modules["mlp legalised"]
    alone = tvm.IRModule({"matmul": module["matmul"]})
    assert picture_of(alone).boxes == ()
