"""Bad files in the real window: one clear line each, and what is open is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.sessions import sessions
from lowerscope.app.panes.sessions.trust import RunCodeDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import load_session
from lowerscope.core.model.recipe import Recipe, Source
from tests.diagonal import many
from tests.end_to_end.driving import OpenWindow, wait_for_records
from tests.soak.bad_files import KINDS, bad_file, numbers, write_seeds
from tests.soak.opening_bad_files import unclear

COUNT = many(10)

INPUTS = (".npy", ".npz", ".pt", ".pth")


class Opening:
    """Opens files in a window in the way that there is for each kind."""

    def __init__(self, qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
        self._qtbot, self._window, self._monkeypatch = qtbot, window, monkeypatch
        self.asked = 0

    def open(self, suffix: str, path: Path) -> None:
        """Open a file, and let the window come to rest."""
        window = self._window
        if suffix in INPUTS:
            window.features.inputs.take_file("x", str(path))
        elif suffix == ".json":
            chosen = (str(path), "")
            self._monkeypatch.setattr(
                "PySide6.QtWidgets.QFileDialog.getOpenFileName", lambda *_, **__: chosen
            )
            for command in ("load-pipeline", "load-schedule"):
                window.commands.action(command).trigger()
        elif suffix == ".pkl":
            recipe = window.document.wanted
            assert recipe is not None
            window.document.change_fields(source=Source(spec=recipe.source.spec, params=str(path)))
        else:
            window.open_source(str(path))
        self._answer_no()
        self._qtbot.waitUntil(self._is_at_rest, timeout=60_000)

    def go_back(self, recipe: Recipe, session: Path) -> None:
        """Go back to what was open: by undo, or by opening the session of another document."""
        window = self._window
        document = window.document
        while document.recipe != recipe:
            assert document.recipe is not None
            if document.recipe.source.spec == recipe.source.spec and document.can_undo:
                window.commands.action("undo").trigger()
            else:
                window.open_session(str(session))
            wait_for_records(self._qtbot, window)

    def _answer_no(self) -> None:
        QApplication.processEvents()
        for dialog in self._window.findChildren(RunCodeDialog):
            if dialog.isVisible():
                self.asked += 1
                dialog.reject()

    def _is_at_rest(self) -> bool:
        document = self._window.document
        return (
            self._window.features.processes.engine.state == "ready"
            and not document.job.text
            and document.wanted == document.recipe
        )


def test_a_bad_file_leaves_what_is_open(
    qtbot: QtBot, open_window: OpenWindow, writable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_in_window(qtbot, open_window, writable, monkeypatch, COUNT)


def open_in_window(
    qtbot: QtBot,
    open_window: OpenWindow,
    writable: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> str:
    """Open so many bad files in a window; return what became of them in words.

    They are below a folder where what they execute could leave a trace, in the sandbox as well.
    """
    monkeypatch.setattr(sessions, "DELAY_MS", 20)  # each of them is saved before the next
    folder, seeds_folder, marker = writable / "case", writable / "seeds", writable / "it_ran"
    folder.mkdir()
    seeds_folder.mkdir()
    seeds = write_seeds(seeds_folder, marker)
    window = open_window("sample:fashion_mlp", asks_first=True)
    document = window.document
    session = writable / "mine.lowerscope"
    with qtbot.waitSignal(window.sessions.saved, timeout=60_000):
        window.sessions.save_as(str(session))
    with qtbot.waitSignal(window.sessions.saved, timeout=60_000):
        window.commands.action("te").trigger()
    wait_for_records(qtbot, window)
    document.select(["tir:te_dense"])
    opening = Opening(qtbot, window, monkeypatch)
    mine = document.recipe
    assert mine is not None
    opened = refused = 0
    hashes = Hashes()
    for suffix, number in numbers(count):
        path = folder / f"bad{suffix}"
        path.write_bytes(bad_file(seeds, suffix, number))
        said = f"{suffix} {number}"
        opening.open(suffix, path)
        assert not marker.exists(), said
        for problem in document.problems:
            assert not unclear(problem) or problem.code == "crashed", f"{said}: {problem.line()}"
        if document.recipe == mine:
            refused += 1
        else:
            # It is good enough to be opened: another document, or a step of undo in this one.
            assert not document.problems, said
            opened += 1
            opening.go_back(mine, session)
        assert document.recipe == mine, said
        assert document.snapshot is not None
        # What was opened in between is saved a little later, and so is its undoing.
        qtbot.waitUntil(lambda: load_session(session, hashes).recipe == mine, timeout=60_000)
    assert refused + opened == len(list(numbers(count)))
    assert refused >= len(KINDS)
    # It is all as usable as it was.
    window.commands.action("high-level").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe is not None
    assert document.recipe.lowering == "high-level"
    return f"{refused} refused, {opened} opened all the same, {opening.asked} questions"
