"""The form for a tuning: functions, number of trials, and estimated time."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QRadioButton,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.dialogs import Dialog, number_field
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.common.help_key import offer_help
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.app.panes.tuning.tune_page import estimated_seconds
from lowerscope.core.model.formatting import seconds_text
from lowerscope.core.model.tuning_records import TuneOptions

MOST_TRIALS = 100_000
SLOWEST = 3


class TuneDialog(Dialog):
    """One of three choices, a number of trials, and the estimated time."""

    def __init__(
        self,
        document: Document,
        scheduling: Scheduling,
        tuning: Tuning,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._tuning = tuning
        self._function = function_of(document, scheduling)
        self.setWindowTitle(self.tr("Tune"))
        name = self._function or self.tr("none is selected")
        self.one = QRadioButton(self.tr("This function: {0}").format(name))
        self.one.setEnabled(bool(self._function))
        self.slowest = QRadioButton(self.tr("The slowest functions:"))
        self.slowest.setToolTip(self.tr("Those that take the largest share of a run, measured"))
        self.whole = QRadioButton(self.tr("The whole model, trials by share of the time"))
        self.count = number_field(self.tr("How many of the slowest"), 1, 100, SLOWEST)
        self.trials = number_field(self.tr("Trials"), 1, MOST_TRIALS, self._tuning.trials)
        self.fresh = QCheckBox(self.tr("Measure anew what the database has already"))
        self.estimate = Label(wraps=True)
        self.empty = Label(role="wrong", wraps=True)
        self.note = Label(role="quiet", wraps=True)
        group = QButtonGroup(self)
        for choice in (self.one, self.slowest, self.whole):
            group.addButton(choice)
        (self.one if self._function else self.whole).setChecked(True)
        self.buttons = self.answers(self.tr("Tune"))
        self.begin = self.buttons.act
        self._lay_out()
        group.buttonToggled.connect(self._show)
        self.count.valueChanged.connect(self._show)
        self.trials.valueChanged.connect(self._show)
        self.accepted.connect(self._start)
        self._show()
        offer_help(self, "tune")

    def _lay_out(self) -> None:
        slowest = row_of(None, self.slowest, self.count, STRETCH, spacing=8)
        trials = row_of(None, spacing=8)
        label = Label(self.tr("Trials"))
        label.setBuddy(self.trials)
        hint = Label(
            self.tr("candidates that are measured, with those in the database"), role="quiet"
        )
        for part in (label, self.trials, hint):
            trials.addWidget(part)
        trials.addStretch(1)
        column_of(
            self,
            self.one,
            slowest,
            self.whole,
            4,
            trials,
            self.fresh,
            self.estimate,
            self.empty,
            self.note,
            self.buttons,
            margins=(16, 16, 16, 12),
            spacing=10,
        )
        self.setMinimumWidth(480)

    def _functions(self) -> int:
        """Return the number of functions that can be tuned."""
        snapshot = self._document.snapshot
        functions = () if snapshot is None else snapshot.functions
        return sum(each.kind == "tensorir" for each in functions)

    def options(self) -> TuneOptions:
        """Return the selected options."""
        return TuneOptions(
            functions=(self._function,) if self.one.isChecked() else (),
            slowest=self.count.value() if self.slowest.isChecked() else 0,
            trials=self.trials.value(),
            fresh=self.fresh.isChecked(),
        )

    def _show(self) -> None:
        there = self._functions()
        self.count.setEnabled(self.slowest.isChecked())
        functions = 1 if self.one.isChecked() else there
        if self.slowest.isChecked():
            functions = min(there, self.count.value())
        trials = self.trials.value()
        seconds = estimated_seconds(trials, functions, self._tuning.state)
        each = trials // max(1, functions)
        words = self.tr("About {0}: {1} functions, about {2} trials each by their share.")
        if functions == 1:
            words = self.tr("About {0}.")
        self.estimate.setText(words.format(seconds_text(round(seconds)), functions, each))
        self.estimate.setVisible(there > 0)
        recipe = self._document.wanted
        why = ""
        if there == 0:
            why = self.tr(
                "There is no TensorIR function to tune. Legalise the operators of the model: the "
                "pipeline Legalise or Fuse has LegalizeOps."
            )
        self.empty.setText(why)
        self.empty.setVisible(bool(why))
        self.begin.setEnabled(not why and not self._tuning.under_way)
        notes = [
            self.tr(
                "It measures on all threads of the recipe. The window goes on answering; a run "
                "pauses the tuning, and the workbench's own measurements wait until it is over."
            )
        ]
        if recipe is not None and recipe.remote is not None:
            notes.append(self.tr("Candidates run on {0}.").format(recipe.remote.title))
        if recipe is not None and recipe.target == "llvm":
            notes.append(
                self.tr(
                    "The target is llvm, for any processor: with Run, Target: this machine, "
                    "wider vector instructions can be used."
                )
            )
        self.note.setText("\n".join(notes))

    def _start(self) -> None:
        self._tuning.start(self.options())


def function_of(document: Document, scheduling: Scheduling) -> str:
    """Return the scheduled or the selected function; empty for none."""
    if scheduling.active and scheduling.function:
        return scheduling.function
    snapshot = document.snapshot
    names = {} if snapshot is None else {each.id: each.name for each in snapshot.functions}
    kinds = {} if snapshot is None else {each.id: each.kind for each in snapshot.functions}
    chosen = document.selection.of_kind("tir")
    found = (names[each] for each in chosen if kinds.get(each) == "tensorir")
    return next(found, "")


def ask_tuning(
    document: Document, scheduling: Scheduling, tuning: Tuning, parent: QWidget
) -> TuneDialog:
    """Show the form, and start the tuning."""
    return TuneDialog(document, scheduling, tuning, parent).pop_up()
