"""Modal question: a confirmation, or a line of text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QLineEdit, QVBoxLayout, QWidget

from lowerscope.app.kit.finder import Dialog
from lowerscope.app.kit.plain_text import Label

WIDTH = 420


class Question(Dialog):
    """A confirmation with its consequences, a button that performs the action, and *Cancel*.

    Enter cancels, since the action cannot be undone.

    Args:
        title: The window title.
        question: One sentence.
        act: The text of the button that performs the action.
        more: The consequences; empty for none.
    """

    def __init__(
        self, title: str, question: str, act: str, more: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self._question = Label(question)
        self._question.setProperty("role", "title" if more else "")
        said = [self._question]
        if more:
            said.append(Label(more))
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        # The button that performs the action.
        self.act = self.buttons.addButton(act, QDialogButtonBox.ButtonRole.AcceptRole)
        self.act.setAutoDefault(False)
        # The button that cancels.
        self.cancel = self.buttons.button(QDialogButtonBox.StandardButton.Cancel)
        self.cancel.setDefault(True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(8)
        for label in said:
            label.setWordWrap(True)
            column.addWidget(label)
        column.addSpacing(4)
        column.addStretch(1)
        column.addWidget(self.buttons)
        self.setMinimumWidth(WIDTH)
        self.cancel.setFocus()

    def text(self) -> str:
        """Return the question."""
        return self._question.text()


class LineQuestion(Question):
    """A question that is answered with a line of text; Enter accepts it."""

    def __init__(
        self, title: str, question: str, act: str, answer: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(title, question, act, parent=parent)
        self.line = QLineEdit(answer)  # The answer; an empty one cannot be accepted.
        self.line.setAccessibleName(question)
        self.line.textChanged.connect(self._check)
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertWidget(1, self.line)
        self.cancel.setAutoDefault(False)
        self.act.setDefault(True)
        self.act.setProperty("primary", True)
        self.act.style().polish(self.act)
        self.line.setFocus()
        self.line.selectAll()
        self._check()

    def answer(self) -> str:
        """Return the line, stripped of spaces."""
        return self.line.text().strip()

    def _check(self) -> None:
        self.act.setEnabled(bool(self.answer()))


# --- A filter field that is never too narrow for its placeholder ---

_EDGES = 22
"""Pixels of a field beside its text."""


def filter_field(words: str, name: str) -> QLineEdit:
    """Return a filter field with a button that clears it.

    Args:
        words: The placeholder.
    """
    field = QLineEdit()
    field.setPlaceholderText(words)
    field.setAccessibleName(name)
    field.setClearButtonEnabled(True)
    field.setMinimumWidth(field.fontMetrics().horizontalAdvance(words) + _EDGES)
    return field


# --- Marking of fields with an invalid value ---


def mark_wrong(field: QWidget, wrong: bool) -> None:
    """Set or remove the error border of a field."""
    if bool(field.property("wrong")) != wrong:
        field.setProperty("wrong", wrong)
        # The style sheet evaluates properties when it polishes.
        field.style().unpolish(field)
        field.style().polish(field)
