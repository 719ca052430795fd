"""The whole window without its children: what it opens, its panes, and its caches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QToolTip
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change
from lowerscope.app.kit.dialogs import Question
from lowerscope.app.panes.sessions.trust import RunCodeDialog
from lowerscope.app.shell.palette import Palette
from lowerscope.app.shell.settings_dialog import SettingsDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.compact_script import compact_script
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CatalogueQuery, RunQuery
from lowerscope.core.model.recipe import Recipe, Source, from_json
from lowerscope.core.model.schedule import Schedule
from lowerscope.core.model.snapshot import PassType, TextRecord
from tests.app.plain_values import snapshot
from tests.app.shell.conftest import sent

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"))
RECORDS = msgspec.structs.replace(
    snapshot("dense", "relu"),
    passes=(PassRecord(number=1, label="1", name="LegalizeOps", step=1, changed=("dense",)),),
    relax=TextRecord(text="def main(x):\n    lv = dense(x)\n    return lv", language="python"),
)


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    """Return the window of all these tests, with the recipe open and nothing selected."""
    shared.settings.asks_first = False
    shared.document.open(RECIPE)
    sent(shared).answer(RECORDS)
    shared.document.select(())
    shared.show_panes()
    return shared


def wanted(window: MainWindow) -> str:
    """Return the source that is requested."""
    assert window.document.wanted is not None
    return window.document.wanted.source.spec


# What is opened


def test_recent_sources_and_samples_open_from_the_welcome_page(
    qtbot: QtBot, window: MainWindow
) -> None:
    for name, spec in (("sample:matmul_relu", RECIPE.source.spec), ("conv_net", "sample:conv_net")):
        window.document.open(Recipe(source=Source(spec="sample:matmul")))
        sent(window).answer(snapshot("dense"))
        window.commands.action("welcome").trigger()
        cards = window.welcome.findChildren(QPushButton)
        rows = [row for row in cards if row.isVisible()]
        (row,) = (each for each in rows if each.accessibleName() == name)
        qtbot.mouseClick(row, Qt.MouseButton.LeftButton)
        assert window.pages.currentWidget() is window.panes
        assert wanted(window) == spec


def test_a_click_on_the_drop_field_selects_a_file(qtbot: QtBot, window: MainWindow) -> None:
    window.commands.action("welcome").trigger()
    with qtbot.waitSignal(window.welcome.open_wanted), pytest.MonkeyPatch.context() as patch:
        patch.setattr(window.opening, "choose_file", str)
        qtbot.mouseClick(window.welcome.drop, Qt.MouseButton.LeftButton)
    # Escape does nothing there, and says nothing.
    with qtbot.assertNotEmitted(window.commands.refused):
        qtbot.keyClick(window.welcome, Qt.Key.Key_Escape)


def test_the_script_says_which_side_of_the_passes_it_is_on(window: MainWindow) -> None:
    figure = window.panes.relax.footer.figure
    assert figure.whole() == "before the passes"
    window.features.stepping.go(Moment(section="passes", index=1))
    assert figure.whole() == ""
    window.features.stepping.leave()


def test_a_recent_source_is_stored_with_its_schedules(window: MainWindow) -> None:
    scheduled = msgspec.structs.replace(RECIPE, schedules=(Schedule(function="dense"),))
    window.document.change(scheduled)
    assert from_json(window.settings.recipe_of(RECIPE.source.spec)) != scheduled
    window.document.open(Recipe(source=Source(spec="sample:matmul")))
    sent(window).answer(snapshot("dense"))
    assert from_json(window.settings.recipe_of(RECIPE.source.spec)) == scheduled
    assert window.settings.recent()[0] == "sample:matmul"
    window.document.open(RECIPE)
    sent(window).answer(snapshot("dense"))


def test_a_dropped_file_is_opened(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    actions = Qt.DropAction.MoveAction | Qt.DropAction.CopyAction
    drop = QDropEvent(QPointF(9, 9), actions, data, left, none)
    drop.setDropAction(Qt.DropAction.MoveAction)
    window.dropEvent(drop)
    assert wanted(window) == str(path)
    # It stays where it is.
    assert drop.isAccepted()
    assert drop.dropAction() == Qt.DropAction.CopyAction


def test_tensors_and_weights_are_no_models(window: MainWindow, tmp_path: Path) -> None:
    data = QMimeData()
    for name, members in (("weights.pt", ("data.pkl",)), ("model.pt", ("constants.pkl",))):
        with ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(f"archive/{member}", b"")
        data.setUrls([QUrl.fromLocalFile(str(tmp_path / name))])
        assert bool(window.opening.dropped_file(data)) == (name == "model.pt")
    os.mkfifo(tmp_path / "pipe.pt")
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "pipe.pt"))])
    assert not window.opening.dropped_file(data)


def test_a_command_of_a_page_runs_no_file_that_was_not_approved(
    window: MainWindow, tmp_path: Path
) -> None:
    window.settings.asks_first = True
    window.help.show("course")
    assert window.help.shown is not None
    course = window.help.shown.course
    course.write_files(tmp_path / "course")
    for answer, opened in (("reject", RECIPE.source.spec), ("accept", "mlp.py")):
        course.open_command("lowerscope show course/mlp.py --stage relax")
        assert wanted(window) == RECIPE.source.spec
        (dialog,) = window.findChildren(RunCodeDialog)
        getattr(dialog, answer)()
        assert wanted(window).endswith(opened)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_a_command_of_a_page_shows_what_it_prints(window: MainWindow) -> None:
    window.help.show("course")
    assert window.help.shown is not None
    course, panes = window.help.shown.course, window.panes
    for command, mode, pane, page in (
        ("schedule sample:conv_net --lowering te --function relu", "schedule", "schedule", ""),
        ("passes sample:matmul_relu --pipeline fuse", "step", "pipeline", ""),
        ("show sample:matmul_relu --stage asm", "explore", "tensorir", "asm"),
        ("show sample:matmul_relu --stage numpy --function relu", "explore", "tensorir", "numpy"),
    ):
        course.open_command(f"lowerscope {command}")
        sent(window).answer(RECORDS)
        assert window.mode == mode
        assert panes.by_name[pane].isAncestorOf(window.focusWidget())
        assert page in ("", panes.tensorir.current())
        if mode == "schedule":
            # Not the list of functions, which had it first.
            assert window.focusWidget() is panes.schedule.tree
        chosen = ("tir:relu",) if "--function" in command else ()
        assert window.document.selection.chosen == chosen
        window.document.select(())
    panes.tensorir.set_current("script")


def test_a_refused_source_brings_its_problem_to_the_front(
    window: MainWindow,
) -> None:
    window.open_source("sample:conv_net")
    sent(window).refuse(Problem(what="It is wrong"))
    assert window.panes.drawer.current() == "problems"
    assert window.panes.problems.isVisible()
    assert window.windowTitle().startswith("m")


# Panes


def test_a_menu_shows_the_state_in_which_it_is_opened(window: MainWindow) -> None:
    (menu,) = (
        each
        for each in window.menuBar().findChildren(QMenu)
        if any(action.objectName() == "selection-te" for action in each.actions())
    )
    action = next(each for each in menu.actions() if each.objectName() == "selection-te")
    assert not action.isEnabled()
    window.document.select(("fx:dense",))
    menu.popup(window.mapToGlobal(window.rect().topLeft()))
    assert action.isEnabled()
    menu.close()


# Memory and caches


def test_the_memory_for_values_is_that_of_the_next_run(qtbot: QtBot, window: MainWindow) -> None:
    window.commands.action("keep").trigger()
    (dialog,) = (each for each in window.findChildren(SettingsDialog) if each.isVisible())
    dialog.keep.setText("1 kB")
    dialog.accept()
    worker: Any = window.features.processes.worker
    window.features.runs.run()
    qtbot.waitUntil(lambda: bool(worker.sent))
    assert isinstance(worker.last().query, RunQuery)
    assert worker.last().query.keep == window.settings.keep == 1000


def test_the_caches_are_cleared_when_the_question_is_answered(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said: list[str] = []

    def note(change: Change) -> None:
        if "notice" in change.fields and change.after.notice is not None:
            said.append(change.after.notice.text)

    window.document.changed.connect(note)
    clear = window.commands.action("clear-caches")
    clear.trigger()
    assert said == ["The caches are empty"]
    file = tmp_path / "cache" / "lowerscope" / "peaks-1.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * 3000)
    clear.trigger()
    asked = next(each for each in window.findChildren(Question) if each.isVisible())
    asked.cancel.click()
    assert file.exists()

    window.commands.action("settings").trigger()
    dialog = next(each for each in window.findChildren(SettingsDialog) if each.isVisible())
    assert dialog.cached.text() == "3 kB on disk"
    dialog.clear.click()
    asked = next(each for each in dialog.findChildren(Question) if each.isVisible())
    asked.act.click()
    assert said[1] == "Removed 3 kB of caches"
    assert not dialog.clear.isEnabled()
    assert not file.exists()


# The palette


def test_the_palette_goes_to_nodes_functions_steps_and_lines(
    qtbot: QtBot, window: MainWindow
) -> None:
    document, editor = window.document, window.panes.relax.script.code.editor

    def choose(typed: str) -> str:
        """Type into the palette and take the first; return what it offered first."""
        window.commands.action("palette").trigger()
        (palette,) = (each for each in window.findChildren(Palette) if each.isVisible())
        qtbot.keyClicks(palette.line, typed)
        offered = palette.shown()[0].title
        qtbot.keyClick(palette.line, Qt.Key.Key_Return)
        assert not palette.isVisible()
        return offered

    assert choose("@relu") == "relu"
    assert document.selection.chosen == ("fx:relu",)
    assert choose("#dense") == "dense"
    assert document.selection.chosen == ("tir:dense",)
    assert choose("%legal") == "LegalizeOps"
    assert window.features.stepping.moment == Moment(section="passes", index=1)
    window.features.stepping.leave()
    editor.setFocus()
    assert choose(":3").startswith("return lv")
    assert editor.caret()[0] == 2
    assert choose(":dense").startswith("lv = dense")
    assert editor.caret()[0] == 1
    # Passes that are not in the pipeline can be added.
    window.commands.action("palette").trigger()
    (palette,) = (each for each in window.findChildren(Palette) if each.isVisible())
    engine: Any = window.features.processes.engine
    asked = [each for each in engine.sent if isinstance(each.query, CatalogueQuery)]
    asked[-1].answer((PassType(name="FuseOps", dialect="relax"),))
    qtbot.keyClicks(palette.line, "%FuseOps")
    qtbot.keyClick(palette.line, Qt.Key.Key_Return)
    dialog = window.panes.pipeline.dialog
    assert dialog is not None
    assert dialog.line.text() == "FuseOps"
    dialog.reject()


def test_a_tool_tip_by_key_is_about_the_line_of_the_caret(
    window: MainWindow,
) -> None:
    window.show_panes()
    code = window.panes.relax.script.plain.code
    lines = [f"    lv{number}: R.Tensor((4,)) = R.add(x, y)" for number in range(9)]
    text = "\n".join(lines)
    code.set_text(text, "tvmscript", compact_script(text))
    code.editor.go_to(3)
    code.editor.setFocus()
    window.commands.action("tip").trigger()
    assert QToolTip.text() == lines[3].strip()
    QToolTip.hideText()
