"""Empty state of a pane: a title, a hint on what to do, and buttons."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.widgets.plain_text import Label


class EmptyState(QWidget):
    """A title and a hint, centred and in a quiet colour.

    Parameters
    ----------
    title : str
        Says that there is nothing to show.
    hint : str
        Says what to do about it.
    parent : QWidget, optional
        The parent widget.
    """

    def __init__(self, title: str = "", hint: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = Label()
        self._title.setProperty("role", "quiet-title")
        self._hint = Label()
        self._hint.setProperty("role", "quiet")
        self._actions = QHBoxLayout()
        self._actions.setSpacing(8)
        for label in (self._title, self._hint):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 24, 24, 24)
        layout.setSpacing(4)
        layout.addStretch(2)
        layout.addWidget(self._title)
        layout.addWidget(self._hint)
        layout.addSpacing(8)
        row = QHBoxLayout()
        row.addStretch()
        row.addLayout(self._actions)
        row.addStretch()
        layout.addLayout(row)
        layout.addStretch(3)
        self.set_text(title, hint)

    def set_text(self, title: str, hint: str = "") -> None:
        """Set the title and the hint."""
        self._title.setText(title)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self.setAccessibleName(title)
        self.setAccessibleDescription(hint)

    def add_action(
        self, label: str, callback: Callable[[], None], primary: bool = False
    ) -> QPushButton:
        """Add a button for an action.

        Parameters
        ----------
        label : str
            The button's text.
        callback : callable
            Called when it is clicked.
        primary : bool
            Whether it is the recommended action.
        """
        button = QPushButton(label)
        button.setProperty("primary", primary)
        button.clicked.connect(callback)
        self._actions.addWidget(button)
        return button
