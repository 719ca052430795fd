"""The command ``lowerscope referee``: where rounding grows, and the cost of narrower weights."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files.console import MATCH, on_terminal_line, table_lines
from lowerscope.core.model.comparison_records import ErrorBudget, WeightDtype
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import error_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import NodeErrorsQuery, RunQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline


def add_referee_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope referee``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument(
        "--dtype",
        choices=[each for each in get_args(WeightDtype) if each],
        default="",
        help=_("also the errors that weights of this dtype would make"),
    )
    parser.flag("--json", _("print the answer as JSON"))
    add_recipe_options(parser)


def referee(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code and the errors of the nodes.

    Raises a `LowerscopeError` if the model does not run, or has no node that is compared.
    """
    with on_terminal_line() as progress:
        found = judged(pipeline, recipe, options.dtype, progress)
    if options.json:
        return MATCH, to_json({"dtype": options.dtype or None, "nodes": found.nodes})
    return MATCH, "\n".join(_lines(found))


def judged(
    pipeline: Pipeline, recipe: Recipe, dtype: WeightDtype, progress: Progress
) -> ErrorBudget:
    """Return the errors of the nodes in the last run; if that was of another model, run it."""
    query = NodeErrorsQuery(recipe, dtype)
    try:
        return pipeline.answer(query, progress)
    except LowerscopeError as error:
        if error.problem.code != "not-kept":
            raise
    # A quick run of a slow model has no nodes.
    pipeline.answer(RunQuery(recipe), progress)
    return pipeline.answer(query, progress)


def _lines(budget: ErrorBudget) -> Iterator[str]:
    dtype = budget.dtype
    rows: list[tuple[str, ...]] = [
        (_("node"), _("operator"), _("nearer"), "TVM", "torch", _("relative"), _("own error"))
    ]
    narrow: list[tuple[str, ...]] = [(_("with {dtype} weights", dtype=dtype), _("in the run"))]
    for each in budget.nodes:
        errors = each.tvm, each.torch, each.relative, each.made
        name = each.id.removeprefix("fx:")
        rows.append((name, each.operator, each.nearer, *map(error_text, errors)))
        narrow.append((error_text(each.narrow_made), error_text(each.narrow)))
    if dtype:
        rows = [(*row, *more) for row, more in zip(rows, narrow, strict=True)]
    yield from table_lines(rows, range(3, 9))
    if budget.text:
        yield budget.text
