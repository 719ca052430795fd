"""Remedies in the window name no option of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from lowerscope.app.engine.window_words import in_window
from lowerscope.core.model.problems import Problem

CUT_OFF = re.compile(r"\b(with|or|by|give|leave|out|only)[ ,;.:]*$|\b(with|by) (or|by|if)\b", re.I)
"""Ends and middles of sentences that a word was taken out of."""

CORE = Path(__file__).parents[3] / "core"


def texts_of_problems() -> Iterator[tuple[str, str]]:
    """Yield each text of `core` that names an option as a remedy or a place, with its field.

    What the command line alone says is left out.
    """
    for path in CORE.rglob("*.py"):
        source = path.read_text()
        if path.parent.name == "cli" or "--" not in source:
            continue
        for call in ast.walk(ast.parse(source)):
            for word in call.keywords if isinstance(call, ast.Call) else ():
                if word.arg in ("todo", "where"):
                    text = _text(word.value)
                    if "--" in text:
                        yield word.arg, text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.IfExp):
        return _text(node.body) or _text(node.orelse)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("_", "_n")
    ):
        return re.sub(r"\{\w+\}", "x", _text(node.args[0])) if node.args else ""
    if isinstance(node, ast.JoinedStr):
        parts = (each.value if isinstance(each, ast.Constant) else "x" for each in node.values)
        return "".join(map(str, parts))
    return ""


def test_no_remedy_names_an_option() -> None:
    found = list(texts_of_problems())
    assert sum(field == "todo" for field, _text in found) > 20
    for field, text in found:
        problem = in_window(Problem(what="x", **{field: text}))
        assert "--" not in problem.todo + problem.where, text
        assert not CUT_OFF.search(problem.todo), (text, problem.todo)


def test_a_remedy_says_where_in_the_window() -> None:
    for todo, words in (
        (
            "Give shapes of your own: --input x=1,784:float32; or define example_inputs()",
            "Give shapes of your own: Edit → Inputs…; or define example_inputs()",
        ),
        (
            "Give shapes of your own: --input x=1,784:float32 --input y=2,3:int64",
            "Give shapes of your own: Edit → Inputs…",
        ),
        (
            "try another tracer: --tracer export",
            "Try another tracer: Explore → Trace with → Trace with torch.export",
        ),
        ("Give its arguments: --args '{\"a\": ...}'", 'Give its arguments: {"a": ...}'),
        (
            "Open it only if you know where it comes from: --trust",
            "Open it only if you know where it comes from",
        ),
        ("Plain -- as it was", "Plain -- as it was"),
    ):
        assert in_window(Problem(what="x", todo=todo)).todo == words
