"""The form for timing runs: threads, calls, and whether torch.compile is timed."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QFormLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.buttons import check_box
from lowerscope.app.kit.dialogs import Dialog, number_field
from lowerscope.app.kit.layouts import column_of, row_of
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
        most, width = max(MACHINE, threads), FIELD_WIDTH
        self.threads = number_field(
            self.tr("Threads"), 0, most, threads, width=width, at_least=all_of_them
        )
        enough = self.tr("as a second allows, {0} to {1}").format(LEAST, REPEATS)
        self.repeats = number_field(
            self.tr("Repeats"), 0, MOST, measuring.repeats, width=width, at_least=enough
        )
        self.warm_up = number_field(self.tr("Warm-up"), 1, MOST, measuring.warm_up, width=width)
        self.compiled = check_box(
            self.tr("Time torch.compile as well"),
            self.tr("It compiles the model for seconds to minutes, and needs a C++ compiler."),
        )
        self.compiled.setChecked(measuring.torch_compile)
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
            ),
            role="quiet",
            wraps=True,
        )
        measured = document.run_record is not None
        buttons = self.answers(self.tr("Measure") if measured else "")
        self.accepted.connect(self._take)
        column_of(self, form, note, buttons, margins=(16, 16, 16, 12), spacing=12)
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
        MeasuringDialog(document, runs, parent).pop_up()


def _with_hint(field: QWidget, hint: str) -> QWidget:
    label = Label(hint, role="quiet")
    both = QWidget()
    row_of(both, field, (label, 1), spacing=12)
    return both
