"""The difference of 20,000 lines of script, against the time that it may take.

The functions of ResNet-18 after legalisation, as often as it takes; and what is hard for a matcher
of lines: something changed in every function, in every line, and lines that come again and again.
"""

from __future__ import annotations

import os
from itertools import count

from lowerscope.core.ir.script import function_text
from lowerscope.core.model.line_difference import FunctionText, function_differences
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.benchmarks.figures import Figure, milliseconds, within

LIMIT = 100.0
"""Milliseconds."""

LINES = 20_000
TIMES = 9

Functions = dict[str, FunctionText]


def _functions() -> Functions:
    """Return the functions of many copies of a model, with 20,000 lines in all."""
    module = Pipeline().stages(Recipe(source=Source(spec="sample:resnet18"))).completed
    texts = {
        name: function_text(module, name).text
        for name in sorted(str(variable.name_hint) for variable in module.get_global_vars())
    }
    functions: Functions = {}
    lines = 0
    for copy in count():
        for name, text in texts.items():
            if lines >= LINES:
                return functions
            called = f"{name}_{copy}"
            renamed = text.replace(f"def {name}(", f"def {called}(")
            functions[called] = FunctionText("tensorir", renamed)
            lines += text.count("\n") + 1
    raise AssertionError


def _edited(functions: Functions, old: str, new: str, every: int = 1) -> Functions:
    return {
        name: FunctionText(each.kind, each.text.replace(old, new)) if place % every == 0 else each
        for place, (name, each) in enumerate(functions.items())
    }


def _one(functions: Functions) -> Functions:
    return {"main": FunctionText("tensorir", "\n".join(each.text for each in functions.values()))}


def _figure(name: str, old: Functions, new: Functions) -> Figure:
    function_differences(old, new)
    times = [milliseconds(lambda: function_differences(old, new)) for _ in range(TIMES)]
    return within(f"difference {name}", times, LIMIT)


def _drawn(old: Functions, new: Functions) -> Figure:
    """Measure how long it takes until a difference that has come is on the screen."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.kit import theme
    from lowerscope.app.kit.code.diff_view import DiffView
    from lowerscope.app.panes.difference.difference_page import diff_part
    from lowerscope.core.model.line_difference import changed_words

    application = QApplication.instance() or QApplication(["benchmark", *theme.STYLE])
    assert isinstance(application, QApplication)
    theme.start(application)
    view = DiffView("difference", changed_words)
    view.resize(1400, 800)
    view.show()
    functions = function_differences(old, new)

    def draw() -> None:
        view.set_parts([diff_part(each) for each in functions], "tvmscript")
        view.repaint()

    draw()
    times = [milliseconds(draw) for _ in range(TIMES)]
    return within("difference on the screen", times, LIMIT)


def measure() -> list[Figure]:
    """Measure differences of 20,000 lines."""
    old = _functions()
    little = _edited(old, "T.writes(", "T.writes( ")
    return [
        _figure("of some functions", old, _edited(old, "T.writes(", "T.writes( ", every=20)),
        _figure("of every function", old, little),
        _figure("of every line", old, _edited(_edited(old, "    ", "     "), "v_", "w_")),
        _figure("of one function that repeats itself", _one(old), _one(little)),
        _drawn(old, little),
    ]
