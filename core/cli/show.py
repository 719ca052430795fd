"""The command ``show``: prints a stage between the model and the machine code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files.console import MATCH
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import SaveValuesQuery
from lowerscope.core.model.recipe import Recipe

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline

WHOLE = {
    "fx": "FX graph",
    "translation": "node map",
    "code": "code of the FX graph",
    "library": "list of library functions",
    "parameters": "list of parameters",
    "builder": "builder program",
}
"""Stages that are shown as a whole, with their descriptions."""

STAGES = (
    *("fx", "translation", "code", "relax", "builder", "tensorir", "numpy", "te", "bytecode"),
    *("llvm", "asm", "library", "parameters"),
)


def add_show_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope show``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument("--stage", choices=STAGES, help="what to print")
    parser.text("--function", "NAME", "only this function")
    parser.text(
        "--node",
        "NAME",
        "with the stage translation: how this node was translated, with its rules' source",
    )
    parser.flag("--show-meta", "with the values of constants; for the stages relax and tensorir")
    parser.text(
        "--constant",
        "NAME",
        "range, histogram and first values of a parameter, a constant or an input",
    )
    parser.text("--save", "FILE.npy", "with --constant: write its values as well")
    parser.flag("--json", "print records as JSON")
    add_recipe_options(parser)


def show(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return 0, and a stage, or the values of a tensor, as text or as JSON.

    Raises a `LowerscopeError` if the options conflict, or there is no such function, node or
    tensor.
    """
    from lowerscope.core.cli.showing import show_stage, show_values

    _check_shown(options)
    if options.constant:
        text = show_values(pipeline, recipe, options.constant, as_json=options.json)
        if options.save:
            pipeline.answer(SaveValuesQuery(recipe, options.constant, options.save))
        return MATCH, text
    if options.stage in WHOLE and options.function:
        raise LowerscopeError(
            f"the {WHOLE[options.stage]} is shown whole",
            where="--function",
            todo="Leave the option out, or show the stage relax, tensorir, numpy, te, "
            "bytecode, llvm or asm",
        )
    return MATCH, show_stage(
        pipeline,
        recipe,
        options.stage,
        options.function,
        node=options.node,
        show_meta=options.show_meta,
        as_json=options.json,
    )


def _check_shown(options: argparse.Namespace) -> None:
    """Reject conflicting options of ``show``."""
    if bool(options.constant) == bool(options.stage):
        raise LowerscopeError(
            "it is not said what to show" if not options.stage else "two things are to be shown",
            where="show",
            todo=f"Give --stage with one of {', '.join(STAGES)}, or --constant NAME",
        )
    scripts = options.stage in ("relax", "tensorir")
    for option, given, fits in (
        ("--show-meta", options.show_meta, scripts and not options.function),
        ("--save", options.save, bool(options.constant)),
        ("--node", options.node, options.stage == "translation"),
    ):
        if given and not fits:
            raise LowerscopeError(
                "it has no meaning here",
                where=option,
                todo="--show-meta goes with the whole of a stage relax or tensorir, --save with "
                "--constant NAME, --node with the stage translation",
            )
    if options.save and Path(options.save).suffix != ".npy":
        raise LowerscopeError(
            "the values are written as a .npy file", where=f"--save {options.save}"
        )
