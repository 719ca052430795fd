"""Text formats of graphs: DOT, GraphML, and node-link JSON; without torch or TVM."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.texts import english, joined

_NOT_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def network(graph: GraphRecord, name: str) -> Any:
    """Return a graph as a `networkx.DiGraph`.

    Nodes have ``label``, ``description``, ``family``, ``kind``, ``operator``, ``shape``, ``dtype``,
    ``strategy`` and ``group``, and ``x``, ``y``, ``width``, ``height`` in pixels. A shape is
    ``[1, 784]``. Edges have ``label`` and ``kind``: ``"data"``, or ``"stub"`` if a stub at both
    ends replaces a long line. Attributes without a value are absent.
    """
    import networkx

    result = networkx.DiGraph(name=name)
    for box in graph.boxes:
        words = {
            "label": english(box.title),
            "description": english(box.description),
            "family": box.family,
            "kind": box.kind,
            "operator": box.operator,
            "shape": "" if box.shape is None else f"[{', '.join(map(str, box.shape))}]",
            "dtype": box.dtype,
            "strategy": box.strategy,
            "group": box.group,
        }
        places = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
        result.add_node(box.id, **_there(words), **{key: float(at) for key, at in places.items()})
    for edge in graph.edges:
        result.add_edge(
            edge.source, edge.target, **_there({"label": english(edge.label), "kind": "data"})
        )
    for source, target, label in _stubs(graph):
        result.add_edge(source, target, **_there({"label": label, "kind": "stub"}))
    return result


def _there(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in attributes.items() if value}


def graphml_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in GraphML; characters invalid in XML are written ``\\x1b``."""
    import networkx

    made = network(graph, name)
    for *_, attributes in (*made.nodes.data(), *made.edges.data()):
        for key, value in attributes.items():
            attributes[key] = _in_xml(value) if isinstance(value, str) else value
    made = networkx.relabel_nodes(made, _in_xml)
    return "\n".join(networkx.generate_graphml(made)) + "\n"


def json_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in the node-link form of networkx, with the keys ``nodes`` and ``edges``."""
    import networkx

    data = networkx.node_link_data(network(graph, name), edges="edges")
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def dot_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in Graphviz's DOT, with the positions of this layout."""
    lines = [
        f"digraph {name} {{",
        "  graph [splines=true, inputscale=72, notranslate=true];",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10, fixedsize=true];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for box in graph.boxes:
        title = english(joined("\n", filter(None, (box.title, box.description))))
        x, y = box.x + box.width / 2, graph.height - box.y - box.height / 2
        # Graphviz's y axis points up, and its sizes are in inches.
        place = f'pos="{x:.1f},{y:.1f}!", width={box.width / 72:.3f}, height={box.height / 72:.3f}'
        kind = f'class="{box.kind}{" " + box.strategy if box.strategy else ""}"'
        lines.append(f"  {_quoted(box.id)} [label={_quoted(title)}, {kind}, {place}];")
    for edge in graph.edges:
        label = f" [label={_quoted(english(edge.label))}]" if edge.label else ""
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{label};")
    for source, target, text in _stubs(graph):
        label = f"label={_quoted(text)}, " if text else ""
        lines.append(f"  {_quoted(source)} -> {_quoted(target)} [{label}style=dashed];")
    return "\n".join([*lines, "}", ""])


TEXT_FORMATS: Mapping[str, Callable[[GraphRecord, str], str]] = {
    "dot": dot_text,
    "graphml": graphml_text,
    "json": json_text,
}
"""Writers of the text formats of graphs, by file suffix."""


def _stubs(graph: GraphRecord) -> Iterator[tuple[str, str, str]]:
    """Yield source, target and label of the edges that are drawn as stubs."""
    for port in graph.ports:
        if port.side == "in":
            for other in port.others:
                yield other, port.box, english(port.label)


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
