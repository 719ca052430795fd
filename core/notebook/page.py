"""HTML display of a model in a notebook: graph and scripts, for light and dark themes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.notebook.graph_svg import graph_svg
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
