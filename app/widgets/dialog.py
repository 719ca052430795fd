"""A dialog that is never larger than its screen; what does not fit is scrolled."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QPushButton,
    QScrollArea,
    QStyle,
    QVBoxLayout,
    QWidget,
)

FRAME = QSize(16, 48)
"""Bound on the desktop's frame around a dialog, in logical pixels."""


class Dialog(QDialog):
    """A dialog whose layout is a column, with its buttons in the last row.

    On a small screen, or with large scaling, the buttons and status rows stay in view; what is
    above them is scrolled.
    """

    def keep_in_view(self, *widgets: QWidget) -> None:
        """Keep rows outside of the scrolled part: those that show errors or results."""
        self._kept = widgets

    _kept: tuple[QWidget, ...] = ()

    def _room(self) -> QSize:
        return self.screen().availableSize() - FRAME

    def _fit_to_screen(self) -> None:
        room, column = self._room(), self.layout()
        self.setMinimumSize(self.minimumSize().boundedTo(room))
        wanted = self.size()
        if not self.testAttribute(Qt.WidgetAttribute.WA_Resized):
            # Qt limits the shown size to two thirds of the screen.
            wanted = self.sizeHint().expandedTo(self.minimumSize())
            wanted.setHeight(self._height_for(min(wanted.width(), room.width())))
        if isinstance(column, QVBoxLayout) and self._scrolled() is None:
            width = min(wanted.width(), room.width())
            least = column.totalMinimumSize()
            height = max(least.height(), column.totalMinimumHeightForWidth(width))
            if height > room.height() or least.width() > room.width():
                self._scroll_all_but_buttons(column)
                wanted = wanted.expandedTo(self.sizeHint())
        self.resize(wanted.boundedTo(room))
        self._grow()

    def _height_for(self, width: int) -> int:
        """Return the height that all lines of text need."""
        column = self.layout()
        if column is None:
            return self.height()
        height = column.totalSizeHint().height()
        if column.hasHeightForWidth():
            height = column.totalHeightForWidth(width)
        return max(height, self.minimumHeight())

    def _grow(self) -> None:
        """Make room for content that has grown, such as an added error message."""
        column = self.layout()
        if column is None:
            return
        scrolls = self._scrolled() is not None
        least = column.totalSizeHint() if scrolls else column.totalMinimumSize()
        width = max(self.width(), least.width())
        height = max(self.height(), least.height(), column.totalMinimumHeightForWidth(width))
        size = QSize(width, height).boundedTo(self._room())
        if size != self.size():
            self.resize(size)

    def _scrolled(self) -> _Scrolled | None:
        return self.findChild(_Scrolled)

    def _scroll_all_but_buttons(self, column: QVBoxLayout) -> None:
        inside = QWidget()
        rows = QVBoxLayout(inside)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(column.spacing())
        kept = sum(column.indexOf(each) >= 0 for each in self._kept)
        place = 0
        while column.count() > kept + 1:
            stretch = column.stretch(place)
            item = column.takeAt(place)
            assert item is not None
            widget, layout = item.widget(), item.layout()
            if widget is not None and widget in self._kept:
                column.insertItem(place, item)
                place += 1
                continue
            if widget is not None:
                hidden = widget.isHidden()
                rows.addWidget(widget, stretch)
                widget.setHidden(hidden)
            elif layout is not None:
                rows.addLayout(layout, stretch)
            else:
                rows.addItem(item)
        column.insertWidget(0, _Scrolled(inside), 1)

    def _choose_default(self) -> None:
        """Make Enter press the default button, or else the primary one.

        A dialog ignores a default that was set before the button was added, and uses its first
        button.
        """
        buttons = [each for each in self.findChildren(QPushButton) if not each.isHidden()]
        chosen = next((each for each in buttons if each.isDefault()), None)
        chosen = chosen or next((each for each in buttons if each.property("primary")), None)
        if chosen is not None:
            chosen.setDefault(False)
            chosen.setDefault(True)

    # Qt's own

    def showEvent(self, event: QShowEvent) -> None:
        self._fit_to_screen()
        self._choose_default()
        super().showEvent(event)

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self._grow()
        return done


class _Scrolled(QScrollArea):
    """Scroll area for what does not fit; it follows the focus."""

    def __init__(self, inside: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setWidget(inside)
        self._inside = inside

    # Qt's own

    def sizeHint(self) -> QSize:
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        return self._inside.sizeHint() + QSize(bar, bar)
