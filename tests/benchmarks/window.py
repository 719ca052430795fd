"""Benchmarks of the real window with the real engine: from what a user does until it is painted."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEventLoop, QSettings, QTimer
from PySide6.QtWidgets import QApplication

from lowerscope.app.shell.modes import MODES
from lowerscope.app.shell.start import make_window
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import Primitive
from tests.benchmarks.figures import Figure, benchmark, milliseconds, p95, within

PATIENCE = 300.0
"""Seconds."""

UNTIL_PAINTED = """
import os, sys, time
from PySide6.QtCore import QEvent, QObject

class Watch(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            watched.repaint()
            sys.stdout.write(repr(time.time()))
            sys.stdout.flush()
            os._exit(0)
        return False

watch = Watch()
{window}
window.installEventFilter(watch)
application.exec()
"""
OURS = "from lowerscope.app.shell.start import make_window; application, window = make_window()"
BARE = """
from PySide6.QtWidgets import QApplication, QMainWindow
application = QApplication(["bare"])
window = QMainWindow()
window.resize(1440, 900)
window.show()
"""


@benchmark("startup")
def startup() -> Iterator[Figure]:
    """Measure from the start of the process to the first painted window, against a bare one."""

    def start(window: str) -> float:
        begun = time.time()
        code = UNTIL_PAINTED.format(window=window)
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ}
        # The first start writes bytecode, as a user's does.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env=environment
        )
        return (float(done.stdout) - begun) * 1000

    pairs = [(start(OURS), start(BARE)) for _ in range(16)][1:]
    yield Figure("startup", *zip(*pairs, strict=True), "a bare QMainWindow", 1.5)


def wait(window: MainWindow, done: Callable[[], bool]) -> None:
    """Go on with the window's events until `done` is true; a problem ends the benchmark."""
    wake = QTimer()
    wake.start(20)
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "the window did not get there"
        assert not window.document.problems, window.document.problems[0].line()
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def is_idle(window: MainWindow) -> bool:
    """Return whether nothing is under way."""
    engine = window.features.processes.engine
    return not window.document.job.text and engine.state == "ready"


def open_recipe(window: MainWindow, recipe: Recipe) -> None:
    """Open a recipe, and wait until all panes show it."""
    window.document.open(recipe)
    wait(window, lambda: window.document.recipe == recipe and is_idle(window))
    window.show_panes()
    wait(window, lambda: is_idle(window))


@contextmanager
def opened(spec: str, **fields: object) -> Iterator[MainWindow]:
    """Yield a window of 1600×1000 with a source open; settings are not the user's."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, folder)
        _, window = make_window()
        window.settings.asks_first = False
        window.resize(1600, 1000)
        window.begin(None)
        try:
            open_recipe(window, Recipe(source=Source(spec=spec), **fields))  # type: ignore[arg-type]
            yield window
        finally:
            window.close()


def resident_mb() -> float:
    """Return the memory of the window's process that is in RAM, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@benchmark("redraw")
def redraw() -> Iterator[Figure]:
    """Measure from a change of the lowering to the window that shows it."""
    with opened("sample:matmul") as window:
        document = window.document

        def change(act: Callable[[], object]) -> None:
            before = document.snapshot
            act()
            wait(window, lambda: document.snapshot is not before and is_idle(window))
            window.repaint()

        for name, node, limit in (
            ("fashion_mlp", "fx:relu", 150),
            ("resnet18", "fx:layer1_0_conv1", 1500),
        ):
            open_recipe(window, Recipe(source=Source(spec=f"sample:{name}"), lowering="te"))
            acts: tuple[Callable[[], object], ...] = (
                window.commands.action("high-level").trigger,
                window.commands.action("library").trigger,
                lambda: document.lower_nodes((node,), "te"),  # noqa: B023
                lambda: document.lower_nodes((node,), "high-level"),  # noqa: B023
            )
            times = [milliseconds(lambda act=act: change(act)) for act in acts]  # type: ignore[misc]
            yield within(f"redraw {name}", times, limit)


BLOCKS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + torch.sigmoid(torch.tanh(self.b(torch.relu(self.a(x))))) * 0.5

class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(1430))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

def example_inputs():
    return torch.ones(1, 4)

entry = Blocks
"""


@benchmark("select")
def select() -> Iterator[Figure]:
    """Measure selections far apart in a model of 10,000 nodes, until all that follows is painted.

    What the engine answers comes later, and is not waited for: it has its own place in the panes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blocks.py"
        path.write_text(BLOCKS, encoding="utf-8")
        with opened(str(path), lowering="te") as window:
            assert window.document.snapshot is not None
            fx = window.document.snapshot.fx
            nodes = [node.id for node in fx if node.opcode.startswith("call")]
            assert len(nodes) >= 10_000

            def choose(entity: str) -> None:
                window.document.select((entity,))
                # What is laid out anew posts what is to be painted for it.
                QApplication.processEvents()
                QApplication.processEvents()

            times = []
            for number in range(41):
                entity = nodes[number * (len(nodes) // 2 - 7) % len(nodes)]
                times.append(milliseconds(lambda entity=entity: choose(entity)))  # type: ignore[misc]
                wait(window, lambda: is_idle(window))
            yield within(f"select in {len(nodes):,} nodes, p95", [p95(times[1:])], 50)


@benchmark("modes")
def modes() -> Iterator[Figure]:
    """Measure a change of the mode, until its events are handled; painting is one of them."""
    with opened("sample:resnet18", steps=find_pipeline("fuse").steps) as window:
        window.document.select(("fx:layer1_0_conv1",))

        def change(key: str) -> None:
            window.set_mode(key)
            QApplication.processEvents()

        # The first visits make what the panes show.
        times, processor = [], []
        for visit in range(11):
            for mode in MODES:
                begun = time.process_time()
                spent = milliseconds(lambda key=mode.key: change(key))  # type: ignore[misc]
                if visit:
                    times.append(spent)
                    processor.append((time.process_time() - begun) * 1000)
                wait(window, lambda: is_idle(window))
        title = "change of the mode, resnet18, p95"
        yield replace(within(title, [p95(times)], 50), note=f"; {resident_mb():.0f} MB resident")
        yield within(f"{title}, processor time", [p95(processor)], 50)


@benchmark("stepping")
def stepping() -> Iterator[Figure]:
    """Measure steps of the timeline, from the call until the Relax pane has painted the text."""
    with opened("sample:resnet18") as window:
        steps, page = window.features.stepping, window.panes.relax.script.stepped

        def go(index: int) -> None:
            steps.go(Moment(section="passes", index=index))
            wait(window, lambda: page.is_current)
            QApplication.processEvents()

        for name in ("fuse", "cpu"):
            source = Source(spec="sample:resnet18")
            open_recipe(window, Recipe(source=source, steps=find_pipeline(name).steps))
            for visit in ("first", "second"):
                times = []
                for index in range(len(steps.lines("passes")) + 1):
                    times.append(milliseconds(lambda index=index: go(index)))  # type: ignore[misc]
                    wait(window, lambda: is_idle(window))
                title = f"step of resnet18, pipeline {name}, {visit} visit"
                yield within(f"{title}, median", times, 100)
                yield within(f"{title}, longest", [max(times)], 100)
            steps.leave()


@benchmark("differences")
def differences() -> Iterator[Figure]:
    """Measure steps in the mode Step, from the call until the difference has been painted.

    Every pass of the pipeline, and every pass of TVM's build behind it, visited for the first time.
    """
    steps = find_pipeline("optimise-cpu").steps
    with opened("sample:resnet18", steps=steps) as window:
        stepping, page = window.features.stepping, window.panes.difference.page
        window.panes.set_mode("step")
        wait(window, lambda: page.is_current)
        window.features.build.look(True)
        wait(window, lambda: bool(stepping.lines("build")))
        wait(window, lambda: is_idle(window))

        def go(moment: Moment) -> None:
            stepping.go(moment)
            wait(window, lambda: page.is_current)
            QApplication.processEvents()

        for section in ("passes", "build"):
            numbers = [line.number for line in stepping.dots(section)]
            # The first one finds out what all share, such as the parameters' names.
            go(Moment(section=section, index=0))
            times = []
            for number in numbers:
                moment = Moment(section=section, index=number)
                times.append(milliseconds(lambda moment=moment: go(moment)))  # type: ignore[misc]
                wait(window, lambda: is_idle(window))
            title = f"difference of the {len(times)} {section} of resnet18, first visit"
            yield within(f"{title}, p95", [p95(times)], 100)
            yield within(f"{title}, median", times, 100)
        stepping.leave()


@benchmark("schedule")
def schedule() -> Iterator[Figure]:
    """Measure a primitive on the largest convolution of ResNet-18, until all views show it.

    Splits with factors that were not tried before are applied and taken back. They are held against
    TVM's ``split`` with a print of the module's script as well.
    """
    with opened("sample:resnet18", lowering="te") as window:
        document, scheduling = window.document, window.features.scheduling
        history, tree = window.panes.schedule.history, window.panes.schedule.tree
        recipe = document.recipe
        document.select(("fx:conv1",))
        window.commands.action("workbench").trigger()
        wait(window, lambda: scheduling.record is not None and scheduling.is_settled)
        assert scheduling.record is not None
        found = scheduling.record.tree
        block = [each for each in found if each.kind == "block" and each.axes][-1]
        loops = [each for each in found if each.kind == "loop"]

        def apply(factor: int) -> None:
            before = tree.rows()
            arguments = {"loop": loops[-1].reference, "factors": (None, factor)}
            scheduling.editing.apply(Primitive(id="s1", name="split", arguments=arguments))
            wait(window, lambda: tree.rows() != before and len(history.list.rows()) == 2)
            QApplication.processEvents()

        def choose(entity: str) -> None:
            document.select((entity,))
            wait(window, lambda: scheduling.is_settled and bool(scheduling.moves.all))

        times, menus, factors = [], [], range(2, 42)
        for factor in factors:
            times.append(milliseconds(lambda factor=factor: apply(factor)))  # type: ignore[misc]
            assert scheduling.record.steps[0].status == "done"
            wait(window, lambda: scheduling.is_settled)
            document.undo()
            wait(window, lambda: scheduling.is_settled and len(history.list.rows()) == 1)
        for each in (loops[-1], block, loops[0]):
            document.select((f"tir:{scheduling.function}",))
            wait(window, lambda: scheduling.is_settled)
            menus.append(milliseconds(lambda entity=each.id: choose(entity)))  # type: ignore[misc]
        function = scheduling.function
    # Only now: the window has no TVM in its process.
    import tvm

    from lowerscope.core.stages import Pipeline

    module = Pipeline().stages(recipe).unscheduled.module
    title, median = f"a primitive on {function} of resnet18", statistics.median(times)
    yield within(f"{title}, p95", [p95(times)], 50)
    yield within(f"{title}, median", times, 50)
    yield within("the moves of a loop or block, longest", [max(menus)], 150)
    for what, base in (
        ("the whole module", tvm.s_tir.Schedule(module)),
        (
            "a module of this function alone",
            tvm.s_tir.Schedule(tvm.IRModule({function: module[function]})),
        ),
    ):
        base.work_on(function)

        def split(factor: int, base: tvm.s_tir.Schedule = base) -> None:
            sch = base.copy()
            sch.split(sch.get_loops(sch.get_sblock(block.name))[-1], [None, factor])
            sch.mod.script()

        theirs = [milliseconds(lambda factor=factor: split(factor)) for factor in factors]  # type: ignore[misc]
        yield Figure(f"{title}, against {what}", [median], [statistics.median(theirs)], "TVM", 2.0)
