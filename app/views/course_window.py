"""The page that goes through the course step by step, with its commands to be clicked."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextBlock, QTextCharFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.widgets.typefaces import code_font
from lowerscope.core.cli import recipe_of_command
from lowerscope.core.errors import LowerscopeError, Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.spec import with_absolute_paths
from lowerscope.resources import HELP

SIZE = (760, 760)
PAGE = HELP / "course.md"

_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FOLDER = re.compile(r"(?<![\w/])course/")
_SCHEME = "open:"
_ABOVE_HEADING = 22.0


class CourseWindow(QDialog):
    """The page. Its commands open in the window what they show on a terminal.

    Parameters
    ----------
    open_recipe
        Called with what a command that was clicked is about.
    report
        Called with what went wrong.
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
        self._commands: list[str] = []
        self.setWindowTitle(self.tr("The course, step by step"))
        self.resize(*SIZE)
        self.page = QTextBrowser()
        self.page.setAccessibleName(self.tr("The course, step by step"))
        self.page.setOpenLinks(False)
        self.page.document().setDocumentMargin(20)
        self.page.anchorClicked.connect(self._follow)
        self.write = QPushButton(self.tr("Write its files…"))
        self.write.clicked.connect(self.choose_folder)
        self.where = QLabel(self.tr("Write the files of the page first, then click its commands."))
        self.where.setProperty("role", "quiet")
        row = QHBoxLayout()
        row.setContentsMargins(12, 8, 12, 8)
        row.addWidget(self.where, 1)
        row.addWidget(self.write)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.page, 1)
        column.addLayout(row)
        self._show_page()

    def choose_folder(self) -> None:
        """Ask where the files of the page are to stand, and write them."""
        chosen = QFileDialog.getExistingDirectory(self, self.tr("Where to put the folder course"))
        if chosen:
            self.write_files(Path(chosen) / "course")

    def write_files(self, folder: Path) -> None:
        """Write the files of the page to a folder; those that are there already stay."""
        from lowerscope.core.export.course import write_course

        try:
            if not folder.exists():
                write_course(folder, force=False)
        except LowerscopeError as error:
            self._report(error.problem)
            return
        self._folder = folder
        self.where.setText(str(folder))

    def open_command(self, command: str) -> None:
        """Open what a command of the page is about."""
        if "course/" in command and self._folder is None:
            self.choose_folder()
            if self._folder is None:
                return
        try:
            recipe = recipe_of_command(
                [_FOLDER.sub(lambda _: f"{self._folder}/", each) for each in command.split()[1:]]
            )
        except LowerscopeError as error:
            self._report(error.problem)
            return
        self._open_recipe(with_absolute_paths(recipe))

    def _show_page(self) -> None:
        self.page.document().setDefaultFont(self.font())
        self.page.setMarkdown(_COMMANDS.sub(self._linked, PAGE.read_text("utf-8")))
        block = self.page.document().begin()
        while block.isValid():
            _dress(block)
            block = block.next()
        self.page.moveCursor(QTextCursor.MoveOperation.Start)

    def _linked(self, match: re.Match[str]) -> str:
        """Return the commands of a block, each as a link where it is about a source."""
        lines = []
        for command in match[1].splitlines():
            if command.split()[1] in ("show", "run"):
                self._commands.append(command)
                lines.append(f"[`{command}`]({_SCHEME}{len(self._commands) - 1})")
            else:
                lines.append(f"`{command}`")
        return "\n\n".join(lines) + "\n"

    def _follow(self, link: QUrl) -> None:
        text = link.toString()
        if text.startswith(_SCHEME):
            self.open_command(self._commands[int(text.removeprefix(_SCHEME))])


def _dress(block: QTextBlock) -> None:
    """Give a paragraph the program's own typeface for code, and a heading room above it."""
    cursor = QTextCursor(block)
    if block.blockFormat().headingLevel():
        shape = block.blockFormat()
        shape.setTopMargin(_ABOVE_HEADING)
        cursor.setBlockFormat(shape)
    fence = block.blockFormat().hasProperty(QTextFormat.Property.BlockCodeFence)
    if fence:
        shape = block.blockFormat()
        shape.setNonBreakableLines(False)
        cursor.setBlockFormat(shape)
    code: list[tuple[int, int]] = []
    pieces = block.begin()
    while not pieces.atEnd():
        fragment = pieces.fragment()
        if fence or fragment.charFormat().fontFixedPitch():
            code.append((fragment.position(), fragment.position() + fragment.length()))
        pieces += 1
    style = QTextCharFormat()
    style.setFont(code_font(), QTextCharFormat.FontPropertiesInheritanceBehavior.FontPropertiesAll)
    for first, last in code:
        cursor.setPosition(first)
        cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(style)
