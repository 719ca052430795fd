"""The page Tune: the tuned functions, and the best time of one over the trials."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.buttons import check_box, push_button, set_look
from lowerscope.app.kit.charts.plots import BestCurve, CurvePoint, Level
from lowerscope.app.kit.layouts import column_of, row_of, stretch
from lowerscope.app.kit.pane import ElidedLabel, ProgressLine
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.core.model.formatting import (
    NONE,
    UNRELIABLE,
    are_apart,
    beside_text,
    disturbed_times,
    seconds_text,
)
from lowerscope.core.model.recipe import applies_schedules
from lowerscope.core.model.texts import _, _n
from lowerscope.core.model.tuning_records import TunedFunction, TunedState, TunedTime, TuneState

# --- Texts of a tuning: rows, a function's curve, times, and the remaining work ---

STATES: dict[TunedState, tuple[str, str]] = {
    "waiting": ("○ waits", "quiet"),
    "tuning": ("▸ tuning", "accent"),
    "done": (_("✓ done"), "right"),
    "stopped": ("■ stopped", "quiet"),
    "failed": (_("✕ failed"), "wrong"),
}

START_SECONDS = 12.0
"""Time before the first candidate is measured: imports of torch and TVM, and the derivation."""

FUNCTION_SECONDS = 3.0
"""Time per function before its first candidate."""

MEASURE_ANEW = _("tune again with “Measure candidates of the database again”")

TRIAL_SECONDS = 0.8
"""Time per candidate if none was measured yet; most of it is compilation."""


def estimated_seconds(trials: int, functions: int, last: TuneState | None) -> float:
    """Return the estimated time of the trials, at the pace of the last tuning if there is one."""
    if last is not None and last.trials_done >= 4:
        return START_SECONDS + trials * last.seconds_spent / last.trials_done
    return START_SECONDS + functions * FUNCTION_SECONDS + trials * TRIAL_SECONDS


def tuned_row(function: TunedFunction) -> Row:
    """Return the row of a function: its state, its trials and its best time."""
    mark, role = STATES[function.state]
    if function.state == "done" and function.from_database:
        mark = _("✓ known")
    name = function.name + (f"  +{len(function.twins)}" if function.twins else "")
    note = function.note
    if function.from_database and not note:
        note = _("the best was in the database")
    planned = max(function.planned, function.trials)
    unsure = disturbed_times(function, "best", "torch")
    ratio, role = "", ""
    if function.best is not None and function.torch:
        faster = function.best < function.torch and are_apart(function.best, function.torch)
        role = "unsure" if unsure else "right" if faster else ""
        ratio = beside_text(function.best, function.torch, about=bool(unsure))
    if function.disturbed:
        note = _("; ").join(each for each in (note, UNRELIABLE, MEASURE_ANEW) if each)
    return Row(
        function.name,
        (
            Cell(name, bold=True, tooltip="\n".join((function.name, *function.twins))),
            Cell(mark, role=role, tooltip=function.note),
            f"{function.trials:,} / {planned:,}" if planned else NONE,
            Cell(f"{function.failed:,}", role="wrong" if function.failed else "quiet"),
            _time(function, "best"),
            Cell(ratio, role=role, tooltip=unsure),
            _time(function, "by_rules"),
            _time(function, "torch"),
            Cell(note, role="unsure" if function.disturbed else "quiet", tooltip=note),
        ),
    )


def _time(function: TunedFunction, name: TunedTime) -> Cell:
    """Return the cell of a time, marked if it is unreliable."""
    unsure = disturbed_times(function, name)
    seconds: float | None = getattr(function, name)
    return Cell(seconds_text(seconds), "unsure" if unsure else "", tooltip=unsure)


def levels_of(function: TunedFunction) -> list[Level]:
    """Return the reference times of a function's curve, as far as measured."""
    known = (
        ("torch", function.torch),
        ("rules", function.by_rules),
        ("unscheduled", function.unscheduled),
    )
    return [Level(label, value) for label, value in known if value]


def points_of(function: TunedFunction) -> list[CurvePoint]:
    """Return the points of the curve of a function."""
    before = function.unscheduled
    points = []
    if not function.points and function.best is not None:
        known = _("from the database") if function.from_database else _("unchanged")
        points.append(CurvePoint(0, function.best, known))
    for each in function.points:
        parts = [seconds_text(each.seconds_spent)]
        if before and not disturbed_times(function, "best", "unscheduled"):
            parts.append(beside_text(each.best, before, _("unscheduled")))
        points.append(CurvePoint(each.trials, each.best, " · ".join(parts)))
    return points


def summary(tuning: Tuning) -> str:
    """Return the progress of a tuning, in one line."""
    state = tuning.state
    if state is None:
        return ""
    parts = [
        _n(
            "{done:,} of {count:,} trial",
            "{done:,} of {count:,} trials",
            state.trials_total,
            done=state.trials_done,
        )
    ]
    if tuning.phase in ("tuning", "pausing", "paused") and state.seconds_left is not None:
        parts.append(
            _("about {seconds_left} left", seconds_left=seconds_text(round(state.seconds_left)))
        )
    parts.append(_("{time} spent", time=seconds_text(round(state.seconds_spent))))
    failed = sum(each.failed for each in state.functions)
    if failed:
        parts.append(_("{count:,} failed", count=failed))
    return " · ".join(parts)


_SHARES = [404, 266]

NARROW = 520
"""Width below which, as beside the workbench, the curve is below the table."""


class TunePage(QWidget):
    """The table of the functions beside the curve of the selected one."""

    tune_wanted = Signal()  # Show the form for a tuning.
    workbench_wanted = Signal(str)  # Show the schedule of a function.
    in_model_wanted = Signal(bool)  # Apply the schedules to the model, or not.

    def __init__(self, document: Document, tuning: Tuning) -> None:
        super().__init__()
        self._document = document
        self._tuning = tuning
        # The function selected by the user; empty to follow the one being tuned.
        self._chosen = ""
        self.tune = push_button(_("Tune…"), _("Choose the functions and the number of trials"))
        self.pause = push_button(
            _("Pause"), _("Stop measuring candidates until you resume"), self._pause_or_resume
        )
        self.stop = push_button(_("Stop"), _("End the tuning; the results are kept"), tuning.stop)
        self.more = push_button(_("More trials"), act=tuning.go_on)
        self.summary = ElidedLabel(role="quiet")
        self.in_model = check_box(
            _("Apply to the model"),
            _("Add the step ApplySchedules to the end of the pipeline, so that Run uses it"),
        )
        self.progress = ProgressLine()
        self.table = Table(
            _("Functions that are tuned"),
            (
                Column(_("function"), width=104),
                Column(_("state"), width=76),
                Column(_("trials"), numeric=True, width=68),
                Column(
                    _("failed"),
                    numeric=True,
                    width=50,
                    tooltip=_("Rejected, crashed, too slow, or computed something else"),
                ),
                Column(
                    _("best"),
                    numeric=True,
                    width=68,
                    tooltip=_("One call with the best schedule found"),
                ),
                Column(
                    _("vs. torch"),
                    numeric=True,
                    width=104,
                    tooltip=_("The best beside torch's time"),
                ),
                Column(_("rules"), numeric=True, width=76),
                Column(_("torch"), numeric=True, width=76),
                Column(_("note"), stretch=True, width=110),
            ),
        )
        self.curve = BestCurve(_("Best time over the trials"), seconds_text)
        self.said = Label(wraps=True)
        self.said.setContentsMargins(12, 4, 12, 6)
        self._lay_out()
        self.tune.clicked.connect(self.tune_wanted)
        self.in_model.clicked.connect(self.in_model_wanted)
        self.table.row_clicked.connect(self._choose)
        self.table.row_activated.connect(self.workbench_wanted)
        self._tuning.changed.connect(self._show_if_seen)
        document.on(("recipe", "pending"), self._show_if_seen)
        self._show()

    def _lay_out(self) -> None:
        buttons = (self.tune, self.pause, self.stop, self.more)
        row = row_of(None, *buttons, stretch(0), margins=None, spacing=8)
        bar = self._bar = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        bar.setContentsMargins(8, 4, 8, 4)
        bar.setSpacing(8)
        bar.addLayout(row)
        bar.addWidget(self.summary, 1)
        bar.addWidget(self.in_model)
        split = self._split = Split(Qt.Orientation.Horizontal)
        for place, part in enumerate((self.table, self.curve)):
            split.addWidget(part)
            split.setStretchFactor(place, _SHARES[place])
            split.setCollapsible(place, False)
        split.setSizes(_SHARES)
        column_of(self, bar, self.progress, (split, 1), self.said)

    # User actions

    def _pause_or_resume(self) -> None:
        if self._tuning.phase in ("paused", "pausing"):
            self._tuning.resume()
        else:
            self._tuning.pause()

    def _choose(self, function: str) -> None:
        self._chosen = function
        self._document.select((f"tir:{function}",))
        self._show_curve()

    # Content

    def _show_if_seen(self) -> None:
        if self.isVisible():
            self._show()

    def _show(self) -> None:
        tuning, phase = self._tuning, self._tuning.phase
        state, recipe = tuning.state, self._document.wanted
        self.tune.setEnabled(self._document.recipe is not None and not tuning.under_way)
        paused = phase in ("paused", "pausing")
        self.pause.setText(_("Resume") if paused else _("Pause"))
        self.pause.setEnabled(paused or phase == "tuning")
        self.stop.setEnabled(tuning.under_way and phase != "stopping")
        more = _("{trials} more trials", trials=tuning.trials)
        self.more.setText(more if tuning.can_go_on else _("More trials"))
        self.more.setEnabled(tuning.can_go_on)
        self.in_model.setChecked(recipe is not None and applies_schedules(recipe))
        self.in_model.setEnabled(self._document.recipe is not None)
        words = summary(tuning)
        self.summary.set_whole(words)
        self.summary.setVisible(bool(words))
        said = tuning.said
        self.said.setText(said.text)
        self.said.setVisible(bool(said.text))
        set_look(self.said, "role", "wrong" if said.role == "wrong" else "quiet")
        if not tuning.under_way:
            self.progress.clear()
        elif state is None or tuning.prepares:
            self.progress.set_busy()
        else:
            self.progress.set_fraction(state.trials_done / state.trials_total)
        functions = () if state is None else state.functions
        self.table.set_empty(*self._nothing())
        self.table.set_rows([tuned_row(each) for each in functions])
        # The table shows a hint while there is no curve.
        self.curve.setVisible(bool(functions))
        self._show_curve()

    def _nothing(self) -> tuple[str, str]:
        """Return the hint of the empty table."""
        if self._tuning.under_way:
            return _("Tuning…"), _("The functions are read first; Stop ends it.")
        return (
            _("Nothing tuned yet"),
            _(
                "Tune… tries many schedules of a function on this machine and keeps the "
                "fastest that computes the same. It takes a minute or more."
            ),
        )

    def _shown(self) -> TunedFunction | None:
        """Return the function of the curve: the selected one, or the one being tuned."""
        state = self._tuning.state
        functions = () if state is None else state.functions
        chosen = (each for each in functions if each.name == self._chosen)
        tuned = (each for each in functions if each.state == "tuning")
        begun = (each for each in reversed(functions) if each.points)
        return next(chosen, None) or next(tuned, None) or next(begun, None)

    def _show_curve(self) -> None:
        function = self._shown()
        if function is None:
            self.table.set_selection(())
            self.curve.set_curve((), (), 0, 0)
            self.curve.set_empty("")
            return
        self.table.set_selection((function.name,))
        self.curve.setAccessibleName(_("Best time of {name} over the trials", name=function.name))
        self.curve.set_empty(_("{name}: no candidate measured yet", name=function.name))
        until = max(function.planned, function.trials)
        self.curve.set_curve(points_of(function), levels_of(function), function.trials, until)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        wanted = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if wanted != self._split.orientation():
            self._split.setOrientation(wanted)
            self._split.setSizes([90, 150] if narrow else _SHARES)
            way = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
            self._bar.setDirection(way)
