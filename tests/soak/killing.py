"""A window in random sessions whose children are killed, or stopped, at random moments."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec
import psutil
import pytest
from PySide6.QtWidgets import QApplication

from lowerscope.app.engine.client import EngineClient
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, with_pipeline
from lowerscope.core.model.recipe import STRATEGIES, Recipe, Source
from lowerscope.core.model.schedule import Primitive
from lowerscope.core.model.tuning_records import TuneOptions
from tests.end_to_end.children import hold
from tests.end_to_end.driving import wait_until

PATIENCE = 300_000
"""Milliseconds to wait at most, on whatever machine."""

Activity = Literal["loading", "lowering", "stepping", "scheduling", "running", "tuning", "idle"]
OF_ENGINE: tuple[Activity, ...] = ("loading", "lowering", "stepping", "scheduling", "idle")
OF_WORKER: tuple[Activity, ...] = ("running", "tuning", "idle")


def all_at_rest(window: MainWindow) -> bool:
    """Return whether nothing is under way in a window and its children."""
    document, features = window.document, window.features
    return (
        features.processes.engine.state in ("ready", "failed")
        and features.processes.worker.state in ("ready", "failed", "stopped")
        and not document.is_changing
        and not document.running
        and not document.job.text
        and not features.tuning.under_way
        and not features.recovering._slot.is_busy
    )


@dataclass
class Killing:
    """Kills the children of a window, and looks that nothing else is lost.

    Parameters
    ----------
    window, temporary
        It has a model open, and its temporary files in a folder of its own.
    seed
        Of all that is drawn.
    """

    window: MainWindow
    temporary: Path
    seed: int
    kills: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.document = self.window.document
        self.processes = self.window.features.processes

    def kill(self, activity: Activity) -> None:
        """Do something, kill or stop who is at it at a random moment, and look at what is left."""
        getattr(self, f"_{activity}")()
        moment = time.monotonic() + self.random.random() ** 2 * (6 if activity == "tuning" else 1.2)
        wait_until(lambda: time.monotonic() > moment)
        client = self._client_for(activity)
        assert wait_until(lambda: client.pid is not None, PATIENCE), self._state()
        group = client.pid
        assert group is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            processes = [psutil.Process(group), *psutil.Process(group).children(recursive=True)]
        decided, shown = self._decided(), self.document.recipe
        stops = self.random.random() < 0.2
        self.kills.append(f"{activity}: {client.role} {'stopped' if stops else 'killed'}")
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            hold(group) if stops else os.kill(group, signal.SIGKILL)
        if stops:
            decided = self._end_hang(client, decided)
        if client in (self.processes.engine, self.processes.worker):
            # The next one is there: until then, all seems to be as it was.
            assert wait_until(lambda: client.pid not in (None, group), PATIENCE), self._state()
        self.settle()
        if activity == "tuning" and self.document.recipe != decided[0]:
            self._undo_tuned()
        recipe, *others, selection = self._decided()
        assert self.document.recipe == recipe == decided[0], self._state()
        assert others == [*decided[1:-1]], self._state()
        if recipe == shown and activity != "scheduling":
            # What is selected follows what comes otherwise.
            assert selection == decided[-1], self._state()
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert not alive, (alive, self._state())

    def _undo_tuned(self) -> None:
        """Take back what a tuning kept as it was stopped: the best found, a change of its own."""
        recipe = self.document.recipe
        assert recipe is not None
        assert recipe.schedules[-1].variant == "tuned", self._state()
        self.document.undo()
        self.settle()
        # That it can be redone is all that is left of it.
        assert self.document.history.redo[0] == recipe, self._state()
        self.document.set(history=replace(self.document.history, redo=()))

    def _client_for(self, activity: Activity) -> EngineClient:
        engine, worker = self.processes.engine, self.processes.worker
        if activity == "tuning":
            return self.window.features.tuning._client or worker
        if activity == "idle":
            return self.random.choice((engine, worker))
        return engine if activity in OF_ENGINE else worker

    def _end_hang(self, client: EngineClient, decided: tuple[object, ...]) -> tuple[object, ...]:
        """Do what a user does whose engine or worker hangs: cancel, or else start it anew."""
        stop = self.window.commands.action("stop")
        if client not in (self.processes.engine, self.processes.worker):
            self.window.features.tuning.stop()
            return decided
        if self.document.job.text and stop.isEnabled():
            stop.trigger()
            moment = time.monotonic() + 1.5
            wait_until(lambda: time.monotonic() > moment)
            # What was on its way is what the user has cancelled.
            decided = self._decided()
        self.window.commands.action("restart").trigger()
        return decided

    def _decided(self) -> tuple[object, ...]:
        """Return what the user decided, and how the window looks."""
        # The line for news takes some of the place of the panes, for as long as it is there.
        self.window.banner.dismiss()
        QApplication.processEvents()
        panes = self.window.panes.by_name.items()
        sizes = {name: (pane.isVisible(), pane.width()) for name, pane in panes}
        layout = self.window.geometry(), self.window.mode, sizes
        document = self.document
        return self._wanted(), document.history, layout, document.selection.chosen

    def _state(self) -> str:
        problems = [each.line() for each in self.document.problems]
        states = self.processes.engine.state, self.processes.worker.state
        said = self.window.banner.message()
        return f"seed {self.seed}, {self.kills}: {states} {problems} {said!r}"

    def settle(self) -> None:
        """Wait until nothing is under way, and end a tuning that is."""
        self.window.features.tuning.stop()
        assert wait_until(lambda: all_at_rest(self.window), PATIENCE), self._state()

    def leftovers(self) -> list[str]:
        """Return the temporary files that no living child has."""
        clients = (
            self.processes.engine,
            self.processes.worker,
            self.window.features.tuning._client,
        )
        living = sum(each is not None and each.pid is not None for each in clients)
        names = sorted(os.listdir(self.temporary))
        return names if len(names) > living else []

    # What a user may do

    def _wanted(self) -> Recipe:
        recipe = self.document.wanted
        assert recipe is not None
        return recipe

    def _idle(self) -> None:
        pass

    def _loading(self) -> None:
        """Open another model, or draw other weights for this one."""
        if self.random.random() < 0.3:
            specs = {"sample:matmul_relu", "sample:fashion_mlp"} - {self._wanted().source.spec}
            self.document.open(Recipe(source=Source(spec=specs.pop()), lowering="te"))
        else:
            seed = self.random.randrange(1 << 30)
            self.document.change(msgspec.structs.replace(self._wanted(), seed=seed))

    def _lowering(self) -> None:
        """Change a strategy or the pipeline, or take a change back."""
        commands, drawn = self.window.commands, self.random.random()
        if drawn < 0.2 and self.document.can_undo:
            commands.action("undo").trigger()
        elif drawn < 0.5:
            name = self.random.choice(("legalise", "fuse", "default-build"))
            self.document.change(with_pipeline(self._wanted(), find_pipeline(name).steps))
        elif drawn < 0.75:
            assert self.document.snapshot is not None
            fx = self.document.snapshot.fx
            calls = [node.id for node in fx if node.opcode.startswith("call")]
            self.document.lower_nodes((self.random.choice(calls),), self.random.choice(STRATEGIES))
        else:
            others = [each for each in STRATEGIES if each != self._wanted().lowering]
            commands.action(self.random.choice(others)).trigger()

    def _stepping(self) -> None:
        """Go through the passes, and look at functions."""
        stepping, snapshot = self.window.features.stepping, self.document.snapshot
        stepping.set_section(self.random.choice(("passes", "translate")))
        for _ in range(self.random.randint(1, 4)):
            stepping.step(self.random.choice((-1, 1, 1)))
        if snapshot is not None and snapshot.functions:
            self.document.select((self.random.choice(snapshot.functions).id,))

    def _scheduling(self) -> None:
        """Add a primitive to a function's schedule."""
        scheduling, snapshot = self.window.features.scheduling, self.document.snapshot
        if snapshot is None or not snapshot.functions:
            return
        self.document.select((self.random.choice(snapshot.functions).id,))
        self.window.commands.action("workbench").trigger()
        wait_until(lambda: scheduling.record is not None or scheduling.problem)
        record = scheduling.record
        loops = [] if record is None else [each for each in record.tree if each.kind == "loop"]
        if loops:
            arguments = {"loop": self.random.choice(loops).reference}
            name = self.random.choice(("unroll", "parallel"))
            scheduling.editing.apply(Primitive(id="", name=name, arguments=arguments))

    def _running(self) -> None:
        self.window.commands.action("run").trigger()

    def _tuning(self) -> None:
        self.window.features.tuning.start(TuneOptions(slowest=1, trials=4000, fresh=True))


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that a window's temporary files, and its children's, are in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder
