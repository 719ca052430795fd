"""The rows of the pipeline: the recipe's steps with the passes inside them, then the build's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import HEAVY, StepFilter, StepLine, Stepping
from lowerscope.app.kit.tables.trees import StepRow
from lowerscope.app.panes.sessions.links import value_text
from lowerscope.core.model.formatting import duration_text, share_text
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.recipe import OptionValue, Step
from lowerscope.core.model.run_records import CallRun
from lowerscope.core.model.snapshot import Snapshot

# --- Texts of a step: for the timeline, the pipeline, and the headers of panes ---


def changed_text(line: StepLine) -> str:
    """Return ``4 functions changed``, or another outcome of the step."""
    words = {"failed": "failed", "skipped": "not reached", "off": "switched off"}
    if line.status in words:
        return words[line.status]
    if line.note:
        return line.note
    count = len(line.changed)
    if not count:
        return "nothing changed"
    return f"{line.changed[0]} changed" if count == 1 else f"{count} functions changed"


def left_out_text(line: StepLine) -> str:
    """Return ``⚠ leaves out f: why``, or the number of functions; empty for none."""
    count = len(line.left_out)
    if count < 2:
        return "".join(f"⚠ leaves out {each}" for each in line.left_out)
    return f"⚠ leaves out {count} functions: {'; '.join(line.left_out)}"


def step_text(line: StepLine) -> str:
    """Return a step in one line, with the names of some functions, or why it failed."""
    words = [f"{line.label} {line.title}"]
    if line.milliseconds is not None:
        words.append(duration_text(line.milliseconds))
    words.append(changed_text(line))
    if line.error:
        words.append(line.error)
    elif len(line.changed) > 1 and not line.note:
        more = f" and {len(line.changed) - 6} more" if len(line.changed) > 6 else ""
        words.append(", ".join(line.changed[:6]) + more)
    if line.left_out:
        words.append(left_out_text(line))
    return " · ".join(words)


def call_text(call: CallRun, calls: Sequence[CallRun]) -> str:
    """Return the time of a call of a run, and its share of that of all of them."""
    whole = sum(each.milliseconds for each in calls)
    share = f" · {share_text(call.milliseconds / whole)}" if whole else ""
    return f"{duration_text(call.milliseconds)}{share}"


def run_text(calls: Sequence[CallRun]) -> str:
    """Return a legend for the dots of a run, and the number of the VM's other calls."""
    if not calls:
        return ""
    own = sum(call.own for call in calls)
    folded = f" · {own} calls for memory and shapes folded" if own else ""
    return f"big dots take {HEAVY:.0%} of the time{folded}"


def moment_text(stepping: Stepping) -> str:
    """Return ``after 15 FuseOps``; empty if no step is current."""
    moment, line = stepping.moment, stepping.line
    if moment is None:
        return ""
    if line is not None and line.status == "failed":
        return f"before {line.label} {line.title}, which failed"
    if moment.index == 0:
        first = stepping.lines(moment.section)[0]
        return f"before {first.label} {first.title}"
    last = stepping.lines(moment.section)[moment.index - 1]
    return f"after {last.label} {last.title}"


def fate_text(document: Document, stepping: Stepping) -> str:
    """Return ``folded by FoldConstant`` if a pass has removed the selection.

    It is empty if the selection exists at the current step.
    """
    snapshot, selection = document.snapshot, document.selection
    if snapshot is None or not selection.chosen:
        return ""
    entities = [each for each in selection.chosen if each in snapshot.fates] or [
        each for each in selection.of_kind("relax") if "/" in each
    ]
    fates = [snapshot.fates.get(each) for each in entities]
    step = _last_step(stepping, snapshot)
    gone = [fate.text for fate in fates if fate is not None and fate.gone and fate.step <= step]
    return gone[0] if gone and len(gone) == len(fates) else ""


def _last_step(stepping: Stepping, snapshot: Snapshot) -> int:
    """Return the number of the recipe's last step before the current position."""
    moment = stepping.moment
    if moment is None or moment.section == "build":
        return len(snapshot.passes)
    if moment.section == "translate" or moment.index == 0:
        return 0
    return snapshot.passes[moment.index - 1].step


METAL = "section:build"
"""Key of the row above the build's own passes."""


def moment_of(row: StepRow) -> tuple[Section, int] | None:
    """Return the timeline and the index of a row; ``None`` for one that was not applied."""
    section: Section = "build" if row.key.startswith("build:") else "passes"
    return (section, row.value) if row.value else None


def options_text(options: dict[str, OptionValue]) -> str:
    """Return options as in a call: ``fuse_opt_level=1, entry_functions=[main]``."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in options.items())


def step_rows(
    steps: Sequence[Step],
    known: Sequence[Step],
    lines: Sequence[StepLine],
    chosen: StepFilter,
    unfolded: frozenset[int],
) -> list[StepRow]:
    """Return the rows of the recipe's steps.

    Parameters
    ----------
    steps
        Steps of the wanted recipe.
    known
        Steps of the recipe of `lines`, which are valid up to the first difference.
    chosen
        The filter: name and function apply to the recipe's steps; for nested passes, the filter of
        unchanged ones applies as well.
    unfolded
        Numbers of the expanded lines.
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

    Parameters
    ----------
    passed_over
        See `Stepping.passed_over`.
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
