"""Results of a run: verdict, errors and times, over all, by output, and by node."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _

FEW = 8
"""Number of measurements below which quartiles mean little: the spread is the full range."""

HELD_UP = 3.0
"""Ratio of the median to the fastest call beyond which the machine was busy."""

DISTURBED = 0.05
"""Maximum share of the measuring time in which the engine may have worked."""


OTHERS = 0.2
"""Mean number of processors that other programs may have taken from the threads of a side."""


class SideTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one call of ``main``, or of the model, on one side; all in milliseconds."""

    side: str  # ``"TVM"``, ``"torch"``, ``"torch.compile"`` or ``"NumPy"``
    milliseconds: float  # the median
    # low, high: the spread: a quarter of the calls was faster than ``low``, and one slower than
    # ``high``; with fewer than `FEW` calls, the fastest and the slowest
    low: float
    high: float
    # fastest, slowest: of all calls
    fastest: float
    slowest: float
    repeats: int  # number of calls
    threads: int | None  # how many it may use; ``None`` where that is not known
    machine: str = ""  # the key of the other machine that it ran on; empty for this one


class RunTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The sides that were timed by turns, ours first."""

    sides: tuple[SideTimes, ...]
    warm_up: int  # calls of each side before
    # Time of ``torch.compile``; ``None`` where it was not requested, or failed.
    compile_ms: float | None = None
    compile_problem: str = ""  # reason why it failed, in one line
    disturbed: float = 0.0  # share of the time in which the engine was busy, from 0 to 1
    processors: int = 0  # number of processors of this process; 0 where that is not known
    others: float = 0.0  # mean number of them that other programs used meanwhile


def side_times(side: str, seconds: Sequence[float], threads: int | None) -> SideTimes:
    """Return median and spread of measurements in seconds."""
    times = sorted(each * 1000 for each in seconds)
    low, high = times[0], times[-1]
    if len(times) >= FEW:
        low, _other, high = statistics.quantiles(times, n=4, method="inclusive")
    return SideTimes(
        side=side,
        milliseconds=statistics.median(times),
        low=low,
        high=high,
        fastest=times[0],
        slowest=times[-1],
        repeats=len(times),
        threads=threads,
    )


def told_apart(one: SideTimes, other: SideTimes) -> bool:
    """Return whether the medians differ by more than either spread, and the fastest calls agree.

    One call, as in a quick run, has no spread, so nothing can be concluded. Where other programs
    take the processors, one side may be held up at each of its calls: the threads of torch wait for
    one another.
    """
    if min(one.repeats, other.repeats) < 2:
        return False
    difference = one.milliseconds - other.milliseconds
    if abs(difference) <= max(one.high - one.low, other.high - other.low):
        return False
    return (one.fastest < other.fastest) == (difference < 0)


def is_comparable(ours: SideTimes, other: SideTimes) -> bool:
    """Return whether both ran on the same machine with, as far as known, as many threads."""
    threads = {ours.threads, other.threads} - {None}
    return ours.machine == other.machine and len(threads) < 2


def held_up(times: RunTimes) -> tuple[SideTimes, ...]:
    """Return the sides most of whose calls took far longer than the fastest."""
    return tuple(each for each in times.sides if each.milliseconds > HELD_UP * each.fastest)


def is_short_of_processors(times: RunTimes) -> bool:
    """Return whether other programs took processors that the threads of a side were to run on.

    The threads of torch wait for one another after each operator: beside one busy program it may
    take several times as long, at each call. TVM's calls are held up far less.
    """
    wanted = max((side.threads or times.processors for side in times.sides), default=0)
    return were_taken(times.others, times.processors, wanted)


def were_taken(others: float, processors: int, wanted: int) -> bool:
    """Return whether other programs, by their number of processors, took some that were wanted."""
    return others - max(processors - wanted, 0) > OTHERS


def is_disturbed(times: RunTimes | None) -> bool:
    """Return whether the engine was busy for a significant share of the time.

    Queries while a run is measured take a processor from both sides.
    """
    return times is not None and times.disturbed > DISTURBED


def is_reliable(times: RunTimes | None) -> bool:
    """Return whether nothing else used the processors, so that a ratio of the times is reliable."""
    if times is None:
        return False
    return not (is_short_of_processors(times) or is_disturbed(times) or held_up(times))


BUDGET = 1.0
"""Seconds that all measurements of one run should take together, unless their number is given."""

REPEATS = 200
"""Maximum number of measurements of each side, unless their number is given."""

LEAST = 3
"""Minimum number of measurements of each side, unless their number is given."""

MOST = 100_000
"""Upper bound on the number of calls."""

MEASURING = _("Measuring")
"""Prefix of the progress text of a run while it is measured."""


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the timing of both sides, by turns."""

    warm_up: int = 2  # unmeasured calls of each side at the start
    # Calls of each side that count; 0 for as many as a second allows, from `LEAST` to `REPEATS`.
    repeats: int = 0
    # Whether ``torch.compile`` of the model is a side as well. It takes seconds to minutes to
    # compile, and a C++ compiler.
    torch_compile: bool = False


class RunEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Estimated time of a run, by the work of the functions that no schedule applies to."""

    seconds: float  # of one call of the model
    unscheduled: int  # number of these functions
    functions: int  # number of all functions of TensorIR


AROUND_CALLS = 3
"""Calls of a run beside those that are timed: one for the outputs, and two by node."""

SLOW_RUN = 20.0
"""Seconds from which a run is announced with its estimated time."""


def check_measuring(measuring: Measuring) -> Measuring:
    """Return `measuring`.

    Raises a `LowerscopeError` if a number in it makes no sense.
    """
    for option, number, least in (
        ("--warm-up", measuring.warm_up, 1),
        ("--repeats", measuring.repeats, 0),
    ):
        if not least <= number <= MOST:
            raise LowerscopeError(
                _("{number} is not a valid number of calls", number=number),
                where=option,
                todo=_("Give a number from {least} to {most}", least=least, most=MOST),
            )
    return measuring


# The memory plan of a run of ``main``: tensors that share a storage, and the times of its use.


class StoredTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that a run allocates."""

    name: str  # name of its variable in the module that goes into the bytecode
    # shape, dtype, size: its extents, and its bytes
    shape: tuple[int, ...]
    dtype: str
    size: int
    # written, last: indices in `RunRecord.calls` of the call before which it is allocated, and of
    # the last one that reads or writes it; ``last`` is that of the last call of all for what is
    # returned
    written: int
    last: int
    returned: bool = False  # whether it is an output, or a part of one


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of memory, and the tensors that are in it one after the other."""

    size: int  # in bytes
    # begin, end: indices in `RunRecord.calls` of the first and the last call during which it is in
    # use
    begin: int
    end: int
    tensors: tuple[StoredTensor, ...]  # in the order in which they are allocated


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run of ``main`` allocates, in bytes; the model's constants and inputs apart."""

    storages: tuple[Storage, ...] = ()  # in the order in which they are allocated
    # For each call of `RunRecord.calls`, the bytes of the storages in use while it runs.
    live: tuple[int, ...] = ()
    constants: int = 0  # bytes of the constants in the module, each counted once
    reason: str = ""  # why nothing is known; empty where it is

    @property
    def peak(self) -> int:
        """Maximum number of bytes in use at once."""
        return max(self.live, default=0)

    @property
    def tensors(self) -> int:
        """Total size of all tensors, as if none shared its storage with another."""
        return sum(each.size for storage in self.storages for each in storage.tensors)


OutputVerdict = Literal[
    "match", "rounding", "differ", "inconclusive", "not-comparable", "no-reference"
]
"""The verdict on outputs: see `RunRecord`."""

NodeStatus = Literal[
    "matches", "rounding", "differs", "inconclusive", "not comparable", "no reference"
]
"""The verdict on a node; random values, and nodes without a value, are not comparable."""

STATUS_OF: Mapping[OutputVerdict, NodeStatus] = {
    "match": "matches",
    "rounding": "rounding",
    "differ": "differs",
    "inconclusive": "inconclusive",
    "not-comparable": "not comparable",
    "no-reference": "no reference",
}
"""The status of a node by the verdict on its value."""

VERDICT_OF: Mapping[NodeStatus, OutputVerdict] = {
    status: verdict for verdict, status in STATUS_OF.items()
}

COMPARED: tuple[NodeStatus, ...] = ("matches", "rounding", "differs", "inconclusive")
"""The statuses of nodes whose values were compared with the reference's."""

FAILING: tuple[OutputVerdict, ...] = ("differ", "inconclusive")
"""Failing verdicts, the worse first."""


class ExactErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The largest absolute errors of both sides of a tensor against float64."""

    tvm: float
    torch: float
    is_rounding: bool  # whether rounding explains TVM's


KEEP = 1_000_000_000
"""Default limit on the cached values of a run, in bytes."""

NOT_THERE = _("Values and times of single nodes are available for runs on this machine only.")
"""Message on values of a run on another machine."""

RunPart = Literal["all", "verdict", "times"]
"""Part of a run that is recomputed."""


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One output of the model: its shape, its dtype and how far it is from torch's.

    ``verdict`` as in `RunRecord`, for this output alone, with its ``reason``. ``matches`` is
    ``None`` where nothing was compared: no reference, random numbers or no elements
    (``not-comparable``), or no finite value on both sides. ``not_finite`` says how many of its
    elements are not finite on either side, such as ``"3 NaN, 1 infinity on both sides"``, and
    ``not_finite_count`` is their number.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    verdict: OutputVerdict
    reason: str = ""
    matches: bool | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    not_finite: str = ""
    not_finite_count: int = 0
    exact: ExactErrors | None = None


class ClassScore(msgspec.Struct, frozen=True, kw_only=True):
    """Score of a class on each side, from 0 to 1; ``torch`` is ``None`` without a torch side."""

    name: str
    tvm: float
    torch: float | None = None


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The class that each side predicts, by name; ``torch`` is empty without a torch side."""

    torch: str
    tvm: str
    # What the scores of ``top`` are: ``"softmax"`` of the output; ``"output"``, where that is
    # probabilities already; empty where it is not finite, and there are none.
    scores: Literal["softmax", "output", ""] = ""
    # The classes that are among the five best of one side or the other, torch's best first.
    top: tuple[ClassScore, ...] = ()


TOP = 5
"""Number of classes of each side in a prediction."""


def best_of(prediction: Prediction, side: Literal["tvm", "torch"]) -> tuple[ClassScore, ...]:
    """Return the best classes of one side, its best first; none where it has no scores."""
    given = [each for each in prediction.top if getattr(each, side) is not None]
    return tuple(sorted(given, key=lambda each: -float(getattr(each, side))))[:TOP]


class SizeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome at one size of each named dimension, as in `RunRecord`; ``sizes`` by name."""

    sizes: dict[str, int]
    verdict: OutputVerdict
    reason: str
    max_abs_error: float | None
    max_rel_error: float | None
    torch_ms: float | None
    tvm_ms: float
    times: RunTimes | None = None
    not_finite_count: int = 0


TransferMode = Literal["in place", "copied", "unseen"]
"""Use of the memory of a tensor of TVM's by torch: in place, copied, or never touched."""


class DlpackTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """Transfer of the tensors of a call of a library function, by DLPack.

    ``inputs`` and ``results`` have what was observed of each tensor; ``copied_bytes`` is the size
    of those that were copied.
    """

    inputs: tuple[TransferMode, ...]
    results: tuple[TransferMode, ...]
    copied_bytes: int = 0


class CallRun(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the virtual machine in a run of ``main``."""

    function: str  # name of the called function
    # The median over a few runs that were watched, which takes some microseconds a call.
    milliseconds: float
    # Ids of the FX nodes that it computes, or has a share in: several, where a pass fused them.
    nodes: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()  # ids of the bindings before the passes that it computes
    # Id of the called function, ``tir:dense`` or ``ext:env.relu``; empty for the virtual machine's
    # own.
    entity: str = ""
    # The line of its instruction in the bytecode of ``main``, from 1; 0 where that is not known.
    line: int = 0
    # Number of calls that the virtual machine made just before it for itself: for memory, shapes
    # and checks. Those after the last call are not counted.
    own: int = 0
    # Of a function outside of the module; ``None`` for others, and where it was not observed.
    hand_over: DlpackTransfer | None = None


class NodeRun(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run for one FX node, ``fx:relu``, or binding, ``relax:main/lv1``."""

    id: str
    status: NodeStatus = "no reference"  # the verdict on its value
    # Of all its calls; of a call that computes other nodes as well, all of the time. ``None`` where
    # there is no call.
    milliseconds: float | None = None
    # max_abs_error, max_rel_error: of its value against torch's at the same node; ``None`` where
    # they were not compared
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    # Whether the value is within the tolerances, or beyond them by rounding only; ``None`` where it
    # was not compared.
    matches: bool | None = None
    reason: str = ""  # description of the difference, or reason why there is nothing to compare
    calls: tuple[int, ...] = ()  # indices of its calls in `RunRecord.calls`
    shared_with: tuple[str, ...] = ()  # ids of the other nodes that these calls compute
    # Elements that are not finite where torch's value is, ``"3 NaN, 1 infinity"``; empty for
    # nothing.
    not_finite: str = ""
    # own_status, own_abs_error, own_matches, own_reason: of an FX node alone, on torch's values at
    # its inputs, as above: it tells an error that starts here from one that came from above.
    # ``None`` where it has no such inputs, with the reason.
    own_status: NodeStatus = "no reference"
    own_abs_error: float | None = None
    own_matches: bool | None = None
    own_reason: str = ""
    # exact, own_exact: errors against float64, in the run and alone, where it is out of tolerance
    exact: ExactErrors | None = None
    own_exact: ExactErrors | None = None
    # Ids of other nodes that had to be run with it: they are fused, or have no value to compare.
    own_with: tuple[str, ...] = ()
    # The node in torch; ``None`` for what calls nothing, and for bindings.
    torch_ms: float | None = None
    # Strategy of a node's lowering; empty for nodes that make no code, and for bindings.
    strategy: str = ""


class NodeProvenance(msgspec.Struct, frozen=True, kw_only=True):
    """Provenance of an FX node's code."""

    rule: str = ""  # the rule that lowered it
    # Names of the recipe's steps that changed its computation, in order.
    passes: tuple[str, ...] = ()
    # Of each function that it has a part in and that is scheduled: ``dense: split k into 4 × 32,
    # vectorize …``.
    schedules: tuple[str, ...] = ()


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run, times in milliseconds.

    ``verdict`` is ``match``, ``rounding`` (out of tolerance, but as near to float64 as rounding
    allows, or by a choice between values that match), ``differ``, ``inconclusive`` (none differs,
    but an output has no value that is finite on both sides, or none has elements),
    ``not-comparable`` (what can be compared matches, and some outputs depend on random numbers) or
    ``no-reference``. Errors are the largest over all outputs that are compared; they are ``None``
    where none is. ``not_finite_count`` is the number of elements of the outputs that are not finite
    on either side. ``tracer`` is the one that
    was taken, ``"fx"`` or ``"export"``; empty for a source without torch. ``key`` is that of the
    `Snapshot` of the module that was run. ``reference`` is the reference of the comparison:
    ``torch``, or ``NumPy`` for a function ``reference`` of the file; ``torch_ms`` is its time. Both
    times are medians, and ``times`` has their spread, and ``torch.compile`` where that was wanted.

    ``quick`` says that times are of one call, for a quick answer; for a slow model there are no
    ``nodes`` and ``calls`` then.

    With named dimensions, ``sizes`` has an outcome for each size that the one build was run at.
    Verdict and errors are then the worst of them, with the outputs of the one with that verdict
    that has the most elements that are not finite; times are those of the first.

    ``nodes`` has the results of each FX node and of each binding before the passes, and ``calls``
    the calls of the virtual machine in their order, both from runs of their own, which were watched
    after the others were measured; with named dimensions, at the first size. ``first_difference``
    is the id of the first node, in the order of the graph, whose value differs; empty for none, and
    unless the outputs differ or are inconclusive; ``first_made`` is the provenance of its code.
    ``memory`` has the allocations of a run of ``main``.

    ``ran_on`` is the other machine that ran it, ``rasp4, 192.168.1.7:9090``; empty for this one.
    There are no ``nodes`` and ``calls`` then: values of single calls stay on that machine.
    """

    verdict: OutputVerdict
    reason: str
    max_abs_error: float | None
    max_rel_error: float | None
    rtol: float
    atol: float
    torch_ms: float | None
    tvm_ms: float
    build_ms: float
    functions: int
    outputs: tuple[OutputRecord, ...]
    prediction: Prediction | None = None
    quick: bool = False
    tracer: str = ""
    key: str = ""
    reference: str = "torch"
    sizes: tuple[SizeRecord, ...] = ()
    nodes: tuple[NodeRun, ...] = ()
    calls: tuple[CallRun, ...] = ()
    first_difference: str = ""
    first_made: NodeProvenance = NodeProvenance()
    memory: MemoryRecord = MemoryRecord()
    kept_bytes: int = 0
    kept_budget: int = 0
    kept_calls: int = 0
    times: RunTimes | None = None
    ran_on: str = ""
    not_finite_count: int = 0


def first_difference(nodes: Sequence[NodeRun]) -> str:
    """Return the id of the first FX node whose value differs; empty for none."""
    differing = (each.id for each in nodes if each.id.startswith("fx:") and each.matches is False)
    return next(differing, "")


def with_times(record: RunRecord, times: Sequence[RunTimes]) -> RunRecord:
    """Return a record with other times: one for each size that it was run at, or one in all."""
    return msgspec.structs.replace(
        record,
        quick=False,
        **time_fields(times[0], record.reference),
        sizes=tuple(
            msgspec.structs.replace(each, **time_fields(found, record.reference))
            for each, found in zip(record.sizes, times, strict=False)
        ),
    )


def time_fields(times: RunTimes, reference: str) -> dict[str, Any]:
    """Return the fields of a record, or of one size, that are about times."""
    medians = {each.side: each.milliseconds for each in times.sides}
    return {"times": times, "tvm_ms": medians["TVM"], "torch_ms": medians.get(reference)}


def call_name(callee: str, nodes: Sequence[str]) -> str:
    """Return the label of a call: ``fused_conv2d_relu (conv, relu)``."""
    computed = ", ".join(each.removeprefix("fx:") for each in nodes)
    return f"{callee} ({computed})" if computed else callee


def parts_of_name(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the callee and the ids of the nodes from a label of `call_name`."""
    callee, _sep, computed = name.removesuffix(")").partition(" (")
    return callee, tuple(f"fx:{each}" for each in computed.split(", ")) if computed else ()
