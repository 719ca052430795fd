"""The page on the course in the window: its commands open what they are about."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from lowerscope.app.views.course_window import CourseWindow
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Extension, Override, Recipe


class Opened:
    """What the page asked for."""

    def __init__(self, qtbot: QtBot) -> None:
        self.recipes: list[Recipe] = []
        self.problems: list[Problem] = []
        self.window = CourseWindow(self.recipes.append, self.problems.append)
        qtbot.addWidget(self.window)
        self.window.show()

    def link_of(self, command: str) -> QUrl:
        """Return the link on a command of the page."""
        block = self.window.page.document().begin()
        while block.isValid():
            pieces = block.begin()
            while not pieces.atEnd():
                fragment = pieces.fragment()
                if fragment.text() == command:
                    return QUrl(fragment.charFormat().anchorHref())
                pieces += 1
            block = block.next()
        raise AssertionError(f"the page has no {command}")


def test_a_command_opens_with_its_options(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(qtbot)
    asked = staticmethod(lambda *_: str(tmp_path))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", asked)
    command = (
        "lowerscope run sample:fashion_mlp --params course/mlp_params.pkl --lowering te "
        "--rules course/topi_rules.py"
    )
    opened.window.page.anchorClicked.emit(opened.link_of(command))
    (recipe,) = opened.recipes
    assert recipe.lowering == "te"
    assert recipe.source.params == str(tmp_path / "course" / "mlp_params.pkl")
    rules = str(tmp_path / "course" / "topi_rules.py")
    assert recipe.extensions == (Extension(path=rules, kind="rules"),)
    assert Path(rules).exists()
    assert opened.window.where.text() == str(tmp_path / "course")


def test_a_sample_opens_without_files(qtbot: QtBot) -> None:
    opened = Opened(qtbot)
    command = "lowerscope run sample:fashion_mlp --override linear1=te --override relu=library"
    opened.window.page.anchorClicked.emit(opened.link_of(command))
    (recipe,) = opened.recipes
    assert recipe.overrides == (
        Override(pattern="linear1", strategy="te"),
        Override(pattern="relu", strategy="library"),
    )
    assert not opened.problems


def test_without_a_folder_nothing_opens(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(qtbot)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", staticmethod(lambda *_: ""))
    opened.window.page.anchorClicked.emit(opened.link_of("lowerscope run course/two_blocks.py"))
    assert not opened.recipes


def test_a_folder_that_cannot_be_written_is_told(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    opened = Opened(qtbot)
    opened.window.write_files(tmp_path / "file" / "course")
    assert [problem.what.startswith("it cannot be written") for problem in opened.problems] == [
        True
    ]
