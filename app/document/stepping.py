"""Position of the window in the lists of steps: the step that the panes show."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.document import Document
from lowerscope.core.model.module_steps import (
    APART,
    Moment,
    PassRecord,
    Section,
    TranslationRecord,
)
from lowerscope.core.model.problems import listed
from lowerscope.core.model.recipe import Source
from lowerscope.core.model.run_records import CallRun
from lowerscope.core.model.schedule_records import ScheduleStep
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _, _n

# The steps of each timeline in one form, for the rows of lists and the dots of the slider.

Status = Literal["done", "failed", "skipped", "off"]

HEAVY = 0.8
"""Share of a run's time that the heavy calls take together, the longest first."""


@dataclass(frozen=True)
class StepLine:
    """A step of a list."""

    number: int  # Position in the list, from 1.
    title: str  # Name of the pass, or of the FX node.
    label: str = ""  # Displayed number, ``3``, or ``3.17`` for a nested one.
    depth: int = 0  # Nesting depth, and number of the step that directly contains it; 0 for none.
    parent: int = 0
    step: int = 0  # Position of the recipe's step that it belongs to, from 1; 0 for none.
    milliseconds: float | None = None  # Duration; ``None`` if not measured.
    changed: tuple[str, ...] = ()  # Names of the functions that it changed, added or removed.
    added: int = 0  # How many of these are new, and how many are gone.
    removed: int = 0
    left_out: tuple[str, ...] = ()  # As in `PassRecord`.
    status: Status = "done"
    error: str = ""
    note: str = ""  # Result of a node's translation, or computation of a call.
    heavy: bool = False  # Whether a call is one of the few that take most of the run's time.
    is_break: bool = False  # Whether playing stops at a call.


@dataclass(frozen=True)
class StepFilter:
    """Filter of the steps."""

    hide_unchanged: bool = True  # Skip steps that changed nothing.
    # Part of a step's title, or of the name of a function that it changed; empty for any.
    text: str = ""

    def takes(self, line: StepLine) -> bool:
        """Return whether a step passes the filter."""
        if self.text:
            names = (line.title, *line.changed)
            return any(self.text.casefold() in name.casefold() for name in names)
        return not self.hide_unchanged or bool(line.changed) or line.status == "failed"


def pass_lines(records: Sequence[PassRecord]) -> tuple[StepLine, ...]:
    """Return the steps of the recipe's passes, or of the build's own."""
    return tuple(
        StepLine(
            number=record.number,
            title=record.name,
            label=record.label or str(record.number),
            depth=record.depth,
            parent=record.parent,
            step=record.step,
            milliseconds=record.milliseconds if record.status in ("done", "failed") else None,
            changed=record.changed,
            added=record.added,
            removed=record.removed,
            left_out=record.left_out,
            status=record.status,
            error=record.error,
        )
        for record in records
    )


def node_lines(records: Sequence[TranslationRecord]) -> tuple[StepLine, ...]:
    """Return the steps of the translation to Relax."""
    return tuple(
        StepLine(
            number=record.number,
            title=record.node.removeprefix("fx:"),
            label=str(record.number),
            changed=record.changed,
            note=_came_to(record) if record.changed else "",
        )
        for record in records
    )


def schedule_lines(function: str, steps: Sequence[ScheduleStep]) -> tuple[StepLine, ...]:
    """Return the primitives of the schedule of a function."""
    return tuple(
        StepLine(
            number=number,
            title=step.title,
            label=str(number),
            milliseconds=step.milliseconds if step.status == "done" else None,
            changed=(function,) if step.changes else (),
            status=step.status,
            error="" if step.error is None else step.error.message,
            note=step.comment,
        )
        for number, step in enumerate(steps, start=1)
    )


def call_lines(
    calls: Sequence[CallRun], breaks: Collection[str] = frozenset(), error: str = ""
) -> tuple[StepLine, ...]:
    """Return the calls of a run.

    Args:
        breaks: The nodes and bindings at whose calls playing stops.
        error: Error of the run in the last of these; empty if it succeeded. With an error, their
            times are unknown.
    """
    heavy, stops = _heavy(calls), frozenset(breaks)
    return tuple(
        StepLine(
            number=number,
            title=call.function,
            label=str(number),
            milliseconds=None if error else call.milliseconds,
            note=_computes(call),
            status="failed" if error and number == len(calls) else "done",
            error=error if number == len(calls) else "",
            heavy=number - 1 in heavy,
            is_break=not stops.isdisjoint((*call.nodes, *call.bindings)),
        )
        for number, call in enumerate(calls, start=1)
    )


def _heavy(calls: Sequence[CallRun]) -> frozenset[int]:
    left = HEAVY * sum(call.milliseconds for call in calls)
    found: set[int] = set()
    for index in sorted(range(len(calls)), key=lambda each: -calls[each].milliseconds):
        if left <= 0:
            break
        found.add(index)
        left -= calls[index].milliseconds
    return frozenset(found)


def _computes(call: CallRun) -> str:
    nodes = [node.removeprefix("fx:") for node in call.nodes]
    names = nodes or [binding.rpartition("/")[2] for binding in call.bindings]
    return listed(names, 4) or _("no node")


def _came_to(record: TranslationRecord) -> str:
    names = [binding.rpartition("/")[2] for binding in record.bindings]
    parts = []
    if names:
        shown = listed(names, 4)
        parts.append(
            _n("{count} binding: {names}", "{count} bindings: {names}", len(names), names=shown)
        )
    if record.functions:
        parts.append(
            _n(
                "{count} function: {names}",
                "{count} functions: {names}",
                len(record.functions),
                names=listed(record.functions, 4),
            )
        )
    return " · ".join(parts)


PLAY_MS = 500
"""Duration of a step while playing."""

ORDER: tuple[Section, ...] = ("translate", "passes", "build", "run")
"""Sections of the list of steps, from the top."""

SECTION_TITLES: Mapping[Section, str] = {
    "translate": _("Translate"),
    "passes": _("Passes"),
    "build": _("Build"),
    "run": _("Run"),
}


class Stepping(QObject):
    """The current step, and the lists it is part of.

    Signals:
        schedule_moved, run_moved: `schedule_index`, or `run_index`, changed.
    """

    moment_changed = Signal()  # `moment`, or the current step, changed.
    schedule_moved = Signal()
    run_moved = Signal()
    list_changed = Signal()  # The visible steps changed: another list, filter or folding.
    section_changed = Signal()  # Another section became current.
    playing_changed = Signal()  # `playing` changed.

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._source: Source | None = None
        self.section: Section = "passes"  # The current timeline.
        self._failed: StepLine | None = None
        # The previous step of a build or of a run, to be restored in the next one.
        self._left: StepLine | None = None
        self._function = ""
        self.filter = StepFilter()  # Filter of the steps.
        self._lists: dict[Section, tuple[StepLine, ...]] = {}
        self._unfolded: dict[Section, frozenset[int]] = {}
        self.breaks: frozenset[str] = frozenset()  # Names of the passes at which playing stops.
        self._touched: frozenset[int] = frozenset()
        self._until: frozenset[int] = frozenset()
        self._timer = QTimer(self)
        self._timer.setInterval(PLAY_MS)
        self._timer.timeout.connect(self._play_on)
        document.on(("snapshot",), self._take_document)

    # State

    @property
    def moment(self) -> Moment | None:
        """The step whose module is shown; ``None`` for the final one.

        At a step that failed, it is the step before it. The steps of a schedule and of a run
        belong to the final module.
        """
        return self._document.module_moment

    @property
    def schedule_index(self) -> int | None:
        """Number of primitives applied to the scheduled function; ``None`` for all."""
        return self._index_in("schedule")

    @property
    def run_index(self) -> int | None:
        """Number of calls of the run made so far; ``None`` while the run is not stepped through."""
        return self._index_in("run")

    @property
    def here(self) -> Moment | None:
        """The current step of any section: the document's one field; ``None`` if there is none."""
        return self._document.moment

    def _index_in(self, section: Section) -> int | None:
        here = self.here
        return here.index if here is not None and here.section == section else None

    @property
    def line(self) -> StepLine | None:
        """The current step: the last one applied, or the one that failed."""
        here = self.here
        if self._failed is not None:
            return self._failed
        if here is None or here.index == 0:
            return None
        return self.lines(here.section)[here.index - 1]

    def lines(self, section: Section) -> tuple[StepLine, ...]:
        """Return all steps of a timeline, in order; `StepLine.number` counts them from 1."""
        return self._lists.get(section, ())

    def unfolded(self, section: Section) -> frozenset[int]:
        """Return the numbers of the expanded steps."""
        return self._unfolded.get(section, frozenset())

    def dots(self, section: Section) -> tuple[StepLine, ...]:
        """Return the steps of the slider: an expanded one is replaced by those inside it."""
        lines = self.lines(section)
        unfolded = self.unfolded(section)
        parents = {line.parent for line in lines}
        shown = {0}
        for line in lines:
            if line.parent in shown and line.parent in {0, *unfolded}:
                shown.add(line.number)
        return tuple(
            line
            for line in lines
            if line.number in shown and not (line.number in unfolded and line.number in parents)
        )

    def takes(self, line: StepLine) -> bool:
        """Return whether a step of the timeline is visible; the filter applies to passes."""
        return self.section in APART or self.filter.takes(line)

    def _stops(self, section: Section, *, other: bool = False) -> list[int]:
        """Return the numbers of the visible steps, and 0 for before the first.

        Args:
            other: Whether it is not the current section.
        """
        every = (section if other else self.section) in APART
        taken = (
            line.number
            for line in self.dots(section)
            if line.status in ("done", "failed") and (every or self.filter.takes(line))
        )
        return [0, *taken]

    # Navigation

    def go(self, moment: Moment) -> None:
        """Go to a step; for one after a failed step, go to the failed one."""
        lines = self.lines(moment.section)
        if not lines:
            return
        index = max(0, min(moment.index, len(lines)))
        if moment.section in APART:
            # Primitives after a failed one are tried nevertheless.
            function = self._function if moment.section == "schedule" else ""
            at = Moment(section=moment.section, index=index, function=function)
            self._enter(moment.section, at)
            return
        failed = next((line for line in lines[:index] if line.status == "failed"), None)
        if failed is not None:
            # A step beside it: one inside of a step ends before that does.
            beside = (line for line in lines[: failed.number - 1] if line.parent == failed.parent)
            index = max((line.number for line in beside), default=0)
        self._enter(moment.section, Moment(section=moment.section, index=index), failed)

    def step(self, by: int) -> None:
        """Go forward or back by a number of visible steps.

        One step from either end of a section leads into the next one that has steps.
        """
        self.go(self.moment_at(by))

    def can_step(self, by: int) -> bool:
        """Return whether `step` leads anywhere."""
        return bool(self.lines(self.section)) and self.moment_at(by) != self.here

    def moment_at(self, by: int) -> Moment:
        """Return the step that `step` goes to."""
        stops = self._stops(self.section)
        here = self._here()
        beyond = self._beyond(by) if here == stops[-1 if by > 0 else 0] else None
        if beyond is not None:
            section, index = beyond
            return Moment(section=section, index=index)
        if here is None:
            place = min(by, len(stops) - 1) if by > 0 else len(stops) + by
        elif by > 0:
            place = bisect_right(stops, here) - 1 + by
        else:
            place = bisect_left(stops, here) + by
        return Moment(section=self.section, index=stops[max(0, min(place, len(stops) - 1))])

    def _beyond(self, by: int) -> tuple[Section, int] | None:
        """Return the stop of another section that is one step from the end of this one."""
        if abs(by) != 1 or self.section not in ORDER:
            return None
        place = ORDER.index(self.section)
        for section in ORDER[place + 1 :] if by > 0 else reversed(ORDER[:place]):
            stops = self._stops(section, other=True)
            if len(stops) > 1:
                return section, stops[1 if by > 0 else -1]
        return None

    def first(self) -> None:
        """Go to the state before the first step."""
        self.go(Moment(section=self.section, index=0))

    def last(self) -> None:
        """Go to the last visible step."""
        self.go(Moment(section=self.section, index=self._stops(self.section)[-1]))

    def leave(self) -> None:
        """Leave the timeline and show the final module."""
        self.pause()
        self._set(None, None)

    def set_section(self, section: Section) -> None:
        """Switch to another timeline; while stepping, to its end."""
        if section == self.section:
            return
        stepped = self.moment is not None
        self._enter(section)
        if stepped and section not in APART:
            self.pause()
            self._set(None, None)
            self.last()

    def _here(self) -> int | None:
        """Return the number of the current step; 0 before the first."""
        here = self.here
        if here is None or here.section != self.section:
            return None
        return here.index if self._failed is None else self._failed.number

    def to_break(self, way: int) -> None:
        """Go to the next step with a breakpoint (the previous one for -1), or to the end.

        Without breakpoints in the current section, the calls of the run are gone through.
        """
        section = self.section
        lines = self.dots(section)
        if not any(self.stops_at(line) for line in lines):
            section, lines = "run", self.lines("run")
        if not lines:
            return
        self.pause()
        here = self._index_in(section) or 0
        stops = [line.number for line in lines if line.is_break or self.stops_at(line)]
        found = [number for number in stops if way * (number - here) > 0]
        index = (min if way > 0 else max)(found, default=lines[-1].number if way > 0 else 0)
        self.go(Moment(section=section, index=index))

    # Playing

    @property
    def playing(self) -> bool:
        """Return whether the steps are playing."""
        return self._timer.isActive()

    def play(self, until: Collection[int] = ()) -> None:
        """Play from the current step, or from the start if at the end.

        Args:
            until: Numbers of steps to stop at besides the breakpoints; such a one may be hidden.
        """
        stops = self._stops(self.section)
        if len(stops) < 2 and not until:
            return
        here = self._here()
        if here is None or here >= max((stops[-1], *until)):
            self.first()
        self._until = frozenset(until)
        self._timer.start()
        self.playing_changed.emit()

    def play_or_pause(self) -> None:
        """Toggle playing."""
        if self.playing:
            self.pause()
        else:
            self.play()

    def pause(self) -> None:
        """Stop playing."""
        if self.playing:
            self._timer.stop()
            self.playing_changed.emit()

    def _play_on(self) -> None:
        here = self._here()
        wanted = {*self._stops(self.section), *self._until}
        following = min((each for each in wanted if here is None or each > here), default=None)
        if following is None:
            self.pause()
            return
        self.go(Moment(section=self.section, index=following))
        line = self.line
        at_break = line is not None and (line.is_break or self.stops_at(line))
        if at_break or following == max(wanted) or following in self._until:
            self.pause()

    # Breakpoints on passes

    def stops_at(self, line: StepLine) -> bool:
        """Return whether playing stops at a step, for its name or for what it touches."""
        if self.section == "passes" and line.number in self._touched:
            return True
        return self.section != "run" and line.title in self.breaks

    def toggle_break(self, line: StepLine) -> None:
        """Add or remove the breakpoint on the passes of a name."""
        self.breaks = self.breaks ^ {line.title}
        self.list_changed.emit()

    def set_touched(self, numbers: Collection[int]) -> None:
        """Set the passes that change something of a node with a breakpoint."""
        if frozenset(numbers) != self._touched:
            self._touched = frozenset(numbers)
            self.list_changed.emit()

    def clear_breaks(self) -> None:
        """Remove the breakpoints on passes."""
        if self.breaks:
            self.breaks = frozenset()
            self.list_changed.emit()

    # Visible steps

    def set_filter(self, chosen: StepFilter) -> None:
        if chosen != self.filter:
            self.filter = chosen
            self.list_changed.emit()

    def set_unfolded(self, section: Section, number: int, unfolded: bool) -> None:
        """Expand or collapse a step."""
        before = self.unfolded(section)
        after = before | {number} if unfolded else before - {number}
        if after != before:
            self._unfolded[section] = after
            self.list_changed.emit()

    def _take_document(self) -> None:
        recipe, snapshot = self._document.recipe, self._document.snapshot
        if recipe is not None and snapshot is not None:
            self.take(recipe.source, snapshot)

    def take(self, source: Source, snapshot: Snapshot) -> None:
        """Switch to the lists of new records; for another source, no step is current."""
        if source != self._source:
            self._unfolded = {}
            self.leave()
        self._source = source
        line = self.line
        self._lists = {
            **{section: self.lines(section) for section in APART},
            "translate": node_lines(snapshot.translation),
            "passes": pass_lines(snapshot.passes),
        }
        moment = self.moment
        if moment is not None:
            if self.lines(moment.section):
                index = 0 if line is None else _place_of(line, self.lines(moment.section))
                self.go(Moment(section=moment.section, index=index))
            else:
                self.leave()
                self._left = line
        self.list_changed.emit()

    def take_schedule(self, function: str, lines: tuple[StepLine, ...]) -> None:
        """Set the primitives of a function's schedule."""
        if (function, lines) == (self._function, self._lists.get("schedule", ())):
            return
        if function != self._function and self.section == "schedule":
            self._set(None, None)
        self._function = function
        self._lists["schedule"] = lines
        if self.section == "schedule":
            index = self.schedule_index
            if index is not None and index > len(lines):
                self.go(Moment(section="schedule", index=len(lines)))
            self.list_changed.emit()

    def take_run(self, lines: tuple[StepLine, ...]) -> None:
        """Set the calls of a run; none if there is no run of the recipe shown."""
        line = self.line
        self._lists["run"] = lines
        if self.section != "run":
            return
        line = line or self._left
        if not lines:
            self.leave()
            self._left = line
        elif line is not None:
            # Belongs to another run: the current call of the same function.
            self._left = None
            self._set(Moment(section="run", index=_place_of(line, lines)), None)
        self.list_changed.emit()

    def take_build(self, records: Sequence[PassRecord]) -> None:
        """Set the passes of the build of the recipe shown."""
        lines = pass_lines(records)
        self._lists["build"] = lines
        # TVM's sequential passes, and those named like a function, merely contain the others.
        sequences = {
            line.number
            for line in lines
            if line.depth == 0 or line.title == "sequential" or line.title.startswith("_")
        }
        inside = {line.parent for line in lines}
        self._unfolded.setdefault("build", frozenset(sequences & inside))
        self.list_changed.emit()
        left, self._left = self._left, None
        if left is not None and lines and self.section == "build":
            # No other step was selected since: go to the step of the same name in the new build.
            self.go(Moment(section="build", index=_place_of(left, lines)))

    def _enter(
        self, section: Section, moment: Moment | None = None, failed: StepLine | None = None
    ) -> None:
        """Switch to a section, and to a moment if one is given."""
        is_other = section != self.section
        if is_other and (section in APART or self.section in APART):
            # One is about the function or the run, the other about the module.
            self.leave()
        self.section = section
        if moment is not None:
            # First: what follows the section is not to show another moment in between.
            self._set(moment, failed)
        if is_other:
            self.section_changed.emit()

    def _set(self, moment: Moment | None, failed: StepLine | None) -> None:
        self._left = None
        if (moment, failed) == (self.here, self._failed):
            return
        before = self.moment, self._failed, self.schedule_index, self.run_index
        self._failed = failed
        self._document.set(moment=moment)
        if (self.moment, failed) != before[:2]:
            self.moment_changed.emit()
        if self.schedule_index != before[2]:
            self.schedule_moved.emit()
        if self.run_index != before[3]:
            self.run_moved.emit()


def _place_of(line: StepLine, lines: Sequence[StepLine]) -> int:
    """Return the number of the corresponding step in this list, or of the one before it."""
    alike = [each for each in lines if each.title == line.title and each.depth == line.depth]
    same = next((each for each in alike if each.label == line.label), None)
    if same is not None or alike:
        return (same or alike[0]).number
    heads = [each.number for each in lines if each.depth == 0]
    place = int(line.label.partition(".")[0])
    return heads[min(place, len(heads)) - 1]


# --- Selection of the current node while stepping through the translation ---


class Following(QObject):
    """Selects the node of each translation step, so that all panes mark its results."""

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        document.on(("moment",), self._follow)

    def _follow(self) -> None:
        snapshot, moment = self._document.snapshot, self._document.moment
        if snapshot is None or moment is None or moment.section != "translate":
            return
        if 0 < moment.index <= len(snapshot.translation):
            self._document.select((snapshot.translation[moment.index - 1].node,))
