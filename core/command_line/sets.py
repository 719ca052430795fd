"""The command ``run`` with a set of inputs: agreement with the reference over all samples."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowerscope.core.command_line.console import say
from lowerscope.core.command_line.nonfinite import failing_verdicts
from lowerscope.core.command_line.terminal_line import on_terminal_line
from lowerscope.core.encoding import to_json
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.model.formatting import error_text, share_of_text
from lowerscope.core.model.queries import AgreementQuery
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.agreement import AgreementRecord, SampleRun

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline

_WORST = 5
"""Most samples that are printed."""


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
    """Return whether no sample differs or is inconclusive, and the text to print.

    Raises
    ------
    LowerscopeError
        If a comparison of nodes is requested as well, or there are no samples.
    """
    if options.per_node:
        raise LowerscopeError(
            "the nodes are compared on one input",
            where="--per-node",
            todo="Leave --inputs-set out, or give one of its samples with --input",
        )
    with on_terminal_line() as progress:
        record = pipeline.answer(AgreementQuery(recipe, options.inputs_set), progress)
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
            f"  within the tolerance of {side}: {share_of_text(record.matching, record.compared)}; "
            f"largest error {error_text(record.max_abs_error)} absolute, "
            f"{error_text(record.max_rel_error)} relative"
        )
    if record.not_finite:
        yield (
            "  within the tolerance beside values that are not finite: "
            f"{share_of_text(record.not_finite, record.matching)}"
        )
    if record.inconclusive:
        yield (
            f"  inconclusive, without a finite value on both sides: "
            f"{share_of_text(record.inconclusive, record.ran)}"
        )
    if record.classed:
        yield f"  the same class as {side}: {share_of_text(record.same_class, record.classed)}"
    if record.labelled:
        yield (
            f"  as labelled: TVM {share_of_text(record.tvm_correct, record.labelled)}, "
            f"{side} {share_of_text(record.torch_correct, record.labelled)}"
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


def _sample_text(sample: SampleRun, reference: str) -> str:
    parts = [error_text(sample.max_abs_error), sample.verdict]
    if sample.tvm:
        same = sample.tvm == sample.torch
        parts.append(sample.tvm if same else f"TVM {sample.tvm}, {reference} {sample.torch}")
    if sample.label:
        parts.append(f"labelled {sample.label}")
    return "  ".join(parts)
