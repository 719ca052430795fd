"""Markdown as formatted text: the one widget of the window that shows any, and only ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QImage,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import (
    QTextBrowser,
    QTextEdit,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.plain_text import no_picture
from lowerscope.app.kit.typefaces import code_font, ui_font
from lowerscope.resources import FOLDER as RESOURCES

MARGIN = 24
PIXELS = 13.0
LINE, CODE_LINE = 21.0, 19.0
WIDEST_PICTURE = 900
LIST_INDENT = 44
CODE_PADDING = 8.0

_DIALECT = (
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub
    | QTextDocument.MarkdownFeature.MarkdownNoHTML
)

_HEADINGS = {1: (20.0, 0.0, 12.0), 2: (15.0, 18.0, 8.0), 3: (13.0, 14.0, 6.0)}
"""Heading level: pixels, space above and space below."""


class MarkdownView(QTextBrowser):
    """A Markdown text; clicked links are emitted, not followed.

    Args:
        link_of_code: Returns the link of a block of code, or ``""``.
    """

    link_wanted = Signal(str)  # A link was clicked, or activated by Tab and Return.

    def __init__(self, name: str, link_of_code: Callable[[str], str]) -> None:
        super().__init__()
        self._link_of_code = link_of_code
        self._text, self._folder = "", Path()
        self._words: tuple[str, ...] = ()
        self._room = 0
        self._own: QTextDocument | None = None
        # A scroll bar that appears with a long page must not make it narrower: it would be laid out
        # twice.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setAccessibleName(name)
        self.setOpenLinks(False)
        self.anchorClicked.connect(self._follow)
        theme.notifier().changed.connect(self._draw)

    def show_text(self, text: str, folder: Path) -> None:
        """Show a text from its beginning; pictures are loaded from beside `folder`."""
        self._text, self._folder = text, folder
        self._words = ()
        self._draw()
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def go_to(self, heading: int) -> None:
        """Scroll to a heading by its index, the title being 0."""
        block = self.document().begin()
        while block.isValid():
            heading -= bool(block.blockFormat().headingLevel())
            if heading < 0:
                self.setTextCursor(QTextCursor(block))
                top = self.document().documentLayout().blockBoundingRect(block).top()
                self.verticalScrollBar().setValue(round(top) - MARGIN // 2)
                return
            block = block.next()

    def mark(self, words: tuple[str, ...]) -> None:
        """Highlight all occurrences of these words."""
        self._words = words
        shape = QTextCharFormat()
        shape.setBackground(QColor(theme.current().changed))
        marks = []
        for word in words:
            found = self.document().find(word)
            while not found.isNull():
                mark = QTextEdit.ExtraSelection()
                mark.cursor, mark.format = found, shape
                marks.append(mark)
                found = self.document().find(word, found)
        self.setExtraSelections(marks)

    def _draw(self) -> None:
        place = self.verticalScrollBar().value()
        before = self._own
        # Formatted before it is shown, so that it is laid out once.
        self._own = document = QTextDocument(self)
        document.setDefaultFont(ui_font(PIXELS))
        document.setDocumentMargin(MARGIN)
        self._room = self.viewport().width()
        # A line break in a cell of a table, which Qt takes for an HTML page.
        document.setMarkdown(self._text.replace("<br>", "\u2028"), _DIALECT)
        block = document.begin()
        while block.isValid():
            _dress(block, self._link_of_code)
            block = block.next()
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                _dress_table(frame)
        _frame_code(document)
        _close_gaps(document)
        document.setUndoRedoEnabled(False)
        self.setDocument(document)
        if before is not None:
            before.deleteLater()
        self.mark(self._words)
        self.verticalScrollBar().setValue(place)

    def _fit(self) -> None:
        if self.viewport().width() != self._room:
            self._draw()

    def _edge_of_view(self, *, first: bool) -> QTextCursor:
        """Return a selection before the first visible line, or behind the last.

        Qt goes on from the selection to the next link; without one, from an end of the page.
        """
        layout, top = self.document().documentLayout(), self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        block = self.document().begin() if first else self.document().lastBlock()
        while block.isValid():
            area = layout.blockBoundingRect(block)
            if area.top() >= top if first else area.bottom() <= bottom:
                break
            block = block.next() if first else block.previous()
        cursor, moves = QTextCursor(block), QTextCursor.MoveOperation
        if not first:
            cursor.movePosition(moves.EndOfBlock)
        move = moves.PreviousCharacter if first else moves.NextCharacter
        cursor.movePosition(move, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _follow(self, link: QUrl) -> None:
        self.link_wanted.emit(link.toString())

    # Qt's own

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return a picture of our own resources, as wide as the page, and sharp."""
        file = (self._folder / QUrl(name).path()).resolve()
        if kind != QTextDocument.ResourceType.ImageResource.value or not _is_ours(file):
            return no_picture()
        picture = QImage(str(file))
        ratio = self.devicePixelRatioF()
        width = min(WIDEST_PICTURE, max(200, self._room - 2 * MARGIN - LIST_INDENT))
        mode = Qt.TransformationMode.SmoothTransformation
        picture = picture.scaledToWidth(round(width * ratio), mode)
        picture.setDevicePixelRatio(ratio)
        return picture

    def focusNextPrevChild(self, onwards: bool) -> bool:
        cursor = self.textCursor()
        seen = cursor.hasSelection() and self.cursorRect(cursor).intersects(self.viewport().rect())
        if not seen:
            place = self.verticalScrollBar().value()
            self.setTextCursor(self._edge_of_view(first=onwards))
            self.verticalScrollBar().setValue(place)
        return super().focusNextPrevChild(onwards)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if "![" in self._text and self.viewport().width() != self._room:
            # Scale pictures to the page, but not during a layout.
            QTimer.singleShot(0, self, self._fit)


def _is_ours(file: Path) -> bool:
    return file.is_relative_to(RESOURCES.resolve()) and file.is_file()


def _dress(block: QTextBlock, link_of_code: Callable[[str], str]) -> None:
    """Format a paragraph by its kind: fonts, backgrounds and spacing."""
    shape = block.blockFormat()
    if shape.headingLevel():
        _dress_heading(block, shape)
    elif shape.hasProperty(QTextFormat.Property.BlockCodeFence):
        _dress_fence(block, shape, link_of_code)
    else:
        _dress_words(block, shape)


def _dress_words(block: QTextBlock, shape: QTextBlockFormat) -> None:
    cursor, pieces = QTextCursor(block), _pieces(block)
    if not any(style.isImageFormat() for *_, style in pieces):
        _set_line_height(shape, LINE)
    in_table = cursor.currentTable() is not None
    shape.setTopMargin(0.0)
    shape.setBottomMargin(0.0 if in_table else 4.0 if block.textList() else 10.0)
    cursor.setBlockFormat(shape)
    for first, last, style in pieces:
        if style.isImageFormat():
            continue
        if style.fontFixedPitch():
            _use_font(style, code_font())
        elif style.fontWeight() > QFont.Weight.Medium:
            # The typeface has no bolder weight.
            _use_font(style, ui_font(PIXELS, QFont.Weight.DemiBold))
        if style.isAnchor():
            style.setForeground(QColor(theme.current().accent))
            style.setFontUnderline(False)
        _set(cursor, first, last, style)


def _dress_heading(block: QTextBlock, shape: QTextBlockFormat) -> None:
    pixels, above, below = _HEADINGS.get(shape.headingLevel(), _HEADINGS[3])
    cursor = QTextCursor(block)
    shape.setTopMargin(above)
    shape.setBottomMargin(below)
    cursor.setBlockFormat(shape)
    for first, last, style in _pieces(block):
        style.clearProperty(QTextFormat.Property.FontSizeAdjustment)
        _use_font(style, ui_font(pixels, QFont.Weight.DemiBold))
        _set(cursor, first, last, style)


def _dress_fence(
    block: QTextBlock, shape: QTextBlockFormat, link_of_code: Callable[[str], str]
) -> None:
    """Show a line of code on a code background; a command is a link."""
    cursor = QTextCursor(block)
    shape.setNonBreakableLines(False)
    shape.setTopMargin(0.0)
    shape.setBottomMargin(0.0)
    _set_line_height(shape, CODE_LINE)
    cursor.setBlockFormat(shape)
    style, link = QTextCharFormat(), link_of_code(block.text())
    _use_font(style, code_font())
    if link:
        style.setAnchor(True)
        style.setAnchorHref(link)
        style.setForeground(QColor(theme.current().accent))
    _set(cursor, block.position(), block.position() + block.length() - 1, style)


def _frame_code(document: QTextDocument) -> None:
    """Put each run of code lines into a frame with its own background and margin."""
    shape = QTextFrameFormat()
    shape.setBackground(QColor(theme.current().ground))
    shape.setPadding(CODE_PADDING)
    shape.setTopMargin(2.0)
    shape.setBottomMargin(12.0)
    block, last = document.lastBlock(), None
    while block.isValid():
        fenced = block.blockFormat().hasProperty(QTextFormat.Property.BlockCodeFence)
        if fenced and last is None:
            last = block
        before = block.previous()
        goes_on = before.blockFormat().hasProperty(QTextFormat.Property.BlockCodeFence)
        if fenced and not goes_on and last is not None:
            cursor = QTextCursor(block)
            end = last.position() + last.length() - 1
            cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            cursor.insertFrame(shape)
            last = None
        block = before


def _close_gaps(document: QTextDocument) -> None:
    """Remove the space of the empty lines that Qt puts around frames and tables."""
    block = document.begin()
    while block.isValid():
        shape, cursor = block.blockFormat(), QTextCursor(block)
        fenced = shape.hasProperty(QTextFormat.Property.BlockCodeFence)
        inside = cursor.currentFrame() is not document.rootFrame()
        if not block.text() and not (fenced and inside) and cursor.currentTable() is None:
            shape.setTopMargin(0.0)
            shape.setBottomMargin(0.0)
            _set_line_height(shape, 1.0)
            cursor.setBlockFormat(shape)
        block = block.next()


def _set_line_height(shape: QTextBlockFormat, pixels: float) -> None:
    # The same for all lines: those with inline code would be farther apart.
    shape.setLineHeight(pixels, QTextBlockFormat.LineHeightTypes.FixedHeight.value)


def _use_font(style: QTextCharFormat, font: QFont) -> None:
    slanted = style.fontItalic()
    style.setFont(font, QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesAll)
    style.setFontItalic(slanted)


def _pieces(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    """Return the first and last position of each run of characters, with its format."""
    found, pieces = [], block.begin()
    while not pieces.atEnd():
        piece = pieces.fragment()
        found.append((piece.position(), piece.position() + piece.length(), piece.charFormat()))
        pieces += 1
    return found


def _set(cursor: QTextCursor, first: int, last: int, style: QTextCharFormat) -> None:
    cursor.setPosition(first)
    cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
    cursor.setCharFormat(style)


def _dress_table(table: QTextTable) -> None:
    colours = theme.current()
    shape = table.format()
    shape.setBorder(1.0)
    shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    shape.setBorderBrush(QBrush(QColor(colours.line)))
    shape.setBorderCollapse(True)
    shape.setCellPadding(6.0)
    shape.setCellSpacing(0.0)
    shape.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100.0))
    shape.setTopMargin(4.0)
    shape.setBottomMargin(10.0)
    table.setFormat(shape)
    for column in range(table.columns()):
        cell = table.cellAt(0, column)
        style = cell.format()
        style.setBackground(QColor(colours.ground))
        cell.setFormat(style)
