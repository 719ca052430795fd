"""Sessions as archives in the window: exported, opened elsewhere, and nothing runs unasked."""

from __future__ import annotations

import shutil
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QUrl
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.sessions.archives import UnpackDialog
from lowerscope.app.panes.sessions.trust import RunCodeDialog
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import OpenWindow, wait_for_records, wait_until
from tests.end_to_end.small_nets import EXAMPLES, NET, write


def question(window: MainWindow) -> UnpackDialog:
    dialog = window.archives.dialog
    assert dialog is not None
    assert dialog.isVisible()
    return dialog


def test_a_session_goes_to_another_folder_and_is_opened_as_it_was(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    here.mkdir()
    path = write(here / "net.py", "import beside\n" + NET.format(name="Net") + EXAMPLES)
    (here / "beside.py").write_text("")
    window = open_window(path, lowering="te")
    window.panes.switch_closed("model")
    window.commands.action("export-files").trigger()
    export = window.exports.dialog
    assert export is not None
    export.folder.setText(str(out))
    for name, box in export.boxes.items():
        box.setChecked(name == "session")
    export.export.click()
    assert wait_until(export.show_folder.isVisible)
    assert export.status.text() == "Exported session.zip"
    export.close()
    window.panes.switch_closed("model")
    shutil.rmtree(here)
    moved = tmp_path / "theirs.zip"
    (out / "session.zip").rename(moved)
    # Dropped on the window: first where to, and then whether its code may run.
    window.settings.set_asks_first(True)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(moved))])
    assert window.dropping.takes(data)
    assert window.dropping.take(data)
    dialog = question(window)
    rows = [dialog.files.topLevelItem(row) for row in range(dialog.files.topLevelItemCount())]
    names = {each.text(0) for each in rows if each is not None}
    assert names == {"session.lowerscope", "model/net.py", "model/beside.py"}
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").touch()
    dialog.folder.setText(str(taken))
    dialog.unpack.click()
    assert wait_until(lambda: "something there already" in dialog.banner.message())
    new = tmp_path / "new"
    dialog.folder.setText(str(new))
    qtbot.keyClick(dialog.folder, Qt.Key.Key_Return)
    assert wait_until(lambda: any(x.isVisible() for x in window.findChildren(RunCodeDialog)))
    (asked,) = (x for x in window.findChildren(RunCodeDialog) if x.isVisible())
    assert new.joinpath("model", "net.py").is_file()
    asked.run.click()
    assert wait_until(lambda: window.sessions.path == new / "session.lowerscope")
    wait_for_records(qtbot, window)
    recipe = window.document.recipe
    assert recipe is not None
    assert recipe.source.spec == str(new / "model" / "net.py")
    assert recipe.lowering == "te"
    qtbot.waitUntil(lambda: not window.panes.model.isVisible())
    # It stands in the list of recent files as the session that it is now.
    assert window.settings.recent()[0] in (str(new / "session.lowerscope"), recipe.source.spec)
