"""Blocks and loops of a TensorIR function, with their ids, and its structural hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx

LAYOUT_FREE = "layout_free_buffers"
"""Attribute with the numbers of the arguments that are constants, whose layout may change when the
model is built: see ``AttachAttrLayoutFreeBuffers``."""

_CHILDREN = {
    s_tir.SBlockRealize: ("block",),
    s_tir.SBlock: ("init", "body"),
    tirx.For: ("body",),
    tirx.BufferStore: (),
}
"""Child fields of the frequent statements; probing for missing ones is slow."""
_ALL_CHILDREN = ("block", "init", "body", "then_case", "else_case")


@dataclass(frozen=True, slots=True)
class Part:
    """A block or a loop.

    Attributes
    ----------
    id
        ``tir:FUNCTION/BLOCK``, or ``tir:FUNCTION/BLOCK/VARIABLE`` for a loop, where the block is
        the first one in the loop, or else the one around it. Ids that would come twice end in
        ``#2``, ``#3`` and so on.
    kind
        ``"block"`` or ``"loop"``.
    statement
        The ``SBlock`` or the ``For``.
    parent
        Place of the part around it among all of them, -1 where there is none.
    """

    id: str
    kind: str
    statement: Any
    parent: int = -1


def parts_of(name: str, function: Any) -> tuple[Part, ...]:
    """Return the blocks and loops of a function in the order of its text, without the root.

    Statements that stand in the text twice, as one object, are one part.
    """
    root = root_block(function)
    found: dict[Any, int] = {}
    parents: list[int] = []
    _collect(function.body if root is None else root.body, -1, found, parents)
    inner = _first_blocks(list(found), parents)
    seen: Counter[str] = Counter()
    parts: list[Part] = []
    around = "root"
    for place, statement in enumerate(found):
        if isinstance(statement, s_tir.SBlock):
            kind, path = "block", statement.name_hint
            around = path
        else:
            block = inner[place]
            kind = "loop"
            path = f"{around if block is None else block.name_hint}/{statement.loop_var.name}"
        seen[path] += 1
        position = f"#{seen[path]}" if seen[path] > 1 else ""
        parts.append(Part(f"tir:{name}/{path}{position}", kind, statement, parents[place]))
    return tuple(parts)


def count_parts(function: Any) -> tuple[int, int, int]:
    """Return how many blocks and loops a function has, and how often its blocks run in all.

    See `parts_of`. A loop of a symbolic extent counts as one that runs once.
    """
    root = root_block(function)
    begin = function.body if root is None else root.body
    found: dict[Any, int] = {}
    parents: list[int] = []
    _collect(begin, -1, found, parents)
    times: list[int] = []
    runs = loops = 0
    for statement, parent in zip(found, parents, strict=True):
        around = times[parent] if parent >= 0 else 1
        if type(statement) is tirx.For:
            loops += 1
            around *= int(getattr(statement.extent, "value", 1))
        else:
            runs += around
        times.append(around)
    return len(found) - loops, loops, runs


def allocated_ids(name: str, function: Any) -> tuple[tuple[str, Any], ...]:
    """Return the buffers that a function allocates around all of its blocks, with their ids.

    That is ``tir:FUNCTION//BUFFER``, so that no block has the same.
    """
    root = root_block(function)
    seen: Counter[str] = Counter()
    found: list[tuple[str, Any]] = []
    for buffer in () if root is None else root.alloc_buffers:
        seen[buffer.name] += 1
        position = f"#{seen[buffer.name]}" if seen[buffer.name] > 1 else ""
        found.append((f"tir:{name}//{buffer.name}{position}", buffer))
    return tuple(found)


def _first_blocks(found: Sequence[Any], parents: Sequence[int]) -> list[Any]:
    """Return the first block in each statement, which may be the statement itself."""
    first: list[Any] = [None] * len(found)
    for place in range(len(found) - 1, -1, -1):
        if isinstance(found[place], s_tir.SBlock):
            first[place] = found[place]
        # Earlier ones come later.
        if first[place] is not None and parents[place] >= 0:
            first[parents[place]] = first[place]
    return first


def root_block(function: Any) -> Any | None:
    """Return the block that ``s_tir`` functions have around everything, or ``None``."""
    body = function.body
    if isinstance(body, s_tir.SBlockRealize) and body.block.name_hint == "root":
        return body.block
    return None


def _collect(statement: Any, parent: int, found: dict[Any, int], parents: list[int]) -> None:
    """Collect the blocks and loops of a statement, each once, with the place of its parent."""
    kind = type(statement)
    if kind is tirx.SeqStmt:
        for child in statement.seq:
            _collect(child, parent, found, parents)
        return
    if kind in (s_tir.SBlock, tirx.For):
        if statement not in found:
            found[statement] = len(found)
            parents.append(parent)
        parent = found[statement]
    for field in _CHILDREN.get(kind, _ALL_CHILDREN):
        child = getattr(statement, field, None)
        if isinstance(child, tirx.Stmt):
            _collect(child, parent, found, parents)


def blocks_in(statement: Any) -> Iterator[Any]:
    """Yield the blocks of a statement, itself among them, in the order of the text."""
    found: dict[Any, int] = {}
    _collect(statement, -1, found, [])
    return (part for part in found if isinstance(part, s_tir.SBlock))


def structure_of(function: Any) -> str:
    """Return a hash of a TensorIR function, without its name and attributes.

    The names of its blocks are part of the hash: primitives name blocks by these. Names of loops
    and buffers are not.
    """
    bare = tirx.PrimFunc(function.params, function.body, function.ret_type)
    blocks = "/".join(block.name_hint for block in blocks_in(function.body))
    whole = f"{tvm_ffi.structural_hash(bare) & (1 << 64) - 1:016x}/{blocks}"
    return blake2b(whole.encode(), digest_size=8).hexdigest()


def prim_funcs_of(module: tvm.IRModule) -> dict[str, tirx.PrimFunc]:
    """Return the TensorIR functions of a module by name."""
    return {
        str(variable.name_hint): function
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    }
