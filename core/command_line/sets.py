"""The command ``run`` with a set of inputs: how far both sides agree over all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowerscope.core.command_line.console import say
from lowerscope.core.command_line.nonfinite import failing_verdicts
from lowerscope.core.command_line.terminal_line import on_terminal_line
from lowerscope.core.encoding import to_json
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.agreement import AgreementRecord, SampleRun

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline

_WORST = 5
"""Samples that are printed."""


def add_set_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a set of inputs."""
    parser.add_argument(
        "--inputs-set",
        default="",
        metavar="PATH",
        help="run each sample of a folder of pictures or .npy files, or of an .npz with samples "
        "first (and labels as y, for the accuracy): how far both sides agree over all",
    )


def run_set(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[bool, str]:
    """Return whether no sample differs or is inconclusive, and what the command prints.

    Raises
    ------
    LowerscopeError
        If the nodes are to be compared as well, or there are no samples.
    """
    if options.per_node:
        raise LowerscopeError(
            "the nodes are compared on one input",
            where="--per-node",
            todo="Leave --inputs-set out, or give one of its samples with --input",
        )
    with on_terminal_line() as progress:
        record = pipeline.agreement(recipe, options.inputs_set, progress)
    for reason in record.unread:
        say(f"note: left out: {reason}")
    failing = failing_verdicts(options)
    counts = {"differ": record.differing, "inconclusive": record.inconclusive}
    done = not any(counts[each] for each in failing)
    return done, to_json(record) if options.json else "\n".join(_lines(record))


def _lines(record: AgreementRecord) -> Iterator[str]:
    left = f" of {record.count}" if record.ran < record.count else ""
    yield f"{record.ran}{left} samples of {record.path}"
    side = record.reference
    if record.compared:
        yield (
            f"  within the tolerance of {side}: {_share(record.matching, record.compared)}; "
            f"largest error {record.max_abs_error:.2g} absolute, {record.max_rel_error:.2g} "
            "relative"
        )
    if record.not_finite:
        yield (
            "  within the tolerance beside values that are not finite: "
            f"{_share(record.not_finite, record.matching)}"
        )
    if record.inconclusive:
        yield (
            f"  inconclusive, without a finite value on both sides: "
            f"{_share(record.inconclusive, record.ran)}"
        )
    if record.classed:
        yield f"  the same class as {side}: {_share(record.same_class, record.classed)}"
    if record.labelled:
        yield (
            f"  as labelled: TVM {_share(record.tvm_correct, record.labelled)}, "
            f"{side} {_share(record.torch_correct, record.labelled)}"
        )
    worst = [
        each
        for each in record.worst
        if each.max_abs_error is not None or each.verdict == "inconclusive"
    ][:_WORST]
    if worst:
        width = max(len(each.title) for each in worst)
        yield "Worst:"
        yield from (f"  {each.title:<{width}}  {_sample_text(each, side)}" for each in worst)


def _share(count: int, whole: int) -> str:
    """Return ``97 of 100 (97.0%)``."""
    return f"{count} of {whole} ({count / whole:.1%})"


def _sample_text(sample: SampleRun, reference: str) -> str:
    error = "-" if sample.max_abs_error is None else f"{sample.max_abs_error:.2g}"
    parts = [error, sample.verdict]
    if sample.tvm:
        same = sample.tvm == sample.torch
        parts.append(sample.tvm if same else f"TVM {sample.tvm}, {reference} {sample.torch}")
    if sample.label:
        parts.append(f"labelled {sample.label}")
    return "  ".join(parts)
