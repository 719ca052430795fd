"""The rows of the pipeline: the recipe's steps with the passes inside them, then the build's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lowerscope.app.document.stepping import StepFilter, StepLine
from lowerscope.app.kit.tables.trees import StepRow
from lowerscope.app.panes.common.step_texts import left_out_text, step_text
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.recipe import OptionValue, Step

METAL = "section:build"
"""Key of the row above the build's own passes."""


def moment_of(row: StepRow) -> tuple[Section, int] | None:
    """Return the timeline and the index of a row; ``None`` for one that was not applied."""
    section: Section = "build" if row.key.startswith("build:") else "passes"
    return (section, row.value) if row.value else None


def options_text(options: dict[str, OptionValue]) -> str:
    """Return options as in a call: ``fuse_opt_level=1, entry_functions=[main]``."""
    return ", ".join(f"{name}={_value_text(value)}" for name, value in options.items())


def _value_text(value: OptionValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{','.join(value)}]" if isinstance(value, tuple) else str(value)


def step_rows(
    steps: Sequence[Step],
    known: Sequence[Step],
    lines: Sequence[StepLine],
    chosen: StepFilter,
    unfolded: frozenset[int],
) -> list[StepRow]:
    """Return the rows of the recipe's steps.

    Args:
        steps: Steps of the wanted recipe.
        known: Steps of the recipe of `lines`, which are valid up to the first difference.
        chosen: The filter: name and function apply to the recipe's steps; for nested passes, the
            filter of unchanged ones applies as well.
        unfolded: Numbers of the expanded lines.
    """
    same = 0
    while same < min(len(steps), len(known)) and steps[same] == known[same]:
        same += 1
    heads = {line.step: line for line in lines if line.depth == 0}
    rows: list[StepRow] = []
    for place, step in enumerate(steps):
        line = heads.get(place + 1) if place < same else None
        if line is None:
            if _is_named(step.name, chosen):
                rows.append(_waiting_row(step, place))
            continue
        inside = [each for each in lines if each.step == place + 1 and each.depth > 0]
        nested = list(_nested(inside, "passes", chosen, unfolded, f"step:{place}"))
        if not nested and not _head_taken(line, chosen):
            continue
        rows.append(_head_row(step, place, line, bool(inside), line.number in unfolded))
        rows.extend(nested)
    return rows


def build_rows(
    lines: Sequence[StepLine],
    chosen: StepFilter,
    unfolded: frozenset[int],
    *,
    shown: bool,
    note: str,
    passed_over: int,
) -> list[StepRow]:
    """Return the header row of the build's own passes, and their rows.

    Args:
        passed_over: See `Stepping.passed_over`.
    """
    named = bool(chosen.name or chosen.function)
    count = f"{len(lines)} passes" if lines else "" if shown else "not built"
    more = f"{passed_over} {'hidden' if named else 'unchanged'}" if passed_over else ""
    head = StepRow(
        METAL,
        "",
        "To the metal",
        changed=count,
        time=more,
        state="section",
        unfolded=shown,
        tooltip="The passes that TVM's build applies after these: to look at, not to edit",
    )
    rows = list(_nested(lines, "build", chosen, unfolded, METAL))
    nothing = StepRow("build:", "", note, parent=METAL, state="quiet")
    return [head, *(rows or [nothing])]


def with_pin(rows: Sequence[StepRow], moment: Moment | None, word: str) -> list[StepRow]:
    """Return the rows with a word marking the one of a step."""
    at = None if moment is None else (moment.section, moment.index)
    return [
        replace(row, note=f"{word} {row.note}".strip()) if at and moment_of(row) == at else row
        for row in rows
    ]


def _nested(
    lines: Sequence[StepLine],
    section: Section,
    chosen: StepFilter,
    unfolded: frozenset[int],
    root: str,
) -> Iterator[StepRow]:
    # A pass is shown with those that contain it.
    wanted = {line.number for line in lines if chosen.takes(line)}
    for line in reversed(lines):
        if line.number in wanted and line.parent:
            wanted.add(line.parent)
    numbers = {line.number for line in lines}
    for line in lines:
        if line.number in wanted:
            yield StepRow(
                f"{section}:{line.number}",
                line.label,
                line.title,
                note=line.error if line.status == "failed" else "",
                changed=_changed(line),
                time=_time(line),
                parent=f"{section}:{line.parent}" if line.parent in numbers else root,
                unfolded=line.number in unfolded,
                value=line.number,
                state=_state(line),
                tooltip=step_text(line),
            )


def _head_row(step: Step, place: int, line: StepLine, has_nested: bool, unfolded: bool) -> StepRow:
    return StepRow(
        f"step:{place}",
        line.label,
        step.name,
        note=_note(step, line),
        unsure=bool(line.left_out),
        changed=_changed(line),
        time=_time(line),
        unfolded=has_nested and unfolded,
        on=step.on,
        value=line.number,
        place=place,
        state=_state(line),
        tooltip=step_text(line),
    )


def _note(step: Step, line: StepLine) -> str:
    if line.status == "failed":
        return line.error
    parts = (left_out_text(line), options_text(step.options))
    return " · ".join(each for each in parts if each)


def _waiting_row(step: Step, place: int) -> StepRow:
    return StepRow(
        f"step:{place}",
        "",
        step.name,
        note=options_text(step.options),
        changed="…" if step.on else "switched off",
        on=step.on,
        place=place,
        state="" if step.on else "quiet",
    )


def _head_taken(line: StepLine, chosen: StepFilter) -> bool:
    """Return whether a step of the recipe is shown; unchanged ones are, for editing."""
    if not _is_named(line.title, chosen):
        return False
    return not chosen.function or chosen.takes(line)


def _is_named(name: str, chosen: StepFilter) -> bool:
    return chosen.name.casefold() in name.casefold()


def _changed(line: StepLine) -> str:
    words = {"failed": "✕ failed", "skipped": "not reached", "off": "switched off"}
    if line.status in words:
        return words[line.status]
    count = len(line.changed)
    return "–" if not count else "1 function" if count == 1 else f"{count} functions"


def _time(line: StepLine) -> str:
    return "" if line.milliseconds is None else duration_text(line.milliseconds)


def _state(line: StepLine) -> str:
    if line.status == "failed":
        return "wrong"
    return "quiet" if line.status in ("skipped", "off") or not line.changed else ""
