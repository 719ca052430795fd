"""Keyboard equivalents of mouse actions: sorting by a column, and showing tool tips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QHelpEvent, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QToolTip,
    QWidget,
)

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class Pointing(QObject):
    """Does at the focus what the mouse does under the pointer.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu View."""
        view, tr = self._window.tr("&View"), self._window.tr
        return (
            Command("columns", view, tr("Colu&mns of the table…"), self._open_columns),
            Command("tip", view, tr("Show the tool ti&p"), self._tell, "Shift+F1"),
        )

    def _focus(self) -> QWidget | None:
        """Return the focus widget, or that of this window while another window is in front."""
        return QApplication.focusWidget() or self._window.focusWidget()

    def _open_columns(self) -> None:
        from lowerscope.app.widgets.table import Table

        focus = self._focus()
        if isinstance(focus, Table):
            focus.open_columns()
        else:
            words = self._window.tr("The keyboard is in no table: go to one with Tab first.")
            self._window.banner.show_message(words, "info")

    def _tell(self) -> None:
        """Show the tool tip of the focus widget until the next key press."""
        focus = self._focus()
        if focus is None:
            return
        target = focus.viewport() if isinstance(focus, QAbstractScrollArea) else focus
        place = _place(focus)
        event = QHelpEvent(QEvent.Type.ToolTip, place, target.mapToGlobal(place))
        QApplication.sendEvent(target, event)
        if QToolTip.isVisible():
            application = QApplication.instance()
            assert application is not None
            application.installEventFilter(self)

    # Qt

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        application = QApplication.instance()
        assert application is not None
        application.removeEventFilter(self)
        QToolTip.hideText()
        # Escape closes the tool tip, and nothing else that it might close.
        return event.key() == Qt.Key.Key_Escape


def _place(focus: QWidget) -> QPoint:
    """Return the cursor position within a widget."""
    if isinstance(focus, QAbstractItemView):
        place = focus.visualRect(focus.currentIndex())
    else:
        asked = focus.inputMethodQuery(Qt.InputMethodQuery.ImCursorRectangle)
        place = asked if isinstance(asked, QRect) and asked.isValid() else focus.rect()
    return place.center()
