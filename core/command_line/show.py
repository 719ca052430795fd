"""The command ``show``: prints a stage between the model and the machine code."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lowerscope.core.command_line.recipe_options import SOURCE_HELP, add_recipe_options
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.model.queries import SaveValuesQuery
from lowerscope.core.recipe import Recipe

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline

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
    "fx",
    "translation",
    "code",
    "relax",
    "builder",
    "tensorir",
    "numpy",
    "te",
    "bytecode",
    "llvm",
    "asm",
    "library",
    "parameters",
)


def add_show_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``lowerscope show``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument("--stage", choices=STAGES, help="what to print")
    parser.add_argument("--function", default="", metavar="NAME", help="only this function")
    parser.add_argument(
        "--node",
        default="",
        metavar="NAME",
        help="with the stage translation: how this node was translated, with its rules' source",
    )
    parser.add_argument(
        "--show-meta",
        action="store_true",
        help="with the values of constants; for the stages relax and tensorir",
    )
    parser.add_argument(
        "--constant",
        default="",
        metavar="NAME",
        help="range, histogram and first values of a parameter, a constant or an input",
    )
    parser.add_argument(
        "--save", default="", metavar="FILE.npy", help="with --constant: write its values as well"
    )
    parser.add_argument("--json", action="store_true", help="print records as JSON")
    add_recipe_options(parser)


def show(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> str:
    """Return a stage, or the values of a tensor, as text or as JSON.

    Raises
    ------
    LowerscopeError
        If the options conflict, or there is no such function, node or tensor.
    """
    from lowerscope.core.command_line.showing import (
        show_builder,
        show_code,
        show_fx,
        show_library,
        show_loops,
        show_native,
        show_parameters,
        show_relax,
        show_tensorir,
        show_translation,
        show_values,
    )

    _check_shown(options)
    if options.constant:
        text = show_values(pipeline, recipe, options.constant, as_json=options.json)
        if options.save:
            pipeline.answer(SaveValuesQuery(recipe, options.constant, options.save))
        return text
    if options.stage in WHOLE:
        if options.function:
            what = WHOLE[options.stage]
            raise LowerscopeError(
                f"the {what} is shown whole",
                where="--function",
                todo="Leave the option out, or show the stage relax, tensorir, numpy, te, "
                "bytecode, llvm or asm",
            )
        whole: dict[str, Callable[..., str]] = {
            "fx": show_fx,
            "translation": partial(show_translation, node=options.node),
            "code": show_code,
            "library": show_library,
            "parameters": show_parameters,
            "builder": show_builder,
        }
        return whole[options.stage](pipeline, recipe, as_json=options.json)
    if options.stage in ("numpy", "te"):
        return show_loops(pipeline, recipe, options.stage, options.function, as_json=options.json)
    if options.stage in ("bytecode", "llvm", "asm"):
        return show_native(pipeline, recipe, options.stage, options.function, as_json=options.json)
    write = show_relax if options.stage == "relax" else show_tensorir
    return write(
        pipeline, recipe, options.function, as_json=options.json, show_meta=options.show_meta
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
