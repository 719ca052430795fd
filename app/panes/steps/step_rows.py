"""The rows of the list of steps: sections, steps with those inside of them, and folded runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lowerscope.app.document.stepping import StepFilter, StepLine
from lowerscope.app.kit.tables.step_list import StepRow
from lowerscope.app.panes.common.descriptions import changed_text, left_out_text, step_text
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.recipe import OptionValue, Step
from lowerscope.core.model.texts import _, _n

_SECTIONS: Mapping[str, Section] = {
    "step": "passes",
    "passes": "passes",
    "translate": "translate",
    "build": "build",
    "run": "run",
}
"""Sections by the beginning of a row's key."""


def moment_of(row: StepRow) -> tuple[Section, int] | None:
    """Return the section and the index of a row; ``None`` for one that was not applied."""
    section = _SECTIONS.get(row.key.partition(":")[0])
    return (section, row.value) if section is not None and row.value else None


def section_key(section: Section) -> str:
    """Return the key of a section's header."""
    return f"section:{section}"


def section_of(key: str) -> Section | None:
    """Return the section of a header's key; ``None`` for another row."""
    head, _sep, name = key.partition(":")
    return _SECTIONS[name] if head == "section" else None


def options_text(options: dict[str, OptionValue]) -> str:
    """Return options as in a call: ``fuse_opt_level=1, entry_functions=[main]``."""
    return ", ".join(f"{name}={_value_text(value)}" for name, value in options.items())


def _value_text(value: OptionValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{','.join(value)}]" if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class SectionRows:
    """The rows of one section.

    Args:
        chosen: The filter. Without a text, runs of unchanged steps are folded to a row.
        unfolded: Numbers of the expanded steps.
        here: Number of the current step, if it is in this section.
        opened: Keys of the folds that the user has opened.
        breaks: Numbers of the steps at which playing stops.
    """

    section: Section
    title: str
    words: str
    lines: Sequence[StepLine]
    chosen: StepFilter
    unfolded: frozenset[int]
    shown: bool
    here: int = 0
    opened: Collection[str] = ()
    breaks: Collection[int] = ()
    nothing: str = ""

    def rows(self, steps: Iterable[StepRow] | None = None) -> list[StepRow]:
        """Return the header and the rows of the section.

        Args:
            steps: Rows of the recipe's steps; by default, those of the lines.
        """
        key = section_key(self.section)
        facts = ((self.words, ""),)
        head = StepRow(key, "", self.title, "section", facts, unfolded=self.shown)
        if not self.shown:
            return [head]
        rows = list(self._of_lines(self.lines, key) if steps is None else steps)
        if not rows:
            text = self.nothing if not self.lines else ""
            return [head, StepRow(f"none:{self.section}", "", text, "fold", parent=key)]
        return [head, *self._folded(rows)]

    def _of_lines(self, lines: Sequence[StepLine], root: str) -> Iterator[StepRow]:
        # A pass is shown with those that contain it.
        wanted = {line.number for line in lines if self._named(line)}
        for line in reversed(lines):
            if line.number in wanted and line.parent:
                wanted.add(line.parent)
        numbers = {line.number for line in lines}
        longest = self._longest(lines)
        for line in lines:
            if line.number in wanted:
                yield StepRow(
                    f"{self.section}:{line.number}",
                    line.label.rpartition(".")[2],
                    line.title,
                    facts=step_facts(line),
                    time=_time(line),
                    share=_share(line, longest),
                    parent=f"{self.section}:{line.parent}" if line.parent in numbers else root,
                    unfolded=line.number in self.unfolded,
                    value=line.number,
                    state=_state(line),
                    is_break=line.is_break or line.number in self.breaks,
                    tooltip=step_text(line),
                )

    def _named(self, line: StepLine) -> bool:
        return not self.chosen.text or self.chosen.takes(line)

    def _longest(self, lines: Sequence[StepLine]) -> float:
        return max((line.milliseconds or 0.0 for line in lines if not line.depth), default=0.0)

    def of_recipe(
        self, steps: Sequence[Step], known: Sequence[Step], current: int = 0
    ) -> Iterator[StepRow]:
        """Yield the rows of the recipe's steps, with the passes inside of them.

        Args:
            steps: Steps of the wanted recipe.
            known: Steps of the recipe of the lines, which are valid up to the first difference.
            current: The step that is being applied, from 1; 0 for none.
        """
        same = 0
        while same < min(len(steps), len(known)) and steps[same] == known[same]:
            same += 1
        heads = {line.step: line for line in self.lines if line.depth == 0}
        root, longest = section_key("passes"), self._longest(self.lines)
        for place, step in enumerate(steps):
            line = heads.get(place + 1) if place < same else None
            if line is None:
                if self.chosen.text.casefold() in step.name.casefold():
                    yield _waiting_row(step, place, root, current)
                continue
            inside = [each for each in self.lines if each.step == place + 1 and each.depth > 0]
            nested = list(self._of_lines(inside, f"step:{place}"))
            if nested or self._named(line):
                row = _head_row(step, place, line, root, _share(line, longest))
                is_open = bool(inside) and line.number in self.unfolded
                is_break = line.number in self.breaks
                yield replace(row, unfolded=is_open, is_break=is_break)
                yield from nested

    # Runs of unchanged steps

    def _folded(self, rows: Sequence[StepRow]) -> Iterator[StepRow]:
        """Yield the rows, with a row for each run of unchanged steps that have the same parent."""
        if not self.chosen.hide_unchanged or self.chosen.text or self.section == "run":
            yield from rows
            return
        by_number = {line.number: line for line in self.lines}
        changing = self._changing(by_number)
        run: list[StepRow] = []
        hidden: set[str] = set()
        for row in rows:
            if row.parent in hidden:
                # Inside of a step of the run.
                hidden.add(row.key)
                run.append(row)
                continue
            line = by_number.get(row.value)
            small = line is not None and line.status == "done" and line.number not in changing
            if small and row.state == "quiet" and (not run or run[0].parent == row.parent):
                hidden.add(row.key)
                run.append(row)
                continue
            yield from self._run(run)
            run, hidden = [], set()
            if small and row.state == "quiet":
                hidden.add(row.key)
                run.append(row)
            else:
                yield row
        yield from self._run(run)

    def _changing(self, by_number: Mapping[int, StepLine]) -> set[int]:
        """Return the steps that changed something, failed, or contain such a step."""
        changing: set[int] = set()
        for line in by_number.values():
            if line.changed or line.status == "failed" or line.left_out:
                above: StepLine | None = line
                while above is not None:
                    changing.add(above.number)
                    above = by_number.get(above.parent)
        return changing

    def _run(self, run: Sequence[StepRow]) -> Iterator[StepRow]:
        if not run:
            return
        parent = run[0].parent
        outer = [row for row in run if row.parent == parent]
        key = f"fold:{run[0].key}"
        numbers = (outer[0].number, outer[-1].number)
        has_here = any(row.value == self.here for row in run) and bool(self.here)
        unfolded = key in self.opened or has_here
        number = numbers[0] if len(outer) == 1 else "–".join(numbers)
        title = _("{count} unchanged", count=len(outer))
        names = _(", ").join(row.title for row in outer[:12]) + (" …" if len(outer) > 12 else "")
        yield StepRow(key, number, title, "fold", parent=parent, unfolded=unfolded, tooltip=names)
        for row in run:
            yield replace(row, parent=key) if row.parent == parent else row


def with_pin(rows: Sequence[StepRow], moment: Moment | None) -> list[StepRow]:
    """Return the rows with the one of a step as pinned."""
    at = None if moment is None else (moment.section, moment.index)
    return [replace(row, pinned=True) if at and moment_of(row) == at else row for row in rows]


def step_facts(line: StepLine) -> tuple[tuple[str, str], ...]:
    """Return the outcome of a step as texts with their roles: ``8 functions``, ``+7``, ``~1``."""
    if line.status == "failed":
        return ((_("✕ failed"), "wrong"), (line.error, ""))
    if line.status != "done" or line.note or not line.changed:
        return ((changed_text(line), ""),)
    count = len(line.changed)
    words = line.changed[0] if count == 1 else _n("1 function", "{count} functions", count)
    rest = count - line.added - line.removed
    counts = ((f"+{line.added}", "right", line.added), (f"−{line.removed}", "wrong", line.removed))
    numbers = [(text, role) for text, role, number in counts if number]
    if rest and count > 1:
        numbers.append((f"~{rest}", "unsure"))
    return ((words, ""), *numbers)


def _head_row(step: Step, place: int, line: StepLine, root: str, share: float) -> StepRow:
    return StepRow(
        f"step:{place}",
        line.label,
        step.name,
        facts=step_facts(line),
        note=_note(step, line),
        unsure=bool(line.left_out),
        time=_time(line),
        share=share,
        parent=root,
        on=step.on,
        value=line.number,
        place=place,
        state=_state(line),
        tooltip=step_text(line),
    )


def _note(step: Step, line: StepLine) -> str:
    if line.status == "failed":
        return ""
    parts = (left_out_text(line), options_text(step.options))
    return " · ".join(each for each in parts if each)


def _waiting_row(step: Step, place: int, root: str, current: int) -> StepRow:
    words = "…" if place >= current else _("applied") if place + 1 < current else _("in progress…")
    return StepRow(
        f"step:{place}",
        str(place + 1),
        step.name,
        facts=((words if step.on else _("switched off"), ""),),
        note=options_text(step.options),
        parent=root,
        on=step.on,
        place=place,
        state="" if step.on else "quiet",
    )


def _time(line: StepLine) -> str:
    return "" if line.milliseconds is None else duration_text(line.milliseconds)


def _share(line: StepLine, longest: float) -> float:
    """Return the length of a step's bar; its square is the share of the longest step's time."""
    return min(1.0, ((line.milliseconds or 0.0) / longest) ** 0.5) if longest else 0.0


def _state(line: StepLine) -> str:
    if line.status == "failed":
        return "wrong"
    is_small = not line.changed and line.note == ""
    return "quiet" if line.status in ("skipped", "off") or is_small else ""
