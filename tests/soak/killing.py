"""A window in random sessions whose children are killed, or stopped, at random moments."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication

from lowerscope.app.document.history import History
from lowerscope.app.engine.client import EngineClient
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe
from tests.end_to_end.children import hold
from tests.end_to_end.driving import wait_until
from tests.pulse import Pulse
from tests.soak.random_session import Activity, RandomSession

PATIENCE = 300_000
"""Milliseconds to wait at most, on whatever machine."""


OF_ENGINE: tuple[Activity, ...] = ("loading", "lowering", "stepping", "scheduling", "idle")
OF_WORKER: tuple[Activity, ...] = ("building", "running", "idle")


@dataclass(frozen=True)
class Kill:
    """What has come of one.

    Attributes
    ----------
    activity, role, way
        What was under way, who was killed, and how: stopped is hanging, which the user ends.
    wall, processor
        See `Pulse`; from then on until all was as before.
    back
        Milliseconds until all was as before.
    """

    activity: Activity
    role: str
    way: str
    wall: float
    processor: float
    back: float


@dataclass
class Killing:
    """Kills the children of a window, and looks that nothing else is lost.

    Parameters
    ----------
    window
        It has a model open, and its temporary files in a folder of its own.
    temporary
        That folder.
    seed
        Of all that is drawn.
    """

    window: MainWindow
    temporary: Path
    seed: int
    kills: list[Kill] = field(default_factory=list)
    first_loads: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.document = self.window.document
        self.pulse = Pulse()
        self.session = RandomSession(self.window, self.random)

    # Killing

    def kill(self, activity: Activity) -> Kill:
        """Do something, kill or stop who is at it at a random moment, and look at what is left."""
        client = self._client_for(activity)
        self.session.do(activity)
        moment = self.random.random() ** 2 * (6.0 if activity == "tuning" else 1.2)
        end = time.monotonic() + moment
        wait_until(lambda: time.monotonic() > end, 60_000)
        client = self._tuning_client() if activity == "tuning" else client
        if client is None or client.pid is None:
            assert wait_until(lambda: client is None or client.pid is not None, PATIENCE)
        if client is None:  # the tuning had come to its end
            client = self.window.features.processes.worker
            assert wait_until(
                lambda: self.window.features.processes.worker.pid is not None, PATIENCE
            )
        assert client is not None
        group = client.pid
        assert group is not None
        processes = _group_of(group)
        expected = self._decided()
        self._shown_before = self.document.recipe
        stops = self.random.random() < 0.2
        self.pulse.begin()
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            hold(group) if stops else os.kill(group, signal.SIGKILL)
        if stops:
            expected = self._end_hang(client, expected)
        tuning = client not in (
            self.window.features.processes.engine,
            self.window.features.processes.worker,
        )
        if tuning:
            self.settle()
        else:
            # The next one is there: until then, all seems to be as it was.
            assert wait_until(lambda: client.pid not in (None, group), PATIENCE), self._state()
        assert wait_until(self._is_back, PATIENCE), self._state()
        back = (time.monotonic() - began) * 1000
        self.pulse.end()
        self._check(activity, expected, processes)
        way = "stopped" if stops else "killed"
        found = Kill(activity, client.role, way, self.pulse.wall, self.pulse.processor, back)
        self.kills.append(found)
        self.settle()
        if (
            client is self.window.features.processes.worker
            and self.window.features.recovering._last[1]
        ):
            # It has died while it applied a part of the recipe: once, and then it works.
            self.window.commands.action("run").trigger()
            assert wait_until(self._is_back, PATIENCE), self._state()
        return found

    def _client_for(self, activity: Activity) -> EngineClient | None:
        engine, worker = (
            self.window.features.processes.engine,
            self.window.features.processes.worker,
        )
        if activity == "tuning":
            return None
        if activity == "idle":
            return self.random.choice((engine, worker))
        return engine if activity in OF_ENGINE else worker

    def _tuning_client(self) -> EngineClient | None:
        return self.window.features.tuning._client

    def _end_hang(self, client: EngineClient, expected: _Decided) -> _Decided:
        """Do what a user does whose engine or worker hangs: cancel, or else start it anew."""
        document = self.document
        moment = time.monotonic() + 0.3
        wait_until(lambda: time.monotonic() > moment, 10_000)
        if client not in (
            self.window.features.processes.engine,
            self.window.features.processes.worker,
        ):
            self.window.features.tuning.stop()
            return expected
        if document.job.text and self.window.commands.action("stop").isEnabled():
            self.window.commands.action("stop").trigger()
            moment = time.monotonic() + 1.5
            wait_until(lambda: time.monotonic() > moment, 10_000)
            # What was on its way is what the user has cancelled.
            expected = self._decided()
        self.window.commands.action("restart").trigger()
        return expected

    def _decided(self) -> _Decided:
        document = self.document
        history = document.history
        # The line for news takes some of the place of the panes, for as long as it is there.
        self.window.banner.dismiss()
        QApplication.processEvents()
        panes = {
            name: (pane.isVisible(), pane.width())
            for name, pane in self.window.panes.by_name.items()
        }
        mode = self.window.mode
        chosen = document.selection.chosen
        return _Decided(
            self.session.wanted(), history, (self.window.geometry(), mode, panes), chosen
        )

    def _is_back(self) -> bool:
        document = self.document
        children = (self.window.features.processes.engine, self.window.features.processes.worker)
        return (
            all(each.state == "ready" for each in children)
            and not document.is_changing
            and not self.window.features.recovering._slot.is_busy
            and not document.running
            and not document.job.text
        )

    def _check(
        self, activity: Activity, expected: _Decided, processes: list[psutil.Process]
    ) -> None:
        after = self._decided()
        assert after.recipe == expected.recipe, self._state()
        assert after.history == expected.history, self._state()
        assert after.layout == expected.layout, self._state()
        if expected.recipe == self._shown_before and activity != "scheduling":
            # What is selected follows what comes otherwise.
            assert after.selection == expected.selection, self._state()
        assert self.document.recipe == expected.recipe, self._state()
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert not alive, (alive, self._state())

    def _state(self) -> str:
        document = self.document
        states = [
            self.window.features.processes.engine.state,
            self.window.features.processes.worker.state,
            self.window.features.tuning.phase,
        ]
        problems = [each.line() for each in document.problems]
        said = self.window.banner.message()
        return f"seed {self.seed}, kill {len(self.kills)}: {states} {problems} {said!r}"

    def change(self) -> None:
        """Change the recipe at random, and wait until what comes of it is shown."""
        self.session.change()
        assert wait_until(self._is_back, PATIENCE), self._state()

    def settle(self) -> None:
        """Wait until nothing is under way, and end a tuning that is."""
        self.window.features.tuning.stop()
        ready = wait_until(
            lambda: not self.window.features.tuning.under_way and self._is_back(), PATIENCE
        )
        assert ready, self._state()
        self.window.features.build.look(False)

    def first_load(self) -> None:
        """Take the time of a first load: new children, the model opened."""
        self.window.commands.action("restart").trigger()
        began = time.monotonic()
        assert wait_until(self._is_back, PATIENCE), self._state()
        self.first_loads.append((time.monotonic() - began) * 1000)

    # What is left

    def leftovers(self) -> list[str]:
        """Return the temporary files that no living child has."""
        living = sum(
            client is not None and client.pid is not None
            for client in (
                self.window.features.processes.engine,
                self.window.features.processes.worker,
                self._tuning_client(),
            )
        )
        names = sorted(os.listdir(self.temporary))
        return names if len(names) > living else []

    def report(self) -> str:
        """Return the figures."""
        kills = self.kills
        ways = Counter(f"{each.role} {each.way}" for each in kills)
        activities = Counter(each.activity for each in kills)
        engine = [each.back for each in kills if each.role == "engine" and each.way == "killed"]
        worst = max(kills, key=lambda each: each.processor)
        beyond = sum(each.wall > 100 for each in kills)
        lines = [
            f"{len(kills)} kills: {dict(ways)}; {dict(activities)}",
            f"largest gap: {max(each.wall for each in kills):.0f} ms on the section"
            f" (median {statistics.median(each.wall for each in kills):.0f}, {beyond} above 100),"
            f" {worst.processor:.0f} ms of the window's own work ({worst.activity}, {worst.role})",
        ]
        if engine and self.first_loads:
            first, back = statistics.median(self.first_loads), statistics.median(engine)
            lines.append(
                f"back after the engine's death: median {back:.0f} ms, a first load {first:.0f} ms:"
                f" {back / first:.2f}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class _Decided:
    """What the user decided, and how the window looks."""

    recipe: Recipe
    history: History
    layout: object
    selection: tuple[str, ...]


def _group_of(pid: int) -> list[psutil.Process]:
    """Return a process and all that it has started."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that a window's temporary files, and its children's, are in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder
