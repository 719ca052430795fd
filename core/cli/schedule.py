"""The command ``lowerscope schedule``: a function after the primitives of a schedule."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.cli.recipe_options import (
    RULES,
    SOURCE_HELP,
    TUNED,
    OneLineParser,
    add_recipe_options,
)
from lowerscope.core.cli.run import add_nonfinite_option
from lowerscope.core.files.console import DIFFER, ERROR, MATCH, say, table_lines
from lowerscope.core.files.pipelines_and_schedules import load_schedules
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import NONE, bytes_text, cure_text, duration_text, error_text
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.queries import (
    ByRuleQuery,
    CheckQuery,
    CoachQuery,
    CompiledCoachQuery,
    ScheduleQuery,
)
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule import Primitive, Schedule, fits
from lowerscope.core.model.schedule_records import (
    ByRule,
    Checked,
    Coaching,
    LoopNode,
    ScheduleRecord,
    ScheduleStep,
)
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline

_CODES = {"same": MATCH, "differs": DIFFER, "inconclusive": DIFFER, "unknown": ERROR}

_SECONDS = 300.0
"""Time limit of a check, in seconds: no window waits for it."""


class RuledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of scheduling a function by rule or by tuning, in the list of a model's functions."""

    function: str
    # rule, steps: empty and 0 if no rule fits, with the ``reason``; ``"tuned"`` for a tuning result
    rule: str
    steps: int
    # Time to find the rule and write the steps, or to look up the tuning result.
    milliseconds: float
    reason: str = ""
    check: Checked | None = None


class ScheduleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Output of ``--json``; ``check`` is present if one was requested."""

    schedule: ScheduleRecord
    coach: Coaching
    check: Checked | None = None


def add_schedule_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope schedule``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.text(
        "--function", "NAME", _("TensorIR function (default, with --rules or --apply: all of them)")
    )
    parser.text(
        "--apply",
        f"FILE.json|{RULES}|{TUNED}",
        _(
            "schedule to apply: a saved file, {rules} (written by a rule, as with --rules) or "
            "{tuned} (found by lowerscope tune)",
            rules=RULES,
            tuned=TUNED,
        ),
    )
    parser.flag("--show", _("print only the scheduled function"))
    parser.flag(
        "--check",
        _(
            "compare the results with those of the unscheduled function; exit with 1 if they "
            "differ or are not finite"
        ),
    )
    add_nonfinite_option(parser)
    parser.flag("--json", _("print records as JSON"))
    add_recipe_options(parser, scheduling=True)


def schedule(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code of ``lowerscope schedule``, and the text to print.

    It is 1 if the function computes something else, and 2 if a step was left out or not checked.

    Raises a `LowerscopeError` if there is no such function, or the file has no schedule for it; if
    the options conflict.
    """
    _check_together(options)
    if not options.function:
        return _all_found(pipeline, recipe, options)
    left_out = False
    if options.by_rule or options.apply == RULES:
        recipe = _with_rule(pipeline, recipe, options.function)
    elif options.apply == TUNED:
        tuned = _by_tuning(pipeline, recipe, options.function)
        left_out = tuned.rule != TUNED
        if tuned.reason:
            # The JSON output has no field for the missing history.
            say(_("note: {function}: {reason}", function=options.function, reason=tuned.reason))
        recipe = _scheduled(recipe, options.function, tuned.primitives)
    elif options.apply:
        recipe = _with_file(pipeline, recipe, options.function, options.apply)
    record = pipeline.answer(ScheduleQuery(recipe, options.function, None))
    left_out = left_out or any(step.status == "failed" for step in record.steps)
    coaching = coached(pipeline, recipe, options.function)
    code = ERROR if left_out else MATCH
    checked = None
    if options.check:
        checked = pipeline.answer(CheckQuery(recipe, options.function, None, _SECONDS))
        code = max(code, _code(checked, options))
    if options.json:
        return code, to_json(ScheduleAnswer(schedule=record, coach=coaching, check=checked))
    parts = [record.script.text] if options.show else list(_described(record, coaching))
    if checked is not None:
        parts.append(_verdict(checked))
    return code, "\n\n".join(parts)


def _code(checked: Checked, options: argparse.Namespace) -> int:
    allowed = checked.verdict == "inconclusive" and options.allow_nonfinite
    return MATCH if allowed else _CODES[checked.verdict]


def _check_together(options: argparse.Namespace) -> None:
    """Reject options that conflict."""
    if options.by_rule and options.apply not in ("", RULES):
        raise LowerscopeError(
            _("two schedules are given"),
            where=f"--rules --apply {options.apply}",
            todo=_("Leave one of them out"),
        )
    of_all = options.by_rule or options.apply in (RULES, TUNED)
    if not options.function and (options.show or not of_all):
        raise LowerscopeError(
            _("the function is missing"),
            where="schedule",
            todo=_(
                "Give --function NAME; or --rules or --apply {tuned} for the schedules of all "
                "functions",
                tuned=TUNED,
            ),
        )


def _all_found(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Schedule each function by rule or from tuning, and return the list of them."""
    stages = pipeline.stages(recipe)
    found, code = [], MATCH
    # Load lazily imported code before the first rule is timed.
    _other = stages.target
    for name in stages.functions.structures:
        start = time.perf_counter()
        if options.apply == TUNED:
            ruled = _by_tuning(pipeline, recipe, name)
            code = code if ruled.rule == TUNED else ERROR
        else:
            ruled = pipeline.answer(ByRuleQuery(recipe, name))
        milliseconds = (time.perf_counter() - start) * 1000
        checked = None
        if options.check and ruled.primitives:
            scheduled = _scheduled(recipe, name, ruled.primitives)
            checked = pipeline.answer(CheckQuery(scheduled, name, None, _SECONDS))
            code = max(code, _code(checked, options))
        found.append(
            RuledFunction(
                function=name,
                rule=ruled.rule,
                steps=len(ruled.primitives),
                milliseconds=milliseconds,
                reason=ruled.reason,
                check=checked,
            )
        )
    return code, to_json(found) if options.json else "\n".join(_table(found))


def _table(found: Sequence[RuledFunction]) -> Iterator[str]:
    """Yield a line for each function, figures right-aligned, and a total."""
    rows = [(_("function"), _("rule"), _("steps"), _("time"), "")]
    for each in found:
        time, remark = duration_text(each.milliseconds), _remark(each)
        rows.append((each.function, each.rule or NONE, str(each.steps or NONE), time, remark))
    steps, total = (sum(each.steps for each in found), sum(each.milliseconds for each in found))
    rows.append((_("total"), "", str(steps), duration_text(total), ""))
    yield from table_lines(rows, range(2, 4))


def _remark(found: RuledFunction) -> str:
    return found.reason if found.check is None else _verdict(found.check)


def _by_tuning(pipeline: Pipeline, recipe: Recipe, function: str) -> ByRule:
    """Return the tuning result of a function, or a rule's schedule if it was not tuned.

    ``run --schedule tuned`` does and reports the same.
    """
    from lowerscope.core.schedule.whole_model import not_tuned

    stages = pipeline.stages(recipe)
    found = stages.tuned(stages.states(function)[0].function)
    if found is None:
        ruled = pipeline.answer(ByRuleQuery(recipe, function))
        note = not_tuned(function, ruled.primitives)
        return msgspec.structs.replace(ruled, reason=note.text)
    reason = "" if found else _("no measured candidate is faster than the unscheduled function")
    return ByRule(rule=TUNED, primitives=found, reason=reason)


def _with_rule(pipeline: Pipeline, recipe: Recipe, function: str) -> Recipe:
    ruled = pipeline.answer(ByRuleQuery(recipe, function))
    if not ruled.primitives:
        raise LowerscopeError(
            _("no rule schedules {function}: {reason}", function=function, reason=ruled.reason),
            where="--rules",
            todo=_("Schedule it by hand, or choose another --function"),
        )
    return _scheduled(recipe, function, ruled.primitives)


def _scheduled(recipe: Recipe, function: str, primitives: tuple[Primitive, ...]) -> Recipe:
    schedule = Schedule(function=function, primitives=primitives)
    return msgspec.structs.replace(recipe, schedules=(schedule,))


def _with_file(pipeline: Pipeline, recipe: Recipe, function: str, file: str) -> Recipe:
    from lowerscope.core.schedule.primitive_table import check_schedules

    structures = pipeline.stages(recipe).functions.structures
    if function not in structures:
        # Of the two errors, report this one first.
        pipeline.answer(ScheduleQuery(recipe, function, None))
    where = f"--apply {file}"
    loaded = tuple(each for each in load_schedules(file) if each.on)
    check_schedules(loaded, structures, where)
    if not any(fits(each, function, structures[function]) for each in loaded):
        names = _(", ").join(dict.fromkeys(each.function for each in loaded))
        raise LowerscopeError(
            _("it has no schedule for {function}, only for {names}", function=function, names=names)
            if names
            else _("it has no schedule for {function}", function=function),
            where=where,
            todo=_("Choose another file, or another --function"),
        )
    return msgspec.structs.replace(recipe, schedules=loaded)


def coached(pipeline: Pipeline, recipe: Recipe, function: str) -> Coaching:
    """Return what makes a function slow, as its loops and its machine code tell."""
    found = pipeline.answer(CoachQuery(recipe, function))
    try:
        more = pipeline.answer(CompiledCoachQuery(recipe, function))
    except LowerscopeError:
        # A function of another machine, for example, is not compiled here.
        return found
    return msgspec.structs.replace(found, advice=(*found.advice, *more))


def _described(record: ScheduleRecord, coaching: Coaching) -> Iterator[str]:
    """Yield the printed parts of a schedule."""
    head = _(
        "{function}  structure {structure}", function=record.function, structure=record.structure
    )
    if record.twins:
        head = _("{function}, the same as {others}", function=head, others=listed(record.twins))
    yield head
    yield "\n".join(_loop_line(node) for node in record.tree)
    rows = [
        (
            each.name,
            _ROLES[each.role],
            f"{each.shape} {each.dtype}",
            each.scope,
            "" if each.size is None else bytes_text(each.size),
        )
        for each in record.buffers
    ]
    yield "\n".join(table_lines(rows, range(4, 5)))
    if record.steps:
        steps = enumerate(record.steps, start=1)
        yield "\n".join(line for number, step in steps for line in _step_lines(number, step))
        yield record.code.rstrip("\n")
    lines = [
        _(
            "⚠ {block}: {text}\n     {cure}",
            block=each.block,
            text=each.text,
            cure=cure_text(each.cure, each.predicted_ms),
        )
        for each in coaching.advice
    ]
    if coaching.predicted_ms is not None:
        lines.insert(0, _("predicted: {time}", time=duration_text(coaching.predicted_ms)))
    if lines:
        yield "\n".join(lines)


_ROLES = {"input": _("input"), "output": _("output"), "intermediate": _("intermediate")}


def _loop_line(node: LoopNode) -> str:
    words = [f"{'  ' * node.depth}{node.name}"]
    if node.kind == "loop":
        words.append(node.extent)
        if node.loop_kind != "serial":
            words.append(node.loop_kind)
    else:
        words.append(f"[{', '.join(f'{kind} {name}' for name, kind, _other in node.axes)}]")
    words += [f"{key}={value}" for key, value in node.annotations]
    return "  ".join(words)


def _step_lines(number: int, step: ScheduleStep) -> Iterator[str]:
    mark = {"done": "✓", "failed": "✕", "off": "–"}[step.status]
    title = _("{step} (off)", step=step.title) if step.status == "off" else step.title
    yield f"{mark} {number:>2}  {title}"
    if step.error is not None:
        yield f"      {step.error.message}"
    elif step.comment:
        yield f"      {step.comment}"


def _verdict(checked: Checked) -> str:
    """Return the outcome of a check, with the inputs' sizes if they were chosen for it."""
    reason, at = checked.reason, checked.at
    if checked.verdict == "inconclusive":
        return _("Inconclusive: {reason}", reason=reason)
    if checked.verdict == "unknown":
        return _("Not checked: {reason}", reason=reason)
    if checked.verdict == "same":
        text = _("Same result as the unscheduled function")
        if at:
            text = _("Same result as the unscheduled function at {sizes}", sizes=at)
    elif at:
        text = _("Differs from the unscheduled function at {sizes}", sizes=at)
    else:
        text = _("Differs from the unscheduled function")
    error = ""
    if checked.max_abs_error is not None and checked.tolerance is not None:
        error = _(
            "largest error {error} (tolerance {tolerance})",
            error=error_text(checked.max_abs_error),
            tolerance=error_text(checked.tolerance),
        )
    details = _("; ").join(filter(None, (reason, error)))
    return _("{verdict}: {details}", verdict=text, details=details) if details else text
