"""The code view against the time that it may take: first paint, and the longest stall of the loop.

A stall is how long the window answers to nothing: the longest time between two turns of its event
loop, while a text of 200,000 lines is filled in, scrolled, searched, folded and unfolded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.benchmarks.figures import Figure, milliseconds, within

if TYPE_CHECKING:
    from lowerscope.app.kit.code.code_view import CodeView

LIMIT = 50.0
"""Milliseconds that a first paint, or a stall, may take."""

ROUNDS = 3
PATIENCE = 60.0

FUNCTION = """\
    @T.prim_func(private=True, s_tir=True)
    def dense_{0}(x: T.Buffer((1, 784), "float32"), B: T.Buffer((128, 784), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        # with T.sblock("root"):
        for i0, i1, k in T.grid(T.int64(1), T.int64(128), T.int64(784)):
            with T.sblock("T_matmul_NT"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                T.reads(x[v_i0, v_k], B[v_i1, v_k])
                T.writes(T_matmul_NT[v_i0, v_i1])
                T_matmul_NT[v_i0, v_i1] += x[v_i0, v_k] * B[v_i1, v_k]
"""


def script(lines: int) -> str:
    """Return a script of so many lines."""
    count = lines // FUNCTION.count("\n") + 1
    text = "class Module:\n" + "".join(FUNCTION.format(number) for number in range(count))
    return "\n".join(text.split("\n")[:lines])


def _view() -> CodeView:
    from lowerscope.app.kit.code.code_view import CodeView

    view = CodeView("Script")
    view.resize(900, 900)
    view.set_empty("", "")
    view.show()
    return view


def _first_paint(view: CodeView, text: str) -> float:
    view.set_text("x", "tvmscript")
    view.grab()

    def paint() -> None:
        view.set_text(text, "tvmscript")
        view.grab()

    return milliseconds(paint)


def _longest_stall(do: Callable[[], None], done: Callable[[], bool]) -> float:
    """Return the longest turn of the event loop from a call until what it began is done."""
    from PySide6.QtWidgets import QApplication

    longest = milliseconds(do)
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "the code view did not get there"
        longest = max(longest, milliseconds(QApplication.processEvents))
    return max(longest, milliseconds(QApplication.processEvents))


def _stalls(view: CodeView, text: str) -> dict[str, float]:
    editor = view.editor
    bar = editor.verticalScrollBar()

    def settled() -> bool:
        return editor.settled and view.finding.settled

    def scroll(value: int) -> Callable[[], None]:
        def go() -> None:
            bar.setValue(value)
            view.repaint()

        return go

    view.set_text("x", "tvmscript")
    _longest_stall(view.repaint, settled)
    result = {
        "loaded": _longest_stall(lambda: view.set_text(text, "tvmscript"), settled),
        "scrolled": max(
            _longest_stall(scroll(bar.maximum() * step // 20), settled) for step in range(21)
        ),
        "searched": _longest_stall(lambda: view.open_find("dense_19999"), settled),
        "folded": _longest_stall(editor.fold_all, settled),
        "unfolded": _longest_stall(editor.unfold_all, settled),
    }
    view.go_to_line(1)
    result["folded to one line"] = _longest_stall(editor.fold, settled)
    result["gone to its end"] = _longest_stall(lambda: view.go_to_line(199_000), settled)
    return result


def measure() -> list[Figure]:
    """Measure the code view."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.kit import theme

    application = QApplication.instance() or QApplication(["benchmark", *theme.STYLE])
    assert isinstance(application, QApplication)
    theme.start(application, "light")
    view = _view()
    short, long = script(20_000), script(200_000)
    _first_paint(view, script(100))
    times = [_first_paint(view, short) for _ in range(ROUNDS)]
    figures = [within("code first paint, 20,000 lines", times, LIMIT)]
    rounds = [_stalls(view, long) for _ in range(ROUNDS)]
    for name in rounds[0]:
        stalls = [each[name] for each in rounds]
        title = f"code 200,000 lines {name}, longest stall"
        figures.append(within(title, stalls, LIMIT))
    view.close()
    return figures
