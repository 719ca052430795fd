"""Records of a scheduled function: loop tree, history, legal primitives and metrics."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.schedule import Argument, Primitive, Reference
from lowerscope.core.model.snapshot import TextRecord

LoopKind = Literal["serial", "parallel", "vectorized", "unrolled", "thread binding"]

FieldKind = Literal[
    "loop",
    "loops",
    "block",
    "loop or block",
    "buffer",
    "factors",
    "order",
    "integer",
    "number",
    "flag",
    "choice",
    "text",
    "value",
    "index map",
    "integers",
    "numbers",
]
"""Kind of value of a field of a primitive's form. Loops and blocks are chosen in the tree or in the
script; ``buffer`` is a buffer of the block by its place among those that it reads or writes;
``factors`` are extents, one of them ``None`` for TVM to find; ``order`` is a permutation; ``value``
is the value of an annotation: a number, a text or several."""


class LoopNode(msgspec.Struct, frozen=True, kw_only=True):
    """One loop or block of the loop tree, in the order of the script."""

    id: str  # that of its lines in the script: ``tir:dense/T_matmul_NT/k``
    kind: Literal["loop", "block"]  # ``"loop"`` or ``"block"``
    name: str  # of the loop variable or of the block
    # depth, parent: place in the tree; ``parent`` is an index into the list, -1 at the top
    depth: int
    parent: int
    reference: Reference  # reference of a new primitive to it
    extent: str = ""  # of a loop, as text; ``size`` as a number, ``None`` where it is symbolic
    size: int | None = None
    # loop_kind, annotations: of a loop, with the annotations of a block as well
    loop_kind: LoopKind = "serial"
    annotations: tuple[tuple[str, str], ...] = ()
    # Of a block: name, kind (``"S"`` spatial, ``"R"`` reduction, ``"O"`` other) and extent.
    axes: tuple[tuple[str, str, str], ...] = ()
    # reads, writes: of a block, as in the script
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class BufferNode(msgspec.Struct, frozen=True, kw_only=True):
    """One buffer of the function; ``role`` is ``input``, ``output`` or ``intermediate``.

    ``size`` in bytes; ``None`` where the shape is symbolic.
    """

    name: str
    shape: str
    dtype: str
    scope: str
    role: Literal["input", "output", "intermediate"]
    size: int | None = None


class StepError(msgspec.Struct, frozen=True, kw_only=True):
    """Error of a primitive that was not applied."""

    message: str  # one line
    # The function with the offending lines marked, where TVM or a guard points at some.
    text: str = ""
    lines: tuple[int, ...] = ()  # the offending lines of ``text``, from 1
    unsafe: bool = False  # whether "apply anyway" can apply it (`Primitive.forced`)


class ScheduleStep(msgspec.Struct, frozen=True, kw_only=True):
    """One primitive of the history."""

    id: str  # `Primitive.id`
    title: str  # in words: ``split k into 4 × 32``
    code: str  # as Python: ``l4, l5 = sch.split(l2, factors=[4, 32])``
    # ``"done"``; ``"failed"``, with the ``error``: the others stand; ``"off"``.
    status: Literal["done", "failed", "off"] = "done"
    error: StepError | None = None
    milliseconds: float = 0.0
    comment: str = ""  # its reason, where a rule made it
    # Names of the loops and blocks that it refers to when it was reached, in the order of
    # `references_of`; empty for those that did not exist.
    names: tuple[str, ...] = ()
    changes: bool = True  # whether the text of the function differs after it


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A warning on a schedule, with its figure, and the primitive that cures it."""

    code: str  # one of those that the help page on schedules lists
    block: str
    place: int  # index in `ScheduleRecord.tree` of the loop or block that it is about
    text: str
    cure: str
    primitive: str  # name of the primitive
    # Primitives that cure it, to be applied as one change; none if that takes a decision. Their
    # references are to loops and blocks by place.
    steps: tuple[Primitive, ...] = ()
    predicted_ms: float | None = None  # after `steps`


class Spills(msgspec.Struct, frozen=True, kw_only=True):
    """Vector registers that an innermost loop stores to the stack and loads from it."""

    stored: int
    loaded: int
    instructions: int  # of the loop


class Coaching(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted time of a scheduled function, and what makes it slow."""

    predicted_ms: float | None  # ``None`` where an extent is symbolic
    advice: tuple[Advice, ...]  # the largest share of the work first


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A function after some of the primitives of its schedule."""

    # function, structure: its name, and the structural hash of the function before it was scheduled
    function: str
    structure: str
    # Number of primitives that were applied, or tried: the step in the timeline ``"schedule"``.
    index: int
    script: TextRecord  # the function as TVMScript; its spans are the ids of ``tree``
    changed: tuple[int, ...] = ()  # the lines of ``script`` that the last of them changed, from 1
    # tree, buffers: the loops and blocks, and the buffers
    tree: tuple[LoopNode, ...] = ()
    buffers: tuple[BufferNode, ...] = ()
    # All primitives of the schedule, those after ``index`` as well.
    steps: tuple[ScheduleStep, ...] = ()
    code: str = ""  # the schedule as a Python function ``apply_trace(sch)``, in current names
    twins: tuple[str, ...] = ()  # names of the other functions of the same structure
    # Predicted time of a call; ``None`` where it was not asked for, or an extent is symbolic.
    predicted_ms: float | None = None


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a primitive's form."""

    # name, label, help: the argument's name, and words for it
    name: str
    label: str
    kind: FieldKind  # the kind of its value
    help: str = ""
    default: Argument = None  # its initial value
    optional: bool = False  # whether it can be empty
    # Of a ``"choice"``, a ``"buffer"`` (names in order) and an ``"index map"`` (names of its axes).
    choices: tuple[str, ...] = ()
    # low, high: bounds of numbers, both included; ``None`` where there are none
    low: int | None = None
    high: int | None = None
    # Of ``"factors"``: the extent that their product has to cover; ``None`` for any.
    product: int | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A primitive that could be applied to the selection."""

    # name, title: the primitive, and its short description
    name: str
    title: str
    group: str  # the heading that it stands under: ``Loops``, ``Order``, ``Blocks``, ``Memory`` …
    # help, before, after: help, with a small example
    help: str
    before: str
    after: str
    legal: bool  # whether it can be applied with these arguments: it was tried on a copy
    primitive: Primitive  # with sensible values for all its arguments
    reason: str = ""  # reason why not, in one line, or why it is unsafe
    unsafe: bool = False  # whether it is applied only on "apply anyway"
    fields: tuple[Field, ...] = ()  # of its form; empty where there is nothing to choose
    # Time of a call of the function with it, by a cost model; ``None`` where that is not known.
    predicted_ms: float | None = None


RULE_SECONDS = 10.0
"""Default limit on the time of rules for one function, in seconds."""

CHECK_THREAD = "schedule check"
"""Name of the threads of a check; they are left running where they take too long."""


class RuledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of the rules for one function of the model, and for those of the same structure."""

    # function, twins: its name, and theirs
    function: str
    twins: tuple[str, ...] = ()
    calls: int = 0  # of all of them, in one run of the model
    # Whether it has a schedule of the workbench, which goes before a rule's in the model.
    by_hand: bool = False
    # rule, steps: the first rule that fits, and its number of steps; empty, and 0, where none does
    rule: str = ""
    steps: int = 0
    reason: str = ""  # reason why none does


class ByRule(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that a rule has written; ``rule`` is empty where none fits, with the ``reason``.

    ``failed`` says that no rule could be completed: TVM cannot schedule the function, or the bound
    on the time was reached.
    """

    rule: str = ""
    primitives: tuple[Primitive, ...] = ()
    reason: str = ""
    failed: bool = False


Verdict = Literal["same", "differs", "inconclusive", "unknown"]
"""Verdict of a check."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """Measured peaks of this machine: multiply-adds, and memory bandwidth.

    One multiply-add counts as two operations; 1 GB is 10⁹ bytes.
    """

    # gflops, gbytes_per_second: of multiply-adds on ``float32``, and of memory
    gflops: float
    gbytes_per_second: float
    # threads, target: with which that was measured
    threads: int
    target: str
    # cache_bytes, cache_gbytes_per_second: the size of the last-level cache, and the bandwidth of
    # what stays in the caches: a function that is called again and again with fewer bytes than that
    # does not wait for memory
    cache_bytes: int = 0
    cache_gbytes_per_second: float = 0.0

    def bandwidth(self, moved: float) -> float:
        """Return the bandwidth, in GB/s, of a function that moves `moved` bytes."""
        in_cache = moved <= self.cache_bytes
        return self.cache_gbytes_per_second if in_cache else self.gbytes_per_second

    def best_ms(self, flops: float, moved: float) -> float:
        """Return the minimum time of a function, in milliseconds, by the roofline."""
        computing = flops / (self.gflops * 1e6)
        return max(computing, moved / (self.bandwidth(moved) * 1e6) if moved else 0.0)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one call of a function."""

    calls: int  # of it, in one run of the model
    # Arithmetic operations on floating-point numbers of the unscheduled function; ``None`` where it
    # calls others, or its size is not known.
    flops: float | None
    # read, written: bytes of its inputs and outputs, as far as they are touched: each element once
    read: int | None
    written: int | None
    intensity: float | None  # operations per byte
    # The size that this is for, such as ``"batch = 5"``: the one that the model is traced at. Empty
    # for a function that has but one.
    at: str = ""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Time of a function, and its rates."""

    # milliseconds, low, high: median, and the quarters below and above it, of ``repeats``
    # measurements
    milliseconds: float
    low: float
    high: float
    repeats: int
    build_ms: float  # time of its compilation
    # gflops, gbytes_per_second: `Work` by that time
    gflops: float | None = None
    gbytes_per_second: float | None = None
    # Share of the rate that the machine's peaks allow at its intensity, from 0 to 1; ``None`` where
    # it is far beyond them, since the compiler has left out some of `Work`.
    share: float | None = None
    # Time of torch for the same nodes; ``None`` where it has none of its own for them.
    torch_ms: float | None = None
    torch_nodes: tuple[str, ...] = ()  # the names of these nodes
    torch_does_more: bool = False  # whether the function is only a part of what these nodes compute
    at: str = ""  # see `Work`
    # Whether other programs used the processors that it, or torch, was to run on: then ratios of
    # the times are unreliable.
    disturbed: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a scheduled function with the unscheduled one."""

    # ``"same"``, ``"differs"``, ``"inconclusive"`` where none differs, but an output has no finite
    # value in either function, or ``"unknown"`` where there was no time for it.
    verdict: Verdict
    # Description of the difference, number of elements that are not finite in both functions, or
    # reason why it is not known.
    reason: str = ""
    # max_abs_error, tolerance: the largest absolute difference of a floating-point output, and the
    # limit: the longer the reduction, the higher. ``None`` for outputs that are compared exactly.
    max_abs_error: float | None = None
    tolerance: float | None = None
    # Whether a call that took too long is still running: nothing but the end of the process stops
    # it.
    running: bool = False
    at: str = ""  # see `Work`
