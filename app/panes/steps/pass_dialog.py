"""Dialogs for steps: adding a pass, editing its options, and explaining a fusion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit import theme
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.kit.dialogs import Dialog, FindLine, mark_wrong
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, PlainTextEdit, literal
from lowerscope.app.kit.typefaces import code_font
from lowerscope.core.model.explanation_records import Explanation
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.queries import WhyFusedQuery
from lowerscope.core.model.recipe import OptionValue, Step
from lowerscope.core.model.snapshot import PassOption, PassType
from lowerscope.core.model.texts import _, alternatives

# --- Parsing of the values typed for a pass's options ---


LARGEST = 2**63 - 1
"""Largest integer that TVM accepts."""

WORDS = {
    "bool": _("true or false"),
    "int": _("a whole number, such as 2"),
    "float": _("a number, such as 0.5"),
    "text": "a text",
    "names": _("names separated by commas, such as main, other"),
    "pairs": _("pairs separated by commas, such as n=4, m=8"),
}
"""Description of a value of each kind, for the user."""


def option_value(option: PassOption, text: str) -> OptionValue:
    """Parse the value typed for an option.

    Raises:
        LowerscopeError: If it is not of the option's kind.
    """
    text = text.strip()
    if text == "null" and option.nullable:
        return None
    value = _read(option.kind, text)
    if value is None or (option.choices and text not in option.choices):
        wanted = alternatives(option.choices) if option.choices else WORDS[option.kind]
        raise LowerscopeError(
            _("“{text}” is not a valid value of {name}", text=text, name=option.name),
            where=option.name,
            todo=_("Enter {value}, or null", value=wanted)
            if option.nullable
            else _("Enter {value}", value=wanted),
        )
    return value


def _read(kind: str, text: str) -> OptionValue:
    """Parse a value of a kind; return ``None`` if it is not one."""
    try:
        if kind == "int":
            whole = int(text)
            return whole if abs(whole) <= LARGEST else None
        if kind == "float":
            number = float(text)
            return number if math.isfinite(number) else None
    except ValueError:
        return None
    if kind == "bool":
        return {"true": True, "false": False}.get(text.lower())
    if kind in ("names", "pairs"):
        bare = text.removeprefix("[").removesuffix("]")
        parts = tuple(part.strip() for part in bare.split(",") if part.strip())
        return parts if kind == "names" or all("=" in part for part in parts) else None
    return text


def option_text(value: OptionValue) -> str:
    """Return an option's value as typed text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


# --- The description of a pass, and fields for its options ---

Field = QLineEdit | QComboBox


class PassForm(QWidget):
    """The description of a pass with its options."""

    edited = Signal()  # A field was changed.

    def __init__(self) -> None:
        super().__init__()
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
        self.doc.setAccessibleName(_("Docstring"))
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

        Raises:
            LowerscopeError: If a typed value is not of its option's kind, or a required one is
                missing.
        """
        values: dict[str, OptionValue] = {}
        for option in () if self._type is None else self._type.options:
            text = _text(self.fields[option.name])
            if not text.strip():
                if option.required:
                    raise LowerscopeError(
                        _("a value of {name} is missing", name=option.name),
                        where=option.name,
                        todo=_("Enter {value}", value=WORDS[option.kind]),
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
        default = (option.required and _("required")) or option_text(option.default)
        choices = ("true", "false") if option.kind == "bool" else option.choices
        field: Field
        if choices:
            field = QComboBox()
            field.addItem(_("{default} (default)", default=default), "")
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


NAMES_WIDTH = 280
"""Maximum width of the names: docstrings have lines of 80 characters and more."""


class PassDialog(Dialog):
    """A pass with its options, to be selected in the catalogue, or of an existing step.

    Args:
        step: The step to edit; ``None`` to add one.
    """

    changing_wanted = Signal()  # Show which passes would change something.

    def __init__(self, step: Step | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._step = step
        # The passes that would change something; `None` while that is not known.
        self._changing: frozenset[str] | None = None
        self.only_changing = QCheckBox(_("Only passes that change the module"))
        self.only_changing.setToolTip(
            _("Tries each pass after the selected step, with its default options")
        )
        self.only_changing.toggled.connect(self._filter_changing)
        self._types: dict[str, PassType] = {}
        self.chosen: Step | None = None
        adds = step is None
        self.setWindowTitle(_("Add a pass") if adds else _("Options of the step"))
        self.form = PassForm()
        self.form.edited.connect(self._check)
        self.list = QTreeWidget()
        self.line = FindLine(self.list)
        self.line.setPlaceholderText(_("Search names and summaries"))
        self.line.setAccessibleName(_("Filter passes"))
        self.line.textChanged.connect(self._filter)
        self.list.setAccessibleName(_("Passes"))
        self.list.setColumnCount(2)
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        none = _("Names and summaries are searched for each of the words.")
        self._found = QStackedWidget()
        self._found.addWidget(self.list)
        self._found.addWidget(EmptyState(_("No such pass"), none))
        self.list.currentItemChanged.connect(self._show_current)
        self.list.itemActivated.connect(self.accept)
        self.count = Label(_("querying the engine…"))
        self.count.setProperty("role", "quiet")
        self.wrong = Label()
        self.wrong.setProperty("role", "wrong")
        self.wrong.setWordWrap(True)
        ok, cancel = QDialogButtonBox.StandardButton.Ok, QDialogButtonBox.StandardButton.Cancel
        self.buttons = QDialogButtonBox(ok | cancel)
        self.ok = self.buttons.button(ok)
        self.ok.setText(_("Add") if adds else _("Apply"))
        self.ok.setProperty("primary", True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self._lay_out(adds)
        self._check()
        offer_help(self, "timeline#edit-the-pipeline")

    def _lay_out(self, adds: bool) -> None:
        row = QHBoxLayout()
        row.setSpacing(16)
        if adds:
            left = QVBoxLayout()
            left.setSpacing(8)
            left.addWidget(self.line)
            left.addWidget(self.only_changing)
            left.addWidget(self._found, 1)
            left.addWidget(self.count)
            names = QWidget()
            names.setLayout(left)
            names.setMaximumWidth(NAMES_WIDTH)
            left.setContentsMargins(0, 0, 0, 0)
            row.addWidget(names, 4)
        row.addWidget(self.form, 7)
        bottom = QHBoxLayout()
        bottom.addWidget(self.wrong, 1)
        bottom.addWidget(self.buttons)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addLayout(row, 1)
        column.addLayout(bottom)
        self.resize(1120 if adds else 760, 560)

    def show_catalogue(self, types: Sequence[PassType]) -> None:
        """Show the catalogue, or the pass of the edited step."""
        self._types = {each.name: each for each in types}
        if self._step is not None:
            self._show_type(self._types.get(self._step.name), self._step.options)
            return
        for each in types:
            item = QTreeWidgetItem(self.list, [each.name, each.dialect])
            item.setData(0, Qt.ItemDataRole.UserRole, each.name)
            item.setToolTip(0, each.summary)
            if each.hindrance:
                item.setForeground(0, QColor(theme.current().quiet))
        self._filter(self.line.text())

    @property
    def edits(self) -> bool:
        """Return whether it edits an existing step."""
        return self._step is not None

    def show_problem(self, text: str) -> None:
        """Show why there is no catalogue, or why the passes cannot be tried."""
        self.only_changing.setChecked(False)
        self.count.setText("")
        self.wrong.setText(text)

    def _items(self) -> list[QTreeWidgetItem]:
        items = (self.list.topLevelItem(index) for index in range(self.list.topLevelItemCount()))
        return [item for item in items if item is not None]

    def shown(self) -> list[str]:
        """Return the names of the passes that match the typed text."""
        return [item.text(0) for item in self._items() if not item.isHidden()]

    def show_changing(self, names: Sequence[str]) -> None:
        """Keep the passes that would change something, for the filter."""
        self._changing = frozenset(names)
        self._filter(self.line.text())

    def _filter_changing(self, on: bool) -> None:
        if on and self._changing is None:
            self.count.setText(_("Trying the passes…"))
            self.changing_wanted.emit()
        else:
            self._filter(self.line.text())

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        changing = self._changing if self.only_changing.isChecked() else None
        best: QTreeWidgetItem | None = None
        for item in self._items():
            each = self._types[item.text(0)]
            said = f"{each.name} {each.dialect} {each.summary}".casefold()
            left_out = changing is not None and each.name not in changing
            item.setHidden(left_out or not all(word in said for word in words))
            named = bool(words) and each.name.casefold().startswith(words[0])
            if not item.isHidden() and (best is None or (named and not _starts(best, words))):
                best = item
        self.list.clearSelection()
        if best is not None:
            self.list.setCurrentItem(best)
        self._show_current()
        self._found.setCurrentIndex(1 if self._types and best is None else 0)
        if self._types:
            self.count.setText(
                _("{count} of {types} passes", count=len(self.shown()), types=len(self._types))
            )

    def _show_current(self) -> None:
        item = self.list.currentItem()
        if item is None or item.isHidden():
            self._show_type(None, {})
        else:
            self._show_type(self._types[item.text(0)], {})

    def _show_type(self, type_: PassType | None, values: Mapping[str, OptionValue]) -> None:
        self.form.show_pass(type_, values)
        if type_ is None and self._step is not None:
            self.wrong.setText(_("There is no pass {name}", name=self._step.name))
        self._check()

    def _read(self) -> Step | None:
        """Return the step from the fields, or show their error."""
        name = self.form.title.text()
        type_ = self._types.get(name)
        if type_ is None or type_.hindrance:
            return None
        try:
            options = self.form.values()
        except LowerscopeError as error:
            problem = error.problem
            words = _("{first}. {second}", first=problem.headline, second=problem.todo)
            self.wrong.setText(_("{sentence}.", sentence=words))
            self.form.mark_wrong(problem.where)
            return None
        on = True if self._step is None else self._step.on
        return Step(name=name, on=on, options=options)

    def _check(self) -> None:
        self.wrong.setText("")
        self.form.mark_wrong("")
        self.ok.setEnabled(self._read() is not None)

    # Qt overrides

    def accept(self) -> None:
        self.chosen = self._read()
        if self.chosen is not None:
            super().accept()


def _starts(item: QTreeWidgetItem, words: list[str]) -> bool:
    return item.text(0).casefold().startswith(words[0])


# --- The dialog that explains why two nodes are fused, or not, and offers changes ---

WIDTH = 520


class FusionDialog(Dialog):
    """Two nodes, and the explanation of their fusion, which follows what is typed.

    Args:
        one: Name or id of a node, binding or function.
        other: The same of another one.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        one: str,
        other: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._asked = (one, other)
        self.setWindowTitle(_("Explain the fusion"))
        self.one, self.other = QLineEdit(one), QLineEdit(other)
        form = QFormLayout()
        for title, line in (
            (_("First node"), self.one),
            (_("Second node"), self.other),
        ):
            line.setPlaceholderText(_("Node, binding or function"))
            line.setAccessibleName(title)
            line.editingFinished.connect(self._ask)
            label = Label(title)
            label.setBuddy(line)
            form.addRow(label, line)
        self.head, self.text = Label(role="title"), Label(wraps=True)
        self.cites = Label(role="quiet", wraps=True)
        for label in (self.head, self.text, self.cites):
            label.setMinimumWidth(WIDTH)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.buttons.rejected.connect(self.reject)
        # Makes the change that would fuse the nodes.
        self.apply = QPushButton()
        self.apply.setProperty("primary", True)
        self.apply.clicked.connect(self._apply)
        self.apply.hide()
        self.buttons.addButton(self.apply, QDialogButtonBox.ButtonRole.ActionRole)
        column = column_of(self, margins=(16, 16, 16, 12), spacing=8)
        column.addLayout(form)
        for widget in (self.head, self.text, self.cites):
            column.addWidget(widget)
        column.addStretch(1)
        column.addWidget(self.buttons)
        offer_help(self, "fusion")
        self._answer: Explanation | None = None
        self._watch = queries.watch(self, self._query, self._show, self._refuse, self._set_busy)
        document.on(("recipe",), self._follow)
        self._follow()
        if not (one and other):
            (self.other if one else self.one).setFocus()
            self._hint()

    def _follow(self) -> None:
        self._watch.update()

    def _query(self) -> WhyFusedQuery | None:
        recipe, (one, other) = self._document.recipe, self._asked
        return None if recipe is None or not (one and other) else WhyFusedQuery(recipe, one, other)

    def _ask(self) -> None:
        asked = (self.one.text().strip(), self.other.text().strip())
        if asked != self._asked:
            self._asked = asked
            self._watch.update()
            if not all(asked):
                self._hint()

    def _hint(self) -> None:
        self._say("", _("Select two nodes first, or type their names."))

    def _say(self, head: str, text: str, cites: str = "", role: str = "title") -> None:
        self.head.setText(head)
        self.head.set_role(role)
        self.text.setText(text)
        self.cites.setText(cites)
        for label in (self.head, self.cites):
            label.setHidden(not label.text())
        self.apply.hide()

    def _set_busy(self, busy: bool) -> None:
        if busy:
            self._say("", _("Explaining the fusion…"))

    def _show(self, answer: Explanation) -> None:
        self._answer = answer
        head = _("Fused") if answer.fused else _("Not fused")
        self._say(head, f"{answer.text}.", _("Based on: {cites}", cites=" · ".join(answer.cites)))
        if answer.change is not None:
            self.apply.setText(answer.change.text)
            self.apply.show()

    def _refuse(self, problem: Problem) -> None:
        self._say(_("No explanation"), problem.line(), role="wrong")

    def _apply(self) -> None:
        change = None if self._answer is None else self._answer.change
        if change is not None:
            fields = {"steps": change.steps, "overrides": change.overrides}
            self._document.change_fields(
                **{name: value for name, value in fields.items() if value is not None}
            )


def explaining(host: Host, document: Document, queries: Queries) -> Command:
    """Return the command that explains the fusion of the selected nodes."""

    def explain() -> None:
        chosen = [*document.selection.chosen, "", ""]
        FusionDialog(document, queries, chosen[0], chosen[1], host.widget).pop_up()

    return Command("why-fused", _("E&xplain the fusion…"), explain, enabled=document.is_open)
