"""Information on the names in a script: its buffers, loops and constants.

TVM's printer does not report the names that it gives, but it writes objects in order: the
parameters of a function, the buffers that a block allocates, the loops of a header, the constants
of a binding. So names are read in that order, and where their number differs from that of the
objects, there are no cards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from tvm import DataType, ir, relax, s_tir, tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.records.schedule import LoopKind
from lowerscope.core.records.snapshot import Card
from lowerscope.core.relax_bindings import Bound
from lowerscope.core.rendering.line_marks import Lines
from lowerscope.core.tensorir_parts import Part, allocated_ids, root_block

_ALLOCATED = re.compile(r" *(\w+) = T\.sblock_alloc_buffer\(")
_HEADER = re.compile(r" *for ([\w, ]+) in ")
_PARAMETER = re.compile(r"(\w+): ")
_CONSTANT = re.compile(r'metadata\["[\w.]+"\]\[\d+\]')
LOOP_KINDS: tuple[LoopKind, ...] = (
    "serial",
    "parallel",
    "vectorized",
    "unrolled",
    "thread binding",
)


def tensorir_cards(
    function: tirx.PrimFunc,
    parts: Sequence[Part],
    places: Mapping[int, Lines],
    lines: Sequence[str],
    whole: Lines,
) -> list[Card]:
    """Return the cards of a TensorIR function.

    Parameters
    ----------
    parts, places
        Its blocks and loops, and the lines of each by its index.
    lines, whole
        The script, and the lines that the function has in it.
    """
    return [
        *_parameter_cards(function, lines, whole),
        *_allocated_cards(function, parts, places, lines, whole),
        *_loop_cards(parts, places, lines),
    ]


def constant_cards(
    bindings: Sequence[Bound], places: Mapping[int, Lines], lines: Sequence[str]
) -> list[Card]:
    """Return the cards of the constants that stand in the lines of bindings."""
    cards: list[Card] = []
    for index, (first, last) in places.items():
        found = [
            (number, name)
            for number in range(first, last + 1)
            for name in _CONSTANT.findall(lines[number - 1])
        ]
        value = getattr(bindings[index].binding, "value", None)
        constants = list(_constants(value)) if found else []
        if len(found) != len(constants):
            continue
        for (number, name), constant in zip(found, constants, strict=True):
            facts = _tensor_facts(constant.value.shape, str(constant.value.dtype))
            cards.append(Card(name=name, kind="constant", first=number, last=number, facts=facts))
    return cards


def allocated_lines(
    name: str, function: tirx.PrimFunc, lines: Sequence[str], whole: Lines
) -> Iterator[tuple[str, int]]:
    """Yield the buffers that a function allocates around all of its blocks, each with its line.

    They stand first in the function, before those that its blocks allocate.
    """
    found = [
        number
        for number, line in enumerate(lines[whole[0] - 1 : whole[1]], start=whole[0])
        if _ALLOCATED.match(line)
    ]
    for (entity, _), number in zip(allocated_ids(name, function), found, strict=False):
        yield entity, number


def _parameter_cards(function: tirx.PrimFunc, lines: Sequence[str], whole: Lines) -> Iterator[Card]:
    header = next(
        (line for line in lines[whole[0] - 1 : whole[1]] if line.lstrip().startswith("def ")), ""
    )
    names = list(_parameters(header))
    if len(names) != len(function.params):
        return
    for name, parameter in zip(names, function.params, strict=True):
        if is_buffer_var(parameter):
            yield _buffer_card(name, parameter, whole)


def _parameters(header: str) -> Iterator[str]:
    """Yield the names of the parameters of a ``def``: those that stand in no inner brackets."""
    depth, begin = 0, header.find("(") + 1
    for place, character in enumerate(header):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if (character == "," and depth == 1) or (character == ")" and depth == 0):
            if found := _PARAMETER.match(header[begin:place].strip()):
                yield found[1]
            begin = place + 1
            if depth == 0:
                return


def _allocated_cards(
    function: tirx.PrimFunc,
    parts: Sequence[Part],
    places: Mapping[int, Lines],
    lines: Sequence[str],
    whole: Lines,
) -> Iterator[Card]:
    root = root_block(function)
    blocks = [] if root is None else [(root, whole)]
    blocks += [
        (part.statement, places[index])
        for index, part in enumerate(parts)
        if isinstance(part.statement, s_tir.SBlock) and index in places
    ]
    wanted = [(buffer, place) for block, place in blocks for buffer in block.alloc_buffers]
    found = [
        match[1] for line in lines[whole[0] - 1 : whole[1]] if (match := _ALLOCATED.match(line))
    ]
    if len(found) == len(wanted):
        for name, (buffer, place) in zip(found, wanted, strict=True):
            yield _buffer_card(name, buffer, place)


def _loop_cards(
    parts: Sequence[Part], places: Mapping[int, Lines], lines: Sequence[str]
) -> Iterator[Card]:
    loops = [index for index in places if parts[index].kind == "loop"]
    # Loops that share a header stand in it in their order.
    for place, group in groupby(loops, key=places.__getitem__):
        indices = list(group)
        header = _HEADER.match(lines[place[0] - 1])
        names = [] if header is None else [name.strip() for name in header[1].split(",")]
        if len(names) != len(indices):
            continue
        for name, index in zip(names, indices, strict=True):
            loop = parts[index].statement
            facts = [("extent", plain_extent(loop.extent)), ("kind", LOOP_KINDS[int(loop.kind)])]
            if plain_extent(loop.min) != "0":
                facts.insert(0, ("from", plain_extent(loop.min)))
            if loop.thread_binding is not None:
                facts.append(("thread", str(loop.thread_binding.thread_tag)))
            yield Card(
                name=name,
                kind="loop",
                first=place[0],
                last=place[1],
                facts=tuple(facts),
                entity=parts[index].id,
            )


def _buffer_card(name: str, buffer: Any, place: Lines) -> Card:
    facts = (
        *_tensor_facts(buffer.ty.shape, str(buffer.ty.dtype.dtype)),
        ("scope", str(buffer.scope())),
    )
    return Card(name=name, kind="buffer", first=place[0], last=place[1], facts=facts)


def _tensor_facts(shape: Any, dtype: str) -> tuple[tuple[str, str], ...]:
    extents = [plain_extent(extent) for extent in shape]
    facts = [("shape", f"({', '.join(extents)})"), ("dtype", dtype)]
    size = tensor_bytes(extents, dtype)
    if size is not None:
        facts.append(("size", bytes_text(size)))
    return tuple(facts)


def tensor_bytes(extents: Sequence[str], dtype: str) -> int | None:
    """Return the size of a tensor in bytes; ``None`` where an extent is symbolic."""
    if not all(extent.isdigit() for extent in extents):
        return None
    return (math.prod(map(int, extents)) * _bits_of(dtype) + 7) // 8


@cache
def _bits_of(dtype: str) -> int:
    parsed = DataType(dtype)
    return int(parsed.bits) * int(parsed.lanes)


def plain_extent(extent: Any) -> str:
    """Return an extent in readable form: a number, or an expression."""
    return str(int(extent)) if isinstance(extent, (int, tirx.IntImm)) else str(extent)


def _constants(value: Any) -> Iterator[Any]:
    """Yield the constants of a value that the printer leaves to the metadata, in its order."""
    # Exact types: `isinstance` of TVM's classes is slow, and a network has thousands of these.
    kind = type(value)
    if kind is relax.Call:
        for argument in value.args:
            yield from _constants(argument)
    elif kind is relax.Tuple:
        for field in value.fields:
            yield from _constants(field)
    elif kind is ir.GenericConst and len(value.value.shape):
        yield value
