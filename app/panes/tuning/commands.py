"""Commands on tuning, and the form for one: functions, number of trials, estimated time."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QRadioButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.kit.dialogs import Dialog, number_field
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.app.panes.tuning.tune_page import estimated_seconds
from lowerscope.core.model.formatting import seconds_text
from lowerscope.core.model.schedule import name_before_packing
from lowerscope.core.model.texts import _
from lowerscope.core.model.tuning_records import TuneOptions

# --- The form for a tuning: functions, number of trials, and estimated time ---

MOST_TRIALS = 100_000
SLOWEST = 3


class TuneDialog(Dialog):
    """One of three choices, a number of trials, and the estimated time."""

    def __init__(
        self,
        document: Document,
        function: str,
        tuning: Tuning,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._tuning = tuning
        self._function = function
        self.setWindowTitle(_("Tune"))
        name = self._function or _("none is selected")
        self.one = QRadioButton(_("This function: {name}", name=name))
        self.one.setEnabled(bool(self._function))
        self.slowest = QRadioButton(_("The slowest functions:"))
        self.slowest.setToolTip(_("The functions with the largest measured share of a run"))
        self.whole = QRadioButton(_("The whole model, trials by share of the time"))
        self.count = number_field(_("Number of the slowest functions"), 1, 100, SLOWEST)
        self.trials = number_field(_("Trials"), 1, MOST_TRIALS, self._tuning.trials)
        self.fresh = QCheckBox(_("Measure candidates of the database again"))
        self.estimate = Label(wraps=True)
        self.empty = Label(role="wrong", wraps=True)
        self.note = Label(role="quiet", wraps=True)
        group = QButtonGroup(self)
        for choice in (self.one, self.slowest, self.whole):
            group.addButton(choice)
        (self.one if self._function else self.whole).setChecked(True)
        self.buttons = self.answers(_("Tune"))
        self.begin = self.buttons.act
        self._lay_out()
        group.buttonToggled.connect(self._show)
        self.count.valueChanged.connect(self._show)
        self.trials.valueChanged.connect(self._show)
        self.accepted.connect(self._start)
        self._show()
        offer_help(self, "tune")

    def _lay_out(self) -> None:
        label = Label(_("Trials"))
        label.setBuddy(self.trials)
        hint = Label(_("measured candidates, including those in the database"), role="quiet")
        slowest = row_of(None, self.slowest, self.count, STRETCH, margins=None, spacing=8)
        trials = row_of(None, label, self.trials, hint, STRETCH, margins=None, spacing=8)
        said = (self.fresh, self.estimate, self.empty, self.note, self.buttons)
        parts = (self.one, slowest, self.whole, 4, trials, *said)
        column_of(self, *parts, margins=(16, 16, 16, 12), spacing=10)
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
        time = seconds_text(round(seconds))
        words = _(
            "About {time}: {functions} functions, about {trials} trials each by their share.",
            time=time,
            functions=functions,
            trials=each,
        )
        self.estimate.setText(_("About {time}.", time=time) if functions == 1 else words)
        self.estimate.setVisible(there > 0)
        recipe = self._document.wanted
        why = ""
        if there == 0:
            why = _(
                "There is no TensorIR function to tune. Legalise the operators of the model: "
                "the pipelines Legalise and Fuse have LegalizeOps."
            )
        self.empty.setText(why)
        self.empty.setVisible(bool(why))
        self.begin.setEnabled(not why and not self._tuning.under_way)
        notes = [
            _(
                "It measures on all threads of the recipe. The window stays responsive; a run "
                "pauses the tuning, and measurements in Schedule wait until it is over."
            )
        ]
        if recipe is not None and recipe.remote is not None:
            notes.append(_("Candidates run on {title}.", title=recipe.remote.title))
        if recipe is not None and recipe.target == "llvm":
            notes.append(
                _(
                    "The target is llvm, for any processor: with Target: this machine, wider "
                    "vector instructions can be used."
                )
            )
        self.note.setText("\n".join(notes))

    def _start(self) -> None:
        self._tuning.start(self.options())


def function_of(document: Document) -> str:
    """Return the selected function, by the name it has when it is scheduled; empty for none."""
    snapshot = document.snapshot
    names = {} if snapshot is None else {each.id: each.name for each in snapshot.functions}
    kinds = {} if snapshot is None else {each.id: each.kind for each in snapshot.functions}
    chosen = document.links.at_step(()).select(document.selection.chosen).of_kind("tir")
    found = (names[each] for each in chosen if kinds.get(each) == "tensorir")
    return name_before_packing(next(found, ""))


def ask_tuning(document: Document, function: str, tuning: Tuning, parent: QWidget) -> TuneDialog:
    """Show the form, and start the tuning."""
    return TuneDialog(document, function or function_of(document), tuning, parent).pop_up()


class TuneCommands(QObject):
    """The commands, and their dialog and page.

    Args:
        scheduled: Returns the function at the workbench; empty for none.
        show_page: Shows the progress of tuning.
    """

    def __init__(
        self,
        host: Host,
        document: Document,
        tuning: Tuning,
        scheduled: Callable[[], str],
        show_page: Callable[[], None],
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document, self._tuning = document, tuning
        self._scheduled = scheduled
        self.show_page = show_page

    def commands(self) -> tuple[Command, ...]:
        tuning, document = self._tuning, self._document

        return (
            Command(
                "tune",
                _("Tune…"),
                self.ask,
                "Ctrl+Shift+Y",
                enabled=lambda: document.is_open() and not tuning.under_way,
            ),
            Command(
                "tune-page",
                _("Show the tuning"),
                self.show_page,
                "Ctrl+Shift+T",
                enabled=document.is_open,
            ),
            Command(
                "tune-pause",
                _("Pause the &tuning"),
                tuning.pause,
                enabled=lambda: tuning.phase == "tuning",
            ),
            Command(
                "tune-resume",
                _("Resume t&he tuning"),
                tuning.resume,
                enabled=lambda: tuning.phase in ("pausing", "paused"),
            ),
            Command(
                "tune-stop",
                _("Stop the tunin&g"),
                tuning.stop,
                enabled=lambda: tuning.under_way and tuning.phase != "stopping",
            ),
            Command(
                "tune-more",
                _("Continue tuning with as man&y trials again"),
                self.go_on,
                enabled=lambda: tuning.can_go_on,
            ),
        )

    def ask(self) -> None:
        """Show the dialog that starts a tuning; the page shows the progress."""
        dialog = ask_tuning(self._document, self._scheduled(), self._tuning, self._host.widget)
        dialog.accepted.connect(self.show_page)

    def go_on(self) -> None:
        """Tune the same functions for the same number of trials again."""
        self.show_page()
        self._tuning.go_on()
