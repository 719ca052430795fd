"""The About dialog: versions, licences, and the details for a bug report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QVBoxLayout,
)

from lowerscope.app.bug_report import details
from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.plain_text import Label, PlainTextEdit
from lowerscope.app.widgets.typefaces import code_font
from lowerscope.resources import ICONS

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow

SIZE = (640, 560)
ICON = 48


def show_about(window: MainWindow) -> None:
    """Show the About dialog."""
    dialog = AboutDialog(window)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


class AboutDialog(Dialog):
    """The program's name and the details, with a button that copies them."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setWindowTitle(self.tr("About Lowerscope"))
        icon = Label()
        ratio = self.devicePixelRatioF()
        picture = QPixmap(str(ICONS / "lowerscope.png")).scaledToHeight(
            round(ICON * ratio), Qt.TransformationMode.SmoothTransformation
        )
        picture.setDevicePixelRatio(ratio)
        icon.setPixmap(picture)
        name = Label("Lowerscope")
        name.setProperty("role", "heading")
        what = Label(self.tr("A debugger for lowering, from PyTorch to machine code."))
        licence = Label(
            self.tr("Apache-2.0. Inter and JetBrains Mono are under the SIL Open Font License.")
        )
        licence.setProperty("role", "quiet")
        self.text = PlainTextEdit(details(window))
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(code_font())
        self.text.setAccessibleName(self.tr("Details for a report"))
        self.text.document().setDocumentMargin(8)
        self.said = Label(
            self.tr("Of paths, only last names are in it. Look it through before you send it.")
        )
        self.said.setWordWrap(True)
        self.said.setProperty("role", "quiet")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy = buttons.addButton(
            self.tr("Copy details"), QDialogButtonBox.ButtonRole.ActionRole
        )
        self.copy.clicked.connect(self._copy)
        self.copy.setDefault(True)
        buttons.rejected.connect(self.reject)
        head = QGridLayout()
        head.setHorizontalSpacing(16)
        head.setVerticalSpacing(2)
        head.addWidget(icon, 0, 0, 3, 1)
        for row, label in enumerate((name, what, licence)):
            head.addWidget(label, row, 1)
        head.setColumnStretch(1, 1)
        foot = QHBoxLayout()
        foot.addWidget(self.said, 1)
        foot.addWidget(buttons)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 20, 20, 12)
        column.setSpacing(12)
        column.addLayout(head)
        column.addWidget(self.text, 1)
        column.addLayout(foot)
        offer_help(self, "window#a-report-of-a-problem")
        self.resize(*SIZE)
        self.copy.setFocus()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.said.setText(self.tr("Copied."))
