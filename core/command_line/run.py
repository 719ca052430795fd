"""The command ``run``: verdict, times, and the first node whose value differs from torch's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.command_line.guarded import progress_of, run_guarded
from lowerscope.core.command_line.nonfinite import failing_verdicts
from lowerscope.core.command_line.per_node import per_node
from lowerscope.core.command_line.report import check_report_option, write_wanted_report
from lowerscope.core.command_line.sets import run_set
from lowerscope.core.command_line.showing import describe_run
from lowerscope.core.comparing.variant_names import variant_names
from lowerscope.core.encoding import to_json
from lowerscope.core.model.formatting import duration_text, error_text
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.run import NodeReport, RunRecord
from lowerscope.core.records.variant import Variant

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline
    from lowerscope.core.stages import Stages


def run(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[bool, str]:
    """Return whether no output differs or is inconclusive, and the text to print."""
    check_report_option(options)
    progress = progress_of(options)
    if options.guarded:
        return run_guarded(pipeline, recipe, options, progress)
    if options.inputs_set:
        return run_set(pipeline, recipe, options)
    record = pipeline.answer(RunQuery(recipe), progress)
    done = record.verdict not in failing_verdicts(options)
    (name,) = variant_names((recipe,))
    variant = Variant(name=name, recipe=recipe, record=record)
    written = write_wanted_report(options, (variant,))
    nodes = per_node(pipeline.stages(recipe), record) if options.per_node else ()
    if options.json:
        fields = {"nodes": nodes} if options.per_node else {}
        return done, to_json(msgspec.structs.asdict(record) | fields)
    lines = [describe_run(record)]
    if nodes:
        lines += _table(nodes)
    if options.per_node and not nodes:
        lines.append("There are no FX nodes: the source is not of torch")
    if record.first_difference:
        lines.append(_first_difference(record, pipeline.stages(recipe)))
    lines += written
    return done, "\n".join(lines)


def _first_difference(record: RunRecord, stages: Stages) -> str:
    """Return the first differing node, its provenance, its source line, and its error."""
    assert stages.lowered is not None
    assert stages.traced is not None
    found = next(each for each in record.nodes if each.id == record.first_difference)
    name = record.first_difference.removeprefix("fx:")
    node, line = stages.lowered.nodes[name], stages.traced.lines.get(name)
    place = "" if line is None else f"{PurePath(line.file).name}:{line.line}"
    about = "; ".join(each for each in (node.rule, place) if each)
    far = f"largest error {error_text(found.max_abs_error)} absolute"
    made = record.first_made
    from_above = "  alone, on torch's inputs, it matches: the error came from a node above it"
    lines = [
        f"First difference: {name} ({about}): {found.reason}, {far}",
        *([f"{from_above} that could not be compared"] if found.own_status == "matches" else []),
        f"  passes on it: {', '.join(made.passes) or 'none'}",
        *(f"  schedule of {each}" for each in made.schedules),
    ]
    return "\n".join(lines)


_HEADINGS = ("node", "how", "abs error", "alone", "TVM", "torch", "status")


def _table(nodes: Sequence[NodeReport]) -> list[str]:
    """Return a line for each node that computes something, figures right-aligned."""
    rows = [
        _HEADINGS,
        *(_row(each) for each in nodes if each.strategy or each.torch_ms is not None),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return [
        "  ".join(
            text.rjust(width) if 2 <= column < 6 else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(node: NodeReport) -> tuple[str, ...]:
    status = f"{node.status}: {node.reason}" if node.reason else node.status
    if node.own_status != node.status:
        more = f": {node.own_reason}" if node.own_reason else ""
        status += f"; alone {node.own_status}{more}"
    if node.own_with:
        status += f"; run with {', '.join(each.removeprefix('fx:') for each in node.own_with)}"
    return (
        node.fx.removeprefix("fx:"),
        node.strategy,
        error_text(node.max_abs_error),
        error_text(node.own_abs_error),
        duration_text(node.tvm_ms),
        duration_text(node.torch_ms),
        status,
    )
