"""The text of the code view: what of it is filled in and folded, and where the view is."""

import time
from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QMimeData, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QResizeEvent,
    QTextBlock,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.code.document import CodeDocument
from lowerscope.app.widgets.code.folding import Folding
from lowerscope.app.widgets.code.hidden_text import MOST_LINES, HiddenText
from lowerscope.app.widgets.code.highlighter import Highlighter
from lowerscope.app.widgets.plain_text import PlainTextEdit
from lowerscope.app.widgets.typefaces import code_font, code_line

_MARGIN = 6
#: So long a slice of filling in may take, in ms, without what Qt then does.
_STEP_MS = 10.0


class CodeText(PlainTextEdit):
    """A text in colours that is read and not written, whose regions can be folded.

    Lines count from 0. A line that is folded away, or not filled in yet, has no row in the
    document; Qt's block numbers are rows.

    Signals
    -------
    rows_changed()
        Lines have come into the document, or gone, or scrolled.
    """

    rows_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content = HiddenText()
        self._folding = Folding()
        self._folding_all: Iterator[int] | None = None
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(PlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFont(code_font())
        self.document().setDocumentMargin(_MARGIN)
        self.setCenterOnScroll(False)
        self.setCursorWidth(1)
        self._shown = CodeDocument(self.document())
        self._highlighter = Highlighter(self.document())
        self._filling = QTimer(self)
        self._filling.setInterval(0)
        self._filling.timeout.connect(self._step)
        self._colouring = QTimer(self)
        self._colouring.setInterval(0)
        self._colouring.setSingleShot(True)
        self._colouring.timeout.connect(self._colour_visible)
        self.verticalScrollBar().valueChanged.connect(self._after_scroll)
        theme.notifier().changed.connect(self._use_theme)
        self._use_theme()

    # What is shown

    def set_text(
        self,
        text: str,
        language: str,
        hidden: Mapping[int, tuple[int, int]] | None = None,
        *,
        keep_folds: bool = False,
    ) -> None:
        """Show another text, from its top; the same one keeps its place and its folds.

        Parameters
        ----------
        keep_folds : bool
            Fold what was folded in the text before, as far as it is there.
        hidden : mapping of int to (int, int), optional
            A part of a line that is not shown, by the line's number. What is copied has it.
        """
        same = text == self._content.text
        top = self.top_line() if same else 0
        if not same:
            self._folding_all = None
        self._content = HiddenText(text, hidden)
        if not same:
            before, self._folding = (
                self._folding,
                Folding(self._content.whole_lines[: MOST_LINES - 1], language),
            )
            if keep_folds:
                self._folding.fold_like(before)
        self._highlighter.set_text(text, language)
        self._shown.set_lines(self._content.lines)
        self._shown.set_folded(self._folding.ranges())
        if not same:
            # What was put in at the caret has pushed it to the end.
            self.moveCursor(QTextCursor.MoveOperation.Start)
        if same:
            self._shown.put_in_near(top)
            self.verticalScrollBar().setValue(self._shown.rows.row_of(top))
        self._fill()
        self._colour_visible()

    def text(self) -> str:
        """The whole text, also while it is still being filled in, and with what is hidden."""
        return self._content.text

    def hidden(self) -> Mapping[int, tuple[int, int]]:
        """The parts of lines that are not shown."""
        return self._content.hidden

    def lines(self) -> Sequence[str]:
        """All lines as they are shown, those that are folded away as well."""
        return self._content.lines

    def whole_line(self, line: int) -> str:
        """The whole of a line that has a hidden part, or ``""``."""
        return self._content.whole_line(line)

    @property
    def settled(self) -> bool:
        """Whether everything is filled in, folded, and coloured as far as it is in view."""
        return self._is_filled and not self._colouring.isActive()

    @property
    def _is_filled(self) -> bool:
        return self._folding_all is None and self._shown.settled

    # Folding

    def can_fold(self, number: int) -> bool:
        """Whether a region begins with a line."""
        return self._folding.begins(number)

    def is_folded(self, number: int) -> bool:
        """Whether the region that begins with a line is folded."""
        return self._folding.folded(number) > 0

    def fold(self) -> None:
        """Fold the smallest region around the caret."""
        header = self._folding.around(self.caret()[0])
        if self._folding.fold(header):
            self._refold(header)

    def unfold(self) -> None:
        """Unfold the region that begins with the caret's line."""
        line = self.caret()[0]
        if self._folding.unfold(line):
            self._refold(line)

    def fold_all(self) -> None:
        """Fold all functions."""
        self._folding_all = self._folding.fold_all()
        self._step()

    def unfold_all(self) -> None:
        """Unfold everything."""
        if self._folding.unfold_all():
            self._refold(-1)

    def toggle_fold(self, line: int) -> bool:
        """Fold or unfold the region that begins with a line; False where none does."""
        if self._folding.unfold(line) or self._folding.fold(line):
            self._refold(line)
            return True
        return False

    def _refold(self, header: int) -> None:
        self._apply_folds(header)
        self._step()

    def _apply_folds(self, header: int) -> None:
        top, caret = self.top_line(), self.place(self.textCursor().position())
        begun_anew = self._shown.set_folded(self._folding.ranges())
        for line in (caret[0], top):
            self._shown.put_in_near(line)
        if begun_anew:
            row = self._shown.rows.row_of(caret[0])
            self.setTextCursor(QTextCursor(self.document().findBlockByNumber(row)))
        self._keep_top(top)
        self._fill()
        self.announce(self.fold_text(header) or self.tr("unfolded"))

    def folds_text(self) -> str:
        """How many regions are folded, or ``""``."""
        count = self._folding.count()
        return self.tr("{0} folded").format(count) if count else ""

    def fold_text(self, line: int) -> str:
        """What is said behind a line that a region is folded into, or ``""``."""
        count = self._folding.folded(line)
        return self.tr("{0} more").format(f"{count:,}") if count else ""

    def announce(self, text: str) -> None:
        """Say something to a screen reader."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    # Where the view is

    def top_line(self) -> int:
        """The first line in view."""
        return self._shown.rows.line_of(self.verticalScrollBar().value())

    def set_top_line(self, line: int) -> None:
        """Have a line at the top of the view, as far as the text goes on below it."""
        line = max(0, min(line, len(self.lines()) - 1))
        self._shown.put_in_near(line)
        self._keep_top(line)

    def show_lines(self, first: int, last: int) -> None:
        """Scroll as little as needed, or to the middle from far away."""
        self._bring(first)
        if not self._folding.covers(last):
            self._put_in_near(last)
        first, last = self._shown.rows.row_of(first), self._shown.rows.row_of(last)
        bar = self.verticalScrollBar()
        shown = max(1, self.viewport().height() // code_line() - 1)
        top = bar.value()
        if first >= top and last < top + shown:
            return
        length = last - first + 1
        context = min(3, max(0, shown - length) // 2)
        if length >= shown:
            value = first - 1
        elif first < top and top - first <= shown:
            value = first - context
        elif last >= top + shown and last - top - shown < shown:
            value = last - shown + 1 + context
        else:
            value = first - (shown - length) // 2
        bar.setValue(max(0, value))

    def go_to(self, line: int, start: int = 0, end: int = 0) -> None:
        """Put the caret on a line and select some of it."""
        line = max(0, min(line, len(self.lines()) - 1))
        self.show_lines(line, line)
        block = self.document().findBlockByNumber(self._shown.rows.row_of(line))
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + start)
        cursor.setPosition(block.position() + end, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def caret(self) -> tuple[int, int]:
        """Line and column where the selected text begins."""
        return self.place(self.textCursor().selectionStart())

    def visible(self, area: QRect) -> Iterator[tuple[int, QTextBlock, QRectF]]:
        """Number, block and place of the lines that touch an area of the viewport."""
        block = self.firstVisibleBlock()
        offset = self.contentOffset()
        while block.isValid():
            rect = self.blockBoundingGeometry(block).translated(offset)
            if block.layout().lineCount():
                # The first block has the document's margin above its line.
                above = block.layout().lineAt(0).y()
                rect.setTop(rect.top() + above)
                rect.setLeft(rect.left() + block.layout().lineAt(0).x())
                rect.setHeight(block.layout().lineAt(0).height())
            if rect.top() > area.bottom():
                break
            if rect.bottom() >= area.top():
                yield self._shown.rows.line_of(block.blockNumber()), block, rect
            block = block.next()

    def line_at(self, y: float) -> int:
        """The line at this height of the viewport, or -1."""
        for number, _, rect in self.visible(self.viewport().rect()):
            if rect.top() <= y < rect.bottom():
                return number
        return -1

    # Filling in

    def _fill(self) -> None:
        if self._is_filled:
            self._filling.stop()
        elif not self._filling.isActive():
            self._filling.start()

    def _step(self) -> None:
        start = time.perf_counter()
        end = start + _STEP_MS / 1000
        top = self.top_line()
        all_folded = False
        while not self._is_filled and time.perf_counter() < end:
            if self._folding_all is None:
                self._shown.step()
            elif next(self._folding_all, None) is None:
                # What comes of it takes a turn of its own, if it was long to find out.
                all_folded = time.perf_counter() - start < _STEP_MS / 2000
                break
        self._keep_top(top)
        if all_folded:
            self._folding_all = None
            self._apply_folds(-1)
        self._fill()

    def _bring(self, line: int) -> None:
        """Have a line in the document, whatever it is folded away in."""
        if self._folding.uncover(line):
            self._apply_folds(line)
        self._put_in_near(line)

    def _put_in_near(self, line: int) -> None:
        if not self._shown.rows.shows(line):
            top = self.top_line()
            self._shown.put_in_near(line)
            self._keep_top(top)

    def _keep_top(self, line: int) -> None:
        self.verticalScrollBar().setValue(self._shown.rows.row_of(line))
        self._colour_visible()
        self.rows_changed.emit()

    def _colour_visible(self) -> None:
        row = self.firstVisibleBlock().blockNumber()
        blocks = []
        block = self.firstVisibleBlock()
        for _ in range(self.viewport().height() // code_line() + 2):
            if not block.isValid():
                break
            blocks.append((self._shown.rows.line_of(row), block))
            row, block = row + 1, block.next()
        if not self._highlighter.colour(blocks):
            # They are read in the colour of plain text until the next turn of the event loop.
            self._colouring.start()

    def place(self, position: int) -> tuple[int, int]:
        """Line and column of a position in the document."""
        block = self.document().findBlock(position)
        return self._shown.rows.line_of(block.blockNumber()), position - block.position()

    # Slots

    def _use_theme(self) -> None:
        if self.font().pointSizeF() != code_font().pointSizeF():
            self.setFont(code_font())
        self._highlighter.set_theme(theme.current())
        self._colour_visible()
        self.viewport().update()

    def _after_scroll(self) -> None:
        self._colour_visible()
        self.rows_changed.emit()

    # Qt

    def createMimeDataFromSelection(self) -> QMimeData:
        cursor = self.textCursor()
        start, end = self.place(cursor.selectionStart()), self.place(cursor.selectionEnd())
        if cursor.selectionEnd() == self.document().characterCount() - 1:
            # What comes after the last row is folded away, or not filled in yet.
            last = len(self.lines()) - 1
            end = (last, len(self.lines()[last]))
        # The clipboard outlives Python: data that was made here would crash at its end.
        data = super().createMimeDataFromSelection()
        # Asking for the text has Qt write it, so that it does not do so later.
        data.text()
        data.clear()
        data.setText(self._content.whole(start, end))
        return data

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._colour_visible()
