"""What a user without patience does next, drawn at random: commands, clicks, keys, nonsense.

Each deed is drawn from a generator of its own, of the seed and its number: the same numbers do the
same again, and a list of deeds can be made shorter without changing those that are left.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)
from shiboken6 import isValid

from lowerscope.app.shell.window import MainWindow

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


class Deeds:
    """Draws what is done next in a window, and says what has been done.

    Parameters
    ----------
    window
        The window.
    folder
        Where files are that can be opened.
    seed
        Of all that is drawn.

    Attributes
    ----------
    log, counts
        What has been done: each deed in a line, and how many of each kind.
    failure
        What a deed should have done, and did not; empty for nothing.
    """

    def __init__(self, window: MainWindow, folder: Path, seed: int) -> None:
        self.window, self.document = window, window.document
        self.folder, self.seed = folder, seed
        self.log: list[str] = []
        self.counts: Counter[str] = Counter()
        self.failure = ""

    def draw(self, number: int) -> Callable[[], None]:
        """Return the deed of this number, which fits what is in front; it is noted."""
        self.random = random.Random(f"{self.seed} {number}")
        act = self._draw()
        self.log.append(f"{number} {act.__name__.strip('_')}")
        return act

    def _more(self, text: str) -> None:
        """Add to what is noted of the deed."""
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

    def _surface(self) -> QWidget | None:
        """Return something that the mouse can be used on."""
        widget = self._target()
        return widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget

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
            command.id
            for command, action in self.window.commands
            if action.isEnabled() and command.id not in NOT_BY_CHANCE
        ]
        key = self.random.choice(enabled)
        if key in SELDOM and self.random.random() < 0.9:
            key = self.random.choice(enabled)
        self._carry_out(key)

    def _carry_out(self, key: str) -> None:
        self._more(key)
        document = self.document
        before, anew = document.wanted, document.is_changing and document.wanted == document.recipe
        self.window.commands.action(key).trigger()
        if key in ("undo", "redo") and document.wanted == before and not anew:
            self.failure = f"{key} was enabled, and did nothing"

    def _switch(self) -> None:
        """Choose another lowering, pipeline or target, or run: what is pressed most often."""
        keys = [
            *("high-level", "te", "library", "run", "stop", "undo", "redo", "pipeline-fuse"),
            *(
                "pipeline-legalise",
                "workbench",
                "section-run",
                "section-passes",
                "section-translate",
            ),
            *("section-build", "selection-te", "selection-library", "by-rule", "next-step"),
            *("pipeline-default-build", "apply-to-model", "tune-stop", "next-node", "reload"),
        ]
        names = {command.id: action for command, action in self.window.commands}
        key = self.random.choice([each for each in keys if each in names])
        if names[key].isEnabled():
            self._carry_out(key)

    def _click(self) -> None:
        widget = self._surface()
        if widget is None:
            return
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
        widget = self._surface()
        if widget is None:
            return
        place = self._place(widget)
        event = QContextMenuEvent(
            QContextMenuEvent.Reason.Mouse, place, widget.mapToGlobal(place), self._modifiers()
        )
        QApplication.sendEvent(widget, event)

    def _wheel(self) -> None:
        widget = self._surface()
        if widget is None:
            return
        place = QPointF(self._place(widget))
        by = QPoint(0, self.random.choice((-960, -120, 120, 960)))
        event = QWheelEvent(
            *(place, widget.mapToGlobal(place), QPoint(), by),
            *(Qt.MouseButton.NoButton, self._modifiers(), Qt.ScrollPhase.NoScrollPhase, False),
        )
        QApplication.sendEvent(widget, event)

    def _drag(self) -> None:
        widget = self._surface()
        if widget is None:
            return
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
        snapshot = self.document.snapshot
        if snapshot is None:
            return
        found = [each.id for each in (*snapshot.fx, *snapshot.functions)]
        if found:
            chosen = self.random.choice(found)
            self._more(chosen)
            self.document.select((chosen,), extend=self.random.random() < 0.2)
