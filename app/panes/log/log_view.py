"""The drawer: the log of the children, and the list of problems with their remedies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import accumulate
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QTextCursor
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.file_broker import cannot_write
from lowerscope.app.engine.messages import printable
from lowerscope.app.engine.window_words import note_in_window
from lowerscope.app.kit import theme
from lowerscope.app.kit.background import in_thread, when_done
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.dialogs import file_to_save
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of, scrolled
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, PlainTextEdit
from lowerscope.app.kit.typefaces import code_font
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _, capitalized

# --- Saving of a text that is too long to be shown completely ---


class WholeText(QObject):
    """Writes texts to the user's files in the background."""

    done = Signal(object)  # The path of the written file, or a `Problem`.

    def __init__(self, document: Document, widget: QWidget) -> None:
        super().__init__(widget)
        self._document = document
        self._widget = widget

    def choose_file(self, title: str, name: str, text: Callable[[], Iterator[bytes]]) -> None:
        """Select a file in a dialog, and write a text to it."""
        if path := file_to_save(self._widget, title, name, _("Text files (*.txt *.log)")):
            self.save(Path(path), text)

    def save(self, path: Path, text: Callable[[], Iterator[bytes]]) -> None:
        """Write the text available by now to a file."""
        pieces = text()

        def write() -> Path | Problem:
            try:
                with atomic_file(path) as made, made.open("wb") as file:
                    file.writelines(pieces)
            except OSError as error:
                return cannot_write(error, path)
            return path

        when_done(in_thread("saving a text", write), self, self._report)

    def _report(self, future: Future[Path | Problem]) -> None:
        answer = future.result()
        if isinstance(answer, Problem):
            self._document.report(answer)
        else:
            self._document.notify(_("Saved as {answer}.", answer=answer), "info")
        self.done.emit(answer)


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

    def __init__(self, document: Document, children: Children) -> None:
        super().__init__()
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
        column_of(self.viewport(), self.empty)
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


# --- The list of problems, each with its remedies ---

NOTES_CHARACTERS = 10_000
"""Maximum characters of the notes listed, each of which has a widget of its own."""


Remedies = list[tuple[str, Callable[[], object]]]
"""Titles of buttons, and their actions."""


class ProblemsView(QWidget):
    """The page with the problems of the last change or run.

    Args:
        notes: Returns notes besides the document's.
        remedies: Returns more remedies of a problem.
    """

    tracer_wanted = Signal(str)  # Trace with another tracer, ``"fx"`` or ``"export"``, instead.
    # Translate by Lowerscope's rules instead of an importer of TVM's.
    own_translator_wanted = Signal()
    trust_wanted = Signal()  # Open the file although it can run code.
    retry_wanted = Signal()  # Try again, since the file has been corrected.
    inputs_wanted = Signal()  # Show the form for the inputs, since they may be wrong.
    question_wanted = Signal()  # Show again the dialog that resolves the problem.
    library_wanted = Signal()  # Load a file with library functions.
    step_wanted = Signal()  # Show the failed step.

    def __init__(
        self,
        document: Document,
        notes: Callable[[], Sequence[str]],
        remedies: Callable[[Problem], Remedies],
    ) -> None:
        super().__init__()
        self._document = document
        self._more_notes = notes
        self._more_remedies = remedies
        self._column = column_of(self)
        self._content: QWidget | None = None
        document.on(("problems",), self.show_problems)
        document.on(("snapshot",), self.show_problems)
        self.show_problems()

    def show_problems(self) -> None:
        """Show the problems and notes again."""
        if self._content is not None:
            self._column.removeWidget(self._content)
            self._content.hide()
            self._content.deleteLater()
        problems = self._document.problems
        notes = (*self._document.notes, *(Note(text=each) for each in self._more_notes()))
        self._content = self._list(problems, notes) if problems or notes else self._nothing()
        self._column.addWidget(self._content)

    def _nothing(self) -> QWidget:
        return EmptyState(
            _("No problems"), _("Problems are listed here, with what to do about them.")
        )

    def _list(self, problems: tuple[Problem, ...], notes: tuple[Note, ...]) -> QWidget:
        sizes = accumulate(len(note.line()) + 50 for note in notes)
        count = max(1, sum(size <= NOTES_CHARACTERS for size in sizes))
        parts = [*map(self._card, problems), *map(self._note, notes[:count])]
        if len(notes) > count:
            more = _("… {count:,} more notes", count=len(notes) - count)
            parts.append(_text(more, "quiet"))
        inside = QWidget()
        column_of(inside, *parts, STRETCH, margins=12, spacing=8)
        return scrolled(inside)

    def _note(self, note: Note) -> QWidget:
        note = note_in_window(note)
        if note.code:
            # It prevents runs, and is announced before them.
            todo = capitalized(note.todo)
            return self._card(Problem(what=note.text, where=note.where, todo=todo, code=note.code))
        return _text(note.line())

    def _card(self, problem: Problem) -> QWidget:
        card = QWidget()
        column = column_of(card, _text(f"✕ {problem.headline}", "wrong-title"), spacing=4)
        if problem.where:
            column.addWidget(_text(problem.where, "quiet"))
        if problem.todo:
            column.addWidget(_text(problem.todo))
        buttons = [
            push_button(label, act=partial(self._act, act))
            for label, act in self._remedies(problem)
        ]
        column.addLayout(row_of(None, *buttons, STRETCH, margins=None, spacing=8))
        if problem.details:
            details = PlainTextEdit(problem.details)
            details.setReadOnly(True)
            details.setFont(code_font())
            details.setAccessibleName(_("Details of the problem"))
            details.setMinimumHeight(120)
            column.addWidget(details)
        return card

    def _act(self, act: Callable[[], object], _checked: bool = False) -> None:
        act()

    def _remedies(self, problem: Problem) -> Remedies:
        by_code: dict[str, tuple[str, Callable[[], object]]] = {
            f"try-{tracer}": (
                _("Trace with torch.{tracer}", tracer=tracer),
                partial(self.tracer_wanted.emit, tracer),
            )
            for tracer in ("fx", "export")
        }
        by_code |= {
            "own-translator": (
                _("Translate with Lowerscope's rules"),
                self.own_translator_wanted.emit,
            ),
            "trust": (_("Open anyway"), self.trust_wanted.emit),
            "choose-entry": (_("Choose…"), self.question_wanted.emit),
            "give-args": (_("Fill in the arguments…"), self.question_wanted.emit),
            "give-inputs": (_("Fill in the inputs…"), self.question_wanted.emit),
            "missing-function": (_("Load a library file…"), self.library_wanted.emit),
            "failed-step": (_("Show the step"), self.step_wanted.emit),
        }
        remedies = [by_code[problem.code]] if problem.code in by_code else []
        remedies += self._more_remedies(problem)
        refused = self._document.rejected
        given = refused is not None and any(each.name for each in refused.inputs)
        if problem.code == "change-inputs" or (given and not problem.code):
            remedies.append((_("Change the inputs…"), self.inputs_wanted.emit))
        if refused is not None:
            remedies.append((_("Try again"), self.retry_wanted.emit))
        return remedies


def _text(text: str, role: str = "") -> Label:
    label = Label(text, role=role, wraps=True)
    label.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return label
