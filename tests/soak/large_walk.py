"""The way through a large model in the real window, with what it costs phase by phase.

Of each phase: its time, the longest that the window's thread was at work without a look at its
events (of its processor time: another program that takes the processor is no fault of the
window's), the bytes that went through the pipes, and the memory of the children.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import psutil
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from lowerscope.app.engine import child_process
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.engine.protocol import FrameReader
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Recipe
from tests.end_to_end.scheduling import Bench

PATIENCE = 1_800.0
_SAMPLE = 0.02


@dataclass
class Phase:
    """What a phase has cost: seconds until it is shown, and until nothing follows any more;
    milliseconds of the longest stall; bytes."""

    name: str
    seconds: float = 0.0
    settled: float = 0.0
    stall: float = 0.0
    received: int = 0
    sent: int = 0
    memory: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        memory = ", ".join(f"{role} {held / 1e6:.0f} MB" for role, held in self.memory.items())
        return (
            f"{self.name:<22} {self.seconds:7.2f} s ({self.settled:.2f}),"
            f" stall {self.stall:5.0f} ms, {(self.received + self.sent) / 1e6:6.2f} MB, {memory}"
        )


class Walk:
    """The phases, one after the other."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self.document = window.document
        self.phases: list[Phase] = []
        self._phase = Phase("start")
        self._at = time.thread_time()

    def __getitem__(self, name: str) -> Phase:
        return next(each for each in self.phases if each.name == name)

    @contextmanager
    def watched(self) -> Iterator[Walk]:
        """Count and measure in the body."""
        beat = QTimer(interval=2)
        beat.timeout.connect(self._beat)
        beat.start()
        over = threading.Event()
        sampling = threading.Thread(target=self._sample, args=(over,))
        sampling.start()
        encode, feed = child_process.encode_frame, FrameReader.feed

        def encoded(message: child_process.ToChild) -> bytes:
            frame = encode(message)
            self._phase.sent += len(frame)
            return frame

        def fed(reader: FrameReader, data: bytes) -> object:
            self._phase.received += len(data)
            return feed(reader, data)

        child_process.encode_frame, FrameReader.feed = encoded, fed
        try:
            yield self
        finally:
            child_process.encode_frame, FrameReader.feed = encode, feed
            over.set()
            sampling.join()
            beat.stop()

    def go(self, name: str, act: Callable[[], object], done: Callable[[], object]) -> Phase:
        """Do something, and wait until what comes of it is there and shown."""
        phase = self._phase = Phase(name)
        self.phases.append(phase)
        self._at = time.thread_time()
        start = time.perf_counter()
        act()
        self.wait(done)
        phase.seconds = time.perf_counter() - start
        self.wait_idle()
        phase.settled = time.perf_counter() - start
        print(phase)
        return phase

    def wait(self, done: Callable[[], object]) -> None:
        """Let the window go on until a condition holds."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, (self._phase.name, self.document.job)
            assert not self.document.problems, self.document.problems[0].line()
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    def wait_idle(self) -> None:
        """Let the window go on until nothing is under way, and all is drawn."""
        engine, worker = (
            self.window.features.processes.engine,
            self.window.features.processes.worker,
        )
        self.wait(
            lambda: (
                not self.document.job.text
                and engine.state == "ready"
                and worker.state in ("ready", "stopped")
            )
        )
        QApplication.processEvents()

    def _beat(self) -> None:
        now = time.thread_time()
        self._phase.stall = max(self._phase.stall, (now - self._at) * 1000)
        self._at = now

    def _sample(self, over: threading.Event) -> None:
        while not over.wait(_SAMPLE):
            for client in (
                self.window.features.processes.engine,
                self.window.features.processes.worker,
            ):
                pid = client.pid
                if pid is None:
                    continue
                try:
                    held = _held(psutil.Process(pid))
                except psutil.Error:
                    continue  # it has ended
                memory = self._phase.memory
                memory[client.role] = max(memory.get(client.role, 0), held)


def _held(process: psutil.Process) -> int:
    """Return the bytes that a child holds, with the sandbox that it is in."""
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))


def walk_through(walk: Walk, recipe: Recipe, *, steps: int, fuse: bool) -> None:
    """Open, lower in all ways, step, schedule a function, run, and leave the record of the run.

    Parameters
    ----------
    fuse
        Whether by the pipeline that fuses: it has TVM's FoldConstant, which compiles what it folds.
    steps
        Steps of the passes, and of the translation, that are looked at: from the first to the last.
    """
    window, document = walk.window, walk.document

    def shown(wanted: Recipe) -> Callable[[], bool]:
        return lambda: document.recipe == wanted and not document.job.text

    walk.wait(
        lambda: (
            walk.window.features.processes.engine.state == "ready"
            and walk.window.features.processes.worker.state == "ready"
        )
    )
    walk.go("open", lambda: (document.open(recipe), window.show_panes()), shown(recipe))
    for lowering in ("te", "library", "high-level"):
        recipe = msgspec.structs.replace(recipe, lowering=lowering)
        walk.go(f"lower: {lowering}", lambda to=recipe: document.change(to), shown(recipe))
    if fuse:
        recipe = msgspec.structs.replace(recipe, steps=find_pipeline("fuse").steps)
        walk.go("passes: fuse", lambda: document.change(recipe), shown(recipe))
    page = window.panes.relax.script.stepped
    for section in ("passes", "translate"):
        count = len(walk.window.features.stepping.lines(section))
        for index in sorted({round(count * part / (steps - 1)) for part in range(steps)}):
            moment = Moment(section=section, index=index)
            walk.go(
                f"{section}: step {index}",
                lambda to=moment: walk.window.features.stepping.go(to),
                lambda: page.is_current,
            )
    walk.window.features.stepping.leave()
    walk.wait_idle()
    bench = Bench(window)
    assert document.snapshot is not None
    function = max(document.snapshot.functions, key=lambda each: "matmul" in each.name).name

    def opened() -> bool:
        scheduling = bench.scheduling
        return (
            scheduling.function == function
            and scheduling.record is not None
            and scheduling.is_settled
        )

    def open_bench() -> None:
        document.select((f"tir:{function}",))
        window.commands.action("workbench").trigger()

    walk.go("workbench", open_bench, opened)
    loop = next(each.name for each in bench.record.tree if each.kind == "loop")
    bench.select(loop)
    walk.go(
        "schedule: parallel",
        lambda: bench.choose("parallel"),
        lambda: len(bench.record.steps) == 1 and bench.scheduling.is_settled,
    )
    document.select(())
    walk.wait_idle()
    walk.go(
        "run",
        window.commands.action("run").trigger,
        lambda: document.run_record is not None and not document.running,
    )
