"""HTML display of a model in a notebook: graph and scripts, for light and dark themes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import TITLE_BAR, Box, Edge, GraphRecord, Port, Region
from lowerscope.core.model.labels import STRATEGY_LETTERS
from lowerscope.core.model.text_metrics import DEFAULT, cut_to
from lowerscope.resources import NOTEBOOK

if TYPE_CHECKING:
    from lowerscope.core.notebook.exploring import Exploration

MOST_LINES = 2000
"""Bound on the lines shown of a script; the methods of the exploration return all."""


def page(explored: Exploration) -> str:
    """Return the HTML, without scripts and external resources."""
    try:
        parts = _parts(explored)
    except LowerscopeError as error:
        parts = [f'<p class="wrong">✕ {escape(error.problem.line())}</p>']
    style = (NOTEBOOK / "page.css").read_text(encoding="utf-8")
    return "\n".join(['<div class="lowerscope">', f"<style>{style}</style>", *parts, "</div>"])


def _parts(explored: Exploration) -> list[str]:
    snapshot = explored.snapshot()
    recipe = explored.recipe
    inputs = ", ".join(
        f"{each.name} {shape_text(each.shape)} {each.dtype}" for each in snapshot.model.inputs
    )
    steps = ", ".join(step.name for step in recipe.steps if step.on) or "no passes"
    facts = " · ".join(filter(None, (inputs, recipe.lowering, steps, recipe.target)))
    parts = [f"<p><b>{escape(explored.title)}</b> <span>{escape(facts)}</span></p>"]
    if snapshot.fx:
        count = len(snapshot.fx)
        parts.append(_folded(f"FX graph · {count} nodes", graph_svg(explored.graph("fx")), True))
    parts.append(_folded("Relax", _code(snapshot.relax.text), True))
    functions = len(snapshot.functions)
    parts.append(_folded(f"TensorIR · {functions} functions", _code(explored.tensorir()), False))
    return parts


def _folded(title: str, content: str, opened: bool) -> str:
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(title)}</summary>{content}</details>"


def _code(text: str) -> str:
    lines = text.splitlines()
    left = len(lines) - MOST_LINES
    shown = "\n".join(lines[:MOST_LINES]) + "\n"
    code: str = highlight(shown, PythonLexer(), HtmlFormatter(nowrap=True))
    more = f"<p>{left:,} lines more</p>" if left > 0 else ""
    return f"<pre>{code}</pre>{more}"


_MARGIN = 12


def graph_svg(graph: GraphRecord) -> str:
    """Return an ``<svg>`` element; its classes are ``region``, ``edge``, ``box``, ``port``."""
    width, height = graph.width + 2 * _MARGIN, graph.height + 2 * _MARGIN
    return "".join(
        [
            f'<svg role="img" aria-label="graph of {len(graph.boxes)} boxes" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="{-_MARGIN} {-_MARGIN} {width:.0f} {height:.0f}" '
            'xmlns="http://www.w3.org/2000/svg">',
            *map(_region, graph.regions),
            *(part for edge in graph.edges for part in _edge(edge)),
            *(part for port in graph.ports for part in _port(port)),
            *(part for box in graph.boxes for part in _box(box)),
            "</svg>",
        ]
    )


def _rect(kind: str, place: Box | Region | Port, radius: int) -> str:
    return (
        f'<rect class="{kind}" x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="{radius}"/>'
    )


def _region(region: Region) -> str:
    y = region.y + TITLE_BAR - 9 if region.id else region.y + region.height - 7
    words = f'<text class="quiet" x="{region.x + 10:.1f}" y="{y:.1f}">{escape(region.title)}</text>'
    return _rect("region", region, 8) + words


def _edge(edge: Edge) -> Iterator[str]:
    (x, y), *rest = edge.points
    path = [f"M{x:.1f} {y:.1f}"]
    for right, below in rest:
        if right == x:
            path.append(f"L{right:.1f} {below:.1f}")
        else:
            # Between two rows, with vertical ends.
            half = (y + below) / 2
            path.append(f"C{x:.1f} {half:.1f} {right:.1f} {half:.1f} {right:.1f} {below:.1f}")
        x, y = right, below
    yield f'<path class="edge" d="{"".join(path)}"/>'
    yield f'<path class="arrow" d="M{x - 3.5:.1f} {y - 6:.1f}l3.5 6l3.5 -6z"/>'
    if edge.label_at is not None:
        left, middle = edge.label_at
        yield f'<text class="quiet" x="{left:.1f}" y="{middle + 4:.1f}">{escape(edge.label)}</text>'


def _port(port: Port) -> Iterator[str]:
    yield _rect("port", port, 4)
    middle = port.y + port.height / 2 + 4
    yield f'<text class="quiet" x="{port.x + 4:.1f}" y="{middle:.1f}">{escape(port.label)}</text>'


def _box(box: Box) -> Iterator[str]:
    strategy = box.strategy if box.strategy in STRATEGY_LETTERS else ""
    yield f'<g class="{box.kind} {strategy}"><title>{escape(_words(box))}</title>'
    yield _rect("box", box, 5)
    yield (
        f'<rect class="bar" x="{box.x:.1f}" y="{box.y + 4:.1f}" width="3" '
        f'height="{box.height - 8:.1f}" rx="1.5"/>'
    )
    left = box.x + 12
    title = cut_to(box.title, box.width - (36 if strategy else 18), DEFAULT.title_width)
    first = box.y + (box.height / 2 + 4.5 if not box.subtitle else box.height / 2 - 2)
    yield f'<text x="{left:.1f}" y="{first:.1f}">{escape(title)}</text>'
    if box.subtitle:
        subtitle = escape(box.subtitle)
        yield f'<text class="quiet" x="{left:.1f}" y="{first + 15:.1f}">{subtitle}</text>'
    if strategy:
        yield (
            f'<text class="letters" x="{box.x + box.width - 6:.1f}" y="{box.y + 12:.1f}">'
            f"{STRATEGY_LETTERS[strategy]}</text>"
        )
    yield "</g>"


def _words(box: Box) -> str:
    return ", ".join(filter(None, (box.title, box.subtitle, box.kind, box.strategy)))
