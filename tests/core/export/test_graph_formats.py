"""Graphs as GraphML and as node-link JSON, read back by networkx and compared with their source."""

from __future__ import annotations

import io
import json
from typing import Any

import networkx
import pytest

from lowerscope.core.model.graph import (
    DEFAULT,
    FITS,
    WHOLE,
    Box,
    Edge,
    GraphName,
    GraphRecord,
    Port,
    graphml_text,
    json_text,
)
from lowerscope.core.model.queries import GraphQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline


def read_both(graph: GraphRecord, name: str) -> tuple[Any, Any]:
    """Return the graph as both formats give it back."""
    xml = graphml_text(graph, name).encode("utf-8")
    data = json.loads(json_text(graph, name))
    return networkx.read_graphml(io.BytesIO(xml)), networkx.node_link_graph(data, edges="edges")


def check(graph: GraphRecord, name: str) -> Any:
    """Compare nodes and edges, and what is known of them; return the graph of networkx."""
    expected = {
        box.id: {
            "label": box.title,
            "description": box.description,
            "family": box.family,
            "kind": box.kind,
            "operator": box.operator,
            "shape": "" if box.shape is None else "[" + ", ".join(map(str, box.shape)) + "]",
            "dtype": box.dtype,
            "strategy": box.strategy,
            "group": box.group,
            "x": box.x,
            "y": box.y,
            "width": box.width,
            "height": box.height,
        }
        for box in graph.boxes
    }
    edges = {(each.source, each.target): (each.label, "data") for each in graph.edges}
    for port in graph.ports:
        if port.side == "in":
            edges |= {(other, port.box): (port.label, "stub") for other in port.others}
    found = read_both(graph, name)
    for read in found:
        assert read.is_directed()
        assert read.graph["name"] == name
        assert list(read) == [box.id for box in graph.boxes]
        for node, attributes in expected.items():
            assert read.nodes[node] == {k: v for k, v in attributes.items() if v != ""}
        assert edges == {
            (source, target): (data.get("label", ""), data["kind"])
            for source, target, data in read.edges.data()
        }
    return found[0]


@pytest.mark.diagonal
@pytest.mark.parametrize(("expanded", "fits"), [(None, WHOLE), ((), FITS)])
@pytest.mark.parametrize("name", ["fx", "relax"])
@pytest.mark.parametrize("sample", ["conv_net", "transformer_block"])
def test_graphs_of_models_are_read_back(
    pipeline: Pipeline,
    sample: str,
    name: GraphName,
    expanded: tuple[str, ...] | None,
    fits: tuple[float, float],
) -> None:
    recipe = Recipe(source=Source(spec=f"sample:{sample}"))
    query = GraphQuery(recipe, DEFAULT, name, None, expanded, fits)
    check(pipeline.answer(query), name)


def test_stubs_blocks_and_characters_that_xml_does_not_have() -> None:
    words = 'a < "b" & \x1b[2J\x00\n\u202e\ufffe\r é 図'
    graph = GraphRecord(
        boxes=(
            Box(f"fx:{words}", words, "input", "", 0, 0, 120, 36, group="dataflow 1"),
            Box("fx:b", "b", "call", "te", 0.5, 80, 120, 36, "relu", ((words, ""),), shape=()),
            Box("fx:c", "c", "output", "", 0, 160, 120, 36, shape=("n", 2)),
        ),
        edges=(Edge(f"fx:{words}", "fx:b", words, ((60, 36), (60, 80))),),
        width=120,
        height=200,
        ports=(
            Port("fx:b", ("fx:c",), "1 more use", "out", 0, 120, 60, 16),
            Port("fx:c", ("fx:b",), "b", "in", 0, 140, 60, 16),
        ),
    )
    read, again = read_both(graph, "fx")
    assert set(again) == {f"fx:{words}", "fx:b", "fx:c"}
    assert again.nodes[f"fx:{words}"]["label"] == words
    (ours,) = set(read) - {"fx:b", "fx:c"}
    assert read.nodes[ours]["label"] == words.replace("\x1b", "\\x1b").replace(
        "\x00", "\\x00"
    ).replace("\ufffe", "\\xfffe").replace("\r", "\\x0d")
    assert read.nodes[ours]["group"] == "dataflow 1"
    for one in (read, again):
        assert one.nodes["fx:b"]["shape"] == "[]"
        assert one.nodes["fx:c"]["shape"] == "[n, 2]"
        assert one.edges["fx:b", "fx:c"] == {"label": "b", "kind": "stub"}
        assert one.number_of_edges() == 2
