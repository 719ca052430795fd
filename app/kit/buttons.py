"""Buttons: with a text, or with a small line icon in the theme's colours."""

from collections.abc import Callable
from functools import cache
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPainterPath, QPen, QPixmap
from PySide6.QtWidgets import QCheckBox, QPushButton, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.theme import current

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


def strategy_icon(strategy: str) -> QIcon:
    """Return a square in the colour of a strategy."""
    square = QPainterPath()
    square.addRoundedRect(QRectF(4.5, 4.5, 7, 7), 1.5, 1.5)
    return _filled(square, theme.strategy_colour(current(), strategy))


def run_icon(running: bool) -> QIcon:
    """Return the triangle of *Run*, or the square of *Stop*, in the colour of its text."""
    shape = QPainterPath()
    if running:
        shape.addRoundedRect(QRectF(4.5, 4.5, 7, 7), 1, 1)
    else:
        shape = _lines(((5, 4), (11.5, 8), (5, 12), (5, 4)))()
    return _filled(shape, current().on_accent)


def _filled(path: QPainterPath, colour: str) -> QIcon:
    result = QIcon()
    for ratio in _ratios():
        result.addPixmap(_pixmap(path, colour, ratio, colour))
    return result


def _ratios() -> set[float]:
    """Return the pixel ratios of all screens, so that pictures are not scaled and blurred."""
    screens = QGuiApplication.screens()
    return {1.0, 2.0, *(screen.devicePixelRatio() for screen in screens)}


def _pixmap(path: QPainterPath, colour: str, ratio: float, fill: str = "") -> QPixmap:
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
    if fill:
        painter.setBrush(QColor(fill))
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
    "play": _lines(((5, 3.5), (12, 8), (5, 12.5), (5, 3.5))),
    "leave": _lines(
        ((3, 8), (9.5, 8)), ((6.5, 5), (9.5, 8), (6.5, 11)), ((12.5, 3.5), (12.5, 12.5))
    ),
    "previous": _lines(((12.5, 4), (8.5, 8), (12.5, 12)), ((8, 4), (4, 8), (8, 12))),
    "next": _lines(((3.5, 4), (7.5, 8), (3.5, 12)), ((8, 4), (12, 8), (8, 12))),
    "undo": _lines(((6, 3), (3, 6), (6, 9)), ((3, 6), (10, 6), (13, 9), (13, 12))),
    "redo": _lines(((10, 3), (13, 6), (10, 9)), ((13, 6), (6, 6), (3, 9), (3, 12))),
    "pin": _lines(
        ((8, 9.5), (8, 13.5)),
        ((4.5, 9.5), (11.5, 9.5)),
        ((6, 2.5), (6, 7), (4.5, 9.5)),
        ((10, 2.5), (10, 7), (11.5, 9.5)),
        ((5, 2.5), (11, 2.5)),
    ),
    "check": _lines(((3.5, 8.5), (6.5, 11.5), (12.5, 4.5))),
    "auto": _lines(
        ((3, 13), (9.5, 6.5)),
        ((11, 2), (11, 6)),
        ((9, 4), (13, 4)),
        ((13, 9), (13, 11)),
        ((5, 2.5), (5, 4.5)),
    ),
    "tune": _lines(((3, 5), (13, 5)), ((3, 11), (13, 11)), ((6, 3), (6, 7)), ((10, 9), (10, 13))),
    "measure": _lines(
        ((8, 5), (8, 9), (10.5, 10.5)),
        ((6.5, 1.5), (9.5, 1.5)),
        (
            (5, 3.6),
            (3, 6),
            (2.5, 9),
            (4, 12.2),
            (7, 13.8),
            (10, 13.6),
            (12.8, 11.5),
            (13.5, 8.5),
            (12.4, 5.4),
            (10, 3.6),
            (8, 3),
            (5, 3.6),
        ),
    ),
    "list": _lines(
        ((3, 4), (3.5, 4)),
        ((6, 4), (13, 4)),
        ((3, 8), (3.5, 8)),
        ((6, 8), (13, 8)),
        ((3, 12), (3.5, 12)),
        ((6, 12), (13, 12)),
    ),
    "flag": _lines(((4, 2.5), (4, 13.5)), ((4, 3), (12, 3), (10, 5.75), (12, 8.5), (4, 8.5))),
    "report": _lines(
        ((4, 2.5), (9.5, 2.5), (12, 5), (12, 13.5), (4, 13.5), (4, 2.5)),
        ((6, 7), (10, 7)),
        ((6, 10), (10, 10)),
    ),
    "table": _lines(
        ((2.5, 3.5), (13.5, 3.5), (13.5, 12.5), (2.5, 12.5), (2.5, 3.5)),
        ((2.5, 6.5), (13.5, 6.5)),
        ((7, 6.5), (7, 12.5)),
    ),
    "values": _lines(
        ((2.5, 3.5), (13.5, 3.5), (13.5, 12.5), (2.5, 12.5), (2.5, 3.5)),
        ((2.5, 8), (13.5, 8)),
        ((6.2, 3.5), (6.2, 12.5)),
        ((9.8, 3.5), (9.8, 12.5)),
    ),
    "arrows": _lines(
        ((2.5, 5), (11, 5)),
        ((8.5, 2.5), (11, 5), (8.5, 7.5)),
        ((13.5, 11), (5, 11)),
        ((7.5, 8.5), (5, 11), (7.5, 13.5)),
    ),
    "rule": _lines(
        ((6, 2.5), (4, 2.5), (4, 13.5), (6, 13.5)),
        ((10, 2.5), (12, 2.5), (12, 13.5), (10, 13.5)),
        ((6.5, 8), (9.5, 8)),
    ),
    "more": _lines(*(((x, 8), (x + 0.8, 8)) for x in (3.4, 7.6, 11.8))),
    "tolerance": _lines(
        ((2.5, 11), (13.5, 11)), ((8, 3), (8, 11)), ((5.5, 5.5), (8, 3), (10.5, 5.5))
    ),
}


class IconButton(QToolButton):
    """A button with an icon that follows the theme; its tool tip is its accessible name."""

    def __init__(
        self,
        name: str,
        tooltip: str,
        *,
        size: tuple[int, int] | None = None,
        focus: Qt.FocusPolicy = Qt.FocusPolicy.TabFocus,
    ) -> None:
        super().__init__()
        self._icon = name
        self.setToolTip(tooltip)
        self.setAccessibleName(tooltip)
        self.setFocusPolicy(focus)
        if size is not None:
            self.setFixedSize(*size)
        theme.notifier().changed.connect(self._draw)
        self._draw()

    def set_icon(self, name: str) -> None:
        """Show another icon."""
        self._icon = name
        self._draw()

    def _draw(self) -> None:
        if self._icon:
            self.setIcon(icon(self._icon))


def push_button(
    text: str,
    tip: str = "",
    act: Callable[[], object] | None = None,
    *,
    look: Literal["", "primary", "quiet"] = "",
    auto_default: bool = True,
) -> QPushButton:
    """Return a button; `auto_default` as in `QPushButton`, for dialogs."""
    button = QPushButton(text)
    button.setToolTip(tip)
    if look:
        button.setProperty(look, True)
    if not auto_default:
        button.setAutoDefault(False)
    if act is not None:
        button.clicked.connect(act)
    return button


def set_look(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet evaluates, and apply it."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def check_box(text: str, tip: str) -> QCheckBox:
    """Return a check box with a tool tip."""
    box = QCheckBox(text)
    box.setToolTip(tip)
    return box
