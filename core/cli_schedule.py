"""The command ``lowerscope schedule``: what the primitives of a schedule make of a function."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.encoding import to_json
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.recipe_options import RULES, SOURCE_HELP, add_recipe_options
from lowerscope.core.schedule_files import load_schedules
from lowerscope.core.schedule_records import (
    BufferNode,
    Checked,
    LoopNode,
    ScheduleRecord,
    ScheduleStep,
)
from lowerscope.core.schedules import Schedule, fits

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline

_DONE, _DIFFERS, _ERROR = 0, 1, 2

_CODES = {"same": _DONE, "differs": _DIFFERS, "unknown": _ERROR}

_SECONDS = 300.0
"""Time for a check: there is no window that waits for it."""


class ScheduleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints; ``check`` is there where one was asked for."""

    schedule: ScheduleRecord
    check: Checked | None = None


def add_schedule_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``lowerscope schedule``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument("--function", required=True, metavar="NAME", help="a TensorIR function")
    parser.add_argument(
        "--apply",
        default="",
        metavar=f"FILE.json|{RULES}",
        help=f"a schedule that was saved; or {RULES}, for the one that a rule writes",
    )
    parser.add_argument(
        "--show", action="store_true", help="print the function as it is then, and nothing else"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="run it and the unscheduled one on the same values; exit with 1 if they differ",
    )
    parser.add_argument("--json", action="store_true", help="print records as JSON")
    add_recipe_options(parser)


def schedule(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Answer ``lowerscope schedule``.

    Returns
    -------
    tuple[int, str]
        The exit code: 0 if all is well, 1 if the function computes something else, 2 if a step
        could not be applied or the check could not be made; and what to print.

    Raises
    ------
    LowerscopeError
        If there is no such function, or the file has no schedule for it.
    """
    if options.apply == RULES:
        recipe = _with_rule(pipeline, recipe, options.function)
    elif options.apply:
        recipe = _with_file(pipeline, recipe, options.function, options.apply)
    record = pipeline.workbench.derived_schedule(recipe, options.function, None, Silent())
    code = _ERROR if any(step.status == "failed" for step in record.steps) else _DONE
    checked = None
    if options.check:
        checked = pipeline.numbers.check(recipe, options.function, None, _SECONDS, Silent())
        code = max(code, _CODES[checked.verdict])
    if options.json:
        return code, to_json(ScheduleAnswer(schedule=record, check=checked))
    parts = [record.script.text] if options.show else list(_described(record))
    if checked is not None:
        parts.append(_verdict(checked))
    return code, "\n\n".join(parts)


def _with_rule(pipeline: Pipeline, recipe: Recipe, function: str) -> Recipe:
    ruled = pipeline.workbench.by_rule(recipe, function, Silent())
    if not ruled.primitives:
        raise LowerscopeError(
            f"no rule schedules {function}: {ruled.reason}",
            where=f"--apply {RULES}",
            todo="Schedule it by hand, or choose another --function",
        )
    schedule = Schedule(function=function, primitives=ruled.primitives)
    return msgspec.structs.replace(recipe, schedules=(schedule,))


def _with_file(pipeline: Pipeline, recipe: Recipe, function: str, file: str) -> Recipe:
    from lowerscope.core.scheduling.validating import check_schedules

    structures = pipeline.stages(recipe).functions.structures
    if function not in structures:
        # Of the two mistakes, this one is said first.
        pipeline.workbench.derived_schedule(recipe, function, None, Silent())
    where = f"--apply {file}"
    loaded = tuple(each for each in load_schedules(file) if each.on)
    check_schedules(loaded, structures, where)
    if not any(fits(each, function, structures[function]) for each in loaded):
        names = ", ".join(dict.fromkeys(each.function for each in loaded))
        raise LowerscopeError(
            f"it has no schedule for {function}" + (f", but for {names}" if names else ""),
            where=where,
            todo="Choose another file, or another --function",
        )
    return msgspec.structs.replace(recipe, schedules=loaded)


def _described(record: ScheduleRecord) -> Iterator[str]:
    """Yield the parts of what is printed of a schedule."""
    head = f"{record.function}  structure {record.structure}"
    if record.twins:
        head += f", as {', '.join(record.twins)}"
    yield head
    yield "\n".join(_loop_line(node) for node in record.tree)
    yield "\n".join(_buffer_lines(record.buffers))
    if record.steps:
        steps = enumerate(record.steps, start=1)
        yield "\n".join(line for number, step in steps for line in _step_lines(number, step))
        yield record.code.rstrip("\n")


def _loop_line(node: LoopNode) -> str:
    words = [f"{'  ' * node.depth}{node.name}"]
    if node.kind == "loop":
        words.append(node.extent)
        if node.loop_kind != "serial":
            words.append(node.loop_kind)
    else:
        words.append(f"[{', '.join(f'{kind} {name}' for name, kind, _ in node.axes)}]")
    words += [f"{key}={value}" for key, value in node.annotations]
    return "  ".join(words)


def _buffer_lines(buffers: tuple[BufferNode, ...]) -> Iterator[str]:
    width = max((len(each.name) for each in buffers), default=0)
    for each in buffers:
        size = "" if each.size is None else f", {each.size:,} bytes"
        yield f"{each.name:<{width}}  {each.role}: {each.shape} {each.dtype}, {each.scope}{size}"


def _step_lines(number: int, step: ScheduleStep) -> Iterator[str]:
    marks = {"done": "✓", "failed": "✗", "off": "–"}
    off = " (off)" if step.status == "off" else ""
    yield f"{marks[step.status]} {number}  {step.title}{off}"
    if step.error is not None:
        yield f"     {step.error.message}"
    elif step.comment:
        yield f"     {step.comment}"


def _verdict(checked: Checked) -> str:
    if checked.verdict == "unknown":
        return f"Not known whether it computes the same: {checked.reason}"
    error = ""
    if checked.max_abs_error is not None and checked.tolerance is not None:
        error = f": largest error {checked.max_abs_error:.2g} (tolerance {checked.tolerance:.2g})"
    at = f" at {checked.at}" if checked.at else ""
    if checked.verdict == "same":
        return f"Computes the same as the unscheduled function{at}{error}"
    return f"Differs from the unscheduled function{at}: {checked.reason}{error}"
