"""Code viewer: colours, line numbers, search, go to line, and lines that belong to entities."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFocusEvent, QIntValidator, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLineEdit, QMenu, QStackedLayout, QToolButton, QWidget

from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.code.code_editor import NO_HEADINGS, CodeEditor, Heading, NamedPlace
from lowerscope.app.kit.code.marks import Match, Span, Tint, units
from lowerscope.app.kit.dialogs import mark_wrong
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.model.compact_script import CompactScript
from lowerscope.core.model.texts import _


class _Bar(QWidget):
    """One row above the text: a field, a number, buttons; Escape closes it."""

    closed = Signal()  # The user closed the bar.

    def __init__(self, field_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("bar", True)
        self.field = QLineEdit()
        self.field.setAccessibleName(field_name)
        self.field.setPlaceholderText(field_name)
        self.field.installEventFilter(self)
        self.figure = Label(role="quiet")
        self.row = row_of(self, (self.field, 1), self.figure, margins=(8, 4, 4, 4), spacing=4)
        self.hide()

    def add_button(self, icon_name: str, text: str, tooltip: str) -> QToolButton:
        button = IconButton(icon_name, tooltip)
        button.setText(text)
        self.row.addWidget(button)
        return button

    def open_field(self, text: str | None) -> None:
        """Show the bar with the focus in its field."""
        self.show()
        if text is not None:
            self.field.setText(text)
        self.field.selectAll()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_wrong(self, wrong: bool) -> None:
        """Mark the field's text as invalid."""
        if self.field.property("wrong") != wrong:
            mark_wrong(self.field, wrong)
            self.figure.set_role("wrong" if wrong else "quiet")

    def pressed(self, event: QKeyEvent) -> bool:
        """Handle a key of the field; return whether it is consumed."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
            return True
        return False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.KeyPress:
                return self.pressed(event)
            # Escape closes this bar, and triggers none of the window's shortcuts.
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        return super().eventFilter(watched, event)


class FindBar(_Bar):
    """Bar for searching the text."""

    search_changed = Signal()  # The pattern or its options changed.
    next_wanted = Signal()  # Enter or Shift+Enter was pressed, or a button.
    previous_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.field.setAccessibleName(_("Find"))
        self.field.setPlaceholderText(_("Find"))
        self.case = self.add_button("", "Aa", _("Match case"))
        self.regex = self.add_button("", ".*", _("Regular expression"))
        for toggle in (self.case, self.regex):
            toggle.setCheckable(True)
            toggle.toggled.connect(self.search_changed)
        previous = self.add_button("up", "", _("Previous (Shift+Enter)"))
        previous.clicked.connect(self.previous_wanted)
        following = self.add_button("down", "", _("Next (Enter)"))
        following.clicked.connect(self.next_wanted)
        close = self.add_button("close", "", _("Close (Esc)"))
        close.clicked.connect(self.closed)
        self.field.textChanged.connect(self.search_changed)

    def show_count(self, position: int, count: int, more: bool) -> None:
        """Show the position among the matches; ``more`` if counting stopped at the limit."""
        self.set_wrong(bool(self.field.text()) and count == 0)
        if not self.field.text():
            self.figure.setText("")
        elif count == 0:
            self.figure.setText(_("none"))
        else:
            total = f"{count:,}+" if more else f"{count:,}"
            self.figure.setText(_("{position:,} of {total}", position=position, total=total))

    def show_wrong_pattern(self, reason: str) -> None:
        """Show that the pattern is not a valid regular expression."""
        self.set_wrong(True)
        self.figure.setText(_("invalid pattern"))
        self.figure.setToolTip(reason)

    def pressed(self, event: QKeyEvent) -> bool:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F3):
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            (self.previous_wanted if back else self.next_wanted).emit()
            return True
        return super().pressed(event)


class GoToLineBar(_Bar):
    """Bar for going to a line."""

    line_chosen = Signal(int)  # A line was entered, from 1.

    def __init__(self) -> None:
        super().__init__("")
        self.field.setAccessibleName(_("Line"))
        self.field.setPlaceholderText(_("Go to line"))
        self.field.setValidator(QIntValidator(1, 99_999_999, self))
        close = self.add_button("close", "", _("Close (Esc)"))
        close.clicked.connect(self.closed)

    def open_for(self, line: int, count: int) -> None:
        """Show the bar with this line, of `count` lines."""
        self.figure.setText(_("of {count:,}", count=count))
        self.open_field(str(line))

    def pressed(self, event: QKeyEvent) -> bool:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.field.text():
                self.line_chosen.emit(int(self.field.text()))
                self.closed.emit()
            return True
        return super().pressed(event)


def compile_pattern(text: str, match_case: bool, is_regex: bool) -> re.Pattern[str]:
    """Return the compiled pattern; raises ``re.error`` for an invalid regular expression."""
    flags = re.MULTILINE | (re.NOFLAG if match_case else re.IGNORECASE)
    return re.compile(text if is_regex else re.escape(text), flags)


def find_all(
    pattern: re.Pattern[str], lines: Iterable[str], limit: int, first: int = 0
) -> list[Match]:
    """Return the matches of a pattern, none across lines and none empty; at most ``limit``.

    Args:
        first: Number of the first of these lines.
    """
    found: list[Match] = []
    for number, line in enumerate(lines, first):
        for match in pattern.finditer(line):
            start, end = match.span()
            if start == end:
                continue
            found.append(Match(number, units(line[:start]), units(line[:end])))
            if len(found) == limit:
                return found
    return found


#: Bound on matches that are found and counted; beyond it the count has a "+".
MOST_MATCHES = 10_000
_LINES = 2_000
_SLICE_MS = 10.0


class Searched(Protocol):
    """Searchable text, such as a `CodeEditor`; lines count from 0."""

    def lines(self) -> Sequence[str]: ...

    def caret(self) -> tuple[int, int]: ...

    def go_to(self, line: int, start: int = 0, end: int = 0) -> None: ...

    def show_matches(self, matches: Sequence[Match], current: Match | None) -> None: ...


class CodeFinding(QObject):
    """Search in the text of an editor, in slices.

    Args:
        editor: The text that is searched, and shows the matches.
        bar: The bar with the pattern; it shows the number of matches.
    """

    def __init__(self, editor: Searched, bar: FindBar) -> None:
        super().__init__(bar)
        self._editor = editor
        self._bar = bar
        self._pattern: re.Pattern[str] | None = None
        self._next_line = 0
        self._from = (0, 0)
        self._matches: list[Match] = []
        self._current = -1
        self._going_on = QTimer(self)
        self._going_on.setInterval(0)
        self._going_on.timeout.connect(self._search_on)
        bar.search_changed.connect(self.search)
        bar.next_wanted.connect(self.next)
        bar.previous_wanted.connect(self.previous)

    def search(self) -> None:
        """Search for the bar's pattern, and go to the first match from the caret on."""
        typed = self._bar.field.text()
        self.clear()
        self._from = self._editor.caret()
        if not typed:
            self._bar.show_count(0, 0, False)
            return
        try:
            self._pattern = compile_pattern(
                typed, self._bar.case.isChecked(), self._bar.regex.isChecked()
            )
        except re.error as error:
            self._bar.show_wrong_pattern(str(error))
            return
        self._search_on()

    def next(self) -> None:
        """Go to the next match, wrapping around."""
        self._step(1)

    def previous(self) -> None:
        """Go to the previous match, wrapping around."""
        self._step(-1)

    def clear(self) -> None:
        """Clear the matches."""
        self._going_on.stop()
        self._pattern, self._next_line = None, 0
        self._matches, self._current = [], -1
        self._editor.show_matches([], None)

    @property
    def settled(self) -> bool:
        """Return whether the search is complete."""
        return not self._going_on.isActive()

    def _search_on(self) -> None:
        assert self._pattern is not None
        end = time.perf_counter() + _SLICE_MS / 1000
        lines = self._editor.lines()
        while self._next_line < len(lines) and len(self._matches) < MOST_MATCHES:
            if time.perf_counter() > end:
                break
            part = lines[self._next_line : self._next_line + _LINES]
            most = MOST_MATCHES - len(self._matches)
            self._matches += find_all(self._pattern, part, most, self._next_line)
            self._next_line += _LINES
        done = self._next_line >= len(lines) or len(self._matches) == MOST_MATCHES
        if done:
            self._going_on.stop()
        elif not self._going_on.isActive():
            self._going_on.start()
        self._show(done)

    def _show(self, done: bool) -> None:
        """Go to the first match from the caret's start on; wrap around once all are known."""
        if self._current < 0:
            after = (
                index
                for index, match in enumerate(self._matches)
                if (match.line, match.start) >= self._from
            )
            round_the_end = 0 if done and self._matches else -1
            self._current = next(after, round_the_end)
            self._go(self._current)
        else:
            self._mark()

    def _step(self, by: int) -> None:
        if not self._matches:
            self.search()
        elif self._current >= 0:
            self._go((self._current + by) % len(self._matches))

    def _go(self, index: int) -> None:
        self._current = index
        self._mark()
        if index >= 0:
            match = self._matches[index]
            self._editor.go_to(match.line, match.start, match.end)

    def _mark(self) -> None:
        current = self._matches[self._current] if self._current >= 0 else None
        self._editor.show_matches(self._matches, current)
        count = len(self._matches)
        if self._current >= 0 or not self._going_on.isActive():
            more = count == MOST_MATCHES or self._going_on.isActive()
            self._bar.show_count(self._current + 1, count, more)


class Viewer(QWidget):
    """A viewer of text: its find bar, its commands by key and menu, and an empty state.

    Args:
        searched: The text that the find bar searches.
    """

    def __init__(self, name: str, searched: Searched) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.find_bar = FindBar()
        self.finding = CodeFinding(searched, self.find_bar)
        self.empty = EmptyState()
        self._commands: dict[str, Callable[[], object]] = {
            "find": self.open_find,
            "next": self.finding.next,
            "previous": self.finding.previous,
            "close": self._close_bars,
            "select-all": lambda: self.active.selectAll(),
            "fold": lambda: self.active.fold(),
            "unfold": lambda: self.active.unfold(),
            "fold-all": lambda: self.active.fold_all(),
            "unfold-all": lambda: self.active.unfold_all(),
        }
        self._page = QWidget()
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self._page)
        self.find_bar.closed.connect(self._close_bars)

    @property
    def active(self) -> CodeEditor:
        """The text that has the focus, the caret and the selection."""
        raise NotImplementedError

    def set_empty(self, title: str, hint: str = "") -> None:
        """Set the text that is shown while there is nothing else."""
        self.empty.set_text(title, hint)

    def press(self, key: str) -> None:
        """Run a command of a key or of the menu."""
        self._commands[key]()

    def open_find(self) -> None:
        """Open the find bar with the selection, or the previous pattern."""
        # As shown: paragraphs are separated by U+2029.
        chosen = self.active.textCursor().selectedText()
        self.find_bar.open_field(chosen if chosen and "\u2029" not in chosen else None)
        self.finding.search()

    def _close_bars(self) -> None:
        self.find_bar.hide()
        self.finding.clear()
        self.active.setFocus()

    def _listen_to(self, editor: CodeEditor) -> None:
        """Run the commands of an editor's keys, and open its menu."""
        editor.key_pressed.connect(self.press)
        editor.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        editor.customContextMenuRequested.connect(self._open_menu)

    def _open_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._fill_menu(menu, position)
        menu.popup(self.active.viewport().mapToGlobal(position))

    def _fill_menu(self, menu: QMenu, position: QPoint) -> None:
        raise NotImplementedError

    def _add(self, menu: QMenu, text: str, command: str, keys: str = "") -> QAction:
        action = menu.addAction(text, partial(self.press, command))
        action.setShortcut(QKeySequence(keys))
        return action

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would skip what is before it.
        self.active.setFocus(event.reason())


class CodeView(Viewer):
    """A text viewer whose lines belong to entities."""

    # A line was clicked, without dragging, or entered: its innermost entity.
    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)  # The innermost entity under the mouse, or ``""``.
    # A heading was clicked or entered: its key, and whether its action was clicked.
    heading_clicked = Signal(str, bool)
    # The context menu of this entity, or ``""``, is about to open: add actions to it.
    menu_opening = Signal(str, object)

    def __init__(self, name: str) -> None:
        self.editor = CodeEditor()
        super().__init__(name, self.editor)
        self._language = ""
        self._shown_as: tuple[CompactScript | None, bool, Mapping[int, Heading]] = (
            None,
            False,
            NO_HEADINGS,
        )
        # As given: for the lines of the printed text.
        self._spans: tuple[Span, ...] = ()
        self._places: tuple[NamedPlace, ...] = ()
        self._changed: tuple[int, ...] = ()
        self._here = 0
        self.editor.setAccessibleName(name)
        self.go_to_bar = GoToLineBar()
        column_of(self._page, self.find_bar, self.go_to_bar, (self.editor, 1))
        self._commands |= {"line": self.open_go_to_line, "copy": self.editor.copy}
        self._listen_to(self.editor)
        self.editor.entity_clicked.connect(self.entity_clicked)
        self.editor.heading_clicked.connect(self.heading_clicked)
        self.editor.arranged.connect(self._mark_anew)
        self.editor.entity_hovered.connect(self.entity_hovered)
        self.go_to_bar.closed.connect(self._close_bars)
        self.go_to_bar.line_chosen.connect(self.go_to_line)

    @property
    def active(self) -> CodeEditor:
        return self.editor

    def set_text(
        self,
        text: str,
        language: str = "text",
        form: CompactScript | None = None,
        *,
        wraps: bool = False,
        headings: Mapping[int, Heading] = NO_HEADINGS,
        keep_folds: bool = False,
    ) -> None:
        """Show a text.

        The same text in the same language keeps its position, spans and marks.

        Args:
            text: The text; ``""`` shows the empty state.
            language: ``"tvmscript"``, ``"python"``, ``"llvm"``, ``"asm"``, ``"bytecode"``,
                ``"json"``, ``"c"``; any other has no colours.
            form: Edits of lines, and lines that are hidden. Copied text is as printed.
            wraps: Whether long lines are wrapped.
            headings: Lines that are headings, by number from 0.
            keep_folds: Fold the regions that were folded in the previous text, if they still exist.
        """
        same = text == self.editor.text() and language == self._language
        if same and (form, wraps, headings) == self._shown_as:
            return
        self._language, self._shown_as = language, (form, wraps, headings)
        self.editor.set_text(
            text, language, form, wraps=wraps, headings=headings, keep_folds=keep_folds
        )
        self._stack.setCurrentWidget(self._page if text else self.empty)
        if not same:
            self._spans, self._places, self._changed, self._here = (), (), (), 0
        self._mark_anew()

    def text(self) -> str:
        """Return the printed text, with a line for each heading."""
        return self.editor.text()

    def printed(self) -> str:
        """Return the printed text without headings."""
        last = len(self.editor.lines()) - 1
        return self.editor.text_between((0, 0), (last, len(self.editor.lines()[last])))

    # Lines of the printed text, from 1

    def set_spans(self, spans: Sequence[Span]) -> None:
        """Set the lines of entities; valid until the text changes."""
        self._spans = tuple(spans)
        self._mark_spans()
        self.editor.repaint_lines()

    def set_cards(self, places: Iterable[NamedPlace]) -> None:
        """Set the cards of names; valid until the text changes."""
        self._places = tuple(places)
        self._mark_cards()

    def set_changed_lines(self, lines: Iterable[int]) -> None:
        """Mark these lines, from 1, as changed."""
        self._changed = tuple(lines)
        self._mark_changes()
        self.editor.repaint_lines()

    def point_at(self, line: int) -> None:
        """Mark this line, from 1, as the current one, and scroll to it; 0 for none."""
        self._here = line
        self._point()
        if line:
            shown = self.editor.content.first_of(line - 1)
            self.editor.show_lines(shown, shown)
        self.editor.repaint_lines()

    def caret_line(self) -> int:
        """Return the line of the caret, from 1."""
        return self.editor.content.line_of(self.editor.caret()[0]) + 1

    def _mark_anew(self) -> None:
        """Mark the lines of a text that is arranged anew."""
        self._mark_spans()
        self._mark_cards()
        self._mark_changes()
        self._point()
        self.editor.repaint_lines()
        if self.find_bar.isVisibleTo(self):
            self.finding.search()

    def _mark_spans(self) -> None:
        lines = (self._shown_lines(each.first, each.last) for each in self._spans)
        self.editor.marks.set_spans(
            [
                Span(span.entity, *shown)
                for span, shown in zip(self._spans, lines, strict=True)
                if shown[0] <= shown[1]
            ]
        )

    def _mark_cards(self) -> None:
        places = []
        for place in self._places:
            first, last = self._shown_lines(place.first, place.last)
            places.append(replace(place, first=first, last=last))
        self.editor.cards.set_places(places)

    def _mark_changes(self) -> None:
        shown = (self._shown_lines(line, line) for line in self._changed)
        self.editor.marks.change(line for first, last in shown for line in range(first, last + 1))

    def _point(self) -> None:
        self.editor.marks.point(self._shown_lines(self._here, self._here)[0] if self._here else 0)

    def _shown_lines(self, first: int, last: int) -> tuple[int, int]:
        """Return the first and the last shown line of a range, from 1; none of hidden lines."""
        content = self.editor.content
        return content.first_of(first - 1) + 1, content.last_of(last - 1) + 1

    # The view

    def set_selection(self, entities: Collection[str]) -> None:
        """Mark the lines of these entities as selected; the view does not move."""
        self.editor.marks.select(entities)
        self.editor.repaint_lines()

    def reveal(self, entity: str) -> bool:
        """Scroll to the lines of an entity, centred if they were far.

        Returns:
            False when the entity has no lines in this text.
        """
        return self.editor.reveal(entity)

    def place(self) -> tuple[int, int]:
        """Return the first visible line, from 0, and the horizontal scroll position."""
        line = self.editor.content.line_of(self.editor.top_line())
        return line, self.editor.horizontalScrollBar().value()

    def set_place(self, place: tuple[int, int]) -> None:
        """Restore a scroll position, as far as this text goes."""
        self.editor.set_top_line(self.editor.content.first_of(place[0]))
        self.editor.horizontalScrollBar().setValue(place[1])

    def set_tint(self, tint: Tint | None) -> None:
        """Set the function for the palette colours of entities; ``None`` for no colours."""
        self.editor.marks.tint = tint
        self.editor.repaint_lines()

    def numbered_lines(self) -> Iterator[tuple[int, str]]:
        """Yield the shown lines that have a number, with it."""
        content = self.editor.content
        for shown, line in enumerate(content.lines):
            if number := content.number(shown):
                yield number, line

    def go_to_line(self, number: int) -> None:
        """Put the caret on the line with this number, and scroll to it."""
        self.editor.go_to(self.editor.content.numbered(number))

    # Search

    def open_find(self) -> None:
        if self.editor.text():
            self.go_to_bar.hide()
            super().open_find()

    def open_go_to_line(self) -> None:
        """Open the bar for going to a line."""
        if not self.editor.text():
            return
        self._close_bars()
        content = self.editor.content
        line = content.number(content.first_of(self.caret_line() - 1))
        self.go_to_bar.open_for(line, content.count)

    def _close_bars(self) -> None:
        self.go_to_bar.hide()
        super()._close_bars()

    def _fill_menu(self, menu: QMenu, position: QPoint) -> None:
        copy = self._add(menu, _("Copy"), "copy", "Ctrl+C")
        copy.setEnabled(self.editor.textCursor().hasSelection())
        self._add(menu, _("Select all"), "select-all", "Ctrl+A")
        menu.addSeparator()
        self._add(menu, _("Find…"), "find", "Ctrl+F")
        self._add(menu, _("Go to line…"), "line", "Ctrl+G")
        menu.addSeparator()
        self._add(menu, _("Fold all"), "fold-all")
        self._add(menu, _("Unfold all"), "unfold-all")
        self.menu_opening.emit(self.editor.entity_at(position.y()), menu)
