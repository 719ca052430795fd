"""Finding in the code view: the bar, the places, and the way from one to the next."""

import re
import time

from PySide6.QtCore import QObject, QTimer

from lowerscope.app.widgets.code.editor import CodeEditor
from lowerscope.app.widgets.code.find_bar import FindBar
from lowerscope.app.widgets.code.lines import Match, compile_pattern, find_all

#: So many places are found and counted; beyond it the count says "+".
MOST_MATCHES = 10_000
_LINES = 2_000
_SLICE_MS = 10.0


class CodeFinding(QObject):
    """Finds in the text of an editor, a slice of it at a time.

    Parameters
    ----------
    editor : CodeEditor
        Where to find, and what shows the places.
    bar : FindBar
        What to find; it says how much was found.
    """

    def __init__(self, editor: CodeEditor, bar: FindBar) -> None:
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
        """Find what the bar says, and go to the first place from the caret on."""
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
        """Go to the next place, round the end."""
        self._step(1)

    def previous(self) -> None:
        """Go to the previous place, round the start."""
        self._step(-1)

    def clear(self) -> None:
        """Find nothing any more."""
        self._going_on.stop()
        self._pattern, self._next_line = None, 0
        self._matches, self._current = [], -1
        self._editor.marks.find([], None)
        self._editor.repaint_lines()

    @property
    def settled(self) -> bool:
        """Whether everything is found that there is."""
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
        """Go to the first place from where the caret was; round the end, once all are known."""
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
        self._editor.marks.find(self._matches, current)
        self._editor.repaint_lines()
        count = len(self._matches)
        if self._current >= 0 or not self._going_on.isActive():
            more = count == MOST_MATCHES or self._going_on.isActive()
            self._bar.show_count(self._current + 1, count, more)
