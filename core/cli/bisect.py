"""The command ``lowerscope bisect``: the step that makes a model differ from torch."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.cli.recipe_options import (
    SOURCE_HELP,
    OneLineParser,
    add_recipe_options,
    files_read,
)
from lowerscope.core.files.console import DIFFER, MATCH, on_terminal_line, table_lines
from lowerscope.core.files.paths import check_not_read, user_path
from lowerscope.core.files.reproduction import write_reproduction
from lowerscope.core.model.bisect_records import PROGRAM, REPORT
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import verdict_words
from lowerscope.core.model.queries import BisectQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline

_RIGHT = ("match", "rounding", "not-comparable", "no-reference")
"""Outcomes for which the exit code is 0."""


def add_bisect_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope bisect``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.flag("--json", _("print the answer as JSON"))
    parser.text(
        "--output",
        "DIR",
        _(
            "folder for the reproduction: {program}, {report} and the files that they need "
            "(default: the current folder)",
            program=PROGRAM,
            report=REPORT,
        ),
        default=".",
    )
    parser.flag("--force", _("overwrite existing files"))
    add_recipe_options(parser)


def bisect(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code and the answer; write the reproduction.

    Raises a `LowerscopeError` if the model does not run, or a file exists, or cannot be written.
    """
    from lowerscope.core.export.files import check_absent

    folder = user_path(options.output)
    if not options.force:
        check_absent(folder, [PROGRAM, REPORT])
    for name in (PROGRAM, REPORT):
        check_not_read(folder / name, str(folder / name), files_read(options, recipe))
    with on_terminal_line() as progress:
        record = pipeline.answer(BisectQuery(recipe), progress)
    write_reproduction(folder, record.files, force=options.force)
    code = MATCH if record.outcome in _RIGHT else DIFFER
    program = str(folder / PROGRAM) if record.files else None
    if options.json:
        fields = msgspec.structs.asdict(record) | {
            "stage": record.stage or None,
            "reproduce": program,
            "files": [str(folder / each.name) for each in record.files],
        }
        return code, to_json(fields)
    lines = [record.text]
    probed = [(f"  {each.after}", verdict_words(each.verdict)[0]) for each in record.probed]
    lines += table_lines(probed, range(0))
    lines += [str(folder / each.name) for each in record.files]
    return code, "\n".join(lines)
