"""A user without patience: clicks, keys, commands and nonsense while things are under way.

Each deed is drawn from a generator of its own, of the seed and its number: the same numbers do the
same again, and a list of deeds can be made shorter without changing those that are left.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import wait_until
from tests.soak.killing import PATIENCE, all_at_rest

NOT_BY_CHANCE = frozenset(("quit", "memory-limit", "torch-compile"))
"""Commands that end everything, for good or for a minute."""

SELDOM = frozenset(
    ("restart", "tune", "tune-more", "run-variants", "sandbox", "reset-layout", "export-files")
)
"""Commands that take seconds; one in ten of those that are drawn is carried out."""

OFTEN = (
    *("high-level", "te", "library", "run", "stop", "undo", "redo", "pipeline-fuse", "workbench"),
    *("pipeline-legalise", "section-run", "section-passes", "section-translate", "section-build"),
    *("selection-te", "selection-library", "by-rule", "next-step", "next-node", "reload"),
    *("pipeline-default-build", "apply-to-model", "tune-stop"),
)

SOURCES = ("sample:matmul_relu", "sample:fashion_mlp", "sample:matmul", "sample:mlp_tvmscript")

NONSENSE = (
    *("", " ", "0", "-1", "1e400", "nan", "99999999999999999999", "i, j, k -> k, j, i // 0"),
    *("../../etc/passwd", "x=,:float", "%s {0} {1:>9}", "<b>&amp;</b>", "[1,2", '{"a": 1}'),
    *("((((((((", "main", "llvm -mcpu=nothing", "1, 2, ?", "batch=1..", "relax.", ":12", "#te"),
)
PASTED = (
    *("中文模型 卷积层", "🙂🚀👩‍👩‍👧 é", "a\nb\r\nc\td", "long " * 2000, "\u202eright to left"),
    *("x" * 20_000, "line\n" * 500),
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
    *(Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier),
    Qt.KeyboardModifier.AltModifier,
)
BUTTONS = (*(Qt.MouseButton.LeftButton,) * 6, Qt.MouseButton.MiddleButton)

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)
    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)

def example_inputs():
    return (torch.ones(2, 8),)
"""


@contextlib.contextmanager
def answered_by_chance(folder: Path, seed: int) -> Iterator[None]:
    """Fill a folder with files, most of them bad, and answer dialogs for files with them."""
    (folder / "written").mkdir(parents=True)
    (folder / "net.py").write_text(NET)
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "other.json").write_text('{"version": 1, "schedules": []}')
    (folder / "broken.lowerscope").write_text('{"version": 1, "recipe": {')
    (folder / "values.npy").write_bytes(os.urandom(200))
    (folder / "二进制.pt2").write_bytes(os.urandom(2000))
    drawn = random.Random(f"{seed} files")

    def one_of(names: Sequence[object]) -> str:
        return str(drawn.choice(names)) if drawn.random() < 0.6 else ""

    def opened(*_: object, **__: object) -> tuple[str, str]:
        return one_of([*folder.iterdir(), "/nowhere/at/all.json"]), "SVG (*.svg)"

    def written(*_: object, **__: object) -> tuple[str, str]:
        names = ("a.json", "a.svg", "a.lowerscope", "a.npy", "中文.png", "no/such/b.pdf")
        return one_of([folder / "written" / each for each in names]), "SVG (*.svg)"

    answers: tuple[tuple[object, str, object], ...] = (
        (QFileDialog, "getOpenFileName", opened),
        (QFileDialog, "getSaveFileName", written),
        (QFileDialog, "getExistingDirectory", lambda *_, **__: one_of([folder / "written"])),
        (QDesktopServices, "openUrl", lambda _url: True),
    )
    before = [getattr(owner, name) for owner, name, _ in answers]
    for owner, name, answer in answers:
        setattr(owner, name, staticmethod(answer))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for (owner, name, _), method in zip(answers, before, strict=True):
            setattr(owner, name, method)


class Deeds:
    """Draws what is done next in a window.

    Attributes
    ----------
    log
        What has been done: each deed in a line.
    failure
        What a deed should have done, and did not; empty for nothing.
    """

    def __init__(self, window: MainWindow, folder: Path, seed: int) -> None:
        self.window, self.document = window, window.document
        self.folder, self.seed = folder, seed
        self.log: list[str] = []
        self.failure = ""

    def draw(self, number: int) -> Callable[[], None]:
        """Return the deed of this number, which fits what is in front; it is noted."""
        self.random = random.Random(f"{self.seed} {number}")
        if QApplication.activePopupWidget() is not None:
            acts = ((self._key, 6), (self._close, 4), (self._click, 4), (self._type, 1))
        elif QApplication.activeModalWidget() is not None:
            acts = ((self._click, 6), (self._type, 5), (self._key, 3), (self._close, 4))
        else:
            acts = (
                *((self._command, 12), (self._click, 9), (self._key, 5), (self._type, 3)),
                *((self._drag, 2), (self._resize, 1), (self._storm, 1), (self._source, 1)),
                *((self._close, 1), (self._context, 1), (self._wheel, 1), (self._node, 2)),
                (self._switch, 3),
            )
        act = self.random.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        self.log.append(f"{number} {act.__name__.strip('_')}")
        return act

    def _root(self) -> QWidget:
        """Return what the user sees in front."""
        front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        others = [each for each in self.window.findChildren(QWidget) if each.isWindow()]
        others = [each for each in others if each.isVisible()]
        if front is None and others and self.random.random() < 0.2:
            front = self.random.choice(others)
        return front or self.window

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
        words = chosen.text() if isinstance(chosen, QAbstractButton) else chosen.accessibleName()
        self.log[-1] += f": {type(chosen).__name__} {words!r:.60}"
        return chosen

    def _surface(self) -> tuple[QWidget, QPoint]:
        """Return something that the mouse can be used on, and a place in it."""
        widget = self._target() or self.window
        widget = widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
        return widget, self._place(widget)

    def _place(self, widget: QWidget) -> QPoint:
        draw = self.random.randrange
        return QPoint(draw(max(1, widget.width())), draw(max(1, widget.height())))

    def _carry_out(self, key: str) -> None:
        self.log[-1] += f": {key}"
        document = self.document
        before, anew = document.wanted, document.is_changing and document.wanted == document.recipe
        self.window.commands.action(key).trigger()
        if key in ("undo", "redo") and document.wanted == before and not anew:
            self.failure = f"{key} was enabled, and did nothing"

    def _enabled(self) -> list[str]:
        return [
            command.id
            for command, action in self.window.commands
            if action.isEnabled() and command.id not in NOT_BY_CHANCE
        ]

    # What can be done

    def _command(self) -> None:
        enabled = self._enabled()
        key = self.random.choice(enabled)
        if key in SELDOM and self.random.random() < 0.9:
            key = self.random.choice(enabled)
        self._carry_out(key)

    def _switch(self) -> None:
        """Carry out what is pressed most often."""
        key = self.random.choice(OFTEN)
        if key in self._enabled():
            self._carry_out(key)

    def _storm(self) -> None:
        """Press undo and redo faster than anything can follow."""
        for _ in range(self.random.randint(4, 12)):
            key = self.random.choice(("undo", "undo", "redo"))
            if self.window.commands.action(key).isEnabled() and not self.failure:
                self._carry_out(key)

    def _click(self) -> None:
        widget, place = self._surface()
        button, modifiers = self.random.choice(BUTTONS), self.random.choice(MODIFIERS)
        QTest.mouseMove(widget, place)
        QTest.mouseClick(widget, button, modifiers, place)
        if self.random.random() < 0.25 and isValid(widget) and widget.isVisible():
            QTest.mouseDClick(widget, button, modifiers, place)
            if isValid(widget):
                QTest.mouseRelease(widget, button, modifiers, place)

    def _context(self) -> None:
        widget, place = self._surface()
        reason, at = QContextMenuEvent.Reason.Mouse, widget.mapToGlobal(place)
        modifiers = self.random.choice(MODIFIERS)
        QApplication.sendEvent(widget, QContextMenuEvent(reason, place, at, modifiers))

    def _wheel(self) -> None:
        widget, place = self._surface()
        by = QPoint(0, self.random.choice((-960, -120, 120, 960)))
        event = QWheelEvent(
            *(QPointF(place), QPointF(widget.mapToGlobal(place)), QPoint(), by),
            *(Qt.MouseButton.NoButton, self.random.choice(MODIFIERS)),
            *(Qt.ScrollPhase.NoScrollPhase, False),
        )
        QApplication.sendEvent(widget, event)

    def _drag(self) -> None:
        widget, place = self._surface()
        button, modifiers = self.random.choice(BUTTONS), self.random.choice(MODIFIERS)
        QTest.mousePress(widget, button, modifiers, place)
        for _ in range(3):
            if isValid(widget) and QApplication.activePopupWidget() is None:
                QTest.mouseMove(widget, self._place(widget))
        if isValid(widget):
            QTest.mouseRelease(widget, button, modifiers, self._place(widget))

    def _key(self) -> None:
        root = self._root()
        widget = root if QApplication.activePopupWidget() is root else root.focusWidget() or root
        for _ in range(self.random.choice((1, 1, 1, 4))):
            key, modifiers = self.random.choice(KEYS), self.random.choice(MODIFIERS)
            self.log[-1] += f": {modifiers.name} {key.name}"
            if isValid(widget) and widget.isVisible():
                QTest.keyClick(widget, key, modifiers)

    def _type(self) -> None:
        widget = self._target(QLineEdit, QPlainTextEdit, QSpinBox, QComboBox)
        if widget is None:
            return
        widget.setFocus()
        if self.random.random() < 0.5:
            QTest.keyClick(widget, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        if self.random.random() < 0.6:
            QTest.keyClicks(widget, self.random.choice(NONSENSE))
        else:
            QGuiApplication.clipboard().setText(self.random.choice(PASTED))
            QTest.keyClick(widget, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
        if self.random.random() < 0.5 and isValid(widget):
            QTest.keyClick(widget, Qt.Key.Key_Return)

    def _close(self) -> None:
        """Leave what is in front, as it is."""
        root = self._root()
        if root is self.window or self.random.random() < 0.5:
            QTest.keyClick(root.focusWidget() or root, Qt.Key.Key_Escape)
        else:
            root.close()

    def _resize(self) -> None:
        draw = self.random.randrange
        self.window.resize(draw(800, 2200), draw(400, 1400))

    def _source(self) -> None:
        """Open something, or what is no model; or save what is open in an editor."""
        spec = self.random.choice((*SOURCES, *map(str, sorted(self.folder.iterdir())), "/no.py"))
        with (self.folder / "net.py").open("a") as file:
            file.write(f"# {self.random.random()}\n")
        if self.random.random() < 0.5:
            self.window.open_source(spec)
        else:
            self.window.open_recent(spec)

    def _node(self) -> None:
        snapshot = self.document.snapshot
        found = (
            [] if snapshot is None else [each.id for each in (*snapshot.fx, *snapshot.functions)]
        )
        if found:
            extend = self.random.random() < 0.2
            self.document.select((self.random.choice(found),), extend=extend)


@dataclass(eq=False)
class Impatience:
    """Steps at random in a window, and what is found wrong.

    Parameters
    ----------
    window, folder, seed
        The window, the files that dialogs are answered with, and the seed of all that is drawn.
    exceptions
        Returns what has been raised in slots so far.
    """

    window: MainWindow
    folder: Path
    seed: int
    exceptions: Callable[[], Sequence[object]]
    endings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.document = self.window.document
        self.deeds = Deeds(self.window, self.folder, self.seed)
        self.done, self.failure = 0, ""
        self._numbers: Iterator[int] = iter(())
        self._over = True
        # How many steps have not come back, as they wait for a dialog or a menu.
        self._inside = 0
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._tick)
        processes = self.window.features.processes
        for client in (processes.engine, processes.worker):
            client.crashed.connect(lambda end: self.endings.append(f"{self.done}: {end}"))

    def run(self, numbers: Collection[int]) -> None:
        """Do the steps with these numbers, with pauses, and whatever comes of the ones before."""
        self._numbers, self._over = iter(numbers), False
        self._pace = random.Random(f"{self.seed} pace")
        self._timer.start(0)
        assert wait_until(lambda: self._over, len(numbers) * 2000 + PATIENCE), self.story()

    def _tick(self) -> None:
        number = next(self._numbers, None)
        self.failure = self.failure or self.deeds.failure or self._wrong()
        if number is None or self.failure or not self.window.isVisible():
            self._end()
            return
        # Before the step: it may open a dialog, and come back after many others.
        self._timer.start(round(self._pace.choice((0, 0, 0, 1, 1)) * self._pace.random() * 30))
        self.done += 1
        act = self.deeds.draw(number)
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

    def _wrong(self) -> str:
        """Return what is wrong with the window as it is; empty for nothing."""
        if self.exceptions():
            return f"exceptions in slots: {self.exceptions()[0]}"
        document, window, tuning = self.document, self.window, self.window.features.tuning
        for key, there in (
            ("undo", document.can_undo),
            ("redo", document.can_redo),
            ("run", document.wanted is not None and not document.running),
            ("stop", bool(document.job.text) or document.running),
            ("tune-stop", tuning.under_way and tuning.phase != "stopping"),
        ):
            if window.commands.action(key).isEnabled() != there:
                return f"the command {key} is {'off' if there else 'on'}, and should not be"
        wanted = document.wanted
        if wanted is not None and window.tool_bar.lowering.current() != wanted.lowering:
            return f"the tool bar says {window.tool_bar.lowering.current()}"
        if document.running != (window.tool_bar.run.text() == "Stop"):
            return f"the button says {window.tool_bar.run.text()}"
        if not document.is_changing and document.wanted != document.recipe:
            return "another recipe is wanted than is shown, and none is on its way"
        record, snapshot = document.run_record, document.snapshot
        of_another = record is not None and snapshot is not None and record.key != snapshot.key
        if of_another and not document.is_changing:
            return "the outcome of another recipe is shown"
        engine = window.features.processes.engine
        if engine.state not in window.status.engine.text():
            return f"the status says {window.status.engine.text()}, and it is {engine.state}"
        return ""

    def story(self) -> str:
        """Return what has been done last, and how it is."""
        document = self.document
        problems = [each.line() for each in document.problems]
        state = f"{document.job}, {problems}, said: {self.window.banner.message()!r}"
        head = f"seed {self.seed}, {self.done} steps: {self.failure}"
        return "\n".join((head, *self.deeds.log[-40:], *self.endings[-3:], state))

    def settle(self) -> None:
        """Close what is open in front, stop what is under way, and wait until all is at rest."""
        while leave_front():
            QTest.qWait(1)
        features = self.window.features
        features.runs.cancel()
        features.inputs.cancel()
        features.measurements.set_automatic(False)
        features.tuning.stop()
        self._wait()
        self.failure = self.failure or self.deeds.failure or self._wrong()
        assert not self.failure, self.story()

    def _wait(self) -> None:
        assert wait_until(lambda: all_at_rest(self.window), PATIENCE), self.story()

    def check_undo(self, most: int) -> None:
        """Take changes back and make them again, one by one: each recipe comes back as it was."""
        document = self.document
        came = [document.recipe]
        for _ in range(most):
            before = document.before
            if before is None:
                break
            self.window.commands.action("undo").trigger()
            self._wait()
            if document.problems and document.recipe == came[-1]:
                break  # what it was made of has gone since
            assert document.recipe == before, self.story()
            came.append(before)
        for expected in reversed(came[:-1]):
            self.window.commands.action("redo").trigger()
            self._wait()
            if document.problems:
                break
            assert document.recipe == expected, self.story()


def leave_front() -> bool:
    """Close the menu or the dialog that is in front; return whether there was one."""
    front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
    if isinstance(front, QDialog):
        front.reject()
    elif front is not None:
        front.close()
    return front is not None
