"""The log: output of torch, TVM and the user's file in the children."""

from __future__ import annotations

import re

from PySide6.QtGui import QContextMenuEvent, QTextCursor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.messages import printable
from lowerscope.app.kit import theme
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import PlainTextEdit
from lowerscope.app.kit.typefaces import code_font
from lowerscope.app.panes.common.save_whole import WholeText
from lowerscope.core.model.texts import _

MOST_LINES = 5000
LINE_CHARACTERS = 1000
"""Maximum length of a line; the rest is not shown."""

MOST_CHARACTERS = 2**20

MOST_NEW_LINES = 1000
"""Maximum number of lines shown of an added text; the last ones are shown."""

_CUT = " …"

_LONG_LINE = re.compile(rf"([^\n]{{{LINE_CHARACTERS}}})[^\n]+")


class LogView(PlainTextEdit):
    """The end of a growing text; it scrolls along unless the user scrolled up."""

    def __init__(
        self, document: Document, children: Children, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(_("Log"))
        self._document = document
        self._children = children
        # Writes the whole text, of which this shows a part, to a file.
        self.saving = WholeText(document, self)
        self._use_theme()
        theme.notifier().changed.connect(self._use_theme)
        self.setLineWrapMode(PlainTextEdit.LineWrapMode.NoWrap)
        self.setMaximumBlockCount(MOST_LINES)
        self.empty = EmptyState(
            _("Nothing printed yet"),
            _("Output of torch, TVM and your file appears here."),
        )
        over = QVBoxLayout(self.viewport())
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.empty)
        children.logged.connect(self.append_text)

    def _use_theme(self) -> None:
        self.setFont(code_font())

    def append_text(self, text: str) -> None:
        """Append text, complete lines or not, as far as it is shown."""
        self.empty.hide()
        bar = self.verticalScrollBar()
        follows = bar.value() == bar.maximum()
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(self._shown(printable(text), cursor.positionInBlock()))
        self._drop_first()
        if follows:
            bar.setValue(bar.maximum())

    def _shown(self, text: str, column: int) -> str:
        """Return the visible part of a text appended to a line with `column` characters."""
        first, newline, rest = text.partition("\n")
        room = LINE_CHARACTERS - column
        if len(first) > room:
            # A shortened line includes the mark, and accepts no more text.
            first = "" if room < 0 else first[:room] + _CUT
        lines = rest.count("\n")
        if lines > MOST_NEW_LINES:
            rest = rest.split("\n", lines - MOST_NEW_LINES)[-1]
            left_out = _(
                "… {lines} lines left out here; the whole log has them",
                lines=lines - MOST_NEW_LINES,
            )
            rest = f"{left_out}\n{rest}"
        return first + newline + _LONG_LINE.sub(rf"\1{_CUT}", rest)

    def _drop_first(self) -> None:
        """Remove the first lines once the text has too many characters."""
        document = self.document()
        excess = document.characterCount() - MOST_CHARACTERS
        if excess <= 0:
            return
        cursor = QTextCursor(document)
        cursor.setPosition(excess, QTextCursor.MoveMode.KeepAnchor)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        cursor.movePosition(
            QTextCursor.MoveOperation.NextCharacter, QTextCursor.MoveMode.KeepAnchor
        )
        cursor.removeSelectedText()

    def save_whole(self) -> None:
        """Select a file in a dialog, and write the complete output to it."""
        log = self._children.whole_log
        if log.held or log.dropped:
            self.saving.choose_file(_("Save the whole log"), "lowerscope.log", log.text)
        else:
            self._document.notify(_("The log is empty."), "info")

    # Qt

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self.createStandardContextMenu()
        menu.addSeparator()
        save = menu.addAction(_("Save the whole log…"), self.save_whole)
        save.setEnabled(self._children.whole_log.held > 0)
        menu.exec(event.globalPos())
