"""The log: what torch, TVM and the user's file printed in the children."""

from __future__ import annotations

from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.app.widgets.plain_text import PlainTextEdit
from lowerscope.app.widgets.typefaces import code_font
from lowerscope.app.workspace import Workspace

MOST_LINES = 5000


class LogView(PlainTextEdit):
    """A read-only text that grows at its end; it scrolls along unless the user scrolled up."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setAccessibleName(self.tr("Log"))
        self._use_theme()
        theme.notifier().changed.connect(self._use_theme)
        self.setLineWrapMode(PlainTextEdit.LineWrapMode.NoWrap)
        self.setMaximumBlockCount(MOST_LINES)
        self.empty = EmptyState(
            self.tr("Nothing printed yet"),
            self.tr("What torch, TVM and your file print appears here."),
        )
        over = QVBoxLayout(self.viewport())
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.empty)
        workspace.logged.connect(self.append_text)

    def _use_theme(self) -> None:
        self.setFont(code_font())

    def append_text(self, text: str) -> None:
        """Add text as it came, whole lines or not."""
        self.empty.hide()
        bar = self.verticalScrollBar()
        follows = bar.value() == bar.maximum()
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text)
        if follows:
            bar.setValue(bar.maximum())
