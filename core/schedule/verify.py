"""Verification of scheduled functions: errors that would show only when they are built."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import tvm_ffi
from tvm import DataType, ir, tirx
from tvm.s_tir import Schedule
from tvm.tirx.analysis import undefined_vars

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.schedule.failures import StepFailed
from lowerscope.core.schedule.parameters import collected, known
from lowerscope.core.schedule.references import Place, function_of, places

MAX_UNROLLED = 1024
"""Maximum number of copies of blocks by unrolled loops: LLVM takes 3 s for 512 of a sum, half a
minute for 1,024, and minutes for more."""

MAX_STATEMENTS = 2048
"""The same, with the short loops inside of the copies, which LLVM unrolls by itself: 1,024 of a
padding take 2 s, and 3,136 take 30."""

MAX_ELEMENTS = 16384
"""The same, with the lanes of vectors in the copies: 8,192 that are gathered take half a minute,
and 262,144 had not ended after five."""

SHORT = 128
"""Iterations of the loops inside of an unrolled one that LLVM unrolls."""

MAX_BYTES = 2**31
"""Maximum bytes of allocated buffers, unless the function had half as many before."""


def check(before: Schedule, after: Schedule) -> None:
    """Reject a result that cannot be built or run.

    Raises `StepFailed` if a loop in parallel stands in another, or a vectorized one in another, or
    values are handed on inside of a vectorized one; if it vectorizes a call or booleans that cannot
    be; if the parameters of the function have changed; if it reads uninitialised memory, or would
    take minutes to build or more memory than there is.
    """
    old, new = function_of(before), function_of(after)
    if not _same_interface(old, new):
        raise StepFailed(
            "it would change what the function takes, and the model calls it as it was: "
            "work on a copy (cache_read, cache_write)"
        )
    found = places(new)
    _no_nesting(found)
    _has_vector_forms(found)
    _no_vectors_of_flags(found)
    _not_inside_vectors(found)
    _no_strays(found)
    _written_first(found)
    _can_be_laid_out(found)
    _not_too_long(found)
    _not_too_large(places(old), found)


def _same_interface(old: tirx.PrimFunc, new: tirx.PrimFunc) -> bool:
    return len(old.params) == len(new.params) and all(
        mine.same_as(theirs) or tvm_ffi.structural_equal(mine.ty, theirs.ty, map_free_vars=True)
        for mine, theirs in zip(old.params, new.params, strict=True)
    )


_WORDS = {tirx.ForKind.PARALLEL: "runs in parallel", tirx.ForKind.VECTORIZED: "is vectorized"}


def _no_nesting(found: Sequence[Place]) -> None:
    for place in found:
        for outer in _around(found, place) if place.kind in _WORDS else ():
            if outer.kind == place.kind:
                raise StepFailed(
                    f"{place.name} stands in {outer.name}, which {_WORDS[place.kind]} "
                    "already: fuse them, or take one"
                )


def _has_vector_forms(found: Sequence[Place]) -> None:
    """Reject a vectorized call of a function that LLVM has for scalars alone."""
    for place in found:
        is_vector = place.kind == tirx.ForKind.VECTORIZED
        for call in collected(place.stmt.body, ir.Call) if is_vector else ():
            if isinstance(call.op, ir.Op) and _is_scalar_alone(call.op):
                raise StepFailed(
                    f"{place.name} is vectorized, and TVM cannot build {call.op.name} of a vector"
                )


def _no_vectors_of_flags(found: Sequence[Place]) -> None:
    """Reject vectors of booleans in memory of the function's own.

    TVM makes them vectors of int8, and computes ``not`` of these bit by bit.
    """
    flags = {buffer for buffer in _allocated(found) if str(buffer.dtype) == "bool"}
    for place in found if flags else ():
        if place.is_block and any(region.source in flags for region in place.regions):
            for outer in _around(found, place):
                if outer.kind == tirx.ForKind.VECTORIZED:
                    raise StepFailed(
                        f"{outer.name} is vectorized, and {place.name} keeps booleans in memory of"
                        " the function: TVM mixes these up"
                    )


def _is_scalar_alone(op: ir.Op) -> bool:
    """Return whether TVM vectorizes a call, and has only a scalar C function for it then."""
    has = {name: op.get_attr(name) is not None for name in _LOWERINGS}
    return (
        has["default.FLowerIntrinsic"]
        and bool(op.get_attr("TVectorizable"))
        and sum(has.values()) == 1
    )


_LOWERINGS = (
    "default.FLowerIntrinsic",
    "llvm.FLowerIntrinsic",
    "default.FLegalize",
    "llvm.FLegalize",
)
"""Attributes by which TVM lowers a call: the first makes C functions of mathematical ones."""


def _not_inside_vectors(found: Sequence[Place]) -> None:
    """Reject a buffer inside of a vectorized loop: TVM allocates one for all lanes."""
    made = set(_allocated(found))
    inside = _with_blocks(found)
    common: dict[tirx.Buffer, set[int]] = {}
    for index, place in enumerate(found):
        if place.is_block and index not in inside:
            around = set(_chain(found, index))
            for region in place.regions:
                if region.source in made:
                    common[region.source] = common.get(region.source, around) & around
    for buffer, places_around in common.items():
        for index in sorted(places_around):
            place = found[index]
            if place.kind == tirx.ForKind.VECTORIZED:
                raise StepFailed(
                    f"{place.name} is vectorized, and {buffer.name} is written and read in it "
                    "alone: TVM would mix up the values of its lanes; vectorize a loop of one block"
                )


def _around(found: Sequence[Place], place: Place) -> Iterator[Place]:
    parent = place.parent
    while parent >= 0:
        yield found[parent]
        parent = found[parent].parent


def _no_strays(found: Sequence[Place]) -> None:
    """Reject axes of a block that are used outside of it: cache_inplace leaves them there."""
    owners = {axis.var: place for place in found if place.is_block for axis in place.stmt.iter_vars}
    for place in found:
        values = place.realize.iter_values if place.is_block else [place.stmt.extent]
        for value in values:
            for variable in () if known(value) is not None else undefined_vars(value):
                owner = owners.get(variable)
                if owner is not None and all(owner is not each for each in _around(found, place)):
                    raise StepFailed(
                        f"TVM would use the axis {variable.name} of {owner.name} outside of it"
                    )


def _written_first(found: Sequence[Place]) -> None:
    """Reject a buffer that is read before it is written: TVM moves some too far."""
    made = set(_allocated(found))
    inside = _with_blocks(found)
    for index, place in enumerate(found):
        if not place.is_block or index in inside:
            continue
        for region in place.stmt.reads:
            if region.source in made and all(
                not region.source.same_as(each.source) for each in place.stmt.writes
            ):
                raise StepFailed(
                    f"{place.name} would read {region.source.name} before anything has written it"
                )
        made -= {region.source for region in place.stmt.writes}


def _can_be_laid_out(found: Sequence[Place]) -> None:
    """Reject buffers whose place in memory the build cannot determine."""
    made = _allocated(found)
    for buffer in made:
        # The strides of cache_index are 32 bits wide.
        wide = len(buffer.ty.shape) > 1 and str(buffer.ty.shape[0].ty.dtype) == "int64"
        if wide and len(buffer.ty.strides) == 1:
            raise StepFailed(
                f"TVM mixes indices of 32 and 64 bits in {buffer.name}: it cannot be built"
            )
    read = {region.source for place in found if place.is_block for region in place.stmt.reads}
    for place in found:
        if place.is_block and "buffer_dim_align" in place.stmt.annotations:
            for region in place.stmt.writes:
                if region.source in made and region.source not in read:
                    raise StepFailed(
                        f"nothing reads {region.source.name}, and TVM cannot build what is aligned "
                        "for nobody"
                    )


def _with_blocks(found: Sequence[Place]) -> set[int]:
    """Return the places of loops and blocks that have blocks in them."""
    parents = {place.parent for place in found if place.is_block}
    return {place for index in parents for place in _chain(found, index)}


def _not_too_long(found: Sequence[Place]) -> None:
    """Reject unrolled loops that make too much code together."""
    inside = _with_blocks(found)
    copies, statements, elements = 0, 0, 0
    for index, place in enumerate(found):
        if not place.is_block or index in inside:
            continue
        made, short, lanes = 1, 1, 1
        unrolled = False
        for each in _around(found, place):
            if each.is_block:
                continue
            extent = known(each.stmt.extent) or 1
            if each.stmt.kind == tirx.ForKind.VECTORIZED:
                lanes *= extent
            elif each.stmt.kind == tirx.ForKind.UNROLLED:
                unrolled = True
                made *= extent
            elif not unrolled and each.stmt.kind == tirx.ForKind.SERIAL and short * extent <= SHORT:
                short *= extent
        if unrolled:
            copies += made
            statements += made * short
            elements += made * lanes
    if copies > MAX_UNROLLED or statements > MAX_STATEMENTS or elements > MAX_ELEMENTS:
        raise StepFailed(
            f"the unrolled loops make {copies} copies of blocks, which take minutes to build; "
            f"at most {MAX_UNROLLED} are made, and fewer with short loops or vectors: split the "
            "loop, and unroll a part"
        )


def _not_too_large(old: Sequence[Place], new: Sequence[Place]) -> None:
    """Reject excessive buffers, such as those of paddings of many axes."""
    before, after = _bytes(old), _bytes(new)
    if after > MAX_BYTES and after > 2 * before:
        raise StepFailed(
            f"its buffers would take {bytes_text(after)}, and before it {bytes_text(before)}"
        )


def _bytes(found: Sequence[Place]) -> int:
    whole = 0
    for buffer in _allocated(found):
        sizes = [known(extent) or 1 for extent in buffer.ty.shape]
        whole += math.prod(sizes) * (DataType(str(buffer.ty.dtype)).bits + 7) // 8
    return whole


def _allocated(found: Sequence[Place]) -> list[Any]:
    return [buffer for place in found if place.is_block for buffer in place.stmt.alloc_buffers]


def _chain(found: Sequence[Place], index: int) -> Iterator[int]:
    """Yield a place and its ancestors."""
    while index >= 0:
        yield index
        index = found[index].parent
