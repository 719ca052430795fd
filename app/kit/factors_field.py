"""Factors of an extent, one of which can be left open, with a check of their product."""

from collections.abc import Sequence
from math import prod

from PySide6.QtCore import Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.kit.plain_text import Label

MOST = 8
_WIDTH = 52
_LARGEST = 2**31 - 1

Factor = int | str | None
"""A number; text if it is only known once applied; ``None`` if left open."""


class FactorsField(QWidget):
    """A row of numbers with their product below.

    Args:
        extent: The extent that the product has to cover; ``None`` if unknown.
    """

    edited = Signal()  # The user changed a number, or the number of factors.

    def __init__(self, name: str, extent: int | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._extent = extent
        self.fields: list[QLineEdit] = []
        self._row = QHBoxLayout()
        self._row.setSpacing(4)
        self.more = self._button("+", self.tr("One factor more"))
        self.fewer = self._button("−", self.tr("One factor fewer"))
        self.more.clicked.connect(self._add)
        self.fewer.clicked.connect(self._remove)
        self.check = Label()
        self.check.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(self._row)
        column.addWidget(self.check)
        self.set_values((None, None))

    def set_values(self, values: Sequence[Factor]) -> None:
        """Set the factors."""
        while self._row.count():
            item = self._row.takeAt(0)
            widget = None if item is None else item.widget()
            if widget is not None and widget not in (self.more, self.fewer):
                # Not a child from now on: a widget about to be deleted must not get the focus.
                widget.setParent(None)
                widget.deleteLater()
        self.fields = []
        for place, value in enumerate(values):
            if place:
                self._row.addWidget(Label("×"))
            field = QLineEdit("" if value is None else str(value))
            if isinstance(value, str):
                field.setReadOnly(True)
                field.setToolTip(self.tr("known once it is applied: {0}").format(value))
            else:
                field.setValidator(QIntValidator(1, _LARGEST, field))
            field.setPlaceholderText(self.tr("open"))
            field.setFixedWidth(_WIDTH)
            field.setAccessibleName(
                self.tr("{0}, factor {1} of {2}").format(self._name, place + 1, len(values))
            )
            field.textEdited.connect(self._note_edit)
            self.fields.append(field)
            self._row.addWidget(field)
        self._row.addWidget(self.more)
        self._row.addWidget(self.fewer)
        self._row.addStretch(1)
        self.more.setEnabled(len(values) < MOST)
        self.fewer.setEnabled(len(values) > 1)
        self._say()

    def values(self) -> tuple[Factor, ...]:
        """Return the factors as they are shown."""
        return tuple(_factor(field) for field in self.fields)

    def problem(self) -> str:
        """Return an error in the factors, in one line; ``""`` for none."""
        values = self.values()
        given = [value for value in values if isinstance(value, int)]
        if values.count(None) > 1:
            return self.tr("only one factor can be left open")
        if 0 in given:
            return self.tr("a factor is at least 1")
        if self._extent is None or len(given) < len(values):
            return ""
        if prod(given) < self._extent:
            return self.tr("{0} = {1} does not cover {2}").format(
                " × ".join(map(str, given)), prod(given), self._extent
            )
        return ""

    def _say(self) -> None:
        """Show the product of the factors."""
        problem = self.problem()
        self.check.setText(f"✕ {problem}" if problem else self._sum())
        self.check.setProperty("role", "wrong" if problem else "quiet")
        self.check.style().polish(self.check)

    def _sum(self) -> str:
        values, extent = self.values(), self._extent
        given = [value for value in values if isinstance(value, int)]
        if extent is None or any(isinstance(value, str) for value in values):
            return ""
        if len(given) < len(values):
            part = prod(given)
            rest = -(-extent // part)
            given = [rest if value is None else int(value) for value in values]
        product = prod(given)
        words = " × ".join(map(str, given))
        if product == extent:
            return self.tr("✓ {0} = {1}").format(words, extent)
        return self.tr("{0} = {1} covers {2}, with a guard").format(words, product, extent)

    def _button(self, text: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFixedWidth(26)
        button.setStyleSheet("padding: 0px")
        return button

    def _note_edit(self) -> None:
        self._say()
        self.edited.emit()

    def _add(self) -> None:
        self.set_values((*self.values(), 1 if None in self.values() else None))
        self.fields[-1].setFocus()
        self.edited.emit()

    def _remove(self) -> None:
        self.set_values(self.values()[:-1])
        self.edited.emit()


def _factor(field: QLineEdit) -> Factor:
    text = field.text().strip()
    if field.isReadOnly():
        return text
    return int(text) if text.isdigit() else None
