"""The question what becomes of opened code where the system makes no sandbox for it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.widgets.question import Question

_WITHOUT = 2
"""The result of a dialog that is neither accepted nor rejected."""


class NoSandboxDialog(Question):
    """Lets the user try again, run code without a sandbox, or keep it from running.

    Accepting it tries again; closing it keeps code from running.

    Signals
    -------
    without(bool)
        Code may run without a sandbox; the argument is whether in later sessions as well.

    Parameters
    ----------
    reason
        Why the system makes none.

    Attributes
    ----------
    why
        The reason.
    go_without
        The button that lets code run without a sandbox.
    remembered
        Whether that holds for later sessions.
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
