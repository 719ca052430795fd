"""Records of a scheduled function: loop tree, history, legal primitives and metrics.

Everything here is plain, frozen and serialisable. This module imports neither torch nor TVM.
"""

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
    """One loop or block of the loop tree, in the order of the script.

    Attributes
    ----------
    id
        That of its lines in the script: ``tir:dense/T_matmul_NT/k``.
    kind
        ``"loop"`` or ``"block"``.
    name
        Of the loop variable or of the block.
    depth, parent
        Place in the tree; ``parent`` is an index into the list, -1 at the top.
    reference
        Reference of a new primitive to it.
    extent
        Of a loop, as text; ``size`` as a number, ``None`` where it is symbolic.
    loop_kind, annotations
        Of a loop, with the annotations of a block as well.
    axes
        Of a block: name, kind (``"S"`` spatial, ``"R"`` reduction, ``"O"`` other) and extent.
    reads, writes
        Of a block, as in the script.
    """

    id: str
    kind: Literal["loop", "block"]
    name: str
    depth: int
    parent: int
    reference: Reference
    extent: str = ""
    size: int | None = None
    loop_kind: LoopKind = "serial"
    annotations: tuple[tuple[str, str], ...] = ()
    axes: tuple[tuple[str, str, str], ...] = ()
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
    """Error of a primitive that was not applied.

    Attributes
    ----------
    message
        One line.
    text
        The function with the offending lines marked, where TVM or a guard points at some.
    lines
        The offending lines of ``text``, from 1.
    unsafe
        Whether "apply anyway" can apply it (`Primitive.forced`).
    """

    message: str
    text: str = ""
    lines: tuple[int, ...] = ()
    unsafe: bool = False


class ScheduleStep(msgspec.Struct, frozen=True, kw_only=True):
    """One primitive of the history.

    Attributes
    ----------
    id
        `Primitive.id`.
    title
        In words: ``split k into 4 × 32``.
    code
        As Python: ``l4, l5 = sch.split(l2, factors=[4, 32])``.
    status
        ``"done"``; ``"failed"``, with the ``error``: the others stand; ``"off"``.
    comment
        Its reason, where a rule made it.
    names
        Names of the loops and blocks that it refers to when it was reached, in the order of
        `references_of`; empty for those that did not exist.
    changes
        Whether the text of the function differs after it.
    """

    id: str
    title: str
    code: str
    status: Literal["done", "failed", "off"] = "done"
    error: StepError | None = None
    milliseconds: float = 0.0
    comment: str = ""
    names: tuple[str, ...] = ()
    changes: bool = True


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A function after some of the primitives of its schedule.

    Attributes
    ----------
    function, structure
        Its name, and the structural hash of the function before it was scheduled.
    index
        Number of primitives that were applied, or tried: the step in the timeline ``"schedule"``.
    script
        The function as TVMScript; its spans are the ids of ``tree``.
    changed
        The lines of ``script`` that the last of them changed, from 1.
    tree, buffers
        The loops and blocks, and the buffers.
    steps
        All primitives of the schedule, those after ``index`` as well.
    code
        The schedule as a Python function ``apply_trace(sch)``, in current names.
    twins
        Names of the other functions of the same structure.
    """

    function: str
    structure: str
    index: int
    script: TextRecord
    changed: tuple[int, ...] = ()
    tree: tuple[LoopNode, ...] = ()
    buffers: tuple[BufferNode, ...] = ()
    steps: tuple[ScheduleStep, ...] = ()
    code: str = ""
    twins: tuple[str, ...] = ()


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a primitive's form.

    Attributes
    ----------
    name, label, help
        The argument's name, and words for it.
    kind
        The kind of its value.
    default
        Its initial value.
    optional
        Whether it can be empty.
    choices
        Of a ``"choice"``, a ``"buffer"`` (names in order) and an ``"index map"`` (names of its
        axes).
    low, high
        Bounds of numbers, both included; ``None`` where there are none.
    product
        Of ``"factors"``: the extent that their product has to cover; ``None`` for any.
    """

    name: str
    label: str
    kind: FieldKind
    help: str = ""
    default: Argument = None
    optional: bool = False
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    product: int | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A primitive that could be applied to the selection.

    Attributes
    ----------
    name, title
        The primitive, and its short description.
    group
        The heading that it stands under: ``Loops``, ``Order``, ``Blocks``, ``Memory`` …
    help, before, after
        Help, with a small example.
    legal
        Whether it can be applied with these arguments: it was tried on a copy.
    reason
        Reason why not, in one line, or why it is unsafe.
    unsafe
        Whether it is applied only on "apply anyway".
    primitive
        With sensible values for all its arguments.
    fields
        Of its form; empty where there is nothing to choose.
    """

    name: str
    title: str
    group: str
    help: str
    before: str
    after: str
    legal: bool
    primitive: Primitive
    reason: str = ""
    unsafe: bool = False
    fields: tuple[Field, ...] = ()


RULE_SECONDS = 10.0
"""Default limit on the time of rules for one function, in seconds."""

CHECK_THREAD = "schedule check"
"""Name of the threads of a check; they are left running where they take too long."""


class RuledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of the rules for one function of the model, and for those of the same structure.

    Attributes
    ----------
    function, twins
        Its name, and theirs.
    calls
        Of all of them, in one run of the model.
    by_hand
        Whether it has a schedule of the workbench, which goes before a rule's in the model.
    rule, steps
        The first rule that fits, and its number of steps; empty, and 0, where none does.
    reason
        Reason why none does.
    """

    function: str
    twins: tuple[str, ...] = ()
    calls: int = 0
    by_hand: bool = False
    rule: str = ""
    steps: int = 0
    reason: str = ""


class ByRule(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that a rule has written; ``rule`` is empty where none fits, with the ``reason``.

    ``failed`` says that no rule could be completed: TVM cannot schedule the function, or the bound
    on the time was reached.
    """

    rule: str = ""
    primitives: tuple[Primitive, ...] = ()
    reason: str = ""
    failed: bool = False
