"""What runs on a set of inputs have shown: how far both sides agree over all of them.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import InputSpec
from lowerscope.core.records.run import OutputVerdict


class SampleRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run on one sample of a set.

    Attributes
    ----------
    title
        ``"shoe.png"``, or ``"sample 3"``.
    inputs
        What makes it the model's input.
    verdict, reason, max_abs_error, max_rel_error, not_finite_count
        As in `core.records.run.RunRecord`.
    tvm, torch
        The class with the highest score on each side, by name or else by number; empty where the
        output is not a score for each of some classes.
    label
        The class that the set gives it; empty for none.
    """

    title: str
    inputs: tuple[InputSpec, ...]
    verdict: OutputVerdict
    reason: str = ""
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    tvm: str = ""
    torch: str = ""
    label: str = ""
    not_finite_count: int = 0


class AgreementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs on all samples of a set, by one executable.

    Attributes
    ----------
    path
        The file or the folder.
    count, ran
        How many samples there are, and how many of them could be read and were run.
    matching, compared
        How many outputs are within the tolerance, and how many there was something to compare of.
    inconclusive
        How many have an output without a finite value on both sides.
    not_finite
        How many of those within the tolerance have elements that are NaN or infinite.
    same_class, classed
        Of how many samples both sides give the same class, and how many have one on both sides.
    labelled, tvm_correct, torch_correct
        How many have a label, and how many of these each side gives that class.
    max_abs_error, max_rel_error
        The largest of all; ``None`` where nothing was compared.
    worst
        Those with the largest errors, the worst first: another class, then out of the tolerance,
        then inconclusive.
    unread
        Samples that could not be run, with the reason; the first few.
    reference
        What it was compared with: ``torch`` or ``NumPy``.
    """

    path: str
    count: int
    ran: int
    matching: int
    compared: int
    same_class: int
    classed: int
    labelled: int
    tvm_correct: int
    torch_correct: int
    max_abs_error: float | None
    max_rel_error: float | None
    worst: tuple[SampleRun, ...]
    unread: tuple[str, ...] = ()
    inconclusive: int = 0
    not_finite: int = 0
    reference: str = "torch"

    @property
    def differing(self) -> int:
        """How many outputs are out of the tolerance."""
        return self.compared - self.matching
