"""The page Numbers of the Schedule pane: a function's work, speed and distance from the peak."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.bar_controls import Pill
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.app.kit.charts.plots import Mark, Roofline, Roofs
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import ElidedLabel, SeenPage
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.schedule.measurements import Measurements, Scheduled
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.model.formatting import (
    NONE,
    UNRELIABLE,
    bytes_text,
    duration_text,
    durations_text,
    error_text,
    figure_text,
    operations_text,
    ratio_text,
    share_text,
)
from lowerscope.core.model.schedule import Schedule, shown_name
from lowerscope.core.model.schedule_records import Checked, Measured, Work

# --- Texts on a function's metrics: its verdict, its rates and its work ---

Verdict = tuple[str, str, str, str]
"""Role of a `Pill`, word, figure, and details."""


def verdict_of(measurements: Measurements, of: Scheduled) -> Verdict:
    """Return the verdict on whether a scheduled function computes the same."""
    if not of.primitives:
        return "neutral", tr("unscheduled"), "", tr("What steps are compared with")
    checked = measurements.checked(of)
    if checked is not None:
        return _verdict(checked)
    problem = measurements.problem("check", of)
    if problem is not None:
        return "neutral", tr("not known"), _short(problem.what), problem.line()
    if measurements.doing == "check" and measurements.doing_of == of:
        return "busy", tr("checking"), "", tr("Compiled and run against the unscheduled function")
    if measurements.is_coming("check", of):
        return "busy", tr("to be checked"), "", ""
    return "neutral", tr("not checked"), "", tr("Measure checks it as well")


def _verdict(checked: Checked) -> Verdict:
    error, tolerance = checked.max_abs_error, checked.tolerance
    allowed = tr("exact values have to be equal")
    if tolerance is not None:
        allowed = tr("off by {0} at most, {1} is allowed for sums of this length").format(
            error_text(error), error_text(tolerance)
        )
    if checked.at:
        allowed += "\n" + tr("with {0}, the size that the model is traced at").format(checked.at)
    if checked.verdict == "same":
        figure = tr("exactly") if not error else tr("to {0}").format(error_text(error))
        more = f"{checked.reason}\n{allowed}" if checked.reason else allowed
        return "right", tr("same"), figure, more
    if checked.verdict == "inconclusive":
        return "unsure", tr("inconclusive"), "", checked.reason
    if checked.verdict == "differs":
        short = _short(checked.reason)
        is_far = error is not None and tolerance is not None and error > tolerance
        figure = tr("by {0}").format(error_text(error)) if is_far else short
        return "wrong", tr("differs"), figure, f"{checked.reason}\n{allowed}"
    return "neutral", tr("not known"), _short(checked.reason), checked.reason


def _short(reason: str) -> str:
    return reason if len(reason) <= 48 else f"{reason[:47]}…"


def faster_text(before: Measured, after: Measured) -> str:
    """Return the speedup: ``12.0×``, or ``≈ 12.0×`` if a time is unreliable."""
    about = before.disturbed or after.disturbed
    return ratio_text(before.milliseconds / after.milliseconds, about=about)


def tr(text: str) -> str:
    """Translate."""
    return QCoreApplication.translate("number_words", text)


# --- The rows of the table of metrics: a function's work and speed, beside torch's ---


def work_rows(work: Work) -> Iterator[Row]:
    """Yield the rows on the work of one call."""
    read, written = (
        tr("not known") if each is None else bytes_text(each) for each in (work.read, work.written)
    )
    flops = tr("not known") if work.flops is None else operations_text(work.flops)
    in_model = tr("In one run of the model")
    if work.at:
        traced = tr("The size that the model is traced at; the function takes others as well")
        yield _row("at", tr("at the size"), work.at, tooltip=traced)
    yield _row("calls", tr("calls"), f"{work.calls:,}", tooltip=in_model)
    yield _row("flops", tr("operations"), flops)
    yield _row("read", tr("reads"), read)
    yield _row("written", tr("writes"), written)
    yield _row("intensity", tr("FLOP per byte"), figure_text(work.intensity))


def measured_rows(measured: Measured, work: Work | None) -> Iterator[Row]:
    """Yield the rows on speed; torch's rates if it computes exactly the same."""
    torch = measured.torch_ms
    nodes = ", ".join(measured.torch_nodes)
    of_torch = Cell("–")
    if torch is not None and measured.torch_does_more:
        more = tr("The function is a part of {0} only; torch computes all of it").format(nodes)
        of_torch = Cell(f"({duration_text(torch)})", "quiet", tooltip=more)
    elif torch is not None:
        of_torch = Cell(duration_text(torch), bold=True, tooltip=nodes)
    role, more = ("unsure", UNRELIABLE) if measured.disturbed else ("", "")
    time = Cell(duration_text(measured.milliseconds), role, bold=True, tooltip=more)
    half = tr("Half of {0} measurements are between these times").format(measured.repeats)
    alone = None if measured.torch_does_more else torch
    flops = None if work is None else work.flops
    moved = None if work is None or work.read is None else work.read + (work.written or 0)
    spread = durations_text(measured.low, measured.high)
    if measured.repeats == 1:
        spread = tr("measured once")
    share = NONE if measured.share is None else share_text(measured.share)
    roof = tr("Of what this machine allows for so many operations and bytes")
    yield Row("time", (Cell(tr("time"), "quiet"), time, of_torch))
    yield _row("spread", tr("spread"), spread, tooltip=half)
    yield _row("gflops", "GFLOP/s", figure_text(measured.gflops), _rate(flops, alone))
    yield _row("gbytes", "GB/s", figure_text(measured.gbytes_per_second), _rate(moved, alone))
    yield _row("share", tr("of the roofline"), share, tooltip=roof)
    yield _row("build", tr("compiling"), duration_text(measured.build_ms))


def _row(key: str, name: str, here: str, torch: str = "", tooltip: str = "") -> Row:
    return Row(key, (Cell(name, "quiet", tooltip=tooltip), Cell(here, tooltip=tooltip), torch))


def _rate(amount: float | None, milliseconds: float | None) -> str:
    return figure_text(amount / milliseconds / 1e6) if amount and milliseconds else ""


UNSCHEDULED = "unscheduled"
"""Key of the row of the unscheduled function."""

BEST = "best"
"""Key of the row of the fastest version, if it is no longer a variant."""


class NumbersPage(SeenPage):
    """Metrics on the left, the roofline, and the variants side by side."""

    def __init__(
        self,
        document: Document,
        scheduling: Scheduling,
        variants: Variants,
        measurements: Measurements,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._variants = variants
        self._measurements = measurements
        self._scheduling = scheduling
        self.automatic = check_box(
            self.tr("After each step"), self.tr("Check and measure each step by itself")
        )
        self.measure = push_button(
            self.tr("Measure"), self.tr("Check and measure what is shown, once more")
        )
        self.all = push_button(
            self.tr("All variants"), self.tr("Check and measure all variants of this function")
        )
        self.stop = push_button(self.tr("Stop"), self.tr("Stop checking and measuring"))
        self.again = push_button(
            self.tr("Measure again"),
            self.tr("Measure once more what was measured while other programs were busy"),
        )
        self.state = ElidedLabel(role="quiet")
        self.figures = Table(
            self.tr("Numbers of the function"),
            (
                Column("", stretch=True),
                Column(self.tr("here"), numeric=True),
                Column(self.tr("torch"), numeric=True),
            ),
        )
        self.figures.set_empty(self.tr("No function"), self.tr("Choose one to schedule."))
        self.roofline = Roofline(self.tr("Roofline"))
        self.variants = Table(
            self.tr("Variants of the schedule"),
            (
                Column(self.tr("variant"), stretch=True),
                Column(self.tr("time"), numeric=True),
                Column(self.tr("faster"), numeric=True, tooltip=self.tr("than unscheduled")),
                Column(self.tr("values")),
            ),
        )
        self.bars = Bars(self.tr("Times of the variants"))
        self._lay_out()
        self.automatic.clicked.connect(self._measurements.set_automatic)
        self.measure.clicked.connect(self._measurements.measure)
        self.all.clicked.connect(self.measure_all)
        self.again.clicked.connect(self._measure_again)
        self.stop.clicked.connect(self._measurements.cancel)
        self.variants.row_activated.connect(self._choose)
        self._measurements.changed.connect(self.show_if_seen)
        self._scheduling.changed.connect(self.show_if_seen)
        document.on(("run", "running"), self.show_if_seen)
        self.show_content()

    def _lay_out(self) -> None:
        strip = strip_of(
            self.measure, self.all, self.automatic, (self.state, 1), self.again, self.stop
        )
        compared = QWidget()
        column_of(compared, (self.variants, 1), self.bars)
        parts = (self.figures, self.roofline, compared)
        split = Split(Qt.Orientation.Horizontal, *parts, sizes=(330, 222, 298), shares=(2, 4, 3))
        column_of(self, strip, (split, 1))

    def measure_all(self) -> None:
        """Check and measure all variants and the unscheduled function."""
        schedules = tuple(each.primitives for each in self._variants.all)
        self._measurements.measure_all(((), *schedules))

    def _measure_again(self) -> None:
        here = self._measurements.here
        if here is not None:
            self._measurements.measure_again(self._disturbed(here))

    def _choose(self, key: str) -> None:
        if key == UNSCHEDULED:
            self._variants.choose(None)
        elif key.startswith("variant:"):
            self._variants.choose(key.removeprefix("variant:"))
        elif key == BEST and self._measurements.best is not None:
            best, _ = self._measurements.best
            self._variants.add_with(self.tr("best"), best.primitives)

    # Content

    def show_content(self) -> None:
        measurements = self._measurements
        here = measurements.here
        self.automatic.setChecked(measurements.automatic)
        self.stop.setVisible(measurements.doing is not None)
        for button in (self.measure, self.all):
            button.setEnabled(here is not None)
        self.state.set_whole(self._state_text(here))
        idle = here is not None and measurements.doing is None
        self.again.setVisible(idle and here is not None and bool(self._disturbed(here)))
        self.figures.set_rows(() if here is None else self._figures(here))
        self.variants.set_rows(() if here is None else self._variant_rows(here))
        self.bars.set_bars(() if here is None else self._bars(here))
        self._show_roofline(here)

    def _state_text(self, here: Scheduled | None) -> str:
        measurements = self._measurements
        if here is None:
            return ""
        if measurements.doing is not None:
            what = {
                "check": self.tr("Comparing the values with those of the unscheduled function"),
                "measure": self.tr("Measuring"),
                "peaks": self.tr("Measuring what this machine can do"),
            }
            return what[measurements.doing]
        if self._document.running:
            return self.tr("Waits until the model has run")
        if measurements.waits:
            return self.tr("Waits until the tuning is paused or over")
        problem = measurements.problem("measure", here)
        if problem is not None:
            return problem.line()
        return UNRELIABLE if self._disturbed(here) else ""

    def _disturbed(self, here: Scheduled) -> list[Scheduled]:
        """Return the versions measured while other programs used the processors."""
        shown = dict.fromkeys((here, *(of for _, _, of in self._sides(here))))
        found = [(of, self._measurements.measured(of)) for of in shown]
        return [of for of, measured in found if measured is not None and measured.disturbed]

    def _figures(self, here: Scheduled) -> tuple[Row, ...]:
        measurements = self._measurements
        work, now = measurements.work, measurements.measured(here)
        rows = [] if now is None else list(measured_rows(now, work))
        if work is not None:
            rows += work_rows(work)
        return tuple(rows)

    def _sides(self, here: Scheduled) -> list[tuple[str, str, Scheduled]]:
        """Return key, name and version of each row: the unscheduled function, and the variants."""
        sides = [(UNSCHEDULED, self.tr("unscheduled"), here.unscheduled)]
        for each in self._variants.all:
            name = shown_name(each.variant)
            of = here if self._is_shown(each) else here.after(each.primitives)
            sides.append((f"variant:{each.variant}", name, of))
        return sides

    def _is_shown(self, schedule: Schedule) -> bool:
        """Return whether a schedule is shown with all its steps."""
        record = self._scheduling.record
        is_on = schedule is self._scheduling.schedule
        return is_on and record is not None and record.index == len(schedule.primitives)

    def _variant_rows(self, here: Scheduled) -> tuple[Row, ...]:
        measurements = self._measurements
        sides = self._sides(here)
        schedule = self._scheduling.schedule
        on = UNSCHEDULED if schedule is None else f"variant:{schedule.variant}"
        rows = [self._variant_row(key, name, of, key == on) for key, name, of in sides]
        best = measurements.best
        if best is not None and best[0] not in [of for _, _, of in sides]:
            rows.append(self._variant_row(BEST, self.tr("best so far"), best[0], False))
        return tuple(rows)

    def _variant_row(self, key: str, name: str, of: Scheduled, on: bool) -> Row:
        measurements = self._measurements
        measured, before = measurements.measured(of), measurements.measured(of.unscheduled)
        best = measurements.best
        is_best = best is not None and best[0] == of and bool(of.primitives)
        time, faster = "–", Cell("")
        disturbed = ""
        if measured is not None:
            time = duration_text(measured.milliseconds)
            disturbed = UNRELIABLE if measured.disturbed else ""
            if before is not None:
                either = UNRELIABLE if before.disturbed else disturbed
                faster = Cell(
                    faster_text(before, measured), "unsure" if either else "", tooltip=either
                )
        role, word, figure, more = verdict_of(measurements, of)
        mark = {"right": "✓ ", "wrong": "✕ "}.get(role, "")
        # The baseline of the others.
        word = word if of.primitives else "–"
        ink = role if role in ("right", "wrong") else "quiet"
        marks = ("● " if on else "") + ("★ " if is_best else "")
        facts = [self._steps_text(of)]
        if not on:
            facts.append(self.tr("Return or a double click has it on"))
        if on:
            facts.append(self.tr("● it is the one that is on"))
        if is_best:
            facts.append(self.tr("★ the fastest so far"))
        return Row(
            key,
            (
                Cell(f"{marks}{name}", bold=on, tooltip="\n".join(facts)),
                Cell(
                    time,
                    "unsure" if disturbed else "right" if is_best else "",
                    bold=is_best,
                    tooltip=disturbed,
                ),
                faster,
                Cell(f"{mark}{word}", ink, tooltip=f"{figure}\n{more}".strip()),
            ),
        )

    def _steps_text(self, of: Scheduled) -> str:
        count = len(of.primitives)
        return self.tr("1 step") if count == 1 else self.tr("{0} steps").format(count)

    def _bars(self, here: Scheduled) -> tuple[Bar, ...]:
        measurements = self._measurements
        best = measurements.best
        sides = [(name, of) for _, name, of in self._sides(here)]
        if here not in [of for _, of in sides]:
            sides.append((self.tr("here"), here))
        if best is not None and best[0] not in [of for _, of in sides]:
            sides.append((self.tr("best so far"), best[0]))
        bars, torch = [], None
        for name, of in sides:
            measured = measurements.measured(of)
            if measured is None:
                continue
            torch = torch or measured
            is_best = best is not None and best[0] == of and bool(of.primitives)
            text = duration_text(measured.milliseconds)
            bars.append(Bar(name, (measured.milliseconds,), text, best=is_best))
        if torch is not None and torch.torch_ms is not None:
            name = self.tr("torch, whole node") if torch.torch_does_more else "torch"
            bars.append(Bar(name, (torch.torch_ms,), duration_text(torch.torch_ms), "other"))
        return tuple(bars)

    def _show_roofline(self, here: Scheduled | None) -> None:
        measurements = self._measurements
        work, peaks = measurements.work, measurements.peaks
        if here is None or work is None:
            self.roofline.set_plot(Roofs(), ())
            return
        if not work.intensity:
            words = self.tr("It does no arithmetic: how many bytes it moves is what counts")
            if work.intensity is None:
                words = self.tr("How many operations it does is not known")
            self.roofline.set_plot(Roofs(), (), words)
            return
        if peaks is None:
            self.roofline.set_plot(Roofs(), (), self.tr("What this machine can do comes first"))
            return
        self.roofline.set_plot(
            Roofs(peaks.gflops, peaks.gbytes_per_second, peaks.cache_gbytes_per_second),
            self._marks(here, work.intensity, work.flops or 0.0),
        )

    def _marks(self, here: Scheduled, intensity: float, flops: float) -> tuple[Mark, ...]:
        measurements = self._measurements
        now, before = measurements.measured(here), measurements.measured(here.unscheduled)
        best = measurements.best
        marks = []
        if before is not None and before.gflops and here.primitives:
            marks.append(Mark(self.tr("unscheduled"), intensity, before.gflops, "before"))
        if best is not None and best[0] not in (here, here.unscheduled) and best[1].gflops:
            marks.append(Mark(self.tr("best so far"), intensity, best[1].gflops, "best"))
        if now is not None and now.gflops:
            marks.append(Mark(self.tr("here"), intensity, now.gflops, "here"))
        torch = now or before
        if torch is not None and torch.torch_ms and not torch.torch_does_more:
            marks.append(Mark("torch", intensity, flops / torch.torch_ms / 1e6, "other"))
        return tuple(marks)


class VerdictPill(Pill):
    """Verdict on whether the function still computes the same, in the header of the pane."""

    def __init__(self, measurements: Measurements, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._measurements = measurements
        self._measurements.changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        here = self._measurements.here
        # Visible even without steps: showing and hiding it would lay out all docks again.
        self.setVisible(here is not None)
        if here is not None:
            self.set_state(*verdict_of(self._measurements, here))
