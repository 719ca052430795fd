"""Files that a child leaves for the user's folders: anybody's code may have written them."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from lowerscope.app.engine.file_broker import HandingOver
from lowerscope.core.model.artifacts import announced, parse_wanted
from lowerscope.core.model.problems import Problem
from lowerscope.core.sandbox.folder import Takes, only


def takes(what: str) -> Takes:
    return announced(parse_wanted([what]), ("dot",))


def put(qtbot: QtBot, handing: HandingOver, *replacing: str) -> tuple[str, ...] | Problem:
    with qtbot.waitSignal(handing.done) as caught:
        handing.start(replacing)
    assert caught.args is not None
    assert not handing.folder.is_dir() or handing.folder.is_symlink()
    answer: tuple[str, ...] | Problem = caught.args[0]
    return answer


def names(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir())


@pytest.mark.parametrize(
    "name",
    [
        *(".profile", "bin/ls", "steps/.hidden", ".config/autostart/x", "Makefile", "conftest.py"),
        *(
            "open.desktop",
            "script.py",
            "module.py/x",
            "functions/dense.py",
            "functions/conftest.py",
        ),
        *("steps/1-FuseOps.py", "library/load.py", "module.pyc", "module.py\n"),
    ],
)
def test_nothing_comes_that_was_not_announced(qtbot: QtBot, home: Path, name: str) -> None:
    parent = QObject()
    handing = HandingOver(home, parent, takes("module"))
    if name != "module.py/x":
        (handing.folder / "module.py").write_text("a")
    (handing.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (handing.folder / name).write_text("evil")
    expected = [] if name == "module.py/x" else ["module.py"]
    assert put(qtbot, handing) == tuple(str(home / each) for each in expected)
    assert handing.others == (name,)
    assert names(home) == ["mine", *expected]


def test_exports_come_and_replace_what_was_asked_about(qtbot: QtBot, home: Path) -> None:
    parent = QObject()

    def made() -> HandingOver:
        handing = HandingOver(home, parent, takes("fx,step"))
        (handing.folder / "steps").mkdir()
        (handing.folder / "steps" / "1-Gone.py").write_text("new")
        (handing.folder / "fx.txt").write_text("new")
        (handing.folder / "fx.txt").chmod(0o6755)
        return handing

    (home / "fx.txt").write_text("old")
    handing = made()
    assert handing.names() == ("fx.txt", "steps/1-Gone.py")
    answer = put(qtbot, handing)
    assert isinstance(answer, Problem)
    assert "fx.txt is there by now" in answer.what
    assert (home / "fx.txt").read_text() == "old"
    changed = made()
    with (changed.folder / "fx.txt").open("a") as still_open:
        paths = (str(home / "fx.txt"), str(home / "steps/1-Gone.py"))
        assert put(qtbot, changed, "fx.txt") == paths
        still_open.write("and changed later")
    assert (home / "fx.txt").read_text() == (home / "steps/1-Gone.py").read_text() == "new"
    assert stat.S_IMODE((home / "steps/1-Gone.py").stat().st_mode) == 0o644
    assert not (home / "fx.txt").stat().st_mode & 0o7111


def test_links_lead_nowhere(qtbot: QtBot, home: Path, tmp_path: Path) -> None:
    parent = QObject()

    def refused(handing: HandingOver) -> None:
        assert isinstance(put(qtbot, handing), Problem)
        assert not names(tmp_path / "out")

    handing = HandingOver(tmp_path / "out", parent, takes("module"))
    (handing.folder / "module.py").symlink_to(home / "mine")
    refused(handing)
    handing = HandingOver(tmp_path / "out", parent, takes("module"))
    os.mkfifo(handing.folder / "module.py")
    refused(handing)
    handing = HandingOver(tmp_path / "out", parent, takes("step"))
    (home / "1-Gone.py").write_text("mine")
    (handing.folder / "steps").symlink_to(home)
    assert put(qtbot, handing) == ()
    # In place of its folder, one to the user's.
    handing = HandingOver(tmp_path / "out", parent, only(("mine",)))
    shutil.rmtree(handing.folder)
    handing.folder.symlink_to(home)
    assert put(qtbot, handing) == ()
    assert names(home) == ["1-Gone.py", "mine"]
    assert not names(tmp_path / "out")
