"""The command ``lowerscope why``: why two nodes are fused, or not."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files.console import MATCH
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.queries import WhyFusedQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline


def add_why_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope why``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument(
        "--nodes",
        nargs=2,
        metavar=("A", "B"),
        required=True,
        help=_("two FX nodes, Relax bindings or functions: explain why they are fused, or not"),
    )
    parser.flag("--json", _("print the answer as JSON"))
    add_recipe_options(parser)


def why(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return 0, and whether two nodes are fused, with the reason.

    Raises a `LowerscopeError` if there is no such node.
    """
    one, other = options.nodes
    answer = pipeline.answer(WhyFusedQuery(recipe, one, other))
    if options.json:
        return MATCH, to_json(answer)
    head = _("Fused") if answer.fused else _("Not fused ({cause})", cause=answer.cause)
    return MATCH, f"{head}: {answer.text}."
