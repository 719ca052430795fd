"""The dialog for systems that cannot create a sandbox for opened code."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.widgets.question import Question

_WITHOUT = 2
"""Result of the dialog, neither accepted nor rejected."""


class NoSandboxDialog(Question):
    """Offers to try again, to run code without a sandbox, or not to run it.

    Accepting it tries again; closing it prevents code from running.

    Signals
    -------
    without(bool)
        Code may run without a sandbox; the argument tells whether in later sessions too.

    Parameters
    ----------
    reason
        Why the system cannot create one.

    Attributes
    ----------
    why
        Label with the reason.
    go_without
        The button that allows code without a sandbox.
    remembered
        Check box: the same in later sessions.
    """

    without = Signal(bool)

    def __init__(self, reason: str, parent: QWidget | None = None) -> None:
        super().__init__(
            self.tr("No sandbox"),
            self.tr("There is no sandbox for opened code, so it does not run."),
            self.tr("Try again"),
            parent=parent,
        )
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        self._question.setProperty("role", "title")
        self.why = Label(reason)
        more = Label(
            self.tr(
                "Without a sandbox, opened code may do all that you may: change or delete your "
                "files, and use the network. Nothing runs until you answer."
            )
        )
        self.remembered = QCheckBox(self.tr("Run without a sandbox in later sessions too"))
        for place, label in enumerate((self.why, more), 1):
            label.setWordWrap(True)
            column.insertWidget(place, label)
        column.insertWidget(3, self.remembered)
        self.go_without = QPushButton(self.tr("Run without a sandbox"))
        column.insertWidget(4, self.go_without, 0, Qt.AlignmentFlag.AlignLeft)
        self.go_without.setAutoDefault(False)
        self.go_without.clicked.connect(self._go_without)
        self.cancel.setText(self.tr("Keep stopped"))
        self.act.setDefault(True)
        offer_help(self, "sessions#in-a-sandbox")
        self.act.setFocus()

    def _go_without(self) -> None:
        self.without.emit(self.remembered.isChecked())
        self.done(_WITHOUT)
