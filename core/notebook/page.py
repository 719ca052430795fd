"""HTML display of a model in a notebook: graph and scripts, for light and dark themes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.report import template
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import TITLE_BAR, Edge
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
        values = _values(explored)
    except LowerscopeError as error:
        values = {"problem": error.problem.line()}
    return template(NOTEBOOK / "page.html").render(
        {"problem": "", **values},
        style=(NOTEBOOK / "page.css").read_text(encoding="utf-8"),
        MARGIN=12,
        MOST_LINES=MOST_LINES,
        TITLE_BAR=TITLE_BAR,
        LETTERS=STRATEGY_LETTERS,
        cut=lambda title, width: cut_to(title, width, DEFAULT.title_width),
        path_of=_path,
        highlighted=_highlighted,
    )


def _values(explored: Exploration) -> dict[str, Any]:
    snapshot = explored.snapshot()
    recipe = explored.recipe
    inputs = ", ".join(
        f"{each.name} {shape_text(each.shape)} {each.dtype}" for each in snapshot.model.inputs
    )
    steps = ", ".join(step.name for step in recipe.steps if step.on) or "no passes"
    return {
        "title": explored.title,
        "facts": " · ".join(filter(None, (inputs, recipe.lowering, steps, recipe.target))),
        "snapshot": snapshot,
        "graph": explored.graph("fx") if snapshot.fx else None,
        "tensorir": explored.tensorir(),
    }


def _highlighted(code: str) -> str:
    shown = "\n".join(code.splitlines()[:MOST_LINES]) + "\n"
    return str(highlight(shown, PythonLexer(), HtmlFormatter(nowrap=True)))


def _path(edge: Edge) -> str:
    """Return the path of an edge in SVG: straight, or between two rows with vertical ends."""
    (x, y), *rest = edge.points
    path = [f"M{x:.1f} {y:.1f}"]
    for right, below in rest:
        half = (y + below) / 2
        if right == x:
            path.append(f"L{right:.1f} {below:.1f}")
        else:
            path.append(f"C{x:.1f} {half:.1f} {right:.1f} {half:.1f} {right:.1f} {below:.1f}")
        x, y = right, below
    return "".join(path)
