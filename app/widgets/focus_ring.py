"""Where the focus is: shown to who walks by keyboard, not to who clicks."""

from functools import cache

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QFocusEvent, QGuiApplication, QPainter, QPaintEvent, QRegion
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QLabel, QTabBar, QWidget
from shiboken6 import isValid

from lowerscope.app import theme

WIDTH = 2

RINGED = "focus-ring"
"""A property of widgets of other kinds that want the ring."""

_BY_KEYBOARD = {
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
}

_RINGED = (QAbstractScrollArea, QLabel, QTabBar)
"""Lists, tables, texts, graphs, links and tabs: too large, or too plain, to show it themselves."""


def came_by_keyboard(event: QFocusEvent) -> bool:
    """Whether the focus was moved here by a key."""
    return event.reason() in _BY_KEYBOARD


@cache
def show_focus() -> QObject:
    """Draw a ring around what has the focus and does not show it itself, from now on."""
    return _FocusRings()


class _FocusRings(QObject):
    """Puts one ring on what gets the focus, and takes the one before away."""

    def __init__(self) -> None:
        application = QApplication.instance()
        assert isinstance(application, QApplication)
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
            # A window that is come back to has its focus where it was, and shown as it was.
            self._clicked = None
            popup = new.window().windowType() == Qt.WindowType.Popup
            if not popup and (isinstance(new, _RINGED) or new.property(RINGED)):
                self._ring = _Ring(new)


class _Ring(QWidget):
    """A frame on top of a widget, which lets everything through."""

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
        # What is inside is not painted anew for it.
        inside = area.adjusted(WIDTH, WIDTH, -WIDTH, -WIDTH)
        self.setMask(QRegion(area).subtracted(QRegion(inside)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self._fit(watched)
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), QColor(theme.current().accent))
