"""The help window: a list of pages, a search, and the page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QDesktopServices,
    QFont,
    QImage,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QShortcut,
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
    QFileDialog,
    QLineEdit,
    QTextBrowser,
    QTextEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton, push_button
from lowerscope.app.kit.dialogs import FRAME
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import NOTHING, Label
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.typefaces import code_font, ui_font
from lowerscope.app.shell import help_pages
from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.files.sources import with_absolute_paths
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import Recipe
from lowerscope.resources import FOLDER as RESOURCES
from lowerscope.resources import HELP

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

    def __init__(
        self,
        name: str,
        link_of_code: Callable[[str], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
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

    def go_to(self, anchor: str, anchor_of: Callable[[str], str]) -> bool:
        """Scroll to the heading with this anchor; return whether there is one."""
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and anchor_of(block.text()) == anchor:
                self.setTextCursor(QTextCursor(block))
                top = self.document().documentLayout().blockBoundingRect(block).top()
                self.verticalScrollBar().setValue(round(top) - MARGIN // 2)
                return True
            block = block.next()
        return False

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

    def _follow(self, link: QUrl) -> None:
        self.link_wanted.emit(link.toString())

    # Qt's own

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return a picture of our own resources, as wide as the page, and sharp."""
        file = (self._folder / QUrl(name).path()).resolve()
        if kind != QTextDocument.ResourceType.ImageResource.value or not _is_ours(file):
            return NOTHING
        picture = QImage(str(file))
        ratio = self.devicePixelRatioF()
        width = min(WIDEST_PICTURE, max(200, self._room - 2 * MARGIN - LIST_INDENT))
        mode = Qt.TransformationMode.SmoothTransformation
        picture = picture.scaledToWidth(round(width * ratio), mode)
        picture.setDevicePixelRatio(ratio)
        return picture

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


# --- Commands in help pages: a click opens in the window what they refer to ---

_COMMAND = re.compile(r"lowerscope (?:show|run|passes|schedule) (?:sample:|course/)[^&|>]*$")
_FOLDER = re.compile(r"(?<![\w/])course/")


def command_of(line: str) -> str:
    """Return the command in a line of code that opens something, without comment, or ``""``."""
    command = line.partition(" # ")[0].strip()
    return command if _COMMAND.match(command) else ""


class CourseFiles(QWidget):
    """A row that writes the files used by the commands of the course.

    Args:
        open_recipe: Called with the recipe of a clicked command.
        report: Called with a problem.
    """

    def __init__(
        self,
        open_recipe: Callable[[Recipe], None],
        report: Callable[[Problem], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._open_recipe, self._report = open_recipe, report
        self._folder: Path | None = None
        self.write = push_button(self.tr("Write its files…"), act=self.choose_folder)
        self.where = Label(
            self.tr("Write the files of the page first, then click its commands."), role="quiet"
        )
        row_of(self, (self.where, 1), self.write, margins=(12, 8, 12, 8), spacing=None)

    def choose_folder(self) -> None:
        """Select a folder in a dialog, and write the page's files to it."""
        chosen = QFileDialog.getExistingDirectory(self, self.tr("Where to put the folder course"))
        if chosen:
            self.write_files(Path(chosen) / "course")

    def write_files(self, folder: Path) -> None:
        """Write the page's files to a folder; existing ones are kept."""
        from lowerscope.core.files.course_files import write_course

        try:
            if not folder.exists():
                write_course(folder, force=False)
        except LowerscopeError as error:
            self._report(error.problem)
            return
        self._folder = folder
        self.where.setText(str(folder))

    def open_command(self, command: str) -> None:
        """Open the recipe of a command of a page."""
        if "course/" in command and self._folder is None:
            self.choose_folder()
            if self._folder is None:
                return
        arguments = shlex.split(command)[1:]
        try:
            recipe = recipe_of_command(
                [_FOLDER.sub(lambda _: f"{self._folder}/", each) for each in arguments]
            )
        except LowerscopeError as error:
            self._report(error.problem)
            return
        self._open_recipe(with_absolute_paths(recipe))


SIZE = (1040, 780)
LIST_WIDTH = 260
ROW_HEIGHT, GROUP_HEIGHT = 24, 30

PLACE = Qt.ItemDataRole.UserRole
_SCHEME = "open:"
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@dataclass(frozen=True)
class Place:
    """A page, and the anchor of a section of it or ``""``."""

    name: str
    anchor: str = ""


class HelpWindow(QWidget):
    """Pages of the help, with a list, a search, and a history.

    Args:
        open_recipe: Called with the recipe of a clicked command.
        report: Called with a problem.
    """

    def __init__(
        self, open_recipe: Callable[[Recipe], None], report: Callable[[Problem], None]
    ) -> None:
        # Without a parent, it is not blocked by a dialog of the main window.
        super().__init__()
        self._history: list[tuple[Place, int]] = []
        self._at = -1
        self._commands: list[str] = []
        self.setProperty("ground", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.resize(QSize(*SIZE).boundedTo(self.screen().availableSize() - FRAME))
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search in all pages"))
        self.search.setAccessibleName(self.tr("Search in all pages"))
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self.search.textChanged.connect(self._show_list)
        self.search.returnPressed.connect(self._open_current)
        self.list = QTreeWidget()
        self.list.setAccessibleName(self.tr("Pages"))
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        self.list.setIndentation(8)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemClicked.connect(self._open_item)
        self.list.itemActivated.connect(self._open_item)
        self.page = MarkdownView(self.tr("Page"), self._link_of_code)
        self.page.link_wanted.connect(self._follow)
        self.group = Label(role="quiet")
        self.back = self._button("left", self.tr("Back (Alt+Left)"), self.go_back)
        self.forward = self._button("right", self.tr("Forward (Alt+Right)"), self.go_forward)
        self.course = CourseFiles(open_recipe, report)
        self._lay_out()
        self._add_keys()
        theme.notifier().changed.connect(self._show_list)
        self._show_list()

    def _button(self, name: str, text: str, act: Callable[[], None]) -> IconButton:
        button = IconButton(name, text, size=(26, 26))
        button.setObjectName(name)
        button.clicked.connect(act)
        return button

    def _lay_out(self) -> None:
        left, right = QWidget(), QWidget()
        column_of(left, self.search, (self.list, 1), margins=(10, 8, 6, 0), spacing=8)
        row = row_of(
            None, self.back, self.forward, 6, (self.group, 1), margins=(10, 8, 12, 7), spacing=4
        )
        column_of(right, row, (self.page, 1), self.course)
        sizes = (LIST_WIDTH, SIZE[0] - LIST_WIDTH)
        split = Split(Qt.Orientation.Horizontal, left, right, sizes=sizes, shares=(0, 1))
        row_of(self, split, spacing=None)

    def _add_keys(self) -> None:
        for keys, act in (
            ("Alt+Left", self.go_back),
            ("Alt+Right", self.go_forward),
            ("Ctrl+F", self._begin_search),
            ("F1", self._show_contents),
            ("Escape", self._leave),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(act)

    # Pages

    def place(self) -> Place:
        """The current page and section."""
        return self._history[self._at][0]

    def show_page(self, name: str, anchor: str = "") -> None:
        """Show a page, or a section of it."""
        place = Place(name, anchor)
        if self._at >= 0 and self.place() == place:
            self._scroll_to(place)
            return
        self._note_scroll()
        self._history[self._at + 1 :] = [(place, -1)]
        self._at += 1
        self._draw()

    def go_back(self) -> None:
        """Show the previous page."""
        self._go(-1)

    def go_forward(self) -> None:
        """Show the page that Back left."""
        self._go(1)

    def _go(self, step: int) -> None:
        if 0 <= self._at + step < len(self._history):
            self._note_scroll()
            self._at += step
            self._draw()

    def _note_scroll(self) -> None:
        if self._at >= 0:
            place, _ = self._history[self._at]
            self._history[self._at] = place, self.page.verticalScrollBar().value()

    def _draw(self) -> None:
        place, scroll = self._history[self._at]
        text = help_pages.text_of(place.name)
        self._commands = []
        self.page.show_text(text, HELP)
        self.page.mark(self._words())
        if scroll >= 0:
            self.page.verticalScrollBar().setValue(scroll)
        else:
            self._scroll_to(place)
        title = text.partition("\n")[0].removeprefix("# ")
        groups = (each.group for each in help_pages.entries() if each.name == place.name)
        self.group.setText(next(groups, ""))
        self.setWindowTitle(self.tr("{0} – Lowerscope help").format(title))
        self.course.setVisible(any("course/" in command for command in self._commands))
        self.back.setEnabled(self._at > 0)
        self.forward.setEnabled(self._at + 1 < len(self._history))
        if not self.search.text():
            self._select(place.name)

    def _scroll_to(self, place: Place) -> None:
        if not self.page.go_to(place.anchor, help_pages.anchor_of):
            self.page.verticalScrollBar().setValue(0)

    def _show_contents(self) -> None:
        self.show_page(help_pages.CONTENTS)

    # List and search

    def _words(self) -> tuple[str, ...]:
        return help_pages.words_of(self.search.text())

    def _begin_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def _show_list(self) -> None:
        self.list.clear()
        if self._words():
            self._list_hits()
        else:
            self._list_pages()
        if self._at >= 0:
            self.page.mark(self._words())

    def _list_pages(self) -> None:
        group = ""
        for entry in help_pages.entries():
            if entry.group != group:
                group = entry.group
                self._add_group(group)
            self._add(entry.title, Place(entry.name), "")
        if self._at >= 0:
            self._select(self.place().name)

    def _list_hits(self) -> None:
        hits = help_pages.search(self._words())
        whole, count = sum(hit.whole for hit in hits), len(hits)
        if not hits:
            text = self.tr("Nothing found: try other words")
        elif not whole:
            text = self.tr("None has all words; these have most")
        elif whole < count:
            text = self.tr("{0} sections, {1} with all words").format(count, whole)
        else:
            text = self.tr("1 section") if count == 1 else self.tr("{0} sections").format(count)
        self._add_group(text)
        for hit in hits:
            text = f"{hit.title} · {hit.heading}" if hit.heading else hit.title
            self._add(text, Place(hit.name, help_pages.anchor_of(hit.heading)), hit.line)
        first = self.list.topLevelItem(1)
        if first is not None:
            self.list.setCurrentItem(first)

    def _add_group(self, text: str) -> None:
        item = QTreeWidgetItem(self.list, [text])
        item.setFlags(Qt.ItemFlag.ItemIsEnabled)
        item.setFont(0, ui_font(11.5, QFont.Weight.Medium))
        item.setForeground(0, QColor(theme.current().quiet))
        item.setSizeHint(0, QSize(0, GROUP_HEIGHT))

    def _add(self, text: str, place: Place, tip: str) -> None:
        item = QTreeWidgetItem(self.list, [text])
        item.setData(0, PLACE, place)
        item.setToolTip(0, tip or text)
        item.setSizeHint(0, QSize(0, ROW_HEIGHT))

    def _select(self, name: str) -> None:
        self.list.clearSelection()
        for index in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(index)
            place = None if item is None else item.data(0, PLACE)
            if item is not None and place is not None and place.name == name:
                self.list.setCurrentItem(item)

    def _open_item(self, item: QTreeWidgetItem) -> None:
        place = item.data(0, PLACE)
        if place is not None:
            self.show_page(place.name, place.anchor)

    def _open_current(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self._open_item(item)

    def _leave(self) -> None:
        """Clear the search, or else close the window."""
        if self.search.text():
            self.search.clear()
        else:
            self.close()

    # Links

    def _link_of_code(self, line: str) -> str:
        command = command_of(line)
        if not command:
            return ""
        self._commands.append(command)
        return f"{_SCHEME}{len(self._commands) - 1}"

    def _follow(self, link: str) -> None:
        if link.startswith(_SCHEME):
            self.course.open_command(self._commands[int(link.removeprefix(_SCHEME))])
            return
        path, _, anchor = link.partition("#")
        name = path.removesuffix(".md") if path else self.place().name
        if help_pages.is_page(name):
            self.show_page(name, anchor)
        else:
            QDesktopServices.openUrl(QUrl(link))

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        pressed = isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress
        if isinstance(event, QKeyEvent) and pressed and event.key() in _MOVES:
            # Arrow keys move through the list while the words are typed.
            self.list.event(event)
            return True
        return super().eventFilter(watched, event)
