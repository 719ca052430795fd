"""Guards of buffers: uses that TVM would wrongly accept, or crash on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.index_maps import MAX_CHECKED, IndexMap, accessed, names_in, parse
from lowerscope.core.scheduling.references import block_around
from lowerscope.core.scheduling.sizes import known, mentions


def buffer_of_block(call: Call) -> None:
    """Reject the number of a buffer that the block does not have."""
    _region(call)


def _region(call: Call) -> Any:
    block = call.sch.get(call.values["block"])
    for name, regions, does in (
        ("read_buffer_index", block.reads, "reads"),
        ("write_buffer_index", block.writes, "writes"),
        ("buffer_index", block.writes, "writes"),
    ):
        if name in call.values:
            index = call.values[name]
            if index >= len(regions):
                count = f"{len(regions)} buffer" + ("" if len(regions) == 1 else "s")
                raise StepFailed(f"{block.name_hint} {does} {count}, and not one {index + 1}")
            return regions[index]
    accessed(block, call.values["buffer"])
    return None


def reindex(call: Call) -> None:
    """Reject a buffer that the block reads and writes: its copy would be uninitialised."""
    buffer_of_block(call)
    block = call.sch.get(call.values["block"])
    name = call.values["buffer"]
    read, written = (
        {str(region.source.name) for region in regions} for regions in (block.reads, block.writes)
    )
    if name in read and name in written:
        raise StepFailed(
            f"{block.name_hint} reads what is in {name} before it writes there, and the copy would"
            " not have that"
        )


def storage_align(call: Call) -> None:
    """Reject an offset that is not a remainder of the factor."""
    buffer_of_block(call)
    if call.values["offset"] >= call.values["factor"]:
        raise StepFailed("the offset is smaller than the factor")


def unsafe_set_dtype(call: Call) -> None:
    """Guard another dtype: values are rounded, cut off, or overflow."""
    region = _region(call)
    old, new = str(region.source.ty.dtype), call.values["dtype"]
    if old == new:
        raise StepFailed(f"it is {old} already")
    if not call.forced:
        raise StepFailed(
            f"values of {old} do not all fit in {new}: the result can be another one", unsafe=True
        )


def reindexed_copy(call: Call) -> None:
    """Reject a map by which two elements of a buffer share a place in its copy."""
    region = _region(call)
    block = call.sch.get(call.values["block"])
    outer = block_around(call.sch, block)
    if outer:
        # TVM crashes where the indices depend on axes of the block around it.
        raise StepFailed(f"{block.name_hint} stands in the block {outer}; cache_read copies there")
    index_map = parse(call.values["index_map"])
    sizes = [known(axis.dom.extent) for axis in block.iter_vars]
    if len(index_map.axes) != len(sizes):
        raise StepFailed(f"{block.name_hint} has {len(sizes)} axes, not {len(index_map.axes)}")
    _check_copy(block, region, index_map, sizes)


def _check_copy(block: Any, region: Any, index_map: IndexMap, sizes: list[int | None]) -> None:
    variables = [axis.var for axis in block.iter_vars]
    places = [each.min for each in region.region]
    named = {node for index in index_map.indices for node in names_in(index)}
    read = [any(mentions(each, variable) for each in places) for variable in variables]
    told = [axis in index_map.kept for axis in index_map.axes]
    if all(is_told or not is_read for is_told, is_read in zip(told, read, strict=True)):
        return
    used = [
        place
        for place, (axis, is_read) in enumerate(zip(index_map.axes, read, strict=True))
        if is_read or axis in named
    ]
    counted = [sizes[place] for place in used]
    if any(size is None for size in counted):
        raise StepFailed("with symbolic extents, it cannot be told whether it is a bijection")
    count = math.prod(size for size in counted if size is not None)
    if count > MAX_CHECKED:
        raise StepFailed(
            f"it goes over {count} indices, of which at most {MAX_CHECKED} are checked; "
            "cache_read and transform_layout do the same"
        )
    shape = tuple(size for size in counted if size is not None) or (1,)
    grid = np.unravel_index(np.arange(count, dtype=np.int64), shape)
    values: list[Any] = [np.zeros(count, dtype=np.int64)] * len(variables)
    for column, place in enumerate(used):
        values[place] = grid[column]
    made = _rows(index_map.evaluate(values), count)
    if made.min(initial=0) < 0:
        raise StepFailed("it has indices below 0")
    from_ = _rows([_number(each, variables, values) for each in places], count)
    pairs = _distinct(np.concatenate([made, from_]))
    if _distinct(made) < pairs:
        raise StepFailed("it is not a bijection: two elements would have one place in the copy")


def _distinct(rows: Any) -> int:
    """Return the number of distinct columns."""
    return len(np.unique(np.ascontiguousarray(rows.T), axis=0))


def _rows(indices: list[Any], count: int) -> Any:
    rows = [np.broadcast_to(np.asarray(index, dtype=np.int64), (count,)) for index in indices]
    return np.stack(rows) if rows else np.zeros((1, count), dtype=np.int64)


_ARITHMETIC = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mul": lambda left, right: left * right,
    "FloorDiv": lambda left, right: left // right,
    "FloorMod": lambda left, right: left % right,
}


def _number(value: Any, variables: list[Any], values: list[Any]) -> Any:
    """Return the values of an index expression of TVM for the values of its variables."""
    number = known(value)
    if number is not None:
        return number
    for variable, its in zip(variables, values, strict=True):
        if variable.same_as(value):
            return its
    operator = _ARITHMETIC.get(type(value).__name__)
    if operator is None:
        raise StepFailed("what it reads is not indexed by arithmetic on its axes")
    return operator(_number(value.a, variables, values), _number(value.b, variables, values))
