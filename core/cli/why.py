"""The command ``lowerscope why``: explanations of fusion, of a pass, and of a schedule."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files.console import MATCH
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import WhyFunctionQuery, WhyFusedQuery, WhyPassQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _, capitalized
from lowerscope.core.model.why import Change

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline


def add_why_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope why``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument(
        "--nodes",
        nargs=2,
        metavar=("A", "B"),
        help=_("explain why two FX nodes, Relax bindings or functions are fused, or why not"),
    )
    parser.text(
        "--function",
        "NAME",
        _("explain which rule scheduled a TensorIR function, or why none did"),
    )
    parser.flag("--json", _("print the answer as JSON"))
    add_recipe_options(
        parser,
        pass_help=_(
            "explain what a pass changed, or why it changed nothing; a pass that is not in the "
            "pipeline is tried at its end"
        ),
    )


def why(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return 0, and the explanation.

    Raises a `LowerscopeError` if there is no such node, pass or function.
    """
    if options.function:
        scheduled = pipeline.answer(WhyFunctionQuery(recipe, options.function))
        if options.json:
            return MATCH, to_json(scheduled)
        text = capitalized(scheduled.text)
        return MATCH, _lines(text, scheduled.steps, scheduled.change)
    if not options.nodes:
        if not options.steps:
            raise LowerscopeError(
                _("the question is missing"),
                where="why",
                todo=_("Give --nodes A B, --pass NAME or --function NAME"),
            )
        # Other commands add the pass to the pipeline; here it is the question.
        *steps, asked = recipe.steps
        recipe = msgspec.structs.replace(recipe, steps=tuple(steps))
        passed = pipeline.answer(WhyPassQuery(recipe, asked))
        return MATCH, to_json(passed) if options.json else _lines(passed.text, (), passed.change)
    answer = pipeline.answer(WhyFusedQuery(recipe, *options.nodes))
    if options.json:
        return MATCH, to_json(answer)
    if answer.fused:
        return MATCH, _("{sentence}.", sentence=answer.text)
    return MATCH, _("Not fused: {reason}.", reason=answer.text)


def _lines(text: str, steps: Sequence[str], change: Change | None) -> str:
    numbered = (f"  {number}. {step}" for number, step in enumerate(steps, start=1))
    lines = [_("{sentence}.", sentence=text), *numbered]
    if change is not None:
        lines.append(_("To change that: {change}.", change=change.text))
    return "\n".join(lines)
