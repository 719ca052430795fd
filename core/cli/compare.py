"""The command ``compare``: one source in several variants, side by side."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from lowerscope.core.cli.recipe_options import (
    RULES,
    SEVERAL,
    SOURCE_HELP,
    TUNED,
    OneLineParser,
    add_recipe_options,
    recipe_from,
)
from lowerscope.core.cli.run import (
    add_nonfinite_option,
    add_report_option,
    check_report_option,
    failing_verdicts,
    write_wanted_report,
)
from lowerscope.core.files.console import DIFFER, ERROR, MATCH, on_terminal_line, say, table_lines
from lowerscope.core.files.paths import user_path
from lowerscope.core.model.comparison_records import Variant, fastest, our_times, ratio_of
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import (
    NONE,
    compiled_text,
    duration_text,
    durations_text,
    error_text,
    method_text,
    not_finite_text,
    ratio_text,
    unreliable_text,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline

UNSCHEDULED = "none"
"""Value of ``--schedule`` for a variant without schedules."""


def add_compare_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope compare``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.flag("--json", "print the variants as JSON")
    add_nonfinite_option(parser)
    add_report_option(parser)
    add_recipe_options(parser, several=True)


def recipes_of(options: argparse.Namespace) -> tuple[Recipe, ...]:
    """Return a recipe for each combination of the values of `SEVERAL` options.

    Raises a `LowerscopeError` if an option cannot be read, or ``--schedule`` names no file.
    """
    for name in options.schedules or ():
        if name in (UNSCHEDULED, RULES, TUNED) or name.endswith(".json"):
            continue
        if not os.path.isfile(user_path(name)):
            raise LowerscopeError(
                f"there are no schedules called {name}",
                where=f"--schedule {name}",
                todo=f"Give a FILE.json from the workbench, {RULES}, {TUNED}, or {UNSCHEDULED}",
            )
    axes = [
        [(name, value) for value in dict.fromkeys(getattr(options, name) or [default])]
        for name, default in SEVERAL.items()
    ]
    recipes = []
    for chosen in product(*axes):
        one = argparse.Namespace(**(vars(options) | dict(chosen)))
        one.schedules = [] if one.schedules in ("", UNSCHEDULED) else [one.schedules]
        recipes.append(recipe_from(one))
    return tuple(dict.fromkeys(recipes))


def compare(pipeline: Pipeline, _recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code, and the table of the variants or their records as JSON."""
    from lowerscope.core.cli.showing import leaves_out, note_lines
    from lowerscope.core.run.compare.variants import run_variants

    check_report_option(options)
    with on_terminal_line() as progress:
        variants = run_variants(pipeline, recipes_of(options), progress)
    written = write_wanted_report(options, variants)
    ran = [each for each in variants if each.record is not None]
    notes = {line: None for each in ran for line in note_lines(pipeline, each.recipe)}
    for note in notes:
        say(f"note: {note}")
    best = fastest(variants)
    if options.json:
        text = to_json({"variants": variants, "fastest": [each.name for each in best]})
    else:
        text = "\n".join([*_lines(variants, best), *written])
    left_out = any(leaves_out(pipeline, each.recipe) for each in ran)
    if left_out or any(each.record is None for each in variants):
        return ERROR, text
    failing = failing_verdicts(options)
    failed = any(each.record is not None and each.record.verdict in failing for each in variants)
    return DIFFER if failed else MATCH, text


_HEADINGS = (
    *("variant", "verdict", "error", "TVM", "spread"),
    *("{0}", "ratio", "functions", "build"),
)


def _lines(variants: Sequence[Variant], best: Sequence[Variant]) -> list[str]:
    """Return a line for each variant, figures right-aligned, and notes on them."""
    records = [each.record for each in variants if each.record is not None]
    side = records[0].reference if records else "torch"
    headings = tuple(each.format(side) for each in _HEADINGS)
    lines = table_lines([headings, *map(_row, variants)], range(2, len(_HEADINGS)))
    if best:
        told = " (which of them cannot be told)" if len(best) > 1 else ""
        lines.append(f"Fastest: {', '.join(each.name for each in best)}{told}")
    if records and records[0].times is not None:
        method, compiled = method_text(records[0].times), compiled_text(records[0].times)
        lines.append(method[:1].upper() + method[1:])
        lines += [compiled] if compiled else []
    for each in variants:
        said = "" if each.record is None else unreliable_text(each.record.times)
        lines += [f"{each.name}: {said}"] if said else []
    for each in variants:
        if each.problem is not None:
            lines.append(f"{each.name}: {each.problem.line()}")
        elif each.record is not None and each.record.reason:
            first = each.record.first_difference.removeprefix("fx:")
            where = f"; first difference: {first}" if first else ""
            lines.append(f"{each.name}: {each.record.reason}{where}")
    return lines


def _row(variant: Variant) -> tuple[str, ...]:
    record = variant.record
    if record is None:
        return (variant.name, "failed", *(NONE for _ in _HEADINGS[2:]))
    times = our_times(record)
    ratio, told = ratio_of(record)
    return (
        variant.name,
        ", ".join(filter(None, (record.verdict, not_finite_text(record.not_finite_count)))),
        error_text(record.max_abs_error),
        duration_text(record.tvm_ms),
        NONE if times is None else durations_text(times.low, times.high),
        duration_text(record.torch_ms),
        NONE if ratio is None else ratio_text(ratio, about=not told),
        str(record.functions),
        duration_text(record.build_ms),
    )
