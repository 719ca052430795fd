"""Records of variants, and of one tensor of a run beside torch's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from lowerscope.core.model.explanation_records import BisectRecord
from lowerscope.core.model.formatting import (
    NONE,
    SEVERAL,
    beside_text,
    error_text,
    share_of_text,
    share_text,
)
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import InputSpec, Recipe
from lowerscope.core.model.run_records import (
    FAILING,
    OutputVerdict,
    RunRecord,
    SideTimes,
    is_comparable,
    is_reliable,
    told_apart,
)
from lowerscope.core.model.snapshot import TensorStatistics
from lowerscope.core.model.texts import _, _n

CallSide = Literal["read", "written"]
Saved = Literal["tvm", "torch", "difference"]
ReferenceDtype = Literal["torch", "float64"]
"""The values that those of TVM are held against: torch's, or those of its graph in float64."""


class TensorPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Place of a tensor in the last run of a recipe."""

    # ``"fx:relu"`` for that node's value, ``"relax:main/lv1"`` for that binding's; or empty,
    entity: str = ""
    call: int | None = None  # and the index of a call in `RunRecord.calls`
    # Index among the tensors of the value, or among those that the call has read or written.
    item: int = 0
    side: CallSide = "written"  # of a call
    own: bool = False  # of a node: its value alone, on torch's values at its inputs
    reference: ReferenceDtype = "torch"


WeightDtype = Literal["", "float16", "bfloat16", "int8"]
"""A dtype of weights whose cost is computed; empty for none."""


class NodeErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of a node's tensor in a run, against float64.

    Relative errors are root mean squares, relative to that of the exact values.
    """

    id: str  # ``"fx:relu"``
    item: int  # index among the tensors of the node's value
    operator: str = ""  # what the node calls: ``"linear"``, ``"Conv2d"``
    # tvm, torch: the largest absolute errors of both sides
    tvm: float
    torch: float
    # relative: of TVM; made: relative error that torch's node makes by itself, given exact values;
    # ``None`` where that is not known
    relative: float = 0.0
    made: float | None = None
    # Relative errors with weights of `NodeErrorsQuery.dtype` and everything else exact: of the
    # node alone, ``None`` if it has none, and of all nodes.
    narrow_made: float | None = None
    narrow: float | None = None

    @property
    def nearer(self) -> str:
        """The side whose error is far smaller; empty for neither."""
        if self.torch * SEVERAL < self.tvm:
            return "torch"
        return "TVM" if self.tvm * SEVERAL < self.torch else ""


class ErrorBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of the compared nodes of a run, in graph order."""

    dtype: WeightDtype = ""  # of narrower weights
    nodes: tuple[NodeErrors, ...]
    # The first node that cannot be computed in float64, from which on nodes are missing.
    stopped: str = ""

    @property
    def by_operator(self) -> list[tuple[str, float]]:
        """Share of each operator in the squares of finite errors of nodes, the largest first."""
        squares: defaultdict[str, float] = defaultdict(float)
        for each in self.nodes:
            if each.made is not None and math.isfinite(each.made):
                squares[each.operator] += each.made**2
        total = sum(squares.values())
        shares = [(name, square / total) for name, square in squares.items() if total and square]
        return sorted(shares, key=lambda each: -each[1])

    @property
    def text(self) -> str:
        """The operators that make the errors, and where the table ends early; empty if neither."""
        listed = _(", ").join(f"{name} {share_text(share)}" for name, share in self.by_operator[:5])
        lines = []
        if listed:
            lines.append(_("Own errors of the nodes, by operator: {listed}", listed=listed))
        if self.stopped:
            lines.append(
                _(
                    "{name} cannot be computed in float64; it and later nodes are missing",
                    name=self.stopped,
                )
            )
        return "\n".join(lines)


class WorstElement(msgspec.Struct, frozen=True, kw_only=True):
    """An element of a tensor, and of torch's; magnitudes of complex ones."""

    index: tuple[int, ...]
    ours: float
    torch: float
    error: float  # ``|ours - torch|``; infinite where one side alone is not finite


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of one tensor of a run with torch's."""

    place: TensorPlace
    items: int = 1  # number of tensors at this place; ``place.item`` is one of them
    # shape, dtype: of ours; empty where it is not known
    shape: tuple[int, ...] = ()
    dtype: str = ""
    # torch_shape, torch_dtype: of torch's; empty where there is none
    torch_shape: tuple[int, ...] = ()
    torch_dtype: str = ""
    # Whether our values are kept, so that `Window` and ``.npy`` can be had. Beyond the budget, the
    # figures of `ours` alone are.
    kept: bool = False
    ours: TensorStatistics | None = None
    torch: TensorStatistics | None = None
    # ``"match"``, ``"rounding"``, ``"differ"``, ``"inconclusive"`` where no element is finite on
    # both sides, or ``"not-comparable"`` where there are none; ``None`` where a side is missing.
    verdict: OutputVerdict | None = None
    matches: bool | None = None  # whether it matches; ``None`` for other verdicts
    # Description of the difference, values that are not finite first; or the reason why there is
    # nothing to compare, or why the values are not kept.
    reason: str = ""
    # ``"3 NaN, 1 infinity"``: the number of our elements that are not finite where torch's are, or
    # are so in another way, in the reference alone, and on both sides. Empty for none.
    not_finite: str = ""
    # Index of the first that is not the same on both sides; empty for none.
    not_finite_at: tuple[int, ...] = ()
    # max_abs_error, max_abs_at, max_rel_error, max_rel_at: the largest ``|a - b|``, and the largest
    # ``|a - b| / |b|`` where ``|b|`` is more than ``atol``, with their indices, one number a
    # dimension. Infinite where one side alone is not finite.
    max_abs_error: float | None = None
    max_abs_at: tuple[int, ...] = ()
    max_rel_error: float | None = None
    max_rel_at: tuple[int, ...] = ()
    # outside, outside_share: how many elements are out of tolerance, and their share, 0 to 1
    outside: int = 0
    outside_share: float = 0.0
    # Of the angle between both as vectors, of the elements that are finite on both sides; ``None``
    # where one of them is zero.
    cosine: float | None = None
    worst: tuple[WorstElement, ...] = ()  # those with the largest errors, the largest first
    equal: int = 0  # number of elements without any difference
    # edges, counts: histogram of the other finite |ours - torch|, on a logarithmic scale: one edge
    # more than counts.
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    # rtol, atol: the tolerances that were used: 0 for integers and booleans, which have to be equal
    rtol: float = 0.0
    atol: float = 0.0


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a tensor as a matrix, for a heat map and for a table of values.

    Rows are the last dimension but one, columns the last one; a tensor of rank 1 has one row, one
    of rank 0 one element. A piece that is larger than the requested cells is reduced: each cell has
    the values of that of its elements at which |ours - torch| is largest (without torch's, |ours|),
    where a difference that is not finite counts as the largest.
    """

    place: TensorPlace
    # shape, dtype: of the whole tensor
    shape: tuple[int, ...]
    dtype: str
    leading: tuple[int, ...]  # the index in each dimension before the last two
    # row_edges, column_edges: the first row of each row of cells, and the end of the last; likewise
    # of columns. A cell is one element where neighbouring edges differ by 1.
    row_edges: tuple[int, ...]
    column_edges: tuple[int, ...]
    # Of the values below: ``"<f8"``, or ``"<i8"`` for integers and booleans; a number for each
    # cell, row by row. Of complex values, magnitudes.
    format: Literal["<f8", "<i8"]
    # ours, torch, difference: ``torch`` and ``difference`` (ours - torch) are empty where there is
    # no value of torch's
    ours: bytes
    torch: bytes = b""
    difference: bytes = b""
    outside: bytes = b""  # a byte for each cell: 1 where any of its elements is out of tolerance
    # rtol, atol: the tolerances that were used
    rtol: float = 0.0
    atol: float = 0.0
    reason: str = ""  # why there is nothing to compare; empty where there is


# --- Records of one call of a run: the tensors that it read and wrote, and its bytecode ---

TensorKind = Literal["input", "constant", "value"]


class StepTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that a call has read or written."""

    place: TensorPlace  # place of its values
    name: str  # ``x``, ``linear0.weight``, ``lv1``; empty where that is not known
    # An input of ``main``, a constant, or what another call has computed; of what is written, the
    # last.
    kind: TensorKind
    shape: tuple[int, ...]
    dtype: str
    # Its id, for the selection: ``relax:main/lv1``, ``param:linear0.weight``; empty for none.
    entity: str = ""
    # statistics, first: in figures, and the first few of its elements; without the latter where the
    # values are beyond the budget
    statistics: TensorStatistics | None = None
    first: tuple[str, ...] = ()


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a run in full."""

    call: int  # its place in `RunRecord.calls`
    # The tensors that it has read, then those that it has written, in the order of its arguments.
    tensors: tuple[StepTensor, ...]
    # The lines of the bytecode from after the call before up to its own, which is the last.
    instructions: tuple[str, ...] = ()
    # The number of the first of them in the bytecode of ``main``; 0 where that is not known.
    first_line: int = 0


# --- Results of the runs on a set of inputs: agreement of both sides over all of them ---


class SampleRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run on one sample of a set."""

    title: str  # ``"shoe.png"``, or ``"sample 3"``
    inputs: tuple[InputSpec, ...]  # the settings by which it is the model's input
    # verdict, reason, max_abs_error, max_rel_error, not_finite_count: as in
    # `core.records.run.RunRecord`
    verdict: OutputVerdict
    reason: str = ""
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    # tvm, torch: the class with the highest score on each side, by name or else by number; empty
    # where the output is not a score for each of some classes
    tvm: str = ""
    torch: str = ""
    label: str = ""  # the class that the set gives it; empty for none
    not_finite_count: int = 0


class AgreementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs on all samples of a set, by one executable."""

    path: str  # the file or the folder
    # count, ran: number of samples, and of those that could be read and were run
    count: int
    ran: int
    # matching, compared: number of outputs within the tolerance or beyond it by rounding only, and
    # of those that could be compared
    matching: int
    compared: int
    # same_class, classed: number of samples with the same class on both sides, and of those with a
    # class on both sides
    same_class: int
    classed: int
    # labelled, tvm_correct, torch_correct: number of samples with a label, and of those to which
    # each side gives that class
    labelled: int
    tvm_correct: int
    torch_correct: int
    # max_abs_error, max_rel_error: the largest of all; ``None`` where nothing was compared
    max_abs_error: float | None
    max_rel_error: float | None
    # Those with the largest errors, the worst first: another class, then out of the tolerance, then
    # inconclusive.
    worst: tuple[SampleRun, ...]
    unread: tuple[str, ...] = ()  # samples that could not be run, with the reason; the first few
    inconclusive: int = 0  # number of samples with an output without a finite value on both sides
    rounding: int = 0  # number of the matching ones beyond the tolerance, by rounding
    # Number of those within the tolerance with elements that are NaN or infinite.
    not_finite: int = 0
    reference: str = "torch"  # the reference of the comparison: ``torch`` or ``NumPy``

    @property
    def differing(self) -> int:
        """Number of outputs out of the tolerance."""
        return self.compared - self.matching


def agreement_lines(record: AgreementRecord, name: str) -> Iterator[str]:
    """Yield the results of a set of inputs; `name` is that of the set."""
    side = record.reference
    if record.ran < record.count:
        yield _(
            "{ran} of {count} samples of {path} ran", ran=record.ran, count=record.count, path=name
        )
    else:
        yield _n("{count} sample of {path}", "{count} samples of {path}", record.ran, path=name)
    if record.compared:
        yield _(
            "  within the tolerance of {side}: {share}",
            side=side,
            share=share_of_text(record.matching, record.compared),
        )
        yield _(
            "  largest error: {absolute} absolute, {relative} relative",
            absolute=error_text(record.max_abs_error),
            relative=error_text(record.max_rel_error),
        )
    if record.rounding:
        yield _(
            "  of these, beyond it by rounding only: {share}",
            share=share_of_text(record.rounding, record.matching),
        )
    if record.not_finite:
        yield _(
            "  of these, with values that are not finite: {share}",
            share=share_of_text(record.not_finite, record.matching),
        )
    if record.inconclusive:
        yield _(
            "  inconclusive, since no value is finite on both sides: {share}",
            share=share_of_text(record.inconclusive, record.ran),
        )
    if record.classed:
        yield _(
            "  same class as {side}: {share}",
            side=side,
            share=share_of_text(record.same_class, record.classed),
        )
    if record.labelled:
        yield _(
            "  class as labelled: TVM {tvm}, {side} {theirs}",
            tvm=share_of_text(record.tvm_correct, record.labelled),
            side=side,
            theirs=share_of_text(record.torch_correct, record.labelled),
        )


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with the result of its run: a record, or the problem of a failed run.

    With both, the record is of a run before the one that failed.
    """

    name: str
    recipe: Recipe
    record: RunRecord | None = None
    problem: Problem | None = None
    wrong_step: BisectRecord | None = None  # the step that makes it differ, if it was looked for
    rounding: ErrorBudget | None = None  # errors against float64, if they were computed
    reasons: tuple[tuple[str, str], ...] = ()  # see `ReasonsQuery`


class FunctionTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A function that runs call, in two of them."""

    name: str  # as the virtual machine calls it
    # old_calls, new_calls: number of calls in a run on either side; 0 where it is not called
    old_calls: int
    new_calls: int
    # old_ms, new_ms: the time of all these calls, in runs that were watched
    old_ms: float
    new_ms: float
    nodes: tuple[str, ...]  # ids of the FX nodes that it computes on either side

    @property
    def difference(self) -> float:
        """Increase of its time on the new side."""
        return self.new_ms - self.old_ms


def fastest(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return the variant with the shortest time among those with no `FAILING` verdict.

    There are several where their times differ by less than their spread; there is none where only
    one has run, or where the shortest time is unreliable.
    """
    ran = [each for each in variants if each.record is not None and each.problem is None]
    right = [each for each in ran if each.record and each.record.verdict not in FAILING]
    if len(ran) < 2 or not right:
        return ()
    best = min(right, key=lambda each: 0.0 if each.record is None else each.record.tvm_ms)
    reliable = [each for each in right if each.record and is_reliable(each.record.times)]
    if best not in reliable:
        return ()
    return tuple(each for each in reliable if each is best or not can_be_told(best, each))


def can_be_told(one: Variant, other: Variant) -> bool:
    """Return whether both times are reliable, and differ by more than their spread."""
    if one.record is None or other.record is None:
        return False
    if not (is_reliable(one.record.times) and is_reliable(other.record.times)):
        return False
    ours, theirs = our_times(one.record), our_times(other.record)
    return ours is not None and theirs is not None and told_apart(ours, theirs)


def our_times(record: RunRecord) -> SideTimes | None:
    """Return TVM's median and spread in a run, if they were measured."""
    return None if record.times is None else record.times.sides[0]


def other_sides(variants: Sequence[Variant]) -> tuple[SideTimes, ...]:
    """Return the best time of each other side of the variants, torch's first."""
    found: dict[str, SideTimes] = {}
    for each in variants:
        times = None if each.record is None else each.record.times
        for side in () if times is None else times.sides[1:]:
            before = found.setdefault(side.side, side)
            if side.milliseconds < before.milliseconds:
                found[side.side] = side
    return tuple(found.values())


def ratio_of(record: RunRecord) -> tuple[float | None, bool]:
    """Return the ratio of TVM's time to its reference's, and whether it is reliable.

    It is not where the two differ by less than noise, or the times are not reliable. There is no
    ratio where they ran on different machines, or with different numbers of threads.
    """
    if not record.torch_ms:
        return None, False
    sides = () if record.times is None else record.times.sides
    reference = next((each for each in sides if each.side == record.reference), None)
    if reference is not None and not is_comparable(sides[0], reference):
        return None, False
    told = reference is not None and is_reliable(record.times) and told_apart(sides[0], reference)
    return record.tvm_ms / record.torch_ms, told


def beside_reference(record: RunRecord) -> str:
    """Return how TVM's time compares with its reference's: ``1.80× slower``, ``as fast``."""
    ratio, told = ratio_of(record)
    if ratio is None:
        return NONE
    reliable = is_reliable(record.times)
    return beside_text(ratio, 1.0, about=not reliable, told=told if reliable else None)


def function_times(old: RunRecord, new: RunRecord) -> tuple[FunctionTimes, ...]:
    """Return the functions that either run calls, those whose times differ most first."""
    before, after = _by_name(old), _by_name(new)
    rows = []
    for name in dict.fromkeys((*before, *after)):
        old_calls, old_ms, old_nodes = before.get(name, (0, 0.0, ()))
        new_calls, new_ms, new_nodes = after.get(name, (0, 0.0, ()))
        rows.append(
            FunctionTimes(
                name=name,
                old_calls=old_calls,
                new_calls=new_calls,
                old_ms=old_ms,
                new_ms=new_ms,
                nodes=tuple(dict.fromkeys((*old_nodes, *new_nodes))),
            )
        )
    return tuple(sorted(rows, key=lambda each: -abs(each.difference)))


def _by_name(record: RunRecord) -> Mapping[str, tuple[int, float, tuple[str, ...]]]:
    found: dict[str, tuple[int, float, tuple[str, ...]]] = {}
    for call in record.calls:
        count, milliseconds, nodes = found.get(call.function, (0, 0.0, ()))
        found[call.function] = (count + 1, milliseconds + call.milliseconds, (*nodes, *call.nodes))
    return found
