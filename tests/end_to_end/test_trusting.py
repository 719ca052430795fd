"""Opening is not running: code is shown, and asked about, before it runs for the first time."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.sessions.trust import RunCodeDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import save_preset
from lowerscope.core.model.recipe import Step
from lowerscope.core.model.snapshot import Preset
from tests.end_to_end.driving import OpenWindow
from tests.end_to_end.small_nets import write

# In the sandbox as well: it stands in a folder that code may write to.
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


def test_a_pipeline_and_a_file_of_rules_from_elsewhere_ask(
    qtbot: QtBot, open_window: OpenWindow, writable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:matmul_relu", asks_first=True)
    # A database of TVM's tuning holds functions and libraries as TVM writes them.
    folder = writable / "db"
    folder.mkdir()
    for name in ("database_workload.json", "database_tuning_record.json"):
        (folder / name).write_text("[]\n")
    step = Step(name="relax.MetaScheduleApplyDatabase", options={"work_dir": str(folder)})
    pipeline = save_preset(Preset(name="p", title="p", steps=(step,)), str(writable / "p.json"))

    def chosen(*_: object, **__: object) -> tuple[str, str]:
        return str(pipeline), ""

    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getOpenFileName", chosen)
    window.commands.action("load-pipeline").trigger()
    dialog = question(window)
    assert dialog.files.tabText(0) == "database_workload.json"
    dialog.reject()
    assert window.document.wanted is not None
    assert step not in window.document.wanted.steps
    # A rule that is written for a node, into a file that holds more than it.
    rules = write(writable / "rules.py", "from torch import nn\n" + LEAVES_A_TRACE)
    monkeypatch.setattr(
        "PySide6.QtWidgets.QFileDialog.getSaveFileName", lambda *_, **__: (rules, "")
    )
    window.extensions.write_rule("fx:relu")
    qtbot.waitUntil(lambda: asks(window), timeout=60_000)
    assert question(window).files.tabText(0) == "rules.py"
    question(window).reject()
    assert not (writable / "it_ran").exists()
    assert window.document.recipe is not None
    assert not window.document.recipe.extensions
