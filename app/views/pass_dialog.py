"""Dialogs for a step: adding a pass from the catalogue, and editing its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app import theme
from lowerscope.app.views.help_key import offer_help
from lowerscope.app.views.pass_form import PassForm
from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.app.widgets.finder import FindLine
from lowerscope.app.widgets.plain_text import Label
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import OptionValue, Step
from lowerscope.core.records.passes import PassType

NAMES_WIDTH = 280
"""Maximum width of the names: docstrings have lines of 80 characters and more."""


class PassDialog(Dialog):
    """A pass with its options, to be selected in the catalogue, or of an existing step.

    Parameters
    ----------
    step
        The step to edit; ``None`` to add one.
    """

    def __init__(self, step: Step | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._step = step
        self._types: dict[str, PassType] = {}
        self.chosen: Step | None = None
        adds = step is None
        self.setWindowTitle(self.tr("Add a pass") if adds else self.tr("Options of the step"))
        self.form = PassForm()
        self.form.edited.connect(self._check)
        self.list = QTreeWidget()
        self.line = FindLine(self.list)
        self.line.setPlaceholderText(self.tr("Search names and summaries"))
        self.line.setAccessibleName(self.tr("Filter passes"))
        self.line.textChanged.connect(self._filter)
        self.list.setAccessibleName(self.tr("Passes"))
        self.list.setColumnCount(2)
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        none = self.tr("Names and summaries are searched; each word has to be in one.")
        self._found = QStackedWidget()
        self._found.addWidget(self.list)
        self._found.addWidget(EmptyState(self.tr("No such pass"), none))
        self.list.currentItemChanged.connect(self._show_current)
        self.list.itemActivated.connect(self.accept)
        self.count = Label(self.tr("asking the engine…"))
        self.count.setProperty("role", "quiet")
        self.wrong = Label()
        self.wrong.setProperty("role", "wrong")
        self.wrong.setWordWrap(True)
        ok, cancel = QDialogButtonBox.StandardButton.Ok, QDialogButtonBox.StandardButton.Cancel
        self.buttons = QDialogButtonBox(ok | cancel)
        self.ok = self.buttons.button(ok)
        self.ok.setText(self.tr("Add") if adds else self.tr("Apply"))
        self.ok.setProperty("primary", True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self._lay_out(adds)
        self._check()
        offer_help(self, "pipeline")

    def _lay_out(self, adds: bool) -> None:
        row = QHBoxLayout()
        row.setSpacing(16)
        if adds:
            left = QVBoxLayout()
            left.setSpacing(8)
            left.addWidget(self.line)
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
        """Show why there is no catalogue."""
        self.count.setText("")
        self.wrong.setText(text)

    def _items(self) -> list[QTreeWidgetItem]:
        items = (self.list.topLevelItem(index) for index in range(self.list.topLevelItemCount()))
        return [item for item in items if item is not None]

    def shown(self) -> list[str]:
        """Return the names of the passes that match the typed text."""
        return [item.text(0) for item in self._items() if not item.isHidden()]

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        best: QTreeWidgetItem | None = None
        for item in self._items():
            each = self._types[item.text(0)]
            said = f"{each.name} {each.dialect} {each.summary}".casefold()
            item.setHidden(not all(word in said for word in words))
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
                self.tr("{0} of {1} passes").format(len(self.shown()), len(self._types))
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
            self.wrong.setText(self.tr("There is no pass {0}").format(self._step.name))
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
            self.wrong.setText(f"{problem.headline}. {problem.todo}.")
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
