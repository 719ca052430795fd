"""The command ``lowerscope referee``: where rounding grows, and the cost of narrower weights."""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, get_args

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files.console import MATCH, on_terminal_line, table_lines
from lowerscope.core.model.comparison_records import NodeErrors, WeightDtype
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import error_text, share_text
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
        return MATCH, to_json({"dtype": options.dtype or None, "nodes": found})
    return MATCH, "\n".join(_lines(found, options.dtype))


def judged(
    pipeline: Pipeline, recipe: Recipe, dtype: WeightDtype, progress: Progress
) -> tuple[NodeErrors, ...]:
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


def _lines(found: Sequence[NodeErrors], dtype: WeightDtype) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        (_("node"), _("operator"), "TVM", "torch", _("relative"), _("made here"))
    ]
    narrow: list[tuple[str, ...]] = [(_("with {dtype} weights", dtype=dtype), _("in the run"))]
    for each in found:
        errors = each.tvm, each.torch, each.relative, each.made
        rows.append((each.id.removeprefix("fx:"), each.operator, *map(error_text, errors)))
        narrow.append((error_text(each.narrow_made), error_text(each.narrow)))
    if dtype:
        rows = [(*row, *more) for row, more in zip(rows, narrow, strict=True)]
    yield from table_lines(rows, range(2, 8))
    shares = made_by_operator(found)
    if shares:
        listed = ", ".join(f"{name} {share_text(share)}" for name, share in shares[:5])
        yield _("Of the error that nodes make by themselves: {listed}", listed=listed)


def made_by_operator(found: Sequence[NodeErrors]) -> list[tuple[str, float]]:
    """Return the share of each operator in the squares of the finite errors that nodes make."""
    squares: defaultdict[str, float] = defaultdict(float)
    for each in found:
        if each.made is not None and math.isfinite(each.made):
            squares[each.operator] += each.made**2
    total = sum(squares.values())
    shares = [(name, square / total) for name, square in squares.items() if total and square]
    return sorted(shares, key=lambda each: -each[1])
