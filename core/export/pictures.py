"""Graphs as files: who paints them is given, as the core has no painter; DOT is text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.catalogue import GRAPHS, PICTURES
from lowerscope.core.export.files import File, text_file
from lowerscope.core.graph_records import WHOLE, GraphName, GraphRecord
from lowerscope.core.graphs import draw_graph
from lowerscope.core.progress import Silent
from lowerscope.core.rendering.hierarchy import FITTING, Opening
from lowerscope.core.rendering.metrics import DEFAULT, TextMetrics
from lowerscope.core.stages import Stages

LEVELS = {"fit": FITTING, "all": Opening(fits=WHOLE), "none": Opening()}
"""How many modules are expanded in a picture: those that fit a pane, all, none."""


class Painter(Protocol):
    """What paints graphs."""

    def metrics(self) -> TextMetrics:
        """Return the widths of the characters that it paints with."""
        ...

    def paint(self, graph: GraphRecord, path: Path, kind: str, title: str) -> None:
        """Paint a graph into a file: ``"svg"``, ``"pdf"`` or ``"png"``."""
        ...


def picture_files(
    stages: Stages, name: str, kinds: Sequence[str], level: str, painter: Painter | None
) -> Iterator[File]:
    """Yield a graph in each of some formats.

    Parameters
    ----------
    name
        Of `GRAPHS`.
    level
        Of `LEVELS`.

    Raises
    ------
    LowerscopeError
        If there is no such graph, or nobody to paint it.
    """
    metrics = DEFAULT if painter is None else painter.metrics()
    which = cast(GraphName, GRAPHS[name])
    graph = draw_graph(stages, which, None, metrics, LEVELS[level], Silent().check)
    for kind in kinds:
        if kind == "dot":
            yield text_file(f"{which}.dot", dot_text(graph, which))
            continue
        if painter is None:
            raise LowerscopeError(
                f"there is nobody to paint a {kind}",
                where=name,
                todo="Use the command lowerscope, or --picture dot",
            )
        yield _painted(painter, graph, which, kind, f"{stages.loaded.title}: {which}")


def _painted(painter: Painter, graph: GraphRecord, name: str, kind: str, title: str) -> File:
    return File(f"{name}.{kind}", lambda path: painter.paint(graph, path, kind, title))


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


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuse formats that there are not.

    Raises
    ------
    LowerscopeError
        With those that there are.
    """
    wrong = next((each for each in kinds if each not in PICTURES), None)
    if wrong is not None:
        raise LowerscopeError(
            f"{wrong or 'nothing'} is not a format of pictures",
            where="--picture",
            todo=f"Choose some of {', '.join(PICTURES)}",
        )
