"""Metrics of the scheduled function: its verdict, work and speed, its variants, the roofline."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Pill
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.charts.plots import Mark, Roofline, Roofs
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import PART, ElidedLabel, PartsLabel, SeenPage
from lowerscope.app.kit.plain_text import Label, MarkupLabel, breakable, markup
from lowerscope.app.kit.split import head_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Gauge, Row, Table
from lowerscope.app.panes.schedule.measurements import Measurements, Scheduled
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.model.formatting import (
    NONE,
    UNRELIABLE,
    beside_text,
    bytes_text,
    cure_text,
    duration_text,
    durations_text,
    error_text,
    figure_text,
    operations_text,
    share_text,
)
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CheckQuery, CoachQuery, CompiledCoachQuery, PeaksQuery
from lowerscope.core.model.schedule import Schedule, is_shared, shown_name
from lowerscope.core.model.schedule_records import Advice, Checked, Coaching, Measured, Work
from lowerscope.core.model.texts import _, _n

# --- Texts on a function's metrics: its verdict, its rates and its work ---

Verdict = tuple[str, str, str, str]
"""Role of a `Pill`, word, figure, and details."""


def verdict_of(measurements: Measurements, of: Scheduled) -> Verdict:
    """Return the verdict on whether a scheduled function computes the same."""
    if not of.primitives:
        return "neutral", _("unscheduled"), "", _("The baseline of the steps")
    checked = measurements.checked(of)
    if checked is not None:
        return _verdict(checked)
    problem = measurements.problem(of.check)
    if problem is not None:
        return "neutral", _("not known"), _short(problem.what), problem.line()
    if measurements.doing == of.check:
        return "busy", _("checking"), "", _("Compiled and run against the unscheduled function")
    if measurements.is_coming(of.check):
        return "busy", _("to be checked"), "", ""
    return "neutral", _("not checked"), "", _("Measure checks it as well")


def _verdict(checked: Checked) -> Verdict:
    error, tolerance = checked.max_abs_error, checked.tolerance
    allowed = _("exact values must be equal")
    if tolerance is not None:
        allowed = _(
            "off by {error} at most; {tolerance} is allowed for sums of this length",
            error=error_text(error),
            tolerance=error_text(tolerance),
        )
    if checked.at:
        allowed += "\n" + _("with {at}, the size at which the model was traced", at=checked.at)
    if checked.verdict == "same":
        figure = _("exactly") if not error else _("to {error}", error=error_text(error))
        more = f"{checked.reason}\n{allowed}" if checked.reason else allowed
        return "right", _("same"), figure, more
    if checked.verdict == "inconclusive":
        return "unsure", _("inconclusive"), "", checked.reason
    if checked.verdict == "differs":
        short = _short(checked.reason)
        is_far = error is not None and tolerance is not None and error > tolerance
        figure = _("by {error}", error=error_text(error)) if is_far else short
        return "wrong", _("differs"), figure, f"{checked.reason}\n{allowed}"
    return "neutral", _("not known"), _short(checked.reason), checked.reason


def _short(reason: str) -> str:
    return reason if len(reason) <= 48 else f"{reason[:47]}…"


def standing(measured: Measured, before: Measured | None, torch: Measured | None) -> list[str]:
    """Return the time of a function, and how it compares with the unscheduled one and torch.

    `torch`: the measurement with the time of torch.
    """
    parts = [duration_text(measured.milliseconds)]
    if before is not None and before is not measured:
        parts.append(_compared(measured, before.milliseconds, before.disturbed, _("unscheduled")))
    if torch is not None and torch.torch_ms and not torch.torch_does_more:
        parts.append(_compared(measured, torch.torch_ms, torch.disturbed, _("torch")))
    return parts


def _compared(measured: Measured, other: float, disturbed: bool, name: str) -> str:
    about = measured.disturbed or disturbed
    return beside_text(measured.milliseconds, other, name, about=about)


# --- The rows of the table of metrics: a function's work and speed, beside torch's ---


def work_rows(work: Work) -> Iterator[Row]:
    """Yield the rows on the work of one call."""
    read, written = (
        _("not known") if each is None else bytes_text(each) for each in (work.read, work.written)
    )
    flops = _("not known") if work.flops is None else operations_text(work.flops)
    in_model = _("In one run of the model")
    if work.at:
        traced = _("The size at which the model was traced; the function takes others as well")
        yield _row("at", _("size"), work.at, tooltip=traced)
    yield _row("calls", _("calls"), f"{work.calls:,}", tooltip=in_model)
    yield _row("flops", _("operations"), flops)
    yield _row("read", _("reads"), read)
    yield _row("written", _("writes"), written)
    yield _row("intensity", _("FLOP / byte"), figure_text(work.intensity))


def measured_rows(measured: Measured, work: Work | None, torch: Measured | None) -> Iterator[Row]:
    """Yield the rows on speed; torch's rates if it computes exactly the same.

    `torch`: the measurement with the time of torch.
    """
    of_torch, alone = Cell("–"), None
    if torch is not None and torch.torch_ms is not None:
        nodes, time = _(", ").join(torch.torch_nodes), duration_text(torch.torch_ms)
        role = "unsure" if torch.disturbed else "quiet" if torch.torch_does_more else ""
        if torch.torch_does_more:
            nodes = _(
                "The function is only a part of {nodes}; this is the time of all of it",
                nodes=nodes,
            )
            time = f"({time})"
        else:
            alone = torch.torch_ms
        more = f"{nodes}\n{UNRELIABLE}" if torch.disturbed else nodes
        of_torch = Cell(time, role, bold=alone is not None, tooltip=more)
    role, more = ("unsure", UNRELIABLE) if measured.disturbed else ("", "")
    here = Cell(duration_text(measured.milliseconds), role, bold=True, tooltip=more)
    half = _("Half of {repeats} measurements are between these times", repeats=measured.repeats)
    flops = None if work is None else work.flops
    moved = None if work is None or work.read is None else work.read + (work.written or 0)
    spread = durations_text(measured.low, measured.high)
    if measured.repeats == 1:
        spread = _("one call")
    share = NONE if measured.share is None else share_text(measured.share)
    roof = _("Share of this machine's limit for these operations and bytes")
    yield Row("time", (Cell(_("time"), "quiet"), here, of_torch))
    yield _row("spread", _("spread"), spread, tooltip=half)
    yield _row("gflops", "GFLOP/s", figure_text(measured.gflops), _rate(flops, alone))
    yield _row("gbytes", "GB/s", figure_text(measured.gbytes_per_second), _rate(moved, alone))
    yield _row("share", _("of roofline"), share, tooltip=roof)
    yield _row("build", _("compiling"), duration_text(measured.build_ms))


def _marked(text: str, unsure: bool) -> Cell:
    """Return the cell of a figure, marked if its times are unreliable."""
    return Cell(text, "unsure", tooltip=UNRELIABLE) if unsure else Cell(text)


def _row(key: str, name: str, here: str, torch: str = "", tooltip: str = "") -> Row:
    return Row(key, (Cell(name, "quiet", tooltip=tooltip), Cell(here, tooltip=tooltip), torch))


def _rate(amount: float | None, milliseconds: float | None) -> str:
    return figure_text(amount / milliseconds / 1e6) if amount and milliseconds else ""


BAR_WIDTH = 32
STATE_HEIGHT = 26
VERDICT_WIDTH = 220

UNSCHEDULED = "unscheduled"
"""Key of the row of the unscheduled function."""

BEST = "best"
"""Key of the row of the fastest version, if it is no longer a variant."""


class Figures(SeenPage):
    """The figures of the function at the current step, beside torch's, above the warnings on it."""

    def __init__(self, document: Document, measurements: Measurements, advice: AdviceList) -> None:
        super().__init__()
        self._document = document
        self._measurements = measurements
        self.measure = push_button(
            _("Measure"), _("Check and measure the current step again (Ctrl+Return)")
        )
        self.stop = push_button(_("Stop"), _("Stop checking and measuring"))
        self.state = ElidedLabel(role="quiet")
        self.state.setContentsMargins(10, 0, 10, 0)
        self.state.setFixedHeight(STATE_HEIGHT)
        self.table = Table(
            _("Metrics of the function"),
            (
                Column("", stretch=True),
                Column(_("current"), numeric=True),
                Column(_("torch"), numeric=True),
            ),
        )
        self.table.word_titles(document.named_engine)
        self.title = Label(_("Metrics"), role="title")
        self.head = head_of(self.title, STRETCH, self.measure, self.stop)
        column_of(self, self.head, (self.table, 1), (advice, 1), self.state)
        self.measure.clicked.connect(measurements.measure)
        self.stop.clicked.connect(measurements.cancel)
        measurements.changed.connect(self.show_if_seen)
        document.on(("run", "running"), self.show_if_seen)
        self.show_content()

    def show_content(self) -> None:
        measurements = self._measurements
        here = measurements.here
        self.stop.setVisible(measurements.doing is not None)
        self.measure.setVisible(measurements.doing is None)
        self.measure.setEnabled(here is not None)
        self.state.set_whole(self._state_text(here))
        rows: list[Row] = []
        if here is not None:
            work, now = measurements.work, measurements.measured(here)
            rows += [] if now is None else measured_rows(now, work, measurements.torch)
            rows += [] if work is None else work_rows(work)
        self.table.set_rows(rows)

    def _state_text(self, here: Scheduled | None) -> str:
        measurements = self._measurements
        if here is None:
            return ""
        doing = measurements.doing
        if isinstance(doing, CheckQuery):
            return _("Checking the values")
        if doing is not None:
            peaks = _("Measuring the peak rates of this machine")
            return peaks if isinstance(doing, PeaksQuery) else _("Measuring")
        if self._document.running:
            return _("Waits for the run of the model to end")
        if measurements.waits:
            return _("Waits until the tuning is paused or over")
        problem = measurements.problem(here.measure)
        if problem is not None:
            return problem.line()
        measured = measurements.measured(here)
        if measured is None or not measured.disturbed:
            return ""
        # As long as there is room for; the figures have the whole as their tooltip.
        return _("the times are unreliable: measure again")


class AdviceList(QScrollArea):
    """Warnings on the schedule, each with a link that cures it."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        scheduling: Scheduling,
        measurements: Measurements,
    ) -> None:
        super().__init__()
        self._document, self._scheduling = document, scheduling
        self._measurements = measurements
        self._watch = queries.watch(self, self._query, self._take, self._take_problem)
        self._compiled = queries.watch(self, self._by_code, self._take_more, self._take_no_more)
        self._more: tuple[Advice, ...] = ()  # Those of its machine code.
        self.coaching: Coaching | None = None  # Of the record shown; ``None`` before it arrives.
        # The links inside take the keyboard.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.text = MarkupLabel(wraps=True)
        self.text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.text.setContentsMargins(10, 6, 10, 6)
        self.text.setAccessibleName(_("Advice"))
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setProperty("edge", "top")
        self.setWidget(self.text)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.text.linkActivated.connect(self._follow)
        scheduling.changed.connect(self._follow_record)
        measurements.changed.connect(self._show)
        theme.notifier().changed.connect(self._show_anew)
        self._follow_record()

    def _query(self) -> CoachQuery | None:
        shown = self._scheduling.shown
        if shown is None or self._scheduling.record is None:
            return None
        return CoachQuery(shown.recipe, shown.function, shown.index)

    def _by_code(self) -> CompiledCoachQuery | None:
        query = self._query()
        if query is None or self.coaching is None:
            return None
        return CompiledCoachQuery(query.recipe, query.function, query.index)

    def _follow_record(self) -> None:
        if not self._watch.is_current:
            self.coaching, self._more = None, ()
        if self.coaching is None and self._watch.pending != self._query():
            # Also what was shown before another function was: that is gone.
            self._watch.refresh()
        if self.coaching is None:
            self._compiled.refresh()
            self._show()

    def _take(self, coaching: Coaching) -> None:
        self.coaching = coaching
        self._compiled.update()
        self._show()

    def _take_more(self, advice: tuple[Advice, ...]) -> None:
        self._more = advice
        self._show()

    def _take_no_more(self, _problem: Problem) -> None:
        # Its measurement says that it cannot be compiled.
        self._more = ()

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The warnings shown."""
        return () if self.coaching is None else (*self.coaching.advice, *self._more)

    def _take_problem(self, _problem: Problem) -> None:
        # The record of the same function has the same problem.
        self.coaching = None
        self._show()

    def _show_anew(self) -> None:
        # Links have the colour of the time at which their text was set.
        self.text.clear()
        self._show()

    def _show(self) -> None:
        coaching, advice, scale = self.coaching, self.advice, self._measurements.scale
        head = (
            _n("{count} warning", "{count} warnings", len(advice)) if advice else _("No warnings")
        )
        if coaching is not None and coaching.predicted_ms is not None and not self._is_measured():
            time = duration_text(coaching.predicted_ms)
            head = _("{warnings} · predicted {time}", warnings=head, time=time)
        whole = markup("<p><b>{0}</b></p>", head if coaching is not None else "")
        for number, each in enumerate(advice):
            pattern = '{0}<p>{1}<br><a href="{2}">{3}</a></p>'
            text = _("{name}: {said}", name=each.block, said=each.text)
            predicted = each.predicted_ms
            scaled = None if predicted is None or scale is None else predicted * scale
            cure = cure_text(each.cure, scaled)
            whole = markup(pattern, whole, breakable(text), str(number), breakable(cure))
        if whole != self.text.text():
            self.text.setText(whole)

    def _is_measured(self) -> bool:
        here = self._measurements.here
        return here is not None and self._measurements.measured(here) is not None

    def _follow(self, link: str) -> None:
        """Apply the cure of a warning; without one, choose the primitive for its loop."""
        record = self._scheduling.record
        if record is None or int(link) >= len(self.advice):
            return
        advice = self.advice[int(link)]
        if advice.steps:
            self._scheduling.editing.apply(*advice.steps)
            return
        self._document.select((record.tree[advice.place].id,))
        self._scheduling.trying.choose_named(advice.primitive)


class VariantTable(SeenPage):
    """The variants of the schedule beside the unscheduled function and torch."""

    def __init__(
        self, scheduling: Scheduling, variants: Variants, measurements: Measurements
    ) -> None:
        super().__init__()
        self._variants = variants
        self._measurements = measurements
        self._scheduling = scheduling
        self.all = push_button(
            _("Measure all"), _("Check and measure all variants of this function")
        )
        self.again = push_button(
            _("Measure again"),
            _("Repeat the measurements that other programs disturbed"),
        )
        self.everywhere = check_box(
            "",
            _(
                "Checked: all functions of the same structure share the schedule.\nUnchecked: "
                "this one has its own schedule, and the others keep theirs."
            ),
        )
        self.table = Table(
            _("Variants of the schedule"),
            (
                Column(_("variant"), stretch=True),
                Column("", width=BAR_WIDTH),
                Column(_("time"), numeric=True),
                Column(_("speed"), numeric=True, tooltip=_("beside unscheduled")),
                Column(_("values")),
            ),
        )
        self.title = Label(_("Variants"), role="title")
        self.head = head_of(self.title, STRETCH, self.everywhere, self.again, self.all)
        column_of(self, self.head, (self.table, 1))
        self.all.clicked.connect(self.measure_all)
        self.again.clicked.connect(self._measure_again)
        self.everywhere.clicked.connect(variants.set_everywhere)
        self.table.row_activated.connect(self._choose)
        measurements.changed.connect(self.show_if_seen)
        scheduling.changed.connect(self.show_if_seen)
        self.show_content()

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
            best = self._measurements.best[0]
            self._variants.add_with(_("best"), best.primitives)

    # Content

    def show_content(self) -> None:
        here = self._measurements.here
        idle = here is not None and self._measurements.doing is None
        self.all.setEnabled(here is not None)
        self.again.setVisible(idle and here is not None and bool(self._disturbed(here)))
        self.table.set_rows(() if here is None else self._rows(here))
        self._show_alike()

    def _show_alike(self) -> None:
        record, schedule = self._scheduling.record, self._scheduling.schedule
        twins = () if record is None else record.twins
        functions, alike = len(twins) + 1, self._variants.alike
        shared = schedule is None or is_shared(schedule)
        if schedule is None or not shared or alike == functions:
            text = _("all {functions} alike", functions=functions)
        else:
            text = _("{alike} of {functions} alike", alike=alike, functions=functions)
        self.everywhere.setText(text)
        self.everywhere.setVisible(bool(twins))
        self.everywhere.setAccessibleDescription(_(", ").join(twins))
        self.everywhere.setChecked(shared)

    def _disturbed(self, here: Scheduled) -> list[Scheduled]:
        """Return the versions measured while other programs used the processors."""
        shown = dict.fromkeys((here, *(of for _, _, of in self._sides(here))))
        found = [(of, self._measurements.measured(of)) for of in shown]
        return [of for of, measured in found if measured is not None and measured.disturbed]

    def _sides(self, here: Scheduled) -> list[tuple[str, str, Scheduled]]:
        """Return key, name and version of each row: the unscheduled function, and the variants."""
        sides = [(UNSCHEDULED, _("unscheduled"), here.unscheduled)]
        for each in self._variants.all:
            name = shown_name(each.variant)
            of = here if self._is_shown(each) else here.after(each.primitives)
            sides.append((f"variant:{each.variant}", name, of))
        best = self._measurements.best
        if best is not None and best[0] not in [side[2] for side in sides]:
            sides.append((BEST, _("best so far"), best[0]))
        return sides

    def _is_shown(self, schedule: Schedule) -> bool:
        """Return whether a schedule is shown with all its steps."""
        record = self._scheduling.record
        is_on = schedule is self._scheduling.schedule
        return is_on and record is not None and record.index == len(schedule.primitives)

    def _rows(self, here: Scheduled) -> tuple[Row, ...]:
        sides, schedule = self._sides(here), self._scheduling.schedule
        on = UNSCHEDULED if schedule is None else f"variant:{schedule.variant}"
        known = [self._measurements.measured(of) for _, _, of in sides]
        torch = self._measurements.torch
        times = [each.milliseconds for each in known if each is not None]
        if torch is not None and torch.torch_ms:
            times.append(torch.torch_ms)
        longest = max(times, default=0.0)
        rows = [self._row(key, name, of, key == on, longest) for key, name, of in sides]
        if torch is not None and torch.torch_ms is not None:
            rows.append(self._torch_row(torch, torch.torch_ms, known[0], longest))
        return tuple(rows)

    def _torch_row(
        self, measured: Measured, time: float, before: Measured | None, longest: float
    ) -> Row:
        name = _("torch, node") if measured.torch_does_more else _("torch")
        shown, faster = _marked(duration_text(time), measured.disturbed), Cell("")
        if before is not None:
            unsure = before.disturbed or measured.disturbed
            faster = _marked(beside_text(time, before.milliseconds, about=unsure), unsure)
        bar = Cell("", gauge=Gauge(time / longest, "quiet"))
        title = Cell(self._measurements.named_engine(name), "quiet")
        return Row("torch", (title, bar, shown, faster, ""))

    def _row(self, key: str, name: str, of: Scheduled, on: bool, longest: float) -> Row:
        measurements = self._measurements
        measured, before = measurements.measured(of), measurements.measured(of.unscheduled)
        best = measurements.best
        is_best = best is not None and best[0] == of and bool(of.primitives)
        is_best = is_best and measured is not None and not measured.disturbed
        time, faster, bar = NONE, Cell(""), Cell("")
        disturbed = ""
        if measured is not None:
            time = duration_text(measured.milliseconds)
            bar = Cell(
                "", gauge=Gauge(measured.milliseconds / longest, "accent" if on else "quiet")
            )
            disturbed = UNRELIABLE if measured.disturbed else ""
            if before is not None and of.primitives:
                unsure = before.disturbed or measured.disturbed
                compared = beside_text(measured.milliseconds, before.milliseconds, about=unsure)
                faster = _marked(compared, unsure)
        role, word, figure, more = verdict_of(measurements, of)
        mark = {"right": "✓ ", "wrong": "✕ "}.get(role, "")
        # The baseline of the others.
        word = word if of.primitives else NONE
        ink = role if role in ("right", "wrong") else "quiet"
        marks = ("● " if on else "") + ("★ " if is_best else "")
        facts = [_n("1 step", "{count} steps", len(of.primitives))]
        if not on:
            facts.append(_("Return or a double click enables it"))
        if on:
            facts.append(_("● enabled"))
        if is_best:
            facts.append(_("★ the fastest so far"))
        return Row(
            key,
            (
                Cell(f"{marks}{name}", bold=on, tooltip="\n".join(facts)),
                bar,
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


class RooflineView(SeenPage):
    """The function, torch and the limits of this machine, by intensity."""

    def __init__(self, scheduling: Scheduling, measurements: Measurements) -> None:
        super().__init__()
        self._measurements = measurements
        self.plot = Roofline(_("Roofline"))
        self.title = Label(_("Roofline"), role="title")
        unit = ElidedLabel(role="quiet")
        unit.set_whole(_("GFLOP/s by FLOP per byte"))
        self.head = head_of(self.title, (unit, 1))
        column_of(self, self.head, (self.plot, 1))
        measurements.changed.connect(self.show_if_seen)
        scheduling.changed.connect(self.show_if_seen)
        self.show_content()

    def show_content(self) -> None:
        measurements = self._measurements
        here, work, peaks = measurements.here, measurements.work, measurements.peaks
        if here is None or work is None:
            self.plot.set_plot(Roofs(), ())
        elif not work.intensity:
            words = _("It does no arithmetic: the bytes it moves are the limit")
            if work.intensity is None:
                words = _("Its number of operations is not known")
            self.plot.set_plot(Roofs(), (), words)
        elif peaks is None:
            self.plot.set_plot(Roofs(), (), _("Appears once the function is measured"))
        else:
            self.plot.set_plot(
                Roofs(peaks.gflops, peaks.gbytes_per_second, peaks.cache_gbytes_per_second),
                self._marks(here, work.intensity, work.flops or 0.0),
            )

    def _marks(self, here: Scheduled, intensity: float, flops: float) -> tuple[Mark, ...]:
        measurements = self._measurements
        now, before = measurements.measured(here), measurements.measured(here.unscheduled)
        best = measurements.best
        marks = []
        if before is not None and before.gflops and here.primitives:
            marks.append(Mark(_("unscheduled"), intensity, before.gflops, "before"))
        if best is not None and best[0] not in (here, here.unscheduled) and best[1].gflops:
            marks.append(Mark(_("best so far"), intensity, best[1].gflops, "best"))
        if now is not None and now.gflops:
            marks.append(Mark(_("current"), intensity, now.gflops, "here"))
        torch = measurements.torch
        if torch is not None and torch.torch_ms and not torch.torch_does_more:
            name = measurements.named_engine("torch")
            marks.append(Mark(name, intensity, flops / torch.torch_ms / 1e6, "other"))
        return tuple(marks)


class Standing(QWidget):
    """Verdict on the values of the current step, and its time beside unscheduled and torch."""

    def __init__(self, measurements: Measurements) -> None:
        super().__init__()
        self._measurements = measurements
        self.verdict = Pill()
        # Fixed size for all its texts, so that nothing beside it moves.
        self.verdict.setFixedSize(VERDICT_WIDTH, self.verdict.sizeHint().height())
        self.keep_room(True)
        self.times = PartsLabel()
        self.times.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row_of(self, (self.times, 1), self.verdict, spacing=10)
        self.verdict.clicked.connect(measurements.measure)
        measurements.changed.connect(self._follow)
        self._follow()

    def keep_room(self, on: bool) -> None:
        """Set whether the verdict has its room while there is none."""
        stays = self.verdict.sizePolicy()
        stays.setRetainSizeWhenHidden(on)
        self.verdict.setSizePolicy(stays)

    def _follow(self) -> None:
        measurements = self._measurements
        here = measurements.here
        self.verdict.setVisible(here is not None)
        if here is None:
            self.times.set_whole("")
            return
        role, word, figure, more = verdict_of(measurements, here)
        if role == "right":
            more, word, figure = f"{word} {figure}\n{more}", _("same values as unscheduled"), ""
        self.verdict.set_state(role, word, figure, more)
        measured = measurements.measured(here)
        before = measurements.measured(here.unscheduled)
        parts = [] if measured is None else standing(measured, before, measurements.torch)
        self.times.set_whole(measurements.named_engine(PART.join(parts)))
