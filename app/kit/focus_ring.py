"""Focus ring: a frame around the focused widget, for keyboard users only."""

from functools import cache

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QFocusEvent, QGuiApplication, QPainter, QPaintEvent, QRegion
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QLabel,
    QScrollArea,
    QTabBar,
    QWidget,
)
from shiboken6 import isValid

from lowerscope.app.kit import theme

WIDTH = 2

RINGED = "focus-ring"
"""Property of widgets of other classes that want the ring."""

_BY_KEYBOARD = {
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
}

_BACK = {
    Qt.FocusReason.ActiveWindowFocusReason,
    Qt.FocusReason.PopupFocusReason,
    Qt.FocusReason.MenuBarFocusReason,
}
"""Reasons of a widget that had the focus before another window or a menu was open."""

_RINGED = (QAbstractScrollArea, QLabel, QTabBar)
"""Lists, tables, texts, graphs, links and tabs, which do not show the focus themselves."""


def came_by_keyboard(event: QFocusEvent, before: bool) -> bool:
    """Return whether the focus was moved by a key, or as `before` if it is only back."""
    return before if event.reason() in _BACK else event.reason() in _BY_KEYBOARD


@cache
def show_focus() -> QObject:
    """Draw a ring around focused widgets that do not show the focus themselves, from now on."""
    return _FocusRings()


class _FocusRings(QObject):
    """Controller that moves the ring to the focused widget."""

    def __init__(self) -> None:
        application = theme.application()
        super().__init__(application)
        self._ring: _Ring | None = None
        self._clicked: QWidget | None = None
        application.focusChanged.connect(self._follow)

    def _follow(self, old: QWidget | None, new: QWidget | None) -> None:
        if self._ring is not None and isValid(self._ring):
            self._ring.hide()
            self._ring.deleteLater()
        self._ring = None
        if new is None:
            return
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            self._clicked = new
        elif old is not None or new is not self._clicked:
            # On return to a window, its focus is where it was, with or without the ring as before.
            self._clicked = None
            _scroll_to(new)
            popup = new.window().windowType() == Qt.WindowType.Popup
            if not popup and (isinstance(new, _RINGED) or new.property(RINGED)):
                self._ring = _Ring(new)


def _scroll_to(widget: QWidget) -> None:
    """Scroll the areas around a widget so that it is visible, whatever moved the focus."""
    above = widget.parentWidget()
    while above is not None:
        if isinstance(above, QScrollArea):
            above.ensureWidgetVisible(widget, 0, 0)
        above = above.parentWidget()


class _Ring(QWidget):
    """A frame on top of a widget, transparent to the mouse."""

    def __init__(self, around: QWidget) -> None:
        super().__init__(around)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        around.installEventFilter(self)
        self._fit(around)
        self.show()
        self.raise_()

    def _fit(self, around: QWidget) -> None:
        area = around.rect()
        self.setGeometry(area)
        # The area inside need not be repainted.
        inside = area.adjusted(WIDTH, WIDTH, -WIDTH, -WIDTH)
        self.setMask(QRegion(area).subtracted(QRegion(inside)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self._fit(watched)
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), QColor(theme.current().accent))
