"""Which page of the help a part of the window has, and F1 in dialogs.

The page of a widget is its property `PAGE`. Dialogs hold the keys of the window back, and have a
key and a button of their own.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QWidget

PAGE = "help"


class HelpNotifier(QObject):
    """Says that a dialog's help is asked for.

    Signals
    -------
    wanted(QWidget, str)
        The dialog, and the page.
    """

    wanted = Signal(QWidget, str)

    def tell(self) -> None:
        """Tell of the dialog whose key or button it was."""
        sender = self.sender()
        inside = sender if isinstance(sender, QWidget) else sender.parent()
        if isinstance(inside, QWidget):
            dialog = inside.window()
            self.wanted.emit(dialog, str(dialog.property(PAGE)))


@cache
def notifier() -> HelpNotifier:
    """Return the one that all dialogs tell."""
    return HelpNotifier()


def set_page(widget: QWidget, page: str) -> None:
    """Have F1 in a part of the window open this page."""
    widget.setProperty(PAGE, page)


def offer_help(dialog: QDialog, page: str) -> None:
    """Give a dialog F1, and a button for it beside its others."""
    set_page(dialog, page)
    key = QShortcut(QKeySequence("F1"), dialog)
    key.activated.connect(notifier().tell)
    for box in dialog.findChildren(QDialogButtonBox):
        button = box.addButton(QDialogButtonBox.StandardButton.Help)
        button.setAutoDefault(False)
        box.helpRequested.connect(notifier().tell)
