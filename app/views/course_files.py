"""Commands in help pages: a click opens in the window what they refer to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QWidget

from lowerscope.app.widgets.plain_text import Label
from lowerscope.core.cli import recipe_of_command
from lowerscope.core.errors import LowerscopeError, Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.recipe_paths import with_absolute_paths

_COMMAND = re.compile(r"lowerscope (?:show|run|passes|schedule) (?:sample:|course/)[^&|>]*$")
_FOLDER = re.compile(r"(?<![\w/])course/")


def command_of(line: str) -> str:
    """Return the command in a line of code that opens something, without comment, or ``""``."""
    command = line.partition(" # ")[0].strip()
    return command if _COMMAND.match(command) else ""


class CourseFiles(QWidget):
    """A row that writes the files used by the commands of the course.

    Parameters
    ----------
    open_recipe
        Called with the recipe of a clicked command.
    report
        Called with a problem.
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
        self.write = QPushButton(self.tr("Write its files…"))
        self.write.clicked.connect(self.choose_folder)
        self.where = Label(self.tr("Write the files of the page first, then click its commands."))
        self.where.setProperty("role", "quiet")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 12, 8)
        row.addWidget(self.where, 1)
        row.addWidget(self.write)

    def choose_folder(self) -> None:
        """Select a folder in a dialog, and write the page's files to it."""
        chosen = QFileDialog.getExistingDirectory(self, self.tr("Where to put the folder course"))
        if chosen:
            self.write_files(Path(chosen) / "course")

    def write_files(self, folder: Path) -> None:
        """Write the page's files to a folder; existing ones are kept."""
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
