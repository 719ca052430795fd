"""The command ``run``: verdict, times, and the first node whose value differs from torch's."""

from __future__ import annotations

import argparse
from pathlib import PurePath
from typing import TYPE_CHECKING

from lowerscope.core.encoding import to_json
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.run_records import RunRecord
from lowerscope.core.showing import describe_run

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline
    from lowerscope.core.stages import Stages


def run(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[bool, str]:
    """Return whether nothing differs, and what the command prints."""
    record = pipeline.run(recipe, Silent())
    done = record.verdict != "differ"
    if options.json:
        return done, to_json(record)
    lines = [describe_run(record)]
    if record.first_difference:
        lines.append(_first_difference(record, pipeline.stages(recipe)))
    return done, "\n".join(lines)


def _first_difference(record: RunRecord, stages: Stages) -> str:
    """Return the node, how it was lowered, where it stands, and how far it is off."""
    assert stages.lowered is not None
    assert stages.traced is not None
    found = next(each for each in record.nodes if each.id == record.first_difference)
    name = record.first_difference.removeprefix("fx:")
    node, line = stages.lowered.nodes[name], stages.traced.lines.get(name)
    place = "" if line is None else f"{PurePath(line.file).name}:{line.line}"
    about = "; ".join(each for each in (node.rule, place) if each)
    far = f"largest error {found.max_abs_error:.2g} absolute"
    return f"First difference: {name} ({about}): {found.reason}, {far}"
