"""A viewer of code: colours, line numbers, find, go to line, and lines that belong to entities."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QStackedLayout, QVBoxLayout, QWidget

from lowerscope.app.widgets.code_editor import CodeEditor
from lowerscope.app.widgets.code_lines import Match, Span, compile_pattern, find_all
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.app.widgets.find_bar import FindBar, GoToLineBar

__all__ = ["CodeView", "Span"]

#: So many places are found and counted; beyond it the count says "+".
MOST_MATCHES = 10_000


class CodeView(QWidget):
    """A text to read, tied to entities.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.

    Signals
    -------
    entity_clicked(str, Qt.KeyboardModifiers)
        A line was clicked, without dragging, or entered: its innermost entity.
    entity_hovered(str)
        The innermost entity under the mouse, or ``""``.
    menu_opening(str, QMenu)
        The context menu is about to open on this entity, or ``""``: add actions to it.
    """

    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)
    menu_opening = Signal(str, object)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._matches: list[Match] = []
        self._current = -1
        self._language = ""
        self.editor = CodeEditor()
        self.editor.setAccessibleName(name)
        self.find_bar = FindBar()
        self.go_to_bar = GoToLineBar()
        self.empty = EmptyState()
        self.setAccessibleName(name)
        self.setFocusProxy(self.editor)
        self._lay_out()
        self._connect()

    def set_text(
        self,
        text: str,
        language: str = "text",
        hidden: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        """Show a text.

        The same text in the same language keeps its place, spans and marks.

        Parameters
        ----------
        text : str
            The text; ``""`` shows the empty state.
        language : str
            ``"tvmscript"``, ``"python"``, ``"llvm"``, ``"asm"``, ``"json"``, ``"c"``; any other
            has no colours.
        hidden : mapping of int to (int, int), optional
            A part of a line that is not shown, by the line's number, from 0. It stands in the
            line's tool tip, and in what is copied.
        """
        same = text == self.editor.text() and language == self._language
        if same and (hidden or {}) == self.editor.hidden():
            return
        self._language = language
        self.editor.set_text(text, language, hidden)
        self._stack.setCurrentWidget(self._page if text else self.empty)
        if self.find_bar.isVisibleTo(self):
            self._search()

    def text(self) -> str:
        """The text that is shown."""
        return self.editor.text()

    def set_spans(self, spans: Sequence[Span]) -> None:
        """Say which lines belong to which entities; it holds until the text changes."""
        self.editor.set_spans(spans)

    def set_selection(self, entities: Collection[str]) -> None:
        """Paint the lines of these entities as selected; the view does not move."""
        self.editor.set_selection(entities)

    def reveal(self, entity: str) -> bool:
        """Bring the lines of an entity into view, in the middle when they were far.

        Returns
        -------
        bool
            False when the entity has no lines in this text.
        """
        return self.editor.reveal(entity)

    def set_changed_lines(self, lines: Iterable[int]) -> None:
        """Give these lines, from 1, the ground of a change."""
        self.editor.set_changed_lines(lines)

    def go_to_line(self, line: int) -> None:
        """Put the caret on this line, from 1, and show it."""
        self.editor.go_to(line - 1)

    def set_empty(self, title: str, hint: str = "") -> None:
        """What is said while there is no text."""
        self.empty.set_text(title, hint)

    # Finding

    def open_find(self, text: str | None = None) -> None:
        """Open the find bar with this text, or what is selected, or what was there."""
        if not self.editor.text():
            return
        chosen = self.editor.textCursor().selectedText()
        if text is None and chosen and "\u2029" not in chosen:
            text = chosen
        self.go_to_bar.hide()
        self.find_bar.open_field(text)
        self._search()

    def open_go_to_line(self) -> None:
        """Open the bar that asks for a line."""
        if not self.editor.text():
            return
        self._close_bars()
        line = self.editor.caret()[0] + 1
        self.go_to_bar.open_for(line, len(self.editor.lines()))

    def find_next(self) -> None:
        """Go to the next place, round the end."""
        self._step(1)

    def find_previous(self) -> None:
        """Go to the previous place, round the start."""
        self._step(-1)

    def _search(self) -> None:
        typed = self.find_bar.field.text()
        self._matches, self._current = [], -1
        if typed:
            try:
                pattern = compile_pattern(
                    typed, self.find_bar.case.isChecked(), self.find_bar.regex.isChecked()
                )
            except re.error as error:
                self.editor.set_matches([], None)
                self.find_bar.show_wrong_pattern(str(error))
                return
            self._matches = find_all(pattern, self.editor.lines(), MOST_MATCHES)
        caret = self.editor.caret()
        after = (i for i, match in enumerate(self._matches) if (match.line, match.start) >= caret)
        self._go_to_match(next(after, 0) if self._matches else -1)

    def _step(self, by: int) -> None:
        if not self._matches:
            self._search()
        elif self._current >= 0:
            self._go_to_match((self._current + by) % len(self._matches))

    def _go_to_match(self, index: int) -> None:
        self._current = index
        match = self._matches[index] if index >= 0 else None
        self.editor.set_matches(self._matches, match)
        if match is not None:
            self.editor.go_to(match.line, match.start, match.end)
        count = len(self._matches)
        self.find_bar.show_count(index + 1, count, count == MOST_MATCHES)

    def _close_bars(self) -> None:
        self.find_bar.hide()
        self.go_to_bar.hide()
        self._matches, self._current = [], -1
        self.editor.set_matches([], None)
        self.editor.setFocus()

    # Making it

    def _lay_out(self) -> None:
        self._page = QWidget()
        page = QVBoxLayout(self._page)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(self.find_bar)
        page.addWidget(self.go_to_bar)
        page.addWidget(self.editor, 1)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self._page)

    def _connect(self) -> None:
        self.editor.entity_clicked.connect(self.entity_clicked)
        self.editor.entity_hovered.connect(self.entity_hovered)
        self.editor.find_wanted.connect(self.open_find)
        self.editor.line_wanted.connect(self.open_go_to_line)
        self.editor.next_wanted.connect(self.find_next)
        self.editor.previous_wanted.connect(self.find_previous)
        self.editor.escape_pressed.connect(self._close_bars)
        self.editor.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.editor.customContextMenuRequested.connect(self._open_menu)
        self.find_bar.search_changed.connect(self._search)
        self.find_bar.next_wanted.connect(self.find_next)
        self.find_bar.previous_wanted.connect(self.find_previous)
        self.find_bar.closed.connect(self._close_bars)
        self.go_to_bar.closed.connect(self._close_bars)
        self.go_to_bar.line_chosen.connect(self.go_to_line)

    def _open_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = QAction(self.tr("Copy"), menu)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setEnabled(self.editor.textCursor().hasSelection())
        copy.triggered.connect(self.editor.copy)
        everything = QAction(self.tr("Select All"), menu)
        everything.setShortcut(QKeySequence.StandardKey.SelectAll)
        everything.triggered.connect(self.editor.selectAll)
        find = QAction(self.tr("Find…"), menu)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.triggered.connect(self.editor.find_wanted)
        line = QAction(self.tr("Go to Line…"), menu)
        line.setShortcut(QKeySequence("Ctrl+G"))
        line.triggered.connect(self.open_go_to_line)
        menu.addActions([copy, everything])
        menu.addSeparator()
        menu.addActions([find, line])
        self.menu_opening.emit(self.editor.entity_at(position.y()), menu)
        menu.popup(self.editor.viewport().mapToGlobal(position))
