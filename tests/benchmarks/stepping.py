"""From a step of the timeline to its text in the Relax pane, in the real window.

ResNet-18 through the passes of two pipelines; every step is gone to as a user does, in the
timeline's own state. A step takes from the call to the first turn of the event loop after which
the pane has the text of the moment and has painted it: the way to the engine and back is in it.
"""

from __future__ import annotations

import os
import time

from lowerscope.app.shell.window import MainWindow
from tests.benchmarks.figures import Figure, within
from tests.benchmarks.waiting import wait

PIPELINES = ("fuse", "cpu")
SIZE = (1600, 1000)
LIMIT = 100.0
"""Milliseconds that a step may take."""


def _idle(window: MainWindow) -> bool:
    document = window.document
    return not document.job.text and window.features.processes.engine.state == "ready"


def _stepped(window: MainWindow, index: int) -> float:
    """Go to a moment, and return the time until the Relax pane shows its text."""
    from PySide6.QtWidgets import QApplication

    from lowerscope.core.model.module_steps import Moment

    page = window.panes.relax.script.stepped
    start = time.perf_counter()
    window.features.stepping.go(Moment(section="passes", index=index))
    wait(window, lambda: page.is_current)
    QApplication.processEvents()
    taken = (time.perf_counter() - start) * 1000
    wait(window, lambda: _idle(window))
    return taken


def measure() -> list[Figure]:
    """Measure steps in the window that are looked at for the first time, and again."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from lowerscope.app.shell.start import make_window
    from lowerscope.core.files.pipelines_and_schedules import PRESETS
    from lowerscope.core.model.recipe import Recipe, Source

    presets = {each.name: each for each in PRESETS}
    _, window = make_window()
    window.resize(*SIZE)
    window.begin(None)
    document = window.document
    figures = []
    try:
        for name in PIPELINES:
            recipe = Recipe(source=Source(spec="sample:resnet18"), steps=presets[name].steps)
            document.open(recipe)
            wait(
                window,
                lambda recipe=recipe: (
                    document.snapshot is not None
                    and document.recipe == recipe
                    and not document.job.text
                ),
            )
            window.show_panes()
            wait(window, lambda: _idle(window))
            count = len(window.features.stepping.lines("passes"))
            for visit in ("first", "second"):
                times = [_stepped(window, index) for index in range(count + 1)]
                title = f"step of resnet18, pipeline {name}, {visit} visit"
                figures.append(within(f"{title}, median", times, LIMIT))
                figures.append(within(f"{title}, longest", [max(times)], LIMIT))
            window.features.stepping.leave()
    finally:
        window.close()
    return figures
