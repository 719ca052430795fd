"""Sessions, their source files, and the questions about a source, with a test as the engine."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from PySide6.QtCore import QEvent, QSettings, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change, History
from lowerscope.app.document.settings import Settings
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.dialogs import LineQuestion
from lowerscope.app.panes.inputs.commands import InputsForm
from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.app.panes.sessions import sessions
from lowerscope.app.panes.sessions.opening import EntryDialog, Opening
from lowerscope.app.panes.sessions.sessions import Sessions
from lowerscope.app.panes.sessions.source_watch import SourceWatch
from lowerscope.app.panes.sessions.trust import RunCodeDialog, Trusting
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import load_session
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import InputSpec, Recipe, Source, WindowLayout, to_json
from tests.app.conftest import bench
from tests.app.plain_values import OTHER, RECIPE, TE, WRONG, Bench, snapshot

__all__ = ["bench"]

Shown = TypeVar("Shown", bound=QWidget)


class Desk:
    """The models of sessions beside those of the features, and a window for their dialogs."""

    def __init__(self, bench: Bench) -> None:
        features = bench.features
        self.bench, self.document = bench, bench.document
        self.window = QWidget()
        self.settings = Settings()
        self.trusting = Trusting(
            self.document, features.processes, features.runs.run, self.settings, str, self.window
        )
        self.laid_out: list[WindowLayout] = []
        self.sessions = Sessions(
            self.document, self.settings, self.trusting, WindowLayout, self.laid_out.append
        )
        asking = InputsForm(self.document, self.window)
        self.opening = Opening(self.document, self.trusting, asking.ask, self.window)

    def dialog(self, kind: type[Shown]) -> Shown:
        """Return the visible dialog of a type."""
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        (found,) = (each for each in self.window.findChildren(kind) if each.isVisible())
        return found

    def refuse(self, source: str, problem: Problem) -> None:
        """Open a source that the engine refuses."""
        self.opening.open_source(source)
        self.bench.sent(SnapshotQuery).refuse(problem)

    def source(self) -> Source:
        """Return the source that is requested."""
        assert self.document.wanted is not None
        return self.document.wanted.source


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save, and retry, without the pauses in which changes are collected."""
    for name in ("DELAY_MS", "RETRY_MS"):
        monkeypatch.setattr(sessions, name, 20)


@pytest.fixture
def desk(qtbot: QtBot, bench: Bench, tmp_path: Path) -> Iterator[Desk]:
    QSettings.setPath(
        QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings")
    )
    desk = Desk(bench)
    desk.settings.asks_first = False
    yield desk
    desk.sessions.finish()
    desk.window.deleteLater()


@pytest.fixture
def saved(qtbot: QtBot, desk: Desk, tmp_path: Path) -> Path:
    """Return the file that the open recipe is saved in."""
    desk.bench.open(RECIPE)
    save_as(qtbot, desk, tmp_path / "mine.lowerscope")
    return tmp_path / "mine.lowerscope"


def save_as(qtbot: QtBot, desk: Desk, path: Path) -> None:
    with qtbot.waitSignal(desk.sessions.saved):
        desk.sessions.save_as(str(path))


def content(path: Path) -> Recipe:
    """Return the recipe in the file of a session."""
    return load_session(path, Hashes()).recipe


# Files of sessions


def test_a_change_is_saved_and_another_model_is_another_document(
    qtbot: QtBot, desk: Desk, saved: Path
) -> None:
    with qtbot.waitSignal(desk.sessions.saved):
        desk.bench.change(TE)
    assert content(saved) == TE
    desk.bench.open(OTHER)
    assert desk.sessions.path is None
    desk.sessions.save_now()
    assert content(saved) == TE
    assert desk.sessions.open(str(saved))
    desk.bench.derive()
    assert (desk.document.recipe, desk.sessions.path) == (TE, saved)
    assert desk.laid_out == [WindowLayout()]


def test_the_model_before_the_open_one_can_be_reopened(desk: Desk, saved: Path) -> None:
    desk.bench.open(OTHER)
    desk.sessions.save_now()
    assert desk.sessions.last() == saved
    other = Path(desk.settings.last_session)
    desk.sessions.open(str(saved))
    desk.bench.derive()
    assert desk.sessions.last() == other


def test_undo_stays_within_a_session_of_the_same_source(
    qtbot: QtBot, desk: Desk, saved: Path, tmp_path: Path
) -> None:
    with qtbot.waitSignal(desk.sessions.saved):
        desk.bench.change(TE)
    save_as(qtbot, desk, tmp_path / "other.lowerscope")
    with qtbot.waitSignal(desk.sessions.saved):
        desk.bench.change(msgspec.structs.replace(TE, lowering="library"))
    desk.sessions.open(str(saved))
    desk.bench.derive()
    assert (desk.document.recipe, desk.sessions.path) == (TE, saved)
    assert desk.document.history == History()
    desk.document.undo()
    desk.sessions.save_now()
    assert content(saved) == TE


def test_a_session_that_is_opened_twice_is_opened_once(desk: Desk, saved: Path) -> None:
    desk.bench.open(OTHER)
    for _ in range(2):
        desk.sessions.open(str(saved))
    desk.bench.derive()
    assert desk.sessions.path == saved
    assert not desk.sessions.read_only


def test_a_second_window_saves_nothing_until_the_first_is_closed(
    qtbot: QtBot, desk: Desk, saved: Path
) -> None:
    second = Desk(desk.bench)
    try:
        second.sessions.open(str(saved))
        desk.bench.derive()
        assert second.sessions.read_only
        assert any("nothing is saved here" in each for each in desk.bench.notices)
        before = saved.read_bytes()
        second.sessions.save_now()
        assert saved.read_bytes() == before
        # The command that saves it under the same name is refused as well.
        second.sessions.save_as(str(saved))
        assert "another window has this session open" in desk.document.problems[0].what
        desk.sessions.finish()
        second.sessions.open(str(saved))
        desk.bench.derive()
        assert not second.sessions.read_only
    finally:
        second.sessions.finish()
        second.window.deleteLater()
    assert not saved.with_name("mine.lowerscope.lock").exists()


def test_a_session_that_cannot_be_opened_leaves_what_was_open(
    qtbot: QtBot, desk: Desk, saved: Path
) -> None:
    bad = saved.with_name("bad.lowerscope")
    bad.write_text("{")
    assert not desk.sessions.open(str(bad))
    assert "the file contains no session" in desk.document.problems[0].what
    assert desk.sessions.path == saved
    # One whose model cannot be opened: neither file may become the other's.
    value = json.loads(saved.read_text())
    value["recipe"]["source"]["spec"] = "gone.py"
    bad.write_text(json.dumps(value))
    before = bad.read_bytes()
    assert desk.sessions.open(str(bad))
    desk.bench.sent(SnapshotQuery).refuse(WRONG)
    with qtbot.waitSignal(desk.sessions.saved):
        desk.bench.change(TE)
    assert desk.sessions.path == saved
    assert content(saved) == TE
    assert bad.read_bytes() == before


def test_a_full_disk_is_reported_and_the_save_repeated(
    qtbot: QtBot, desk: Desk, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, notices = saved.read_bytes(), desk.bench.notices

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        desk.bench.change(TE)
        qtbot.waitUntil(lambda: any("No space left" in each for each in notices))
    assert saved.read_bytes() == before
    assert not list(saved.parent.glob(".*"))
    qtbot.waitUntil(lambda: any("is saved again" in each for each in notices))
    assert content(saved) == TE
    # A file that is removed while it is open is written anew.
    saved.unlink()
    with qtbot.waitSignal(desk.sessions.saved):
        desk.bench.change(RECIPE)
    assert any("mine.lowerscope was deleted" in each for each in notices)
    assert content(saved) == RECIPE


def test_nothing_is_saved_after_the_end(desk: Desk, saved: Path) -> None:
    desk.sessions.finish()
    before = saved.read_bytes()
    # An answer that was on its way when the window closed. An error in a slot fails the test.
    desk.bench.change(TE)
    desk.sessions.save_now()
    assert saved.read_bytes() == before


# Source files that change


@pytest.fixture
def watched(qtbot: QtBot, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of the open recipe, which imports ``beside.py``."""
    SourceWatch(desk.document, desk.bench.features.runs.run, desk.settings)
    (tmp_path / "beside.py").write_text("")
    path = tmp_path / "net.py"
    path.write_text("import beside\n")
    desk.bench.open(Recipe(source=Source(spec=str(path))))
    return path


def reloads(desk: Desk) -> Callable[[], int]:
    """Return the number of reloads from now on."""
    noted: list[None] = []

    def note(change: Change) -> None:
        pending = change.after.pending
        if "pending" in change.fields and pending is not None and pending.reads_files:
            noted.append(None)

    desk.document.changed.connect(note)
    return lambda: len(noted)


def test_a_file_that_was_saved_is_read_again(qtbot: QtBot, desk: Desk, watched: Path) -> None:
    count = reloads(desk)
    # As editors do it: a new file in place of the old one. Twice: the new one is watched as well.
    for number in (1, 2):
        new = watched.with_name("net.py.new")
        new.write_text(f"import beside\n# {number}\n")
        os.replace(new, watched)
        qtbot.waitUntil(lambda number=number: count() == number)  # type: ignore[misc]
        desk.bench.derive(key=str(number))
    watched.with_name("beside.py").write_text("Net = 1\n")
    qtbot.waitUntil(lambda: count() == 3)
    assert any("beside.py was saved" in each for each in desk.bench.notices)
    desk.bench.derive(key="3")
    watched.unlink()
    qtbot.waitUntil(lambda: any("net.py is missing" in each for each in desk.bench.notices))
    assert count() == 3


def test_what_is_reloaded_by_hand_is_not_reloaded_once_more(
    qtbot: QtBot, desk: Desk, watched: Path
) -> None:
    count = reloads(desk)
    (watch,) = desk.document.findChildren(SourceWatch)
    (noted,) = watch.findChildren(QTimer)
    watched.write_text("import beside\n# more\n")
    qtbot.waitUntil(noted.isActive)
    desk.document.reload()
    desk.bench.derive(key="2")
    qtbot.waitUntil(lambda: not noted.isActive())
    assert count() == 1


# Trust


def test_a_declined_session_leaves_the_open_one(desk: Desk, saved: Path, watched: Path) -> None:
    desk.bench.open(RECIPE)
    desk.sessions.save_as(str(saved))
    other = watched.with_name("other.lowerscope")
    recipe = {
        "source": {"spec": "net.py", "trust": True},
        "extensions": [{"path": "beside.py", "kind": "rules"}],
    }
    other.write_text(json.dumps({"version": 1, "recipe": recipe}))
    desk.settings.set_trusted({})
    desk.settings.asks_first = True
    sent = desk.bench.count(SnapshotQuery)
    desk.sessions.open(str(other))
    dialog = desk.dialog(RunCodeDialog)
    assert [dialog.files.tabText(each) for each in range(dialog.files.count())] == [
        "net.py",
        "beside.py",
    ]
    dialog.reject()
    assert (desk.bench.count(SnapshotQuery), desk.sessions.path) == (sent, saved)
    # Approved, it still does not have the trust that the file claims.
    desk.sessions.open(str(other))
    desk.dialog(RunCodeDialog).run.click()
    assert not desk.source().trust


def test_each_dialog_approves_its_own_files(desk: Desk, tmp_path: Path) -> None:
    desk.settings.asks_first = True
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("")
    desk.opening.open_source(str(tmp_path / "first.py"))
    first = desk.dialog(RunCodeDialog)
    desk.opening.open_source(str(tmp_path / "second.py"))
    first.run.click()
    assert desk.source().spec == str(tmp_path / "first.py")
    assert str(tmp_path / "second.py") not in (desk.trusting.approved() or {})
    # Enter is no answer in a hurry.
    QTest.keyClick(desk.dialog(RunCodeDialog), Qt.Key.Key_Return)
    assert not desk.window.findChildren(RunCodeDialog)[-1].isVisible()
    assert desk.source().spec == str(tmp_path / "first.py")


def test_imports_are_shown_and_what_was_written_meanwhile_is_shown_again(
    desk: Desk, tmp_path: Path
) -> None:
    desk.settings.asks_first = True
    path, layers = tmp_path / "net.py", tmp_path / "layers.py"
    path.write_text("import layers\n")
    layers.write_text("a = 1\n")

    def shown() -> dict[str, str]:
        files = desk.dialog(RunCodeDialog).files
        views = [files.widget(each) for each in range(files.count())]
        return {
            files.tabText(place): view.text()
            for place, view in enumerate(views)
            if isinstance(view, CodeView)
        }

    desk.opening.open_source(str(path))
    assert shown() == {"net.py": "import layers\n", "layers.py": "a = 1\n"}
    layers.write_text("a = 2\n")
    desk.dialog(RunCodeDialog).run.click()
    assert desk.document.wanted is None
    assert shown()["layers.py"] == "a = 2\n"
    desk.dialog(RunCodeDialog).run.click()
    assert desk.source().spec == str(path)
    # Known by now, as long as it is the same.
    layers.write_text("a = 3\n")
    desk.opening.open_source(str(path))
    assert shown() == {"layers.py": "a = 3\n"}
    said = [each.text() for each in desk.dialog(RunCodeDialog).findChildren(QLabel)]
    assert any("has changed" in each for each in said)
    desk.dialog(RunCodeDialog).reject()


def test_a_recent_source_is_not_trusted_any_more(desk: Desk) -> None:
    trusted = msgspec.structs.replace(TE, source=Source(spec=TE.source.spec, trust=True))
    desk.opening.open_recent(TE.source.spec, to_json(trusted))
    assert desk.document.wanted == TE


# Questions about a source


def test_the_model_of_a_file_is_chosen_as_often_as_it_is_opened(qtbot: QtBot, desk: Desk) -> None:
    several = Problem(what="two", code="choose-entry", choices=("First", "Second"))
    for _ in range(2):
        desk.refuse("two.py", several)
        dialog = desk.dialog(EntryDialog)
        dialog.reject()
        assert not desk.document.is_changing
    desk.refuse("two.py", several)
    dialog = desk.dialog(EntryDialog)
    dialog.list.setCurrentRow(1)
    qtbot.keyClick(dialog.list, Qt.Key.Key_Return)
    assert desk.source().entry == "Second"


def test_missing_arguments_are_given_as_json(desk: Desk) -> None:
    desk.refuse("net.py", Problem(what="width", code="give-args", choices=('{"width": 1}',)))
    dialog = desk.dialog(LineQuestion)
    assert dialog.answer() == '{"width": 1}'
    dialog.line.clear()
    assert not dialog.act.isEnabled()
    dialog.line.setText('{"width": 7}')
    dialog.act.click()
    assert desk.source().args == '{"width": 7}'


def test_missing_inputs_are_given_or_left_to_the_problem(qtbot: QtBot, desk: Desk) -> None:
    desk.refuse("net.py", Problem(what="inputs", code="give-inputs", choices=("x",)))
    dialog = desk.dialog(InputsDialog)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not desk.document.is_changing
    # The problem offers the dialog again.
    desk.opening.ask()
    dialog = desk.dialog(InputsDialog)
    for text, is_taken in (("1,4.5", False), ("2,4", True)):
        dialog.row("x").shape.setText(text)
        dialog.buttons.button(dialog.buttons.StandardButton.Ok).click()
        assert desk.document.is_changing == is_taken
        assert dialog.waiting.isVisible() == is_taken
    assert desk.document.wanted is not None
    assert desk.document.wanted.inputs == (InputSpec(name="x", shape=(2, 4), dtype="float32"),)
    # The form stays until the model is traced, and says what is wrong beside the field.
    desk.bench.sent(SnapshotQuery).refuse(Problem(what="no such shape", todo="try --input x=1"))
    assert dialog.isVisible()
    assert dialog.row("x").wrong.isVisible()
    assert "no such shape" in dialog.row("x").wrong.text()
    assert "--" not in dialog.row("x").wrong.text()
    dialog.row("x").shape.setText("1,784")
    dialog.buttons.button(dialog.buttons.StandardButton.Ok).click()
    desk.bench.sent(SnapshotQuery).answer(snapshot("dense"))
    assert not dialog.isVisible()


def test_a_refused_source_is_retried_as_the_problem_offers(desk: Desk) -> None:
    for act, field, value in (
        (lambda: desk.opening.trace_by("export"), "tracer", "export"),
        (desk.opening.translate_by_own, "translator", "lowerscope"),
    ):
        recipe = Recipe(source=Source(spec="net.py"), tracer="fx", translator="tvm-fx")
        desk.document.open(recipe)
        desk.bench.sent(SnapshotQuery).refuse(WRONG)
        act()
        assert desk.document.wanted == msgspec.structs.replace(recipe, **{field: value})
    desk.refuse("net.py", WRONG)
    desk.opening.trust()
    assert desk.source().trust
