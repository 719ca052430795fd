"""Editors for the fields of a primitive's form, one for each kind."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.widgets.factors_field import Factor, FactorsField
from lowerscope.app.widgets.order_list import OrderList
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.workbench.scheduling import Scheduling
from lowerscope.core.records.schedule import Field
from lowerscope.core.schedules import Argument, Element, Made, Reference

_LARGEST = 2**31 - 1
"""Bound on integers: TVM takes no larger ones, and messages have a similar bound."""


class Editor(QWidget):
    """A field of the form.

    Signals
    -------
    edited
        The user changed it.
    """

    edited = Signal()

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(2)

    def set_value(self, value: Argument) -> None:
        """Show a value."""
        raise NotImplementedError

    def value(self) -> Argument:
        """Return the value."""
        raise NotImplementedError

    def problem(self) -> str:
        """Return the error of the value, in one line."""
        return ""

    def _add(self, widget: QWidget) -> None:
        widget.setAccessibleName(self.field.label)
        widget.setToolTip(self.field.help)
        self.column.addWidget(widget)
        self.setFocusProxy(widget)


class _Picked(Editor):
    """A loop, a block, or loops in an order: selected in the tree or in the script."""

    def __init__(self, field: Field, scheduling: Scheduling) -> None:
        super().__init__(field)
        self._scheduling = scheduling
        self._references: tuple[Reference, ...] = ()
        self._several = field.kind == "loops"
        self.take = QPushButton(self.tr("Use the selection"))
        self.take.setToolTip(self.tr("Take what is selected in the tree or in the script"))
        self.take.clicked.connect(self._take)
        self.names = OrderList(field.label)
        self.name = Label()
        self.names.edited.connect(self._note_order)
        if self._several:
            self._add(self.names)
            self.column.addWidget(self.take)
        else:
            row = QHBoxLayout()
            row.addWidget(self.name, 1)
            row.addWidget(self.take)
            self.column.addLayout(row)
            self.setFocusProxy(self.take)

    def set_value(self, value: Argument) -> None:
        values = value if isinstance(value, tuple) else (value,)
        self._references = tuple(each for each in values if isinstance(each, Reference))
        self._show()

    def value(self) -> Argument:
        if self._several:
            return self._references
        return self._references[0] if self._references else None

    def problem(self) -> str:
        if self._references or self.field.optional:
            return ""
        what = self.tr("a loop") if "loop" in self.field.kind else self.tr("a block")
        return self.tr("{0}: select {1} in the tree").format(self.field.label, what)

    def follow_selection(self) -> None:
        """Offer the selection as the value, if it is another one that fits."""
        self.take.setEnabled(bool(self._offered()) and self._offered() != self._references)

    def _offered(self) -> tuple[Reference, ...]:
        kinds = self.field.kind.removesuffix("s").split(" or ")
        chosen = [each.reference for each in self._scheduling.chosen if each.kind in kinds]
        return tuple(chosen) if self._several else tuple(chosen[-1:])

    def _take(self) -> None:
        self._references = self._offered()
        self._show()
        self.edited.emit()

    def _note_order(self) -> None:
        self._references = tuple(self._references[place] for place in self.names.order())
        self._show()
        self.edited.emit()

    def _show(self) -> None:
        names = [self._scheduling.name_of(each) for each in self._references]
        current = self.names.currentRow()
        self.names.set_names(names)
        if 0 <= current < len(names):
            self.names.setCurrentRow(current)
        self.name.setText(names[0] if names else self.tr("none"))
        self.follow_selection()


class _Factors(Editor):
    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self._drawn: dict[str, Made] = {}
        self.factors = FactorsField(field.label, field.product)
        self.factors.setToolTip(field.help)
        self.column.addWidget(self.factors)
        self.factors.edited.connect(self.edited)

    def set_value(self, value: Argument) -> None:
        values = value if isinstance(value, tuple) else (value,)
        # Results of earlier steps, such as sample_perfect_tile.
        self._drawn = {_result(each): each for each in values if isinstance(each, Made)}
        self.factors.set_values([_factor(each) for each in values])

    def value(self) -> Argument:
        values = self.factors.values()
        return tuple(self._drawn[each] if isinstance(each, str) else each for each in values)

    def problem(self) -> str:
        return self.factors.problem()


def _factor(value: Element) -> Factor:
    if isinstance(value, Made):
        return _result(value)
    return value if isinstance(value, int) else None


def _result(made: Made) -> str:
    return f"{made.step}[{made.output}]"


class _Order(Editor):
    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self._places: tuple[int, ...] = ()
        self.names = OrderList(field.label)
        self._add(self.names)
        self.names.edited.connect(self.edited)

    def set_value(self, value: Argument) -> None:
        given = value if isinstance(value, tuple) else ()
        count = len(self.field.choices) or len(given)
        self._places = tuple(each for each in given if isinstance(each, int)) or tuple(range(count))
        choices = self.field.choices or tuple(str(place) for place in range(count))
        self.names.set_names([choices[place] for place in self._places])

    def value(self) -> Argument:
        return tuple(self._places[place] for place in self.names.order())


class _Choice(Editor):
    """One of several words; for buffers, the value is the index."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.box = QComboBox()
        if field.optional:
            self.box.addItem(self.tr("none"), None)
        for place, choice in enumerate(field.choices):
            self.box.addItem(choice, place if field.kind == "buffer" else choice)
        self._add(self.box)
        self.box.activated.connect(self._note)

    def set_value(self, value: Argument) -> None:
        self.box.setCurrentIndex(max(0, self.box.findData(value)))

    def value(self) -> Argument:
        data: Element = self.box.currentData()
        return data

    def _note(self) -> None:
        self.edited.emit()


class _Flag(Editor):
    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.box = QCheckBox(field.label)
        self._add(self.box)
        self.box.clicked.connect(self._note)

    def set_value(self, value: Argument) -> None:
        self.box.setChecked(bool(value))

    def value(self) -> Argument:
        return self.box.isChecked()

    def _note(self) -> None:
        self.edited.emit()


class _Typed(Editor):
    """A line of text, parsed according to the kind."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.line = QLineEdit()
        self.line.setPlaceholderText(_placeholder(field))
        self._add(self.line)
        self.line.textEdited.connect(self._note)

    def set_value(self, value: Argument) -> None:
        self.line.setText(_text_of(value))

    def value(self) -> Argument:
        text = self.line.text().strip()
        if not text:
            return None if self.field.kind not in ("text", "index map") else ""
        try:
            return _READERS.get(self.field.kind, str)(text)
        except ValueError:
            return text

    def problem(self) -> str:
        text, field = self.line.text().strip(), self.field
        if not text:
            missing = self.tr("{0} is missing").format(field.label)
            return "" if field.optional else missing
        try:
            value = _READERS.get(field.kind, str)(text)
        except ValueError:
            return self.tr("{0}: “{1}” is not {2}").format(field.label, text, _WORDS[field.kind])
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, (int, float)) and not self._is_within(each):
                return self.tr("{0} is {1}").format(field.label, _range(field))
        return ""

    def _is_within(self, value: float) -> bool:
        low, high = self.field.low, self.field.high
        return (low is None or value >= low) and (high is None or value <= high)

    def _note(self) -> None:
        self.edited.emit()


def _integer(text: str) -> int:
    number = int(text)
    if abs(number) > _LARGEST:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _several(text: str) -> tuple[int, ...]:
    return tuple(_integer(part) for part in text.strip("()[] ").split(",") if part.strip())


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_number(part) for part in text.strip("()[] ").split(",") if part.strip())


def _anything(text: str) -> Argument:
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    if text[:1] in "([" and text[-1:] in ")]":
        return tuple(_one(part.strip()) for part in text[1:-1].split(",") if part.strip())
    return _one(text)


def _one(text: str) -> int | float | str:
    for read in (_integer, _number):
        try:
            return read(text)
        except ValueError:
            pass
    return text.strip("\"'")


_READERS: dict[str, Callable[[str], Argument]] = {
    "integer": _integer,
    "number": _number,
    "integers": _several,
    "numbers": _numbers,
    "value": _anything,
}
_WORDS = {
    "integer": f"a whole number up to {_LARGEST}",
    "number": "a number",
    "integers": "whole numbers with commas between",
    "numbers": "numbers with commas between",
}


def _range(field: Field) -> str:
    if field.low is not None and field.high is not None:
        return f"from {field.low} to {field.high}"
    return f"at least {field.low}" if field.low is not None else f"at most {field.high}"


def _placeholder(field: Field) -> str:
    if field.kind == "index map":
        axes = ", ".join(field.choices) or "i, j"
        return f"{axes} → …, such as {field.choices[0] if field.choices else 'i'} // 16"
    if field.kind in ("integer", "number") and (field.low, field.high) != (None, None):
        return _range(field)
    return "1, 2, …" if field.kind == "integers" else ""


def _text_of(value: Argument) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ", ".join(_text_of(each) for each in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def editor_of(field: Field, scheduling: Scheduling) -> Editor:
    """Return an editor for a field."""
    if field.kind in ("loop", "loops", "block", "loop or block"):
        return _Picked(field, scheduling)
    if field.kind == "factors":
        return _Factors(field)
    if field.kind == "order":
        return _Order(field)
    if field.kind in ("choice", "buffer") or (field.kind == "text" and field.choices):
        return _Choice(field)
    return _Flag(field) if field.kind == "flag" else _Typed(field)


def follow_selection(editor: Editor) -> None:
    """Offer an editor the selection, if it accepts that."""
    if isinstance(editor, _Picked):
        editor.follow_selection()
