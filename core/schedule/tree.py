"""The loop tree of a TensorIR function: its loops and blocks in order, and its buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from tvm import tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.ir.tensorir import Part, root_block
from lowerscope.core.model.schedule import At, Reference
from lowerscope.core.model.schedule_records import BufferNode, LoopNode
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.schedule.parameters import known
from lowerscope.core.views.script import LOOP_KINDS, plain_extent, tensor_bytes

_AXIS_KINDS = {tirx.IterVar.DataPar: "S", tirx.IterVar.CommReduce: "R"}
_REGIONS = re.compile(r" *T\.(reads|writes)\((.*)\)$")


def loop_tree(
    parts: Sequence[Part], script: TextRecord, named: Mapping[Any, Reference]
) -> tuple[LoopNode, ...]:
    """Return the loops and blocks of a function in the order of its script.

    `script`: that of the function, whose spans have the ids of the parts. `named`: the references
    to them, by ``For`` and ``SBlock``.
    """
    headers = {span.entity: span.first for span in script.spans}
    lines = script.text.split("\n")
    nodes: list[LoopNode] = []
    for part in parts:
        depth = nodes[part.parent].depth + 1 if part.parent >= 0 else 0
        # A loop without a block cannot be named, and has no primitives.
        reference = named.get(part.statement, At(block=""))
        if part.kind == "loop":
            nodes.append(_loop(part, depth, reference))
        else:
            nodes.append(_block(part, depth, reference, lines[headers.get(part.id, 0) :]))
    return tuple(nodes)


def _loop(part: Part, depth: int, reference: Reference) -> LoopNode:
    loop = part.statement
    return LoopNode(
        id=part.id,
        kind="loop",
        name=str(loop.loop_var.name),
        depth=depth,
        parent=part.parent,
        reference=reference,
        extent=plain_extent(loop.extent),
        size=known(loop.extent),
        loop_kind=LOOP_KINDS[int(loop.kind)],
        annotations=_annotations(loop),
    )


def _block(part: Part, depth: int, reference: Reference, below: Sequence[str]) -> LoopNode:
    """Return the node of a block; `below` are the lines of the script below its header."""
    block = part.statement
    regions: dict[str, tuple[str, ...]] = {}
    for line in below:
        found = _REGIONS.match(line)
        if found is not None:
            regions[found[1]] = tuple(_split(found[2]))
        if len(regions) == 2 or " with T.sblock(" in line:
            break
    return LoopNode(
        id=part.id,
        kind="block",
        name=str(block.name_hint),
        depth=depth,
        parent=part.parent,
        reference=reference,
        annotations=_annotations(block),
        axes=tuple(
            (
                str(axis.var.name),
                _AXIS_KINDS.get(int(axis.iter_type), "O"),
                plain_extent(axis.dom.extent),
            )
            for axis in block.iter_vars
        ),
        reads=regions.get("reads", ()),
        writes=regions.get("writes", ()),
    )


def _split(text: str) -> Iterator[str]:
    """Yield the arguments of a call that are written in `text`."""
    depth, begin = 0, 0
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:place].strip()
            begin = place + 1
    if text[begin:].strip():
        yield text[begin:].strip()


def _annotations(statement: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in statement.annotations.items())


Role = Literal["input", "output", "intermediate"]


def buffers_of(function: Any, parts: Sequence[Part], script: TextRecord) -> tuple[BufferNode, ...]:
    """Return the buffers of a function: its parameters, then those that its blocks allocate.

    `script`: that of the function, which has the names of its buffers.
    """
    parameters = [each for each in function.params if is_buffer_var(each)]
    blocks = [part.statement for part in parts if part.kind == "block"]
    root = root_block(function)
    scopes = blocks if root is None else [root, *blocks]
    allocated = [buffer for block in scopes for buffer in block.alloc_buffers]
    written = {region.source for block in scopes for region in block.writes}
    found: list[tuple[Any, Role]] = [
        (each, "output" if each in written else "input") for each in parameters
    ]
    found += [(each, "intermediate") for each in allocated]
    # The script has other names where two buffers have the same one.
    names = [card.name for card in script.cards if card.kind == "buffer"]
    if len(names) != len(found):
        names = [str(each.name) for each, _ in found]
    return tuple(
        _buffer(name, buffer, role) for name, (buffer, role) in zip(names, found, strict=True)
    )


def _buffer(name: str, buffer: Any, role: Role) -> BufferNode:
    extents = [plain_extent(extent) for extent in buffer.ty.shape]
    dtype = str(buffer.ty.dtype.dtype)
    return BufferNode(
        name=name,
        shape=" × ".join(extents) or "scalar",
        dtype=dtype,
        scope=str(buffer.scope()),
        role=role,
        size=tensor_bytes(extents, dtype),
    )
