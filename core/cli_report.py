"""The option ``--html`` of ``run`` and ``compare``: what was run, as a report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.report import check_report, write_report
from lowerscope.core.variant_records import Variant

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline


def add_report_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--html``."""
    parser.add_argument(
        "--html",
        default="",
        metavar="FILE",
        help="write a report as well: one file, which opens without a network",
    )


def check_report_option(options: argparse.Namespace) -> None:
    """Check that the report can be written, before anything is run.

    Raises
    ------
    LowerscopeError
        If it cannot, or there is no report on what is run.
    """
    if options.html and getattr(options, "inputs_set", ""):
        raise LowerscopeError(
            "there is no report on a set of inputs",
            where=f"--html {options.html}",
            todo="Run one input of it, or leave the option out",
        )
    if options.html:
        check_report(options.html)


def write_wanted_report(
    pipeline: Pipeline, options: argparse.Namespace, variants: Sequence[Variant]
) -> list[str]:
    """Write the report if one is wanted, with torch's time of each node; return a line on it.

    Raises
    ------
    LowerscopeError
        If it cannot be written.
    """
    if not options.html:
        return []
    complete = _with_torch_times(pipeline, variants)
    return [f"Report: {write_report(options.html, complete)}"]


def _with_torch_times(pipeline: Pipeline, variants: Sequence[Variant]) -> list[Variant]:
    # Here, since it takes torch.
    from lowerscope.core.per_node import torch_times, with_torch_times

    by_graph: dict[str, dict[str, float]] = {}
    complete = []
    for each in variants:
        if each.record is None:
            complete.append(each)
            continue
        stages = pipeline.stages(each.recipe)
        if stages.trace_key not in by_graph:
            by_graph[stages.trace_key] = torch_times(stages, each.recipe)
        record = with_torch_times(each.record, by_graph[stages.trace_key])
        complete.append(msgspec.structs.replace(each, record=record))
    return complete
