"""A user without patience: clicks, keys, commands and nonsense while things are under way.

Each step draws from a generator of its own, of the seed and its number: the same numbers do the
same again, and a list of steps can be made shorter without changing those that are left.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)
from shiboken6 import isValid

from lowerscope.app.window import MainWindow
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.snapshot import Snapshot, TextRecord
from lowerscope.core.session_files import Hashes, load_session, save_session
from tests.end_to_end.driving import wait_until
from tests.killing import PATIENCE, Pulse

STALL_MS = 100
"""What holds the event loop up for longer is noted."""

LONGEST_WAIT_MS = 300

NOT_BY_CHANCE = frozenset(("quit", "memory-limit", "torch-compile"))
"""Commands that end everything, for good or for a minute."""

SELDOM = frozenset(
    ("restart", "tune", "tune-more", "run-variants", "sandbox", "reset-layout", "export-files")
)
"""Commands that take seconds; one in ten of those that are drawn is carried out."""

SOURCES = ("sample:matmul_relu", "sample:fashion_mlp", "sample:matmul", "sample:mlp_tvmscript")

NONSENSE = (
    *("", " ", "0", "-1", "1e400", "nan", "99999999999999999999", "i, j, k -> k, j, i // 0"),
    *("../../etc/passwd", "x=,:float", "%s {0} {1:>9}", "<b>&amp;</b>", "[1,2", '{"a": 1}'),
    *("((((((((", "main", "llvm -mcpu=nothing", "1, 2, ?", "batch=1..", "relax.", ":12", "#te"),
)

PASTED = (
    "中文模型 卷积层",
    "🙂🚀👩‍👩‍👧 é",
    "a\nb\r\nc\td",
    "long " * 2000,
    "\u202eright to left",
    "x" * 20_000,
    "line\n" * 500,
)

KEYS = (
    *(Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Escape),
    *(Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home),
    *(Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Delete, Qt.Key.Key_F5),
    *(Qt.Key.Key_F8, Qt.Key.Key_Insert, Qt.Key.Key_Backspace, Qt.Key.Key_S, Qt.Key.Key_B),
    *(Qt.Key.Key_Plus, Qt.Key.Key_Minus, Qt.Key.Key_Menu, Qt.Key.Key_F1, Qt.Key.Key_A),
)

MODIFIERS = (
    *(Qt.KeyboardModifier.NoModifier,) * 5,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.AltModifier,
)

BUTTONS = (*(Qt.MouseButton.LeftButton,) * 6, Qt.MouseButton.MiddleButton)


@dataclass(eq=False)
class Impatience:
    """Steps at random in a window, and what is found wrong.

    Parameters
    ----------
    window
        The window.
    folder
        Where files are that dialogs are answered with.
    seed
        Of all that is drawn.
    exceptions, warnings
        Return how many have been raised in slots, and said by Qt, so far.
    hurry
        What the pauses between the steps are multiplied by.
    """

    window: MainWindow
    folder: Path
    seed: int
    exceptions: Callable[[], Sequence[object]]
    warnings: Callable[[], Sequence[object]]
    hurry: float = 1.0
    log: list[str] = field(default_factory=list)
    stalls: list[tuple[float, str]] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace = self.window.workspace
        self.pulse = Pulse()
        self.done = 0
        self.failure = ""
        self.counts: Counter[str] = Counter()
        self._numbers: Iterator[int] = iter(())
        self._over = True
        # How many steps have not come back, as they wait for a dialog or a menu.
        self._inside = 0
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._tick)
        for client in (self.workspace.engine, self.workspace.worker):
            client.crashed.connect(self._note_ending)

    def _note_ending(self, ending: object) -> None:
        self.endings.append(f"after step {self.done}: {ending}")

    # The steps

    def run(self, numbers: Collection[int]) -> None:
        """Do the steps with these numbers, with pauses, and whatever comes of the ones before."""
        self._numbers, self._over = iter(numbers), False
        self._pace = random.Random(f"{self.seed} pace")
        self.pulse.begin()
        self._timer.start(0)
        assert wait_until(lambda: self._over, len(numbers) * 2000 + PATIENCE), self.story()
        self.pulse.end()

    def _tick(self) -> None:
        self._take_stall()
        number = next(self._numbers, None)
        self.failure = self.failure or self._wrong()
        if number is None or self.failure or not self.window.isVisible():
            self._end()
            return
        # Before the step: it may open a dialog, and come back after many others.
        pause = self._pace.choice((0, 0, 0, 1, 1)) * self._pace.random() * LONGEST_WAIT_MS
        self._timer.start(round(pause * self.hurry))
        self.done += 1
        self.random = random.Random(f"{self.seed} {number}")
        act = self._draw()
        self._note(f"{number} {act.__name__.strip('_')}")
        self._inside += 1
        try:
            act()
        except RuntimeError as error:
            # What was clicked has closed itself, and what it was in.
            if "already deleted" not in str(error):
                raise
        finally:
            self._inside -= 1

    def _end(self) -> None:
        """Come back from all that waits for an answer."""
        self._numbers = iter(())
        leave_front()
        if self._inside:
            QTest.keyClick(self.window, Qt.Key.Key_Escape)
            self._timer.start(10)
        else:
            self._over = True

    def _take_stall(self) -> None:
        self.pulse.end()
        if self.pulse.processor > STALL_MS:
            self.stalls.append((self.pulse.processor, self.log[-1] if self.log else "the start"))
        self.pulse.begin()

    def _note(self, text: str) -> None:
        self.log.append(text)

    def _more(self, text: str) -> None:
        """Add to what is noted of the step."""
        if self.log:
            self.log[-1] += f": {text}"

    def _draw(self) -> Callable[[], None]:
        if QApplication.activePopupWidget() is not None:
            acts = ((self._key, 6), (self._close, 4), (self._click, 4), (self._type, 1))
        elif QApplication.activeModalWidget() is not None:
            acts = ((self._click, 6), (self._type, 5), (self._key, 3), (self._close, 4))
        else:
            acts = (
                *((self._command, 12), (self._click, 9), (self._key, 5), (self._type, 3)),
                *((self._drag, 2), (self._resize, 1), (self._storm, 1), (self._source, 1)),
                *((self._save_source, 0.3), (self._close, 1), (self._context, 1), (self._wheel, 1)),
                *((self._node, 2), (self._switch, 3)),
            )
        chosen = self.random.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        self.counts[chosen.__name__.strip("_")] += 1
        return chosen

    def _root(self) -> QWidget:
        """Return what the user sees in front."""
        front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        if front is not None:
            return front
        tops = [
            each
            for each in QApplication.topLevelWidgets()
            if each.isVisible() and (each is self.window or self._is_of_window(each))
        ]
        others = [each for each in tops if each is not self.window]
        return self.random.choice(others) if others and self.random.random() < 0.2 else self.window

    def _is_of_window(self, widget: QWidget) -> bool:
        parent = widget.parentWidget()
        while parent is not None and parent is not self.window:
            parent = parent.parentWidget()
        return parent is self.window

    def _target(self, *kinds: type[QWidget]) -> QWidget | None:
        """Return something that can be seen, and used."""
        root = self._root()
        found = [
            each
            for each in root.findChildren(QWidget)
            if each.isVisible()
            and each.isEnabled()
            and each.window() is root
            and min(each.width(), each.height()) > 4
            and (not kinds or isinstance(each, kinds))
        ]
        if not found:
            return None if kinds else root
        chosen = self.random.choice(found)
        words = chosen.accessibleName()
        if not words and isinstance(chosen, QAbstractButton):
            words = chosen.text()
        self._more(f"{type(chosen).__name__} {words!r:.60}")
        return chosen

    def _place(self, widget: QWidget) -> QPoint:
        return QPoint(
            self.random.randrange(max(1, widget.width())),
            self.random.randrange(max(1, widget.height())),
        )

    def _modifiers(self) -> Qt.KeyboardModifier:
        return self.random.choice(MODIFIERS)

    # What can be done

    def _command(self) -> None:
        enabled = [
            command.key
            for command, action in self.window.commands
            if action.isEnabled() and command.key not in NOT_BY_CHANCE
        ]
        key = self.random.choice(enabled)
        if key in SELDOM and self.random.random() < 0.9:
            key = self.random.choice(enabled)
        self._carry_out(key)

    def _carry_out(self, key: str) -> None:
        self._more(key)
        workspace = self.workspace
        before, anew = workspace.wanted, workspace.changing and workspace.wanted == workspace.recipe
        self.window.commands.action(key).trigger()
        if key in ("undo", "redo") and workspace.wanted == before and not anew:
            self.failure = f"{key} was enabled, and did nothing"

    def _switch(self) -> None:
        """Choose another lowering, pipeline or target, or run: what is pressed most often."""
        keys = [
            *("high-level", "te", "library", "run", "stop", "undo", "redo", "pipeline-fuse"),
            *("pipeline-legalise", "workbench", "clock-run", "clock-passes", "clock-translate"),
            *("clock-build", "selection-te", "selection-library", "by-rule", "next-step"),
            *("pipeline-default-build", "apply-to-model", "tune-stop", "next-node", "reload"),
        ]
        names = {command.key: action for command, action in self.window.commands}
        key = self.random.choice([each for each in keys if each in names])
        if names[key].isEnabled():
            self._carry_out(key)

    def _click(self) -> None:
        widget = self._target()
        if widget is None:
            return
        if isinstance(widget, QAbstractScrollArea):
            widget = widget.viewport()
        place, button, modifiers = (
            self._place(widget),
            self.random.choice(BUTTONS),
            self._modifiers(),
        )
        drawn = self.random.random()
        QTest.mouseMove(widget, place)
        QTest.mouseClick(widget, button, modifiers, place)
        if drawn < 0.25 and isValid(widget) and widget.isVisible():
            self._more("twice")
            QTest.mouseDClick(widget, button, modifiers, place)
            if isValid(widget):
                QTest.mouseRelease(widget, button, modifiers, place)

    def _context(self) -> None:
        widget = self._target()
        if widget is None:
            return
        if isinstance(widget, QAbstractScrollArea):
            widget = widget.viewport()
        place = self._place(widget)
        event = QContextMenuEvent(
            QContextMenuEvent.Reason.Mouse, place, widget.mapToGlobal(place), self._modifiers()
        )
        QApplication.sendEvent(widget, event)

    def _wheel(self) -> None:
        widget = self._target()
        if widget is None:
            return
        if isinstance(widget, QAbstractScrollArea):
            widget = widget.viewport()
        place = QPointF(self._place(widget))
        by = QPoint(0, self.random.choice((-960, -120, 120, 960)))
        event = QWheelEvent(
            *(place, widget.mapToGlobal(place), QPoint(), by),
            *(Qt.MouseButton.NoButton, self._modifiers(), Qt.ScrollPhase.NoScrollPhase, False),
        )
        QApplication.sendEvent(widget, event)

    def _drag(self) -> None:
        widget = self._target()
        if widget is None:
            return
        if isinstance(widget, QAbstractScrollArea):
            widget = widget.viewport()
        button = self.random.choice(BUTTONS)
        modifiers = self._modifiers()
        QTest.mousePress(widget, button, modifiers, self._place(widget))
        for _ in range(3):
            if isValid(widget) and QApplication.activePopupWidget() is None:
                QTest.mouseMove(widget, self._place(widget))
        if isValid(widget):
            QTest.mouseRelease(widget, button, modifiers, self._place(widget))

    def _key(self) -> None:
        root = self._root()
        widget = root if QApplication.activePopupWidget() is root else root.focusWidget() or root
        for _ in range(self.random.choice((1, 1, 1, 4))):
            key, modifiers = self.random.choice(KEYS), self._modifiers()
            self._more(f"{modifiers.name} {key.name}")
            if not isValid(widget) or not widget.isVisible():
                return
            QTest.keyClick(widget, key, modifiers)

    def _type(self) -> None:
        widget = self._target(QLineEdit, QPlainTextEdit, QSpinBox, QComboBox)
        if widget is None:
            return
        widget.setFocus()
        if self.random.random() < 0.5:
            QTest.keyClick(widget, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        if self.random.random() < 0.6:
            text = self.random.choice(NONSENSE)
            self._more(text)
            QTest.keyClicks(widget, text)
        else:
            text = self.random.choice(PASTED)
            self._more(f"pasted {text[:12]!r}")
            QGuiApplication.clipboard().setText(text)
            QTest.keyClick(widget, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
        if self.random.random() < 0.5 and isValid(widget):
            self._more("Return")
            QTest.keyClick(widget, Qt.Key.Key_Return)

    def _close(self) -> None:
        """Leave what is in front, as it is."""
        root = self._root()
        self._more(type(root).__name__)
        if root is self.window:
            QTest.keyClick(root.focusWidget() or root, Qt.Key.Key_Escape)
        elif self.random.random() < 0.5:
            QTest.keyClick(root, Qt.Key.Key_Escape)
        else:
            root.close()

    def _resize(self) -> None:
        draw = self.random.randrange
        self.window.resize(draw(800, 2200), draw(400, 1400))

    def _storm(self) -> None:
        """Press undo and redo faster than anything can follow."""
        keys = [
            self.random.choice(("undo", "undo", "redo")) for _ in range(self.random.randint(4, 12))
        ]
        for key in keys:
            if self.window.commands.action(key).isEnabled() and not self.failure:
                self._carry_out(key)

    def _source(self) -> None:
        """Open something, or what is no model."""
        spec = self.random.choice(
            (*SOURCES, *map(str, sorted(self.folder.iterdir())), "/nowhere.py")
        )
        self._more(spec)
        if self.random.random() < 0.5:
            self.window.open_source(spec)
        else:
            self.window.open_recent(spec)

    def _save_source(self) -> None:
        """Save what is open in an editor."""
        path = self.folder / "net.py"
        with path.open("a") as file:
            file.write(f"# {self.random.random()}\n")

    def _node(self) -> None:
        snapshot = self.workspace.snapshot
        if snapshot is None:
            return
        found = [each.id for each in (*snapshot.fx, *snapshot.functions)]
        if found:
            chosen = self.random.choice(found)
            self._more(chosen)
            self.workspace.select((chosen,), extend=self.random.random() < 0.2)

    # What may never be

    def _wrong(self) -> str:
        """Return what is wrong with the window as it is; empty for nothing."""
        if self.exceptions():
            return f"exceptions in slots: {self.exceptions()[0]}"
        if self.warnings():
            return f"said by Qt: {self.warnings()[0]}"
        workspace, window = self.workspace, self.window
        action = window.commands.action
        for key, there in (
            ("undo", workspace.changes.can_undo),
            ("redo", workspace.changes.can_redo),
            ("run", workspace.wanted is not None and not workspace.running),
            ("stop", bool(workspace.activity.text) or workspace.running),
            ("tune-stop", workspace.tuning.under_way and workspace.tuning.phase != "stopping"),
        ):
            if action(key).isEnabled() != there:
                return f"the command {key} is {'off' if there else 'on'}, and should not be"
        wanted = workspace.wanted
        if wanted is not None and window.tool_bar.lowering.current() != wanted.lowering:
            return f"the tool bar says {window.tool_bar.lowering.current()}"
        if workspace.running != (window.tool_bar.run.text() == window.tr("Stop")):
            return f"the button says {window.tool_bar.run.text()}"
        if not workspace.changing and workspace.wanted != workspace.recipe:
            return "another recipe is wanted than is shown, and none is on its way"
        record, snapshot = workspace.run_record, workspace.snapshot
        of_another = record is not None and snapshot is not None and record.key != snapshot.key
        if of_another and not workspace.changing:
            return "the outcome of another recipe is shown"
        for label, client in ((window.status.engine, workspace.engine),):
            if client.state not in label.text():
                return f"the status says {label.text()}, and it is {client.state}"
        return ""

    def story(self) -> str:
        """Return what has been done last, and how it is."""
        workspace = self.workspace
        states = (workspace.engine.state, workspace.worker.state, workspace.tuning.phase)
        return "\n".join(
            (
                f"seed {self.seed}, {self.done} steps: {self.failure}",
                *self.log[-40:],
                f"{states}, running {workspace.running}, changing {workspace.changing},"
                f" {workspace.activity}, {[each.line() for each in workspace.problems]},"
                f" said: {self.window.banner.message()!r}",
            )
        )

    # The end

    def settle(self) -> None:
        """Close what is open in front, stop what is under way, and wait until all is at rest."""
        while leave_front():
            QTest.qWait(1)
        workspace = self.workspace
        workspace.runs.cancel()
        workspace.inputs.cancel()
        workspace.measurements.set_automatic(False)
        workspace.tuning.stop()
        assert wait_until(self._is_at_rest, PATIENCE), self.story()
        busy = [
            name
            for name, pane in vars(self.window.panes).items()
            if hasattr(pane, "progress")
            and getattr(pane.progress, "state", str)() not in ("", "none")
        ]
        self.failure = self.failure or self._wrong()
        assert not self.failure, self.story()
        assert not busy, (busy, self.story())

    def _is_at_rest(self) -> bool:
        workspace = self.workspace
        return (
            workspace.engine.state in ("ready", "failed")
            and workspace.worker.state in ("ready", "failed", "stopped")
            and not workspace.changing
            and not workspace.running
            and not workspace.inputs.waits
            and not workspace.tuning.under_way
            and not workspace.activity.text
        )

    def check_undo(self, most: int) -> None:
        """Take changes back and make them again, one by one: each recipe comes back as it was."""
        workspace = self.workspace
        came = [workspace.recipe]
        for _ in range(most):
            before = workspace.changes.before
            if before is None:
                break
            self.window.commands.action("undo").trigger()
            assert wait_until(self._is_at_rest, PATIENCE), self.story()
            if workspace.problems and workspace.recipe == came[-1]:
                break  # what it was made of has gone since
            assert workspace.recipe == before, self.story()
            came.append(before)
        for expected in reversed(came[:-1]):
            self.window.commands.action("redo").trigger()
            assert wait_until(self._is_at_rest, PATIENCE), self.story()
            if workspace.problems:
                break
            assert workspace.recipe == expected, self.story()

    def check_session(self, path: Path) -> Recipe | None:
        """Look that what is saved is what is open; return it, saved at `path` as well."""
        workspace = self.workspace
        recipe = workspace.recipe
        if recipe is None:
            return None
        self.window.sessions.save_now()
        place = self.window.sessions._place
        assert place is not None
        if not self.window.sessions.read_only:
            saved = load_session(place.path, Hashes())
            assert without_trust(saved.recipe) == without_trust(recipe), self.story()
            save_session(path, recipe, saved.layout, {}, Hashes())
        return recipe

    def compare(self, fresh: MainWindow, path: Path) -> None:
        """Open the session in another window, and look that it shows the same."""
        workspace, other = self.workspace, fresh.workspace
        fresh.open_session(str(path))
        recipe = workspace.recipe
        assert recipe is not None
        ended = wait_until(
            lambda: (
                not other.changing
                and not other.activity.text
                and (bool(other.problems) or other.recipe == without_trust(recipe))
            ),
            PATIENCE,
        )
        assert ended, (other.recipe, other.problems, self.story())
        assert not other.problems, (other.problems[0].line(), self.story())
        assert workspace.snapshot is not None
        assert other.snapshot is not None
        mine, theirs = comparable(workspace.snapshot), comparable(other.snapshot)
        different = [name for name in mine if mine[name] != theirs[name]]
        assert not different, (different, self.story())
        for each in workspace.snapshot.functions[:8]:
            if each.kind == "tensorir":
                texts = [text_of(shown, each.name) for shown in (self.window, fresh)]
                assert texts[0] == texts[1], (each.name, self.story())
        self._compare_shown(fresh)
        record = workspace.run_record
        if record is not None:
            other.run()
            assert wait_until(lambda: not other.running, PATIENCE), self.story()
            assert other.run_record is not None, (other.problems, self.story())
            found = other.run_record
            assert found.verdict == record.verdict, self.story()
            assert found.max_abs_error == pytest.approx(record.max_abs_error), self.story()

    def _compare_shown(self, fresh: MainWindow) -> None:
        """Look at what the panes show beside what the other window knows."""
        workspace, panes = self.workspace, self.window.panes
        assert workspace.snapshot is not None
        assert fresh.workspace.snapshot is not None
        workspace.stepping.set_clock("passes")
        workspace.stepping.leave()
        shown = panes.relax.script.plain.record
        assert shown is not None
        assert shown.text == fresh.workspace.snapshot.relax.text, self.story()
        functions = [each for each in workspace.snapshot.functions if each.kind == "tensorir"]
        if not functions:
            return
        self.window.show_panes()
        panes.docks["tensorir"].show()
        panes.tensorir.set_current("script")
        workspace.select((functions[0].id,))
        page = panes.tensorir.texts["script"]
        assert wait_until(lambda: page.is_current and page.script.record, PATIENCE), self.story()
        assert page.script.record is not None
        assert page.script.record.text == text_of(fresh, functions[0].name), self.story()


def leave_front() -> bool:
    """Close the menu or the dialog that is in front; return whether there was one."""
    front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
    if isinstance(front, QDialog):
        front.reject()
    elif front is not None:
        front.close()
    return front is not None


def without_trust(recipe: Recipe) -> Recipe:
    """Return a recipe as a session opens it, which nobody trusts before asking."""
    source = msgspec.structs.replace(recipe.source, trust=False)
    return msgspec.structs.replace(recipe, source=source)


def comparable(snapshot: Snapshot) -> dict[str, object]:
    """Return the fields of a snapshot that are the same whenever it is derived."""
    fields = {name: getattr(snapshot, name) for name in snapshot.__struct_fields__}
    del fields["milliseconds"]
    fields["passes"] = tuple(
        msgspec.structs.replace(each, milliseconds=0.0) for each in snapshot.passes
    )
    return fields


def text_of(window: MainWindow, name: str) -> str:
    """Return the script of a function as a window's engine prints it."""
    found: list[object] = []
    window.workspace.fetches.text("script", name, found.append, found.append)
    assert wait_until(lambda: found, PATIENCE)
    (text,) = found
    assert isinstance(text, TextRecord), text
    return text.text


@contextlib.contextmanager
def answered_by_chance(folder: Path, seed: int) -> Iterator[None]:
    """Let dialogs for files be answered with something at random, often with nothing."""
    drawn = random.Random(f"{seed} files")

    def path(*_: object, **__: object) -> str:
        there = [*map(str, folder.iterdir()), str(folder / "new.json"), "/nowhere/at/all.json"]
        return drawn.choice(there) if drawn.random() < 0.6 else ""

    def file(*_: object, **__: object) -> tuple[str, str]:
        return path(), "SVG (*.svg)"

    def written(*_: object, **__: object) -> tuple[str, str]:
        name = drawn.choice(
            ("a.json", "a.svg", "a.lowerscope", "a.npy", "中文.png", "no/such/b.pdf")
        )
        return (str(folder / "written" / name) if drawn.random() < 0.6 else ""), "SVG (*.svg)"

    def written_to(*_: object, **__: object) -> str:
        return str(folder / "written") if drawn.random() < 0.6 else ""

    (folder / "written").mkdir(exist_ok=True)
    before = {
        name: getattr(QFileDialog, name)
        for name in ("getOpenFileName", "getSaveFileName", "getExistingDirectory")
    }
    opens = QDesktopServices.openUrl
    QFileDialog.getOpenFileName = staticmethod(file)  # type: ignore[method-assign]
    QFileDialog.getSaveFileName = staticmethod(written)  # type: ignore[method-assign]
    QFileDialog.getExistingDirectory = staticmethod(written_to)  # type: ignore[method-assign]
    QDesktopServices.openUrl = staticmethod(lambda _url: True)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(QFileDialog, name, method)
        QDesktopServices.openUrl = opens  # type: ignore[method-assign]


NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)
    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)

def example_inputs():
    return (torch.ones(2, 8),)
"""


def fill(folder: Path) -> None:
    """Put files into a folder that dialogs are answered with: a few good ones, others not."""
    folder.mkdir(exist_ok=True)
    (folder / "net.py").write_text(NET)
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "nothing.py").write_text("x = 1\n")
    (folder / "empty.json").write_text("")
    (folder / "other.json").write_text('{"version": 1, "schedules": []}')
    (folder / "broken.lowerscope").write_text('{"version": 1, "recipe": {')
    (folder / "broken.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    (folder / "values.npy").write_bytes(os.urandom(200))
    (folder / "二进制.pt2").write_bytes(os.urandom(2000))


class Figures:
    """What many windows have come to."""

    def __init__(self) -> None:
        self.steps = 0
        self.counts: Counter[str] = Counter()
        self.stalls: list[tuple[float, str]] = []
        self.endings: list[str] = []

    def add(self, user: Impatience) -> None:
        """Add what one window has come to."""
        self.steps += user.done
        self.counts += user.counts
        self.stalls += user.stalls
        self.endings += user.endings

    def report(self) -> str:
        """Return the figures."""
        worst = sorted(self.stalls, reverse=True)[:12]
        return "\n".join(
            (
                f"{self.steps} steps: {dict(self.counts)}",
                f"{len(self.stalls)} stalls above {STALL_MS} ms of the window's own work:",
                *(f"  {ms:.0f} ms after {step}" for ms, step in worst),
                f"{len(self.endings)} children ended by themselves:",
                *(f"  {each}" for each in self.endings[:12]),
            )
        )
