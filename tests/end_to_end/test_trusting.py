"""Opening is not running: code is shown, and asked about, before it runs for the first time."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.views.run_code_dialog import RunCodeDialog
from lowerscope.app.widgets.code_view import CodeView
from lowerscope.app.window import MainWindow
from tests.end_to_end.driving import OpenWindow, wait_for_records
from tests.end_to_end.small_nets import EXAMPLES, NET, write

LEAVES_A_TRACE = """
from pathlib import Path
(Path(__file__).parent / "it_ran").touch()
"""


def question(window: MainWindow) -> RunCodeDialog:
    QApplication.processEvents()
    dialogs = [each for each in window.findChildren(RunCodeDialog) if each.isVisible()]
    assert len(dialogs) == 1
    return dialogs[0]


def asks(window: MainWindow) -> bool:
    QApplication.processEvents()
    return any(each.isVisible() for each in window.findChildren(RunCodeDialog))


def test_a_file_runs_when_it_was_read_and_allowed(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    text = NET.format(name="Net") + EXAMPLES + LEAVES_A_TRACE
    path = write(tmp_path / "net.py", text)
    trace = tmp_path / "it_ran"
    window = open_window(asks_first=True)
    window.open_source(path)
    dialog = question(window)
    view = dialog.files.currentWidget()
    assert isinstance(view, CodeView)
    assert view.text() == text
    # Enter is no answer in a hurry.
    QTest.keyClick(QApplication.focusWidget() or dialog, Qt.Key.Key_Return)
    assert not asks(window)
    assert window.workspace.wanted is None
    assert window.pages.currentWidget() is window.welcome
    window.open_source(path)
    question(window).run.click()
    wait_for_records(qtbot, window)
    assert trace.exists()
    # Known by now, as long as it is the same.
    window.open_source(path)
    assert not asks(window)
    wait_for_records(qtbot, window)
    window.commands.action("watch").trigger()
    write(tmp_path / "net.py", text.replace("it_ran", "it_ran_again"))
    window.open_source(path)
    assert any("has changed" in label.text() for label in question(window).findChildren(QLabel))
    question(window).reject()
    assert not (tmp_path / "it_ran_again").exists()


def test_a_session_and_a_rule_file_ask_the_same(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    write(tmp_path / "net.py", NET.format(name="Net") + EXAMPLES + LEAVES_A_TRACE)
    rules = write(tmp_path / "rules.py", "from torch import nn\n" + LEAVES_A_TRACE)
    session = tmp_path / "a.lowerscope"
    recipe = {
        "source": {"spec": "net.py", "trust": True},
        "extensions": [{"path": "rules.py", "kind": "rules"}],
    }
    session.write_text(json.dumps({"version": 1, "recipe": recipe}))
    window = open_window("sample:matmul_relu", asks_first=True)
    window.open_source(str(session))
    dialog = question(window)
    assert [dialog.files.tabText(place) for place in range(dialog.files.count())] == [
        "net.py",
        "rules.py",
    ]
    buttons = dialog.findChild(QDialogButtonBox)
    assert buttons is not None
    buttons.button(QDialogButtonBox.StandardButton.Cancel).click()
    assert window.workspace.wanted is not None
    assert window.workspace.wanted.source.spec == "sample:matmul_relu"
    # What is open goes on being saved.
    with qtbot.waitSignal(window.sessions.saved, timeout=60_000):
        window.commands.action("te").trigger()
    wait_for_records(qtbot, window)
    window.extensions.add(rules, "rules")
    question(window).reject()
    wait_for_records(qtbot, window)
    assert window.workspace.recipe is not None
    assert not window.workspace.recipe.extensions
    assert not (tmp_path / "it_ran").exists()
