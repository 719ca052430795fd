"""The dialog that selects the class, instance or function of a file to open."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QDialogButtonBox, QListWidget, QVBoxLayout, QWidget

from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.plain_text import Label


class EntryDialog(Dialog):
    """A list of candidates, selected with Enter or a double click."""

    def __init__(self, file: str, choices: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Choose what to open"))
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Candidates"))
        # The style determines the height of rows once it has been applied to the list.
        self.list.ensurePolished()
        self.list.addItems(list(choices))
        self.list.setCurrentRow(0)
        self.list.itemActivated.connect(self.accept)
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel
        )
        buttons.button(QDialogButtonBox.StandardButton.Open).setProperty("primary", True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        question = Label(self.tr("{0} has several models.").format(file))
        question.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(question)
        column.addWidget(self.list, 1)
        column.addWidget(buttons)
        self.resize(380, 280)
        self.list.setFocus()
        offer_help(self, "sources")

    def choice(self) -> str:
        """Return the selected candidate."""
        item = self.list.currentItem()
        return "" if item is None else item.text()
