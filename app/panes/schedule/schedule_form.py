"""The form of a primitive: an editor for each field, its error, and the buttons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QIntValidator, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QFrame,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.choice_list import OrderList
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Draft, Scheduling
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.schedule import Argument, Element, Made, Reference
from lowerscope.core.model.schedule_records import Field
from lowerscope.core.model.texts import _

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

    def __init__(self, name: str, extent: int | None) -> None:
        super().__init__()
        self._name = name
        self._extent = extent
        self.fields: list[QLineEdit] = []
        self._row = row_of(None, spacing=4)
        self.more = self._button("+", _("Add a factor"))
        self.fewer = self._button("−", _("Remove a factor"))
        self.more.clicked.connect(self._add)
        self.fewer.clicked.connect(self._remove)
        self.check = Label(wraps=True)
        column_of(self, self._row, self.check, spacing=2)
        self.set_values((None, None))

    def set_values(self, values: Sequence[Factor]) -> None:
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
                field.setToolTip(_("known once it is applied: {value}", value=value))
            else:
                field.setValidator(QIntValidator(1, _LARGEST, field))
            field.setPlaceholderText(_("auto"))
            field.setFixedWidth(_WIDTH)
            field.setAccessibleName(
                _(
                    "{name}, factor {place} of {count}",
                    name=self._name,
                    place=place + 1,
                    count=len(values),
                )
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
            return _("only one factor can be left open")
        if 0 in given:
            return _("a factor must be at least 1")
        if self._extent is None or len(given) < len(values):
            return ""
        if prod(given) < self._extent:
            return _(
                "{str} = {prod} does not cover {extent}",
                str=" × ".join(map(str, given)),
                prod=prod(given),
                extent=self._extent,
            )
        return ""

    def _say(self) -> None:
        """Show the product of the factors."""
        problem = self.problem()
        self.check.setText(f"✕ {problem}" if problem else self._sum())
        self.check.set_role("wrong" if problem else "quiet")

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
            return _("✓ {words} = {extent}", words=words, extent=extent)
        return _(
            "{words} = {product} covers {extent}, with a guard",
            words=words,
            product=product,
            extent=extent,
        )

    def _button(self, text: str, name: str) -> QPushButton:
        button = push_button(text, name)
        button.setAccessibleName(name)
        button.setFixedWidth(26)
        button.setProperty("narrow", True)
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


# --- Editors for the fields of a primitive's form, one for each kind ---


class Editor(QWidget):
    """A field of the form."""

    edited = Signal()  # The user changed it.

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self.column = column_of(self, spacing=2)

    def set_value(self, value: Argument) -> None:
        raise NotImplementedError

    def value(self) -> Argument:
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
        self.take = push_button(
            _("Use the selection"),
            _("Use the selection in the tree or the script"),
            self._take,
        )
        self.names = OrderList(field.label)
        self.name = Label()
        self.names.edited.connect(self._note_order)
        if self._several:
            self._add(self.names)
            self.column.addWidget(self.take)
        else:
            row = row_of(None, (self.name, 1), self.take, spacing=None)
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
        label = self.field.label
        if "loop" in self.field.kind:
            return _("{label}: select a loop in the tree", label=label)
        return _("{label}: select a block in the tree", label=label)

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
        self.name.setText(names[0] if names else _("none"))
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
        self.factors.set_values([_shown_factor(each) for each in values])

    def value(self) -> Argument:
        values = self.factors.values()
        return tuple(self._drawn[each] if isinstance(each, str) else each for each in values)

    def problem(self) -> str:
        return self.factors.problem()


def _shown_factor(value: Element) -> Factor:
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
            self.box.addItem(_("none"), None)
        for place, choice in enumerate(field.choices):
            self.box.addItem(choice, place if field.kind == "buffer" else choice)
        self._add(self.box)
        self.box.activated.connect(self.edited)

    def set_value(self, value: Argument) -> None:
        self.box.setCurrentIndex(max(0, self.box.findData(value)))

    def value(self) -> Argument:
        data: Element = self.box.currentData()
        return data


class _Flag(Editor):
    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.box = QCheckBox(field.label)
        self._add(self.box)
        self.box.clicked.connect(self.edited)

    def set_value(self, value: Argument) -> None:
        self.box.setChecked(bool(value))

    def value(self) -> Argument:
        return self.box.isChecked()


class _Typed(Editor):
    """A line of text, parsed according to the kind."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.line = QLineEdit()
        self.line.setPlaceholderText(_placeholder(field))
        self._add(self.line)
        self.line.textEdited.connect(self.edited)

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
            missing = _("{label} is missing", label=field.label)
            return "" if field.optional else missing
        try:
            value = _READERS.get(field.kind, str)(text)
        except ValueError:
            return _MISTAKES[field.kind].format(label=field.label, text=text, largest=_LARGEST)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, (int, float)) and not self._is_within(each):
                return _("{label}: {range}", label=field.label, range=_range(field))
        return ""

    def _is_within(self, value: float) -> bool:
        low, high = self.field.low, self.field.high
        return (low is None or value >= low) and (high is None or value <= high)


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
_MISTAKES = {
    "integer": _("{label}: “{text}” is not a whole number up to {largest}"),
    "number": _("{label}: “{text}” is not a number"),
    "integers": _("{label}: “{text}” is not a list of whole numbers separated by commas"),
    "numbers": _("{label}: “{text}” is not a list of numbers separated by commas"),
}


def _range(field: Field) -> str:
    if field.low is not None and field.high is not None:
        return _("from {low} to {high}", low=field.low, high=field.high)
    return (
        _("at least {low}", low=field.low)
        if field.low is not None
        else _("at most {high}", high=field.high)
    )


def _placeholder(field: Field) -> str:
    if field.kind == "index map":
        axes = ", ".join(field.choices) or "i, j"
        return _(
            "{axes} → …, such as {choice} // 16",
            axes=axes,
            choice=field.choices[0] if field.choices else "i",
        )
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


ROOMY = 240
"""Height from which the description of a primitive is shown above its fields."""

ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class _Rows(QScrollArea):
    """The rows of the form, as high as they are, which scroll where there is less room."""

    def __init__(self, rows: QWidget) -> None:
        super().__init__()
        self._rows = rows
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidget(rows)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        rows.setProperty("ground", "panel")
        self.viewport().setProperty("ground", "panel")

    # Qt

    def sizeHint(self) -> QSize:
        rows, width = self._rows, max(1, self.viewport().width())
        height = rows.heightForWidth(width) if rows.hasHeightForWidth() else -1
        return QSize(_WIDTH, max(height, rows.sizeHint().height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(_WIDTH, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()


class ScheduleForm(QWidget):
    """The form of the draft, previewed while it is filled in."""

    def __init__(
        self, document: Document, scheduling: Scheduling, measurements: Measurements
    ) -> None:
        super().__init__()
        self._scheduling = scheduling
        self._measurements = measurements
        self._trying = scheduling.trying
        self._shown: tuple[str, str] | None = None
        self.editors: dict[str, Editor] = {}
        self.back = push_button("‹", _("Back to the primitives (Esc)"))
        self.back.setAccessibleName(_("Back to the primitives"))
        self.back.setFixedWidth(26)
        self.back.setProperty("narrow", True)
        self.title = Label(role="title")
        self.about = Label(role="quiet", wraps=True)
        self.state = Label(wraps=True)
        self.apply = push_button(_("Apply"), look="primary")
        self.measure = push_button(
            _("Apply and measure"), _("Apply it, check the values and time it")
        )
        self.force = QPushButton(_("Apply anyway"))
        self.keep = push_button(
            _("Keep as a draft"),
            _("Add it to the history as a failed step, to be edited later"),
        )
        self._rows = QWidget()
        self._form = QFormLayout(self._rows)
        self._form.setContentsMargins(0, 4, 6, 4)
        self._form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self._form.setHorizontalSpacing(10)
        self._form.setVerticalSpacing(6)
        self._lay_out()
        for button in (self.apply, self.measure, self.force, self.keep):
            button.installEventFilter(self)
        self.back.clicked.connect(self._trying.cancel_draft)
        self.apply.clicked.connect(self._apply)
        self.measure.clicked.connect(self.apply_and_measure)
        self.keep.clicked.connect(self._apply)
        self.force.clicked.connect(self._force)
        self._trying.draft_changed.connect(self._show)
        self._trying.preview_changed.connect(self._show_state)
        document.on(("selection", "snapshot"), self._follow_selection)

    def _lay_out(self) -> None:
        head = row_of(None, self.back, (self.title, 1), spacing=6)
        self._area = _Rows(self._rows)
        buttons = row_of(None, self.apply, self.measure, self.force, self.keep, STRETCH, spacing=6)
        column_of(
            self,
            *(head, self.about, self._area, buttons, self.state, STRETCH),
            margins=(8, 6, 8, 6),
            spacing=4,
        )

    def _show(self) -> None:
        draft = self._trying.draft
        shown = None if draft is None else (draft.move.name, draft.primitive.id)
        if shown != self._shown:
            self._shown = shown
            self._fill(draft)
        self._show_state()

    def _fill(self, draft: Draft | None) -> None:
        if self._rows.isAncestorOf(self.window().focusWidget() or self):
            # Keep the focus in the form when the focused row is removed.
            self.back.setFocus()
        while self._form.rowCount():
            self._form.removeRow(0)
        self.editors = {}
        if draft is None:
            return
        move = draft.move
        self.title.setText(move.name)
        self.about.setText(move.help or move.title)
        self.title.setToolTip(self.about.text())
        self.apply.setText(_("Change") if draft.edits else _("Apply"))
        for field in move.fields:
            editor = editor_of(field, self._scheduling)
            editor.set_value(draft.primitive.arguments.get(field.name, field.default))
            label = Label("" if field.kind == "flag" else field.label)
            label.setToolTip(field.help)
            label.setBuddy(editor)
            self._form.addRow(label, editor)
            self.editors[field.name] = editor
            editor.edited.connect(self._edit)
            for line in editor.findChildren(QLineEdit):
                line.installEventFilter(self)
        self._area.updateGeometry()
        self._order_tabs()
        self._focus_first()

    def _order_tabs(self) -> None:
        """Put the fields between the buttons: Qt puts new ones at the end of the window."""
        last: QWidget = self.back
        for editor in self.editors.values():
            for part in editor.findChildren(QWidget):
                takes = part.focusPolicy() & Qt.FocusPolicy.TabFocus and part.focusProxy() is None
                # The list of a box is a window of its own.
                if takes and part.window() is self.window():
                    self.setTabOrder(last, part)
                    last = part
        self.setTabOrder(last, self.apply)

    def _focus_first(self) -> None:
        for editor in self.editors.values():
            line = next(iter(editor.findChildren(QLineEdit)), None)
            if line is not None:
                line.setFocus()
                line.selectAll()
                return
        self.apply.setFocus()

    def _edit(self) -> None:
        draft = self._trying.draft
        if draft is None:
            return
        # Connect to added fields as well.
        for editor in self.editors.values():
            for line in editor.findChildren(QLineEdit):
                line.installEventFilter(self)
        self._order_tabs()
        arguments: dict[str, Argument] = dict(draft.primitive.arguments)
        wrong = ""
        for name, editor in self.editors.items():
            wrong = wrong or editor.problem()
            value = editor.value()
            if value is None and editor.field.optional:
                arguments.pop(name, None)
            else:
                arguments[name] = value
        self._trying.fill_in(arguments, wrong)

    def _show_state(self) -> None:
        draft, preview = self._trying.draft, self._trying.preview
        if draft is None:
            return
        error = None if preview is None else preview.error
        text, role = "", "quiet"
        if draft.wrong:
            text, role = f"✕ {draft.wrong}", "wrong"
        elif error is not None:
            mark = "⚠" if error.unsafe else "✕"
            text, role = f"{mark} {error.message}", "wrong"
        elif preview is not None and preview.record is not None:
            text, role = _("✓ legal"), "right"
            predicted, scale = preview.record.predicted_ms, self._measurements.scale
            if predicted is not None and scale is not None:
                time = duration_text(predicted * scale)
                text = _("✓ legal · predicted {time}", time=time)
        elif preview is not None:
            text = _("trying…")
        self.state.setText(text)
        self.state.set_role(role)
        unsafe = error is not None and error.unsafe
        for button in (self.apply, self.measure):
            button.setEnabled(self._trying.can_apply)
        self.measure.setVisible(error is None)
        self.force.setVisible(unsafe)
        self.keep.setVisible(error is not None and not unsafe and not draft.wrong)

    def _follow_selection(self) -> None:
        if self._trying.draft is not None:
            for editor in self.editors.values():
                follow_selection(editor)

    def _apply(self) -> None:
        self._trying.apply_draft()

    def apply_and_measure(self) -> None:
        """Apply the primitive, and check and measure the function after it."""
        if self._trying.can_apply:
            self._measurements.measure_next()
            self._trying.apply_draft()

    def _force(self) -> None:
        self._trying.apply_draft(forced=True)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # It is also the tool tip of the title.
        self.about.setVisible(self.height() >= ROOMY)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._trying.cancel_draft()
        elif event.key() in ENTER and self.apply.isEnabled():
            self._apply()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseButtonDblClick and isinstance(watched, QPushButton):
            # The second click of a double click on the widget that the form replaced.
            return True
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if plain == Qt.KeyboardModifier.NoModifier and event.key() in ENTER:
                if watched is self.measure:
                    self.apply_and_measure()
                elif self.apply.isEnabled():
                    self._apply()
                return True
            if event.key() == Qt.Key.Key_Escape:
                self._trying.cancel_draft()
                return True
        return super().eventFilter(watched, event)
