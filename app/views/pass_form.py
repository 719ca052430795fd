"""The description of a pass, and fields for its options."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.option_values import WORDS, option_text, option_value
from lowerscope.app.widgets.plain_text import Label, PlainTextEdit, literal
from lowerscope.app.widgets.typefaces import code_font
from lowerscope.app.widgets.wrong_mark import mark_wrong
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import OptionValue
from lowerscope.core.records.passes import PassOption, PassType

Field = QLineEdit | QComboBox


class PassForm(QWidget):
    """The description of a pass with its options.

    Signals
    -------
    edited
        A field was changed.
    """

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._type: PassType | None = None
        self.fields: dict[str, Field] = {}
        self.title = Label()
        self.title.setProperty("role", "title")
        self.title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.summary = Label()
        self.summary.setWordWrap(True)
        self.summary.setProperty("role", "quiet")
        self._rows = QWidget()
        self._form = QFormLayout(self._rows)
        self._form.setContentsMargins(0, 4, 0, 4)
        self._form.setHorizontalSpacing(12)
        self._form.setVerticalSpacing(6)
        self.doc = PlainTextEdit()
        self.doc.setReadOnly(True)
        self.doc.setFont(code_font())
        self.doc.setAccessibleName(self.tr("Docstring"))
        self.doc.setTabChangesFocus(True)
        self.doc.document().setDocumentMargin(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.title)
        column.addWidget(self.summary)
        column.addWidget(self._rows)
        column.addWidget(self.doc, 1)

    def show_pass(self, type_: PassType | None, values: Mapping[str, OptionValue]) -> None:
        """Show a pass with values of its options, or nothing for ``None``."""
        self._type = type_
        while self._form.rowCount():
            self._form.removeRow(0)
        self.fields = {}
        self.title.setText("" if type_ is None else type_.name)
        said = "" if type_ is None else type_.hindrance or type_.summary
        self.summary.setText(said)
        # Most docstrings begin with it.
        known = type_ is not None and _plain(type_.doc).startswith(_plain(said))
        self.summary.setVisible(bool(said) and not known)
        self.doc.setPlainText("" if type_ is None else type_.doc)
        for option in () if type_ is None else type_.options:
            field = self._field(option, values)
            label = Label(literal(option.name))
            label.setBuddy(field)
            self._form.addRow(label, field)
            self.fields[option.name] = field
        self._rows.setVisible(bool(self.fields))

    def values(self) -> dict[str, OptionValue]:
        """Return the options that differ from the pass's own.

        Raises
        ------
        LowerscopeError
            If a typed value is not of its option's kind, or a required one is missing.
        """
        values: dict[str, OptionValue] = {}
        for option in () if self._type is None else self._type.options:
            text = _text(self.fields[option.name])
            if not text.strip():
                if option.required:
                    raise LowerscopeError(
                        f"a value of {option.name} is missing",
                        where=option.name,
                        todo=f"Give {WORDS[option.kind]}",
                    )
                continue
            value = option_value(option, text)
            if value != option.default or type(value) is not type(option.default):
                values[option.name] = value
        return values

    def mark_wrong(self, name: str) -> None:
        """Mark the field of an option as wrong; none for ``""``."""
        for each, field in self.fields.items():
            mark_wrong(field, each == name)

    def _field(self, option: PassOption, values: Mapping[str, OptionValue]) -> Field:
        given = option_text(values[option.name]) if option.name in values else ""
        default = (option.required and self.tr("required")) or option_text(option.default)
        choices = ("true", "false") if option.kind == "bool" else option.choices
        field: Field
        if choices:
            field = QComboBox()
            field.addItem(self.tr("{0} (default)").format(default), "")
            for choice in (*choices, *(("null",) if option.nullable else ())):
                field.addItem(choice, choice)
            field.setCurrentIndex(max(0, field.findData(given)))
            field.currentIndexChanged.connect(self.edited)
        else:
            field = QLineEdit(given)
            field.setPlaceholderText(default)
            field.textChanged.connect(self.edited)
        field.setAccessibleName(option.name)
        field.setToolTip(f"{option.doc}\n{WORDS[option.kind]}".strip())
        return field


def _text(field: Field) -> str:
    return field.text() if isinstance(field, QLineEdit) else str(field.currentData())


def _plain(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())
