"""The form for timing runs: threads, calls, and whether torch.compile is timed."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.common.help_key import offer_help
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.measuring import LEAST, MOST, REPEATS, Measuring
from lowerscope.core.model.processors import MACHINE

FIELD_WIDTH = 240


class MeasuringDialog(Dialog):
    """A field for each number of the recipe; an existing run is measured again."""

    def __init__(self, document: Document, runs: Runs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs = runs
        recipe = document.wanted
        assert recipe is not None
        threads, measuring = recipe.threads, recipe.measuring
        self.setWindowTitle(self.tr("Threads and repeats"))
        all_of_them = self.tr("all, {0} here").format(MACHINE)
        self.threads = _number(self.tr("Threads"), 0, max(MACHINE, threads), threads, all_of_them)
        self.repeats = _number(
            self.tr("Repeats"),
            0,
            MOST,
            measuring.repeats,
            self.tr("as a second allows, {0} to {1}").format(LEAST, REPEATS),
        )
        self.warm_up = _number(self.tr("Warm-up"), 1, MOST, measuring.warm_up)
        self.compiled = QCheckBox(self.tr("Time torch.compile as well"))
        self.compiled.setChecked(measuring.torch_compile)
        self.compiled.setToolTip(
            self.tr("It compiles the model for seconds to minutes, and needs a C++ compiler.")
        )
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        for title, field, hint in (
            (self.tr("Threads"), self.threads, self.tr("of TVM and of torch")),
            (self.tr("Repeats"), self.repeats, self.tr("calls of each side that are timed")),
            (self.tr("Warm-up"), self.warm_up, self.tr("calls of each side before")),
        ):
            label = Label(title)
            label.setBuddy(field)
            form.addRow(label, _with_hint(field, hint))
        form.addRow(Label(), self.compiled)
        note = Label(
            self.tr(
                "The sides take turns. Each has its median, and a spread from the lower to the "
                "upper quarter. One is called faster where the medians differ by more than that."
            )
        )
        note.setProperty("role", "quiet")
        note.setWordWrap(True)
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        ok = buttons.button(QDialogButtonBox.StandardButton.Ok)
        ok.setProperty("primary", True)
        if document.run_record is not None:
            ok.setText(self.tr("Measure"))
        self.accepted.connect(self._take)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addLayout(form)
        column.addWidget(note)
        column.addWidget(buttons)
        self.setMinimumWidth(460)
        offer_help(self, "result#threads-and-repeats")

    def _take(self) -> None:
        measuring = Measuring(
            warm_up=self.warm_up.value(),
            repeats=self.repeats.value(),
            torch_compile=self.compiled.isChecked(),
        )
        self._runs.measure_as(self.threads.value(), measuring)


def edit_measuring(document: Document, runs: Runs, parent: QWidget) -> None:
    """Show the form for timing runs."""
    if document.wanted is not None:
        dialog = MeasuringDialog(document, runs, parent)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()


def _number(name: str, least: int, most: int, value: int, at_least: str = "") -> QSpinBox:
    """Return a field for a number; `at_least` describes the smallest value."""
    field = QSpinBox()
    field.setRange(least, most)
    field.setSpecialValueText(at_least)
    field.setValue(value)
    field.setAccessibleName(name)
    field.setFixedWidth(FIELD_WIDTH)
    # The style sheet's padding does not apply to the text of a spin box.
    field.lineEdit().setTextMargins(6, 0, 0, 0)
    return field


def _with_hint(field: QWidget, hint: str) -> QWidget:
    label = Label(hint)
    label.setProperty("role", "quiet")
    both = QWidget()
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(12)
    row.addWidget(field)
    row.addWidget(label, 1)
    return both
