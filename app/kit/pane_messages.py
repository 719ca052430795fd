"""Messages of a pane: a banner across it with buttons, and what an empty one says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.buttons import IconButton, push_button
from lowerscope.app.kit.layouts import column_of, row_of, stretch
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.core.model.problems import Problem


_AROUND = 24
"""Room around a text in the middle, in pixels."""


class EmptyState(QWidget):
    """A title and a hint, centred and in a quiet colour.

    Args:
        title: Says that there is nothing to show.
        hint: Says what to do about it.
    """

    def __init__(self, title: str = "", hint: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._again: QPushButton | None = None
        self._act: Callable[[], None] = lambda: None
        self._title = Label(role="quiet-title")
        self._hint = Label(role="quiet")
        self._actions = row_of(None, spacing=8)
        for label in (self._title, self._hint):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
        layout = column_of(self, stretch(2), self._title, self._hint, 8, margins=_AROUND, spacing=4)
        row = row_of(None, stretch(0), self._actions, stretch(0), spacing=None)
        layout.addLayout(row)
        layout.addStretch(3)
        self.set_text(title, hint)

    def set_problem(self, problem: Problem, again: Callable[[], None]) -> None:
        """Show a problem, and a button to try again what was cancelled, or ended with a child."""
        self.set_text(problem.headline, problem.todo)
        if problem.code in ("cancelled", "crashed"):
            self._act = again
            if self._again is None:
                self._again = self.add_action(_("Try again"), self._try_again, primary=True)
            self._again.show()

    def _try_again(self) -> None:
        # The view says that it waits, or its pane's header does.
        self.set_text("")
        self._act()

    def set_text(self, title: str, hint: str = "") -> None:
        if self._again is not None:
            self._again.hide()
        self._title.setText(title)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self.setAccessibleName(title)
        self.setAccessibleDescription(hint)

    def add_action(
        self, label: str, callback: Callable[[], None], primary: bool = False
    ) -> QPushButton:
        """Add a button for an action.

        Args:
            label: The button's text.
            callback: Called when it is clicked.
            primary: Whether it is the recommended action.
        """
        button = push_button(label, act=callback)
        button.setProperty("primary", primary)
        self._actions.addWidget(button)
        return button

    # Qt

    def hasHeightForWidth(self) -> bool:
        # It takes the room that there is: pages around it measured its text at each layout.
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        layout = self.layout()
        if layout is not None:
            # A low pane needs its height for the text.
            across, down = (_AROUND, _AROUND) if self.height() >= _LOW else (8, 2)
            layout.setContentsMargins(across, down, across, down)


SHOW_AFTER_MS = 150
"""Time for which nothing is dimmed, in milliseconds: most changes take less."""


class Veil(QWidget):
    """A text over outdated content, which is dimmed meanwhile; clicks go through it."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._delay = single_shot(self, SHOW_AFTER_MS, self.show)
        self.hide()

    def set_text(self, text: str) -> None:
        """Show a text, soon; without one, nothing is dimmed."""
        if text == self._text:
            return
        self._text = text
        self.setAccessibleName(text)
        if not text:
            self._delay.stop()
            self.hide()
        elif self.isHidden() and not self._delay.isActive():
            self._delay.start()
        self.update()

    def text(self) -> str:
        """Return the text, or ``""`` while the content is current."""
        return self._text

    # Qt

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, font = theme.current(), ui_font(13, QFont.Weight.DemiBold)
        painter = QPainter(self)
        ground = QColor(colours.panel)
        ground.setAlphaF(0.7)
        painter.fillRect(self.rect(), ground)
        metrics, around = TextMetrics(font), 2 * _AROUND
        room_for_text = self.width() - around
        text = metrics.elidedText(self._text, Qt.TextElideMode.ElideRight, room_for_text)
        room = QRectF(0, 0, metrics.horizontalAdvance(text) + around, 40)
        room.moveCenter(QRectF(self.rect()).center())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colours.line))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(room, 6, 6)
        painter.setFont(font)
        painter.setPen(QColor(colours.text))
        painter.drawText(room, Qt.AlignmentFlag.AlignCenter, text)


_LOW = 130
"""Height below which there is no margin around the text."""

_ROLES = ("info", "wrong")


class Banner(QWidget):
    """A message that stays until it is dismissed; hidden while there is none.

    Args:
        wraps: Whether a long message is wrapped, as in a dialog, which has room; otherwise it is
            elided.
    """

    dismissed = Signal()  # The user closed it.

    def __init__(self, parent: QWidget | None = None, *, wraps: bool = False) -> None:
        super().__init__(parent)
        self._wraps = wraps
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._message = Label()
        self._message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._message.setMinimumWidth(40)
        self._message.setWordWrap(wraps)
        self._buttons: list[QPushButton] = []
        self._close = IconButton("close", _("Dismiss"))
        self._close.clicked.connect(self._dismiss_by_user)
        self._row = row_of(self, (self._message, 1), self._close, margins=(12, 4, 6, 4), spacing=8)
        self._whole = ""
        self.hide()

    def show_message(
        self,
        message: str,
        role: str = "info",
        actions: Sequence[tuple[str, Callable[[], None]]] = (),
    ) -> None:
        """Show a message in place of the current one.

        Args:
            message: One line; elided, with all of it in the tool tip, unless the banner wraps.
            role: ``"info"`` or ``"wrong"``.
            actions: Buttons; each dismisses the banner and then calls its function.
        """
        assert role in _ROLES, role
        for button in self._buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self._buttons = [self._button(label, callback) for label, callback in actions]
        for i, button in enumerate(self._buttons):
            self._row.insertWidget(1 + i, button)
        self._whole = message
        self._message.setToolTip(message)
        self.setAccessibleName(message)
        self.setProperty("banner", role)
        self.style().unpolish(self)
        self.style().polish(self)
        self.show()
        self._elide()

    def message(self) -> str:
        return self._whole

    def dismiss(self) -> None:
        """Hide the banner."""
        self._whole = ""
        self.hide()

    def actions_offered(self) -> list[QPushButton]:
        """Return the buttons, from left to right."""
        return list(self._buttons)

    def _dismiss_by_user(self) -> None:
        self.dismiss()
        self.dismissed.emit()

    def _button(self, label: str, callback: Callable[[], None]) -> QPushButton:
        button = push_button(label, act=self.dismiss)
        button.clicked.connect(callback)
        return button

    def _elide(self) -> None:
        first = self._whole.split("\n", 1)[0]
        if self._wraps:
            self._message.setText(first if self.property("floating") else self._whole)
            return
        room = self._message.width()
        right = Qt.TextElideMode.ElideRight
        self._message.setText(TextMetrics(self._message.font()).elidedText(first, right, room))

    # Qt

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest) and self._whole:
            self._elide()
        return handled


_EDGE = 16
_CHROME = 80
_WIDEST = 900

SHOWN_MS = {"info": 10_000, "wrong": 30_000}
"""Time that a message floats, in milliseconds; it stays while it is pointed at."""

NEW_MS = 500
"""A message as new as this belongs to the mode that is switched to."""


class Toast(Banner):
    """A banner that floats over the lower edge of its parent, so that nothing moves for it.

    It leaves by itself after some seconds, and with the mode in which it was shown; but not while
    it has buttons.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, wraps=True)
        self.setProperty("floating", True)
        parent.installEventFilter(self)
        self._time = QTimer(self)
        self._time.setSingleShot(True)
        # What remains of another type may be more than its interval.
        self._time.setTimerType(Qt.TimerType.PreciseTimer)
        self._time.timeout.connect(self._time_out)

    def show_message(
        self,
        message: str,
        role: str = "info",
        actions: Sequence[tuple[str, Callable[[], None]]] = (),
    ) -> None:
        super().show_message(message, role, actions)
        self._time.start(SHOWN_MS[role])
        if actions:
            self._time.stop()
        self._place()

    def leave(self) -> None:
        """Dismiss the message, unless it is new or has buttons."""
        is_new = self._time.remainingTime() > self._time.interval() - NEW_MS
        if self._whole and not is_new and not self._buttons:
            self._dismiss_by_user()

    def _time_out(self) -> None:
        if self.underMouse():
            self._time.start()
        elif self._whole:
            self._dismiss_by_user()

    def _place(self) -> None:
        parent = self.parentWidget()
        if parent is None or self.isHidden():
            return
        line = self._whole.split("\n", 1)[0]
        wanted = round(TextMetrics(self._message.font()).horizontalAdvance(line)) + _CHROME
        wanted += sum(button.sizeHint().width() + 8 for button in self._buttons)
        width = min(wanted, _WIDEST, parent.width() - 2 * _EDGE)
        height = self.heightForWidth(width)
        left = (parent.width() - width) // 2
        self.setGeometry(left, parent.height() - height - _EDGE, width, height)
        self.raise_()

    # Qt

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)
