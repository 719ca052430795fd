"""From a change of the lowering to the window that shows it, against the time that it may take.

The real window with the real engine: the default is switched between its strategies, and one node
is given one of its own; each change is taken back in between, so that none is answered from what
was kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from lowerscope.app.shell.window import MainWindow
from tests.benchmarks.figures import Figure
from tests.benchmarks.waiting import wait

LIMITS = {"fashion_mlp": 150.0, "resnet18": 1500.0}
"""Milliseconds that a change may take."""

NODES = {"fashion_mlp": "fx:relu", "resnet18": "fx:layer1_0_conv1"}


def _change(window: MainWindow, change: Callable[[], None]) -> float:
    document = window.document
    before = document.snapshot
    start = time.perf_counter()
    change()
    wait(window, lambda: document.snapshot is not before and not document.job.text)
    window.repaint()
    return (time.perf_counter() - start) * 1000


def _figure(window: MainWindow, name: str) -> Figure:
    from lowerscope.core.model.recipe import Recipe, Source

    document = window.document
    document.open(Recipe(source=Source(spec=f"sample:{name}"), lowering="te"))
    wait(window, lambda: document.snapshot is not None and not document.job.text)
    window.show_panes()
    times = [
        _change(window, window.commands.action("high-level").trigger),
        _change(window, window.commands.action("library").trigger),
        _change(window, lambda: document.lower_nodes((NODES[name],), "te")),
        _change(window, lambda: document.lower_nodes((NODES[name],), "high-level")),
    ]
    limit = LIMITS[name]
    return Figure(f"redraw {name}", times, [limit] * len(times), "what it may take", 1.0)


def measure() -> list[Figure]:
    """Measure changes of the lowering in the window."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from lowerscope.app.shell.start import make_window

    _, window = make_window()
    window.begin(None)
    try:
        return [_figure(window, name) for name in LIMITS]
    finally:
        window.close()
