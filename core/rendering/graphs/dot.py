"""Graphs in the language of Graphviz. This module imports neither torch nor TVM."""

from __future__ import annotations

import json

from lowerscope.core.records.graph import GraphRecord


def dot_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in the language of Graphviz, with the places that its boxes have here."""
    lines = [
        f"digraph {name} {{",
        "  graph [splines=true, inputscale=72, notranslate=true];",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10, fixedsize=true];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for box in graph.boxes:
        title = "\n".join(filter(None, (box.title, box.subtitle)))
        x, y = box.x + box.width / 2, graph.height - box.y - box.height / 2
        # Graphviz counts from the bottom, and sizes in inches.
        place = f'pos="{x:.1f},{y:.1f}!", width={box.width / 72:.3f}, height={box.height / 72:.3f}'
        kind = f'class="{box.kind}{" " + box.strategy if box.strategy else ""}"'
        lines.append(f"  {_quoted(box.id)} [label={_quoted(title)}, {kind}, {place}];")
    for edge in graph.edges:
        label = f" [label={_quoted(edge.label)}]" if edge.label else ""
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{label};")
    for port in graph.ports:
        if port.side == "in":
            for other in port.others:
                label = f"label={_quoted(port.label)}, " if port.label else ""
                lines.append(f"  {_quoted(other)} -> {_quoted(port.box)} [{label}style=dashed];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
