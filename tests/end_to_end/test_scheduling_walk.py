"""The scheduling walk of the help, by keys alone, from the empty window to the exported schedule.

Nothing is called here but what presses a key where the focus is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.schedule.schedule_moves_page import LETTERS
from lowerscope.app.shell import help_pages
from lowerscope.app.shell.window import MainWindow
from tests import schedule_walk
from tests.end_to_end.driving import OpenWindow, wait_until
from tests.end_to_end.scheduling import CONTROL, NONE, Bench

pytestmark = [pytest.mark.x, pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]

ROW = re.compile(r"^\| (`.+?`) \| (\w+)(?:, (\d+))? \| .+ \| `(.+)` \|$", re.MULTILINE)
MOST_TABS = 120


class Keys:
    """The keyboard: what is pressed goes to what has the focus."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window

    @property
    def focus(self) -> QWidget:
        """Return the widget with the focus: of a menu that is open, the menu."""
        if QApplication.activeWindow() is None:
            # As a window manager does when a dialog has closed; the test's platform has none.
            self.window.activateWindow()
            assert wait_until(self.window.isActiveWindow, 5000)
        return QApplication.activePopupWidget() or QApplication.focusWidget() or self.window

    def press(self, keys: str) -> None:
        """Press keys, as they are said."""
        QTest.keySequence(self.focus, QKeySequence(keys))
        QApplication.processEvents()

    def write(self, text: str) -> None:
        """Type a text."""
        QTest.keyClicks(self.focus, text)
        QApplication.processEvents()

    def tab_to(self, is_it: Callable[[QWidget], object], key: str = "Tab") -> None:
        """Press Tab until the focus is where it shall be."""
        for _ in range(MOST_TABS):
            if is_it(self.focus):
                return
            self.press(key)
        raise AssertionError(f"{key} does not come to it")

    def choose(self, words: str) -> None:
        """Choose an entry of the menu that is open, with the arrows."""
        menu = self.focus
        assert isinstance(menu, QMenu)
        for _ in menu.actions():
            self.press("Down")
            active = menu.activeAction()
            if active is not None and active.text().startswith(words):
                return self.press("Return")
        raise AssertionError([each.text() for each in menu.actions()])


def called(name: str) -> Callable[[QWidget], bool]:
    """Return whether a widget has this name for a screen reader, or one that begins so."""

    def is_called(widget: QWidget) -> bool:
        seen = QAccessible.queryAccessibleInterface(widget)
        return seen.text(QAccessible.Text.Name).startswith(name)

    return is_called


@pytest.fixture
def bench(qtbot: QtBot, open_window: OpenWindow) -> Bench:
    """Return the workbench of a window that nothing is open in."""
    window = open_window()
    window.resize(1366, 768)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    return Bench(window)


def select_rows(bench: Bench, keys: Keys, names: list[str]) -> None:
    """Go to rows of the tree with the arrows; from the second on with Ctrl, and Space adds it."""
    tree = bench.view.tree
    assert tree.hasFocus()
    for place, key in enumerate(bench.ids(*names)):
        held = CONTROL if place else NONE
        rows = [row.key for row in tree.rows()]
        for _ in range(len(rows)):
            if tree.current_key() != key:
                down = rows.index(tree.current_key() or rows[0]) < rows.index(key)
                QTest.keyClick(keys.focus, Qt.Key.Key_Down if down else Qt.Key.Key_Up, held)
        if place or key not in tree.selected_keys():
            QTest.keyClick(keys.focus, Qt.Key.Key_Space, held)
    assert tree.selected_keys() == bench.ids(*names)
    bench.settle()


def apply(bench: Bench, keys: Keys, primitive: str, number: str) -> None:
    """Apply a primitive to the selection, by its letter or name, with the inner loop's number."""
    before = len(bench.record.steps)
    letter = next((letter for letter, name in LETTERS.items() if name == primitive), "")
    if letter:
        keys.press(letter)
    else:
        keys.press("Return")
        bench.wait(lambda: primitive in bench.moves())
        assert bench.view.moves.choices.line.hasFocus()
        keys.write(primitive)
        assert bench.view.moves.choices.current_key() == primitive
        keys.press("Return")
    form, trying = bench.view.form, bench.scheduling.trying
    bench.wait(lambda: trying.draft is not None or len(bench.record.steps) > before)
    if trying.draft is not None:
        if number:
            keys.press("Tab")
            keys.write(number)
        bench.wait(lambda: form.state.text().startswith("✓"))
        keys.press("Return")
    bench.steps(before + 1)
    assert bench.record.steps[-1].status == "done", bench.state()
    assert bench.view.moves.choices.line.text() == ""


@pytest.mark.at_length
def test_the_walk_goes_as_the_page_says(bench: Bench, tmp_path: Path) -> None:
    window, document = bench.window, bench.window.document
    found = window.features.measurements
    keys, text = Keys(window), help_pages.text_of("scheduling-walk")
    for key in ("te", "workbench", "numbers", "measure-function", "run", "export-files"):
        # The page says these keys.
        said = window.commands.action(key).shortcut().toString()
        assert said in text, key

    # The sample, its lowering, its target, its function.
    keys.tab_to(lambda widget: widget.accessibleName() == "matmul")
    keys.press("Return")
    bench.wait(lambda: document.recipe is not None and not document.job.text)
    keys.press("Alt+Shift+2")
    recipe = schedule_walk.recipe_of("native")
    bench.wait(lambda: document.recipe == recipe and not document.job.text)
    keys.press("Ctrl+Shift+S")
    bench.wait(lambda: bench.scheduling.function == "te_matmul" and bench.scheduling.record)
    # What each step takes is measured by `tests.schedule_walk`.
    keys.tab_to(called("Measure after each step"))
    keys.press("Space")
    assert not found.automatic
    keys.press("Ctrl+Shift+S")
    bench.settle()

    # Its steps.
    rows = ROW.findall(text)
    assert len(rows) == 8
    for selected, primitive, number, script in rows:
        select_rows(bench, keys, re.findall(r"`(\w+)`", selected))
        apply(bench, keys, primitive, number)
        assert script in bench.script, f"after {selected} {primitive}:\n{bench.script}"
        assert bench.view.tree.hasFocus()
    keys.press("Ctrl+Z")
    bench.steps(7)
    keys.press("Ctrl+Shift+Z")
    bench.steps(8)

    # A rule writes another one; both are kept, and one is chosen.
    keys.press("Ctrl+Shift+R")
    bench.wait(lambda: bench.scheduling.schedule.variant == "auto-schedule")  # type: ignore[union-attr]
    bench.settle()
    keys.tab_to(called("Variant: Variant auto-schedule"), "Shift+Tab")
    keys.press("Space")
    keys.choose("first")
    bench.steps(8)

    # The numbers, of what was done and of the rule's.
    keys.press("Ctrl+Shift+N")
    assert bench.view.figures.table.hasFocus()
    keys.press("Ctrl+Return")
    here = found.here
    assert here is not None
    bench.wait(lambda: found.measured(here) is not None and found.doing is None)
    checked = found.checked(here)
    assert checked is not None
    assert checked.verdict == "same"

    # In the model, run, kept.
    keys.tab_to(called("Apply to the model"), "Shift+Tab")
    keys.press("Space")
    keys.press("F5")
    bench.wait(lambda: document.run_record is not None and not document.running)
    assert document.run_record is not None
    assert document.run_record.verdict == "match"
    bench.wait(lambda: bench.window.features.runs.variants.kept)

    # Exported.
    keys.press("Ctrl+Shift+X")
    dialog = window.exports.dialog
    assert dialog is not None
    keys.tab_to(called("Schedules as Python"))
    keys.press("Space")
    keys.tab_to(called("Folder"))
    keys.write(str(tmp_path / "walk"))
    keys.press("Return")
    bench.wait(lambda: dialog.status.text().startswith("Exported"))
    assert "vectorize" in (tmp_path / "walk/schedules/te_matmul.py").read_text()
    keys.press("Escape")
    assert QApplication.activeModalWidget() is None
