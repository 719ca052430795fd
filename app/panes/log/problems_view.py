"""The list of problems, each with its remedies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.engine.messages import whole_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, PlainTextEdit
from lowerscope.app.kit.typefaces import code_font
from lowerscope.app.panes.common.save_whole import WholeText
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _

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
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._more_notes = notes
        self._more_remedies = remedies
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._content: QWidget | None = None
        self.saving = WholeText(document, self)
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
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(8)
        for problem in problems:
            column.addWidget(self._card(problem))
        sizes = accumulate(len(note.line()) + 50 for note in notes)
        count = max(1, sum(size <= NOTES_CHARACTERS for size in sizes))
        for note in notes[:count]:
            column.addWidget(self._note(note))
        if len(notes) > count:
            more = _("… {count:,} more notes", count=len(notes) - count)
            column.addWidget(_text(more, "quiet"))
        column.addStretch(1)
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(inside)
        return area

    def _note(self, note: Note) -> QWidget:
        if note.code:
            # It prevents runs, and is announced before them.
            problem = Problem(what=note.text, where=note.where, todo=note.todo, code=note.code)
            return self._card(problem)
        return _text(note.line())

    def _card(self, problem: Problem) -> QWidget:
        card = QWidget()
        column = QVBoxLayout(card)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(_text(f"✕ {problem.headline}", "wrong-title"))
        if problem.where:
            column.addWidget(_text(problem.where, "quiet"))
        if problem.todo:
            column.addWidget(_text(problem.todo))
        row = QHBoxLayout()
        row.setSpacing(8)
        for label, act in self._remedies(problem):
            button = QPushButton(label)
            button.clicked.connect(lambda _checked=False, act=act: act())
            row.addWidget(button)
        row.addStretch(1)
        column.addLayout(row)
        if problem.details:
            details = PlainTextEdit(problem.details)
            details.setReadOnly(True)
            details.setFont(code_font())
            details.setAccessibleName(_("Details of the problem"))
            details.setMinimumHeight(120)
            column.addWidget(details)
        return card

    def _remedies(self, problem: Problem) -> Remedies:
        remedies: Remedies = []
        for tracer in ("fx", "export"):
            if problem.code == f"try-{tracer}":
                label = _("Trace with torch.{tracer}", tracer=tracer)
                remedies.append((label, partial(self.tracer_wanted.emit, tracer)))
        if problem.code == "own-translator":
            label = _("Translate with Lowerscope's rules")
            remedies.append((label, self.own_translator_wanted.emit))
        if problem.code == "trust":
            remedies.append((_("Open anyway"), self.trust_wanted.emit))
        if problem.code == "choose-entry":
            remedies.append((_("Choose…"), self.question_wanted.emit))
        if problem.code == "give-args":
            remedies.append((_("Fill in the arguments…"), self.question_wanted.emit))
        if problem.code == "give-inputs":
            remedies.append((_("Fill in the inputs…"), self.question_wanted.emit))
        if problem.code == "missing-function":
            remedies.append((_("Load a library file…"), self.library_wanted.emit))
        if problem.code == "failed-step":
            remedies.append((_("Show the step"), self.step_wanted.emit))
        remedies += self._more_remedies(problem)
        refused = self._document.rejected
        given = refused is not None and any(each.name for each in refused.inputs)
        if problem.code == "change-inputs" or (given and not problem.code):
            remedies.append((_("Change the inputs…"), self.inputs_wanted.emit))
        if refused is not None:
            remedies.append((_("Try again"), self.retry_wanted.emit))
        if (whole := whole_of(problem)) is not None:
            # The text shown marks where it was shortened.
            save = partial(self.saving.choose_file, _("Save the whole text"), "problem.txt")
            remedies.append((_("Save the whole text…"), partial(save, whole)))
        return remedies


def _text(text: str, role: str = "") -> Label:
    label = Label(text)
    label.setWordWrap(True)
    label.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    if role:
        label.setProperty("role", role)
    return label
