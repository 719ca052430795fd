"""What a child leaves for the user's folders: it may have been written by anybody's code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from lowerscope.app.children.handing_over import HandingOver
from lowerscope.core.errors import Problem


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    return folder


def put(qtbot: QtBot, handing: HandingOver, *replacing: str) -> tuple[str, ...] | Problem:
    with qtbot.waitSignal(handing.done) as caught:
        handing.start(replacing)
    assert caught.args is not None
    assert not handing.folder.is_dir() or handing.folder.is_symlink()
    answer: tuple[str, ...] | Problem = caught.args[0]
    return answer


def names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir())


def test_a_lone_file_comes_alone(qtbot: QtBot, home: Path) -> None:
    parent = QObject()
    handing = HandingOver(home, parent, lone="x.npy")
    (handing.folder / "x.npy").write_text("x")
    (handing.folder / ".profile").write_text("evil")
    (handing.folder / "bin").mkdir()
    (handing.folder / "bin" / "ls").write_text("evil")
    assert put(qtbot, handing, "x.npy") == (str(home / "x.npy"),)
    assert names(home) == ["mine", "x.npy"]


@pytest.mark.parametrize("name", [".profile", "bin/ls", "steps/.hidden", ".config/autostart/x"])
def test_what_is_no_export_is_refused(qtbot: QtBot, home: Path, name: str) -> None:
    parent = QObject()
    handing = HandingOver(home, parent)
    (handing.folder / "a.py").write_text("a")
    (handing.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (handing.folder / name).write_text("evil")
    answer = put(qtbot, handing)
    assert isinstance(answer, Problem)
    assert f"{name} is no part of an export" in answer.what
    assert names(home) == ["mine"]


def test_exports_come_and_replace_what_was_asked_about(qtbot: QtBot, home: Path) -> None:
    parent = QObject()

    def made() -> HandingOver:
        handing = HandingOver(home, parent)
        (handing.folder / "steps").mkdir()
        (handing.folder / "steps" / "1.py").write_text("new")
        (handing.folder / "a.py").write_text("new")
        (handing.folder / "a.py").chmod(0o6755)
        return handing

    (home / "a.py").write_text("old")
    handing = made()
    assert handing.names() == ("a.py", "steps/1.py")
    answer = put(qtbot, handing)
    assert isinstance(answer, Problem)
    assert "a.py is there by now" in answer.what
    assert (home / "a.py").read_text() == "old"
    assert put(qtbot, made(), "a.py") == (str(home / "a.py"), str(home / "steps/1.py"))
    assert (home / "a.py").read_text() == (home / "steps/1.py").read_text() == "new"
    assert not (home / "a.py").stat().st_mode & 0o6000


def test_links_lead_nowhere(qtbot: QtBot, home: Path, tmp_path: Path) -> None:
    parent = QObject()
    handing = HandingOver(tmp_path / "out", parent)
    (handing.folder / "a.py").symlink_to(home / "mine")
    answer = put(qtbot, handing)
    assert isinstance(answer, Problem)
    assert not names(tmp_path / "out")
    # In place of its folder, one to the user's.
    handing = HandingOver(tmp_path / "out", parent)
    shutil.rmtree(handing.folder)
    handing.folder.symlink_to(home)
    assert put(qtbot, handing) == ()
    assert names(home) == ["mine"]
    assert not names(tmp_path / "out")
