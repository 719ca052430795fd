"""Banner: a message across a pane, with buttons for what can be done about it."""

from collections.abc import Callable, Sequence
from functools import cache

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPainterPath, QPen, QPixmap
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.layouts import row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.theme import current
from lowerscope.app.kit.typefaces import TextMetrics

# --- Small line icons, drawn in the theme's text colour ---

_SIDE = 16


def icon(name: str) -> QIcon:
    """Return the icon of this name in the current theme's colours.

    Args:
        name: One of ``names()``.
    """
    theme = current()
    return _icon(name, theme.quiet, theme.accent, theme.faint)


def names() -> list[str]:
    """Return the names of all icons."""
    return sorted(_PATHS)


@cache
def _icon(name: str, colour: str, checked: str, disabled: str) -> QIcon:
    result = QIcon()
    for mode, state, shade in (
        (QIcon.Mode.Normal, QIcon.State.Off, colour),
        (QIcon.Mode.Normal, QIcon.State.On, checked),
        (QIcon.Mode.Disabled, QIcon.State.Off, disabled),
    ):
        for ratio in _ratios():
            result.addPixmap(_pixmap(_PATHS[name](), shade, ratio), mode, state)
    return result


def _ratios() -> set[float]:
    """Return the pixel ratios of all screens, so that pictures are not scaled and blurred."""
    screens = QGuiApplication.screens()
    return {1.0, 2.0, *(screen.devicePixelRatio() for screen in screens)}


def _pixmap(path: QPainterPath, colour: str, ratio: float) -> QPixmap:
    side = round(_SIDE * ratio)
    pixmap = QPixmap(side, side)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(QColor(colour), 1.4)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.drawPath(path)
    painter.end()
    return pixmap


def _lines(*strokes: tuple[tuple[float, float], ...]) -> Callable[[], QPainterPath]:
    def draw() -> QPainterPath:
        path = QPainterPath()
        for stroke in strokes:
            path.moveTo(QPointF(*stroke[0]))
            for point in stroke[1:]:
                path.lineTo(QPointF(*point))
        return path

    return draw


def _search() -> QPainterPath:
    path = QPainterPath()
    path.addEllipse(QRectF(3, 3, 7.5, 7.5))
    path.moveTo(9.6, 9.6)
    path.lineTo(13, 13)
    return path


def _float() -> QPainterPath:
    path = QPainterPath()
    path.addRoundedRect(QRectF(3.5, 6, 6.5, 6.5), 1, 1)
    path.moveTo(6.5, 3.5)
    path.lineTo(12.5, 3.5)
    path.lineTo(12.5, 9.5)
    return path


def _fit() -> QPainterPath:
    return _lines(
        ((3.5, 6), (3.5, 3.5), (6, 3.5)),
        ((10, 3.5), (12.5, 3.5), (12.5, 6)),
        ((12.5, 10), (12.5, 12.5), (10, 12.5)),
        ((6, 12.5), (3.5, 12.5), (3.5, 10)),
    )()


_PATHS: dict[str, Callable[[], QPainterPath]] = {
    "close": _lines(((4.5, 4.5), (11.5, 11.5)), ((11.5, 4.5), (4.5, 11.5))),
    "float": _float,
    "fit": _fit,
    "minus": _lines(((4, 8), (12, 8))),
    "plus": _lines(((4, 8), (12, 8)), ((8, 4), (8, 12))),
    "up": _lines(((4, 10), (8, 6), (12, 10))),
    "down": _lines(((4, 6), (8, 10), (12, 6))),
    "save": _lines(((8, 3), (8, 10)), ((5, 7), (8, 10), (11, 7)), ((3.5, 13), (12.5, 13))),
    "left": _lines(((10, 4), (6, 8), (10, 12))),
    "right": _lines(((6, 4), (10, 8), (6, 12))),
    "search": _search,
}


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
        self._close = QToolButton()
        self._close.setToolTip(self.tr("Dismiss"))
        self._close.setAccessibleName(self.tr("Dismiss"))
        self._close.clicked.connect(self._dismiss_by_user)
        self._row = row_of(self, (self._message, 1), self._close, margins=(12, 4, 6, 4), spacing=8)
        self._whole = ""
        theme.notifier().changed.connect(self._draw_icon)
        self._draw_icon()
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
        """Return the message, or ``""``."""
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
        button = QPushButton(label)
        button.clicked.connect(self.dismiss)
        button.clicked.connect(callback)
        return button

    def _draw_icon(self) -> None:
        self._close.setIcon(icon("close"))

    def _elide(self) -> None:
        if self._wraps:
            self._message.setText(self._whole)
            return
        first = self._whole.split("\n", 1)[0]
        room = self._message.width()
        right = Qt.TextElideMode.ElideRight
        self._message.setText(TextMetrics(self._message.font()).elidedText(first, right, room))

    # Qt

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest) and self._whole:
            self._elide()
        return handled
