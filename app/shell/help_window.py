"""The help window: a list of pages, a search, and the page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QFont,
    QKeyEvent,
    QKeySequence,
    QShortcut,
)
from PySide6.QtWidgets import (
    QFileDialog,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton, push_button
from lowerscope.app.kit.glossary import file_of
from lowerscope.app.kit.layouts import FRAME, column_of, row_of
from lowerscope.app.kit.markdown_view import MarkdownView
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.app.shell import help_pages
from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.files.sources import with_absolute_paths
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _, _n, language

# --- Commands in help pages: a click opens in the window what they refer to ---

_COMMAND = re.compile(r"lowerscope (?:show|run|passes|schedule) (?:sample:|course/)[^&|>]*$")
_FOLDER = re.compile(r"(?<![\w/])course/")


def command_of(line: str) -> str:
    """Return the command in a line of code that opens something, without comment, or ``""``."""
    command = line.partition(" # ")[0].strip()
    return command if _COMMAND.match(command) else ""


@dataclass(frozen=True)
class CommandView:
    """The pane, its page and the function that show the output of a command."""

    pane: str
    page: str = ""
    function: str = ""


OpenRecipe = Callable[[Recipe, CommandView], None]

_PANES = {"schedule": "schedule", "passes": "pipeline", "run": "outcome"}
_STAGES = {
    "fx": ("fx", "table"),
    "code": ("fx", "code"),
    "tensorir": ("tensorir", "script"),
    **{stage: ("tensorir", stage) for stage in ("te", "llvm", "asm", "library")},
}
"""Panes and pages of the stages of ``lowerscope show``; those of others are the Relax module's."""


def view_of(arguments: Sequence[str]) -> CommandView:
    """Return the place in the window for the output of a command."""
    values = dict(pairwise(arguments))
    function = values.get("--function", "")
    if arguments[0] in _PANES:
        return CommandView(_PANES[arguments[0]], function=function)
    stage = values.get("--stage", "relax")
    pane, page = _STAGES.get(stage, ("relax", "script" if stage == "relax" else stage))
    if stage == "numpy" and function not in ("", "main"):
        pane = "tensorir"
    return CommandView(pane, page, function)


class CourseFiles(QWidget):
    """A row that writes the files used by the commands of the course.

    Args:
        open_recipe: Called with the recipe of a clicked command, and what that prints.
        report: Called with a problem.
    """

    def __init__(self, open_recipe: OpenRecipe, report: Callable[[Problem], None]) -> None:
        super().__init__()
        self._open_recipe, self._report = open_recipe, report
        self._folder: Path | None = None
        self.write = push_button(_("Write its files…"), act=self.choose_folder)
        self.where = Label(
            _("Write the files of the page first, then click its commands."), role="quiet"
        )
        row_of(self, (self.where, 1), self.write, margins=(12, 8, 12, 8), spacing=None)

    def choose_folder(self) -> None:
        """Select a folder in a dialog, and write the page's files to it."""
        chosen = QFileDialog.getExistingDirectory(self, _("Location of the folder course"))
        if chosen:
            self.write_files(Path(chosen) / "course")

    def write_files(self, folder: Path) -> None:
        """Write the page's files to a folder; existing ones are kept."""
        from lowerscope.core.cli.main import write_course

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
        self._open_recipe(with_absolute_paths(recipe), view_of(arguments))


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
        open_recipe: Called with the recipe of a clicked command, and what that prints.
        report: Called with a problem.
    """

    def __init__(self, open_recipe: OpenRecipe, report: Callable[[Problem], None]) -> None:
        # Without a parent, it is not blocked by a dialog of the main window.
        super().__init__()
        self._history: list[tuple[Place, int]] = []
        self._at = -1
        self._commands: list[str] = []
        self.setProperty("ground", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.resize(QSize(*SIZE).boundedTo(self.screen().availableSize() - FRAME))
        self.search = QLineEdit()
        self.search.setPlaceholderText(_("Search in all pages"))
        self.search.setAccessibleName(_("Search in all pages"))
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self.search.textChanged.connect(self._show_list)
        self.search.returnPressed.connect(self._open_current)
        self.list = QTreeWidget()
        self.list.setAccessibleName(_("Pages"))
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        self.list.setIndentation(8)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemClicked.connect(self._open_item)
        self.list.itemActivated.connect(self._open_item)
        self.page = MarkdownView(_("Page"), self._link_of_code)
        self.page.link_wanted.connect(self._follow)
        self.group = Label(role="quiet")
        self.back = self._button("left", _("Back (Alt+Left)"), self.go_back)
        self.forward = self._button("right", _("Forward (Alt+Right)"), self.go_forward)
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
            ("F6", partial(self._go_to_part, 1)),
            ("Ctrl+Tab", partial(self._go_to_part, 1)),
            ("Shift+F6", partial(self._go_to_part, -1)),
            ("Ctrl+Shift+Tab", partial(self._go_to_part, -1)),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(act)

    def _go_to_part(self, step: int) -> None:
        """Give the focus to the next part: the search, the list, the page, or the row below it."""
        parts = [self.search, self.list, self.page]
        if self.course.isVisible():
            parts.append(self.course.write)
        focus = self.focusWidget()
        # The buttons above the page are between the list and the page.
        here = parts.index(focus) if focus in parts else 2 - (step > 0)
        parts[(here + step) % len(parts)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    # Pages

    def place(self) -> Place:
        """The current page and section."""
        return self._history[self._at][0]

    def show_page(self, name: str, anchor: str = "") -> None:
        """Show a page, or a section of it."""
        place = Place(name, anchor)
        here = self.place() if self._at >= 0 else None
        if here is not None and here.name == name and anchor in ("", here.anchor):
            # A page that is opened again is where its reader left it.
            if anchor:
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
        self.page.show_text(text, file_of(place.name, language()).parent)
        self.page.mark(self._words())
        if scroll >= 0:
            self.page.verticalScrollBar().setValue(scroll)
        else:
            self._scroll_to(place)
        title = text.partition("\n")[0].removeprefix("# ")
        groups = (each.group for each in help_pages.entries() if each.name == place.name)
        self.group.setText(next(groups, ""))
        self.setWindowTitle(_("{title} – Lowerscope help", title=title))
        self.course.setVisible(any("course/" in command for command in self._commands))
        self.back.setEnabled(self._at > 0)
        self.forward.setEnabled(self._at + 1 < len(self._history))
        if not self.search.text():
            self._select(place.name)

    def _scroll_to(self, place: Place) -> None:
        anchors = help_pages.anchors(place.name)
        if place.anchor in anchors:
            self.page.go_to(anchors.index(place.anchor))
        else:
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
            text = _("No results: try other words")
        elif not whole:
            text = _("No section has all words; these have most")
        elif whole < count:
            text = _("{count} sections, {whole} with all words", count=count, whole=whole)
        else:
            text = _n("1 section", "{count} sections", count)
        self._add_group(text)
        for hit in hits:
            text = f"{hit.title} · {hit.heading}" if hit.heading else hit.title
            self._add(text, Place(hit.name, hit.anchor), hit.line)
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
        name = help_pages.name_of(path) if path else self.place().name
        if "://" not in link and help_pages.is_page(name):
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
