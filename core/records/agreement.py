"""Results of the runs on a set of inputs: agreement of both sides over all of them.

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
        The settings by which it is the model's input.
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
        Number of samples, and of those that could be read and were run.
    matching, compared
        Number of outputs within the tolerance, and of those that could be compared.
    inconclusive
        Number of samples with an output without a finite value on both sides.
    not_finite
        Number of those within the tolerance with elements that are NaN or infinite.
    same_class, classed
        Number of samples with the same class on both sides, and of those with a class on both
        sides.
    labelled, tvm_correct, torch_correct
        Number of samples with a label, and of those to which each side gives that class.
    max_abs_error, max_rel_error
        The largest of all; ``None`` where nothing was compared.
    worst
        Those with the largest errors, the worst first: another class, then out of the tolerance,
        then inconclusive.
    unread
        Samples that could not be run, with the reason; the first few.
    reference
        The reference of the comparison: ``torch`` or ``NumPy``.
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
        """Number of outputs out of the tolerance."""
        return self.compared - self.matching
