"""A 1,000-layer MLP, a 12-layer transformer and a model of 512 MB: all of the window, and cancel.

Each is opened, lowered in all ways, stepped through, scheduled, run beside torch and exported; and
stopped in each phase. What it took is printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.driving import wait_until
from tests.soak.large_models import write_deep_mlp, write_heavy, write_transformer
from tests.soak.large_walk import Walk, walk_through

pytestmark = pytest.mark.skipif("LOWERSCOPE_SOAK" not in os.environ, reason="takes half an hour")

MODELS = ("heavy", "transformer", "deep")
WEIGHTS = {"heavy": 512e6, "transformer": 365e6, "deep": 17e6}
PATIENCE = 1_800_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "heavy": write_heavy(folder, 8, 4000),
        "transformer": write_transformer(folder, 12, 768, 8000, 64),
        "deep": write_deep_mlp(folder, 1000),
    }


@pytest.fixture
def window(qapp: QApplication, tmp_path: Path) -> Iterator[MainWindow]:
    settings = str(tmp_path / "settings")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    window = MainWindow()
    window.settings.set_asks_first(False)
    window.show()
    window.begin(None)
    yield window
    clients = (window.features.processes.engine, window.features.processes.worker)
    pids = [each.pid for each in clients if each.pid is not None]
    window.close()
    assert wait_until(lambda: not any(map(psutil.pid_exists, pids)), 60_000)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_opened_changed_stepped_scheduled_and_run(
    name: str, files: dict[str, Path], window: MainWindow
) -> None:
    with Walk(window).watched() as walk:
        walk_through(walk, Recipe(source=Source(spec=str(files[name]))), steps=8, fuse=True)
    record = window.document.run_record
    assert record is not None
    assert record.verdict == "match"
    total = sum(each.received + each.sent for each in walk.phases)
    print(
        f"{name}: {total / 1e6:.1f} MB through the pipes, of {WEIGHTS[name] / 1e6:.0f} of weights"
    )
    if name == "heavy":
        assert total < 2e6
        # Once the weights; twice with what is folded, or with values of a run that are kept.
        idle, weights = 450e6, WEIGHTS[name]
        for each in walk.phases:
            folded = each.name.startswith(("passes", "translate", "workbench", "schedule", "run"))
            for role, held in each.memory.items():
                assert held < idle + (2.6 if folded else 1.15) * weights, (each.name, role)


PHASES = ("Tracing", "Lowering", "Applying passes", "Drawing")


@pytest.mark.parametrize("name", MODELS)
def test_cancel_leaves_what_was_open(name: str, files: dict[str, Path], window: MainWindow) -> None:
    document, status = window.document, window.status
    first = Recipe(source=Source(spec="sample:matmul_relu"))
    document.open(first)
    window.show_panes()
    assert wait_until(lambda: document.recipe == first and not document.job.text, PATIENCE)
    shown = document.snapshot
    for phase in PHASES:
        document.open(Recipe(source=Source(spec=str(files[name]))))
        reached = _stop_in(window, phase)
        assert wait_until(lambda: not document.is_changing, PATIENCE)
        if document.recipe != first:
            assert not reached, "it was there before it could be stopped"
            document.open(first)
            assert wait_until(lambda: document.recipe == first, PATIENCE)
            shown = document.snapshot
            continue
        assert document.snapshot is shown
        assert not document.problems
        # A new engine, if the old one had to be killed, has what was open as well.
        assert wait_until(lambda: window.features.processes.engine.state == "ready", PATIENCE)
        assert wait_until(lambda: not document.job.text, PATIENCE)
        assert not status.cancel.isVisible()


def _stop_in(window: MainWindow, phase: str) -> bool:
    """Press Cancel as soon as it is offered in a phase; return whether it came to that."""
    document, status = window.document, window.status
    began, progress = time.monotonic(), None

    def offered() -> bool:
        nonlocal progress
        if progress is None and status.progress.isVisible():
            progress = time.monotonic() - began
        return status.cancel.isVisible() and document.job.text.startswith(phase)

    assert wait_until(lambda: offered() or not document.is_changing, PATIENCE)
    if not document.is_changing:
        return False
    pressed, pid = time.monotonic(), window.features.processes.engine.pid
    status.cancel.click()
    assert wait_until(lambda: not document.is_changing, PATIENCE)
    seconds = time.monotonic() - pressed
    how = "stopped" if window.features.processes.engine.pid == pid else "killed"
    print(
        f"{phase}: progress after {(progress or 0) * 1000:.0f} ms, cancelled in {seconds:.2f} s,"
        f" engine {how}"
    )
    return True


@pytest.mark.parametrize("name", MODELS)
def test_the_command_line_runs_and_exports_it(
    name: str, files: dict[str, Path], tmp_path: Path
) -> None:
    for command in (
        ["run", str(files[name])],
        ["export", str(files[name]), "--output", str(tmp_path / "out"), "--what", "module"],
    ):
        began = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, "-m", "lowerscope.app", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        peak = 0
        watched = psutil.Process(child.pid)
        while child.poll() is None:
            try:
                held = [watched, *watched.children(recursive=True)]
                peak = max(peak, *(each.memory_info().rss for each in held))
            except psutil.Error:
                pass  # one of them has ended meanwhile
            time.sleep(0.05)
        out, err = child.communicate()
        print(f"{name}, {command[0]}: {time.monotonic() - began:.1f} s, {peak / 1e6:.0f} MB")
        assert child.returncode == 0, out + err
        if name == "heavy":
            assert peak < 450e6 + 2.6 * WEIGHTS[name]
