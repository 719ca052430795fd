"""Help pages of parts of the window, and F1 in dialogs.

The page of a widget is its property `PAGE`. Dialogs block the window's shortcuts, and have a
shortcut and a button of their own.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QWidget

PAGE = "help"


class HelpNotifier(QObject):
    """Emits a signal when the help of a dialog is requested."""

    wanted = Signal(QWidget, str)  # The dialog, and the page.

    def tell(self) -> None:
        """Emit the signal for the dialog whose shortcut or button was used."""
        sender = self.sender()
        inside = sender if isinstance(sender, QWidget) else sender.parent()
        if isinstance(inside, QWidget):
            dialog = inside.window()
            self.wanted.emit(dialog, str(dialog.property(PAGE)))


@cache
def notifier() -> HelpNotifier:
    """Return the notifier shared by all dialogs."""
    return HelpNotifier()


def set_page(widget: QWidget, page: str) -> None:
    """Set the help page that F1 opens in a part of the window."""
    widget.setProperty(PAGE, page)


def offer_help(dialog: QDialog, page: str) -> None:
    """Add F1 to a dialog, and a help button beside its others."""
    set_page(dialog, page)
    key = QShortcut(QKeySequence("F1"), dialog)
    key.activated.connect(notifier().tell)
    for box in dialog.findChildren(QDialogButtonBox):
        button = box.addButton(QDialogButtonBox.StandardButton.Help)
        button.setAutoDefault(False)
        box.helpRequested.connect(notifier().tell)
