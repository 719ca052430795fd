"""A dialog that is never larger than its screen: what does not fit is scrolled."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QFrame, QPushButton, QScrollArea, QVBoxLayout, QWidget

FRAME = QSize(16, 48)
"""What the desktop puts around a dialog, at the most: in logical pixels."""


class Dialog(QDialog):
    """A dialog whose layout is a column, with its buttons in the last row.

    On a small screen, or where everything is scaled, the buttons stay in view, and what is above
    them is scrolled.
    """

    def _fit_to_screen(self) -> None:
        room = self.screen().availableSize() - FRAME
        column = self.layout()
        if isinstance(column, QVBoxLayout) and self.findChild(_Scrolled) is None:
            least = column.minimumSize()
            if least.height() > room.height() or least.width() > room.width():
                self._scroll_all_but_buttons(column)
        self.setMinimumSize(self.minimumSize().boundedTo(room))
        self.resize(self.size().boundedTo(room))

    def _scroll_all_but_buttons(self, column: QVBoxLayout) -> None:
        inside = QWidget()
        rows = QVBoxLayout(inside)
        rows.setContentsMargins(0, 0, 8, 0)
        rows.setSpacing(column.spacing())
        while column.count() > 1:
            stretch = column.stretch(0)
            item = column.takeAt(0)
            assert item is not None
            widget, layout = item.widget(), item.layout()
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
        """Have Enter press the button that was made the default, or is the primary one.

        A dialog knows of none that was before it stood in it, and takes the first there is.
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


class _Scrolled(QScrollArea):
    """What does not fit; it follows the focus."""

    def __init__(self, inside: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setWidget(inside)
