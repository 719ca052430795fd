"""From applying a primitive to the redrawn workbench, on the largest convolution of ResNet-18.

The real window with the whole model open. Splits with factors that were not tried before are
applied as a move of the workbench applies them, and taken back. One takes from the call to the
turn of the event loop after which script, tree and history show it and are painted: the way to the
engine and back is in it. They are held against the same call of TVM's own with a print of the
script, in this process, on the whole module and on a module of this function alone.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import Primitive, Reference
from tests.benchmarks.figures import Figure, within
from tests.benchmarks.waiting import wait

if TYPE_CHECKING:
    import tvm

SIZE = (1600, 1000)
NODE = "fx:conv1"
APPLIED = 40
LIMIT = 50.0
"""Milliseconds that a primitive may take."""

MENU_LIMIT = 150.0
RATIO = 2.0


def _applied(window: MainWindow, primitive: Primitive) -> float:
    """Apply a primitive, and return the time until all views show it and are painted."""
    from PySide6.QtWidgets import QApplication

    scheduling = window.features.scheduling
    history, tree = window.panes.schedule.history, window.panes.schedule.tree
    before = tree.rows()
    start = time.perf_counter()
    scheduling.editing.apply(primitive)
    wait(window, lambda: tree.rows() != before and len(history.list.rows()) == 2)
    QApplication.processEvents()
    taken = (time.perf_counter() - start) * 1000
    assert scheduling.record is not None
    assert scheduling.record.steps[0].status == "done", scheduling.record.steps[0].error
    wait(window, lambda: scheduling.is_settled)
    window.document.undo()
    wait(window, lambda: scheduling.is_settled and len(history.list.rows()) == 1)
    return taken


def _menu(window: MainWindow, entity: str) -> float:
    """Select something, and return the time until its moves are there."""
    scheduling = window.features.scheduling
    window.document.select((f"tir:{scheduling.function}",))
    wait(window, lambda: scheduling.is_settled)
    start = time.perf_counter()
    window.document.select((entity,))
    wait(window, lambda: scheduling.is_settled and bool(scheduling.moves.all))
    return (time.perf_counter() - start) * 1000


def _raw(module: tvm.IRModule, function: str, block: str, factors: list[int]) -> list[float]:
    """Apply the same splits with TVM alone, each to a copy, and print the module's script."""
    import tvm

    base = tvm.s_tir.Schedule(module)
    base.work_on(function)
    times = []
    for factor in factors:
        start = time.perf_counter()
        sch = base.copy()
        loop = sch.get_loops(sch.get_sblock(block))[-1]
        sch.split(loop, [None, factor])
        sch.mod.script()
        times.append((time.perf_counter() - start) * 1000)
    return times


def _modules(recipe: Recipe, function: str) -> tuple[tvm.IRModule, tvm.IRModule]:
    """Return the module of a recipe, and one of a function of it alone."""
    import tvm

    from lowerscope.core.stages import Pipeline

    module = Pipeline().stages(recipe).unscheduled.module
    return module, tvm.IRModule({function: module[function]})


def measure() -> list[Figure]:
    """Measure the workbench in the window."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from lowerscope.app.shell.start import make_window

    _, window = make_window()
    window.resize(*SIZE)
    window.begin(None)
    document = window.document
    scheduling = window.features.scheduling
    try:
        recipe = Recipe(source=Source(spec="sample:resnet18"), lowering="te")
        document.open(recipe)
        window.show_panes()
        wait(window, lambda: document.recipe == recipe and not document.job.text)
        document.select((NODE,))
        window.commands.action("workbench").trigger()
        wait(window, lambda: scheduling.record is not None and scheduling.is_settled)
        assert scheduling.record is not None
        tree = scheduling.record.tree
        block = [each for each in tree if each.kind == "block" and each.axes][-1]
        loops = [each for each in tree if each.kind == "loop"]
        loop: Reference = loops[-1].reference
        factors = list(range(2, 2 + APPLIED))
        times = [
            _applied(
                window,
                Primitive(
                    id="s1", name="split", arguments={"loop": loop, "factors": (None, factor)}
                ),
            )
            for factor in factors
        ]
        menus = [_menu(window, each.id) for each in (loops[-1], block, loops[0])]
        function = scheduling.function
    finally:
        window.close()
    slow = sorted(times)[int(0.95 * len(times))]
    # Only now: the window has no TVM in its process.
    module, alone = _modules(recipe, function)
    against_whole = _raw(module, function, block.name, factors)
    against_alone = _raw(alone, function, block.name, factors)
    title = f"a primitive on {function} of resnet18"
    return [
        within(f"{title}, p95", [slow], LIMIT),
        within(f"{title}, median", times, LIMIT),
        Figure(
            f"{title}, against TVM on the whole module",
            [statistics.median(times)],
            [statistics.median(against_whole)],
            "Schedule and script()",
            RATIO,
        ),
        Figure(
            f"{title}, against TVM on a module of this function alone",
            [statistics.median(times)],
            [statistics.median(against_alone)],
            "Schedule and script()",
            RATIO,
        ),
        Figure("the moves of a loop or block, longest", [max(menus)], [MENU_LIMIT], "limit", 1.0),
    ]
