"""The command ``lowerscope export``: writes artifacts of a source to files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lowerscope.core.cli.recipe_options import (
    SOURCE_HELP,
    OneLineParser,
    add_recipe_options,
    files_read,
)
from lowerscope.core.files.console import ERROR, MATCH, say
from lowerscope.core.files.paths import user_path
from lowerscope.core.model.artifacts import ALL, DEFAULT, EXPORTS, PAINTED, PICTURES, parse_wanted
from lowerscope.core.model.recipe import Recipe

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline


def add_export_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope export``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(each.name) for each in EXPORTS)
    parser.epilog = "what can be exported:\n" + "\n".join(
        f"  {each.name:<{width}}  {each.title}: {each.files}" for each in EXPORTS
    )
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to write to")
    parser.many(
        "--what",
        "LIST",
        f"what to write, as listed below, or {ALL}; step:2, patch:2, function:NAME and "
        f"schedule:NAME are one of them (default {','.join(DEFAULT)}); repeatable",
    )
    parser.text(
        "--picture",
        "LIST",
        f"formats of graphs: {', '.join(PICTURES)} (default svg)",
        default="svg",
    )
    parser.add_argument(
        "--level",
        choices=("fit", "all", "none"),
        default="fit",
        help="modules that are expanded in graphs: those that fit a pane (default), all, none",
    )
    parser.text(
        "--part",
        "NAME",
        "of graphs: what is inside of a module, or a node with those that it is tied to",
    )
    parser.flag("--force", "overwrite files that are there")
    add_recipe_options(parser)


def export(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Write the files; return the exit code, 2 if a requested one is missing, and their paths."""
    from lowerscope.core.export import folder

    wanted = parse_wanted(options.what)
    kinds = tuple(each.strip() for each in options.picture.split(","))
    folder.check_kinds(kinds)
    painted = options.painter and not set(kinds).isdisjoint(PAINTED)
    written = folder.export(
        pipeline,
        recipe,
        user_path(options.output),
        force=options.force,
        read=files_read(options, recipe),
        wanted=wanted,
        pictures=folder.Pictures(
            kinds=kinds,
            level=options.level,
            part=options.part,
            painter=options.painter() if painted else None,
        ),
    )
    for reason in written.left_out:
        say(f"note: not written: {reason}")
    for note in written.notes:
        say(f"note: {note}")
    return MATCH if written.complete else ERROR, "\n".join(written.paths)
