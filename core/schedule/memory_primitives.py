"""Primitives of memory and layout: copies of buffers, their scope, and their index maps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np
from tvm import tirx

from lowerscope.core.ir.tensorir import ARITHMETIC, known, mentions
from lowerscope.core.model.schedule import Argument
from lowerscope.core.model.schedule_records import Field
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule import index_maps
from lowerscope.core.schedule.index_maps import (
    MAX_CHECKED,
    IndexMap,
    accessed,
    names_in,
    parse,
    rows_of,
)
from lowerscope.core.schedule.loop_primitives import inner_extent
from lowerscope.core.schedule.primitive import (
    BLOCK,
    Arguments,
    Call,
    Choices,
    FunctionSelection,
    PrimitiveSpec,
    field,
    one_block,
)
from lowerscope.core.schedule.references import block_around, function_of
from lowerscope.core.schedule.step_errors import StepFailed

# --- copies and their memory --------------------------------------------------------------------


def _stmt(site: FunctionSelection) -> Any:
    """Return the selected block, which is there."""
    assert site.block is not None
    return site.stmt(site.block)


def _reads(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        for index in range(max(1, len(_stmt(site).reads))):
            yield {**each, "read_buffer_index": index}


def _reindexed(site: FunctionSelection, *, reads: bool) -> Iterator[Arguments]:
    for each in one_block(site):
        block = _stmt(site)
        axes, regions = index_maps.block_axes(block), block.reads if reads else block.writes
        for index, region in enumerate(regions):
            parts = [part for at in region.region for part in (at.min, at.extent)]
            used = [
                name
                for name, axis in zip(axes, block.iter_vars, strict=True)
                if any(mentions(part, axis.var) for part in parts)
            ]
            place = "read_buffer_index" if reads else "write_buffer_index"
            index_map = f"{', '.join(axes)} -> {', '.join(used) or '0'}"
            yield {**each, place: index, "index_map": index_map}
        if not regions:
            yield {**each, "index_map": index_maps.identity(axes)}


def _accessed(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        for name in index_maps.buffers_of(_stmt(site)):
            yield {**each, "buffer": name}


def _aligned(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        written = _stmt(site).writes
        dimensions = len(written[0].source.ty.shape) if written else 1
        yield {**each, "axis": max(0, dimensions - 2)}


def _dtype(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        written = _stmt(site).writes
        dtype = str(written[0].source.ty.dtype) if written else ""
        yield {**each, "dtype": {"float32": "float64", "int64": "int32"}.get(dtype, "float32")}


def buffer_of_block(call: Call) -> None:
    """Reject the number of a buffer that the block does not have."""
    _region(call)


def _region(call: Call) -> Any:
    block = call.block
    for name, regions in (
        ("read_buffer_index", block.reads),
        ("write_buffer_index", block.writes),
        ("buffer_index", block.writes),
    ):
        if name in call.values:
            index = call.values[name]
            if index >= len(regions):
                raise StepFailed(
                    _n(
                        "{block} reads {count} buffer; there is no buffer {index}",
                        "{block} reads {count} buffers; there is no buffer {index}",
                        len(regions),
                        block=block.name_hint,
                        index=index + 1,
                    )
                    if name == "read_buffer_index"
                    else _n(
                        "{block} writes {count} buffer; there is no buffer {index}",
                        "{block} writes {count} buffers; there is no buffer {index}",
                        len(regions),
                        block=block.name_hint,
                        index=index + 1,
                    )
                )
            return regions[index]
    accessed(block, call.values["buffer"])
    return None


def _reindexes(call: Call) -> None:
    """Reject a buffer that the block reads and writes: its copy would be uninitialised."""
    buffer_of_block(call)
    block = call.block
    name = call.values["buffer"]
    read, written = (
        {str(region.source.name) for region in regions} for regions in (block.reads, block.writes)
    )
    if name in read and name in written:
        raise StepFailed(
            _(
                "{name_hint} reads {name} before it writes there, and the copy would lack that "
                "value"
            ),
            name_hint=block.name_hint,
            name=name,
        )


def _aligns(call: Call) -> None:
    """Reject an offset that is not a remainder of the factor."""
    buffer_of_block(call)
    if call.values["offset"] >= call.values["factor"]:
        raise StepFailed(_("the offset is smaller than the factor"))


def _sets_dtype(call: Call) -> None:
    """Guard another dtype: values are rounded, cut off, or overflow."""
    region = _region(call)
    old, new = str(region.source.ty.dtype), call.values["dtype"]
    if old == new:
        raise StepFailed(_("it is {old} already"), old=old)
    if not call.forced:
        raise StepFailed(
            _("values of {old} do not all fit into {new}: the result can differ"),
            old=old,
            new=new,
            unsafe=True,
        )


def _reindexes_copy(call: Call) -> None:
    """Reject a map by which two elements of a buffer share a place in its copy."""
    region = _region(call)
    block = call.block
    outer = block_around(call.sch, block)
    if outer:
        # TVM crashes where the indices depend on axes of the block around it.
        raise StepFailed(
            _("{name_hint} is inside the block {outer}; cache_read copies there"),
            name_hint=block.name_hint,
            outer=outer,
        )
    index_map = parse(call.values["index_map"])
    sizes = [known(axis.dom.extent) for axis in block.iter_vars]
    if len(index_map.axes) != len(sizes):
        raise StepFailed(
            _n(
                "{name_hint} has {count} axis, not {axes}",
                "{name_hint} has {count} axes, not {axes}",
                len(sizes),
                name_hint=block.name_hint,
                axes=len(index_map.axes),
            )
        )
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
        raise StepFailed(_("with symbolic extents, it is not known whether it is a bijection"))
    count = math.prod(size for size in counted if size is not None)
    if count > MAX_CHECKED:
        raise StepFailed(
            _(
                "it covers {count} indices, of which at most {max_checked} are checked; "
                "cache_read and transform_layout do the same"
            ),
            count=count,
            max_checked=MAX_CHECKED,
        )
    shape = tuple(size for size in counted if size is not None) or (1,)
    grid = np.unravel_index(np.arange(count, dtype=np.int64), shape)
    values: list[Any] = [np.zeros(count, dtype=np.int64)] * len(variables)
    for column, place in enumerate(used):
        values[place] = grid[column]
    made = rows_of(index_map.evaluate(values), count)
    if made.min(initial=0) < 0:
        raise StepFailed(_("it has indices below 0"))
    from_ = rows_of([_number(each, variables, values) for each in places], count)
    pairs = _distinct(np.concatenate([made, from_]))
    if _distinct(made) < pairs:
        raise StepFailed(_("it is not a bijection: two elements would have one place in the copy"))


def _distinct(rows: Any) -> int:
    """Return the number of distinct columns."""
    return len(np.unique(np.ascontiguousarray(rows.T), axis=0))


def _number(value: Any, variables: list[Any], values: list[Any]) -> Any:
    """Return the values of an index expression of TVM for the values of its variables."""
    number = known(value)
    if number is not None:
        return number
    for variable, its in zip(variables, values, strict=True):
        if variable.same_as(value):
            return its
    operator = ARITHMETIC.get(type(value))
    if operator is None:
        raise StepFailed(_("its reads are not indexed by arithmetic on its axes"))
    return operator(_number(value.a, variables, values), _number(value.b, variables, values))


# --- layouts ------------------------------------------------------------------------------------


def _layout(site: FunctionSelection) -> Iterator[Arguments]:
    for each in _accessed(site):
        shape = accessed(_stmt(site), str(each["buffer"])).ty.shape
        yield {**each, "index_map": _blocked(index_maps.buffer_axes(len(shape)), shape)}


def _block_layout(site: FunctionSelection) -> Iterator[Arguments]:
    for each in one_block(site):
        axes = index_maps.block_axes(_stmt(site))
        yield {**each, "index_map": _blocked(axes, [a.dom.extent for a in _stmt(site).iter_vars])}
        yield {**each, "index_map": index_maps.identity(axes)}


def _blocked(axes: tuple[str, ...], extents: Any) -> str:
    """Return a map that makes a part of the widest divisible dimension innermost."""
    sizes = [known(extent) for extent in extents]
    wide = [
        place
        for place, size in enumerate(sizes)
        if size is not None and 1 < inner_extent(size) < size and size % inner_extent(size) == 0
    ]
    if not wide:
        return index_maps.identity(axes)
    place = max(wide, key=lambda each: sizes[each] or 0)
    inner = inner_extent(sizes[place])
    outer = [f"{axis} // {inner}" if each == place else axis for each, axis in enumerate(axes)]
    return f"{', '.join(axes)} -> {', '.join(outer)}, {axes[place]} % {inner}"


def _lays_out(call: Call) -> None:
    """Reject the layout of an argument of the function: the model would call another function."""
    buffer = accessed(call.block, call.values["buffer"])
    if any(buffer.same_as(param) for param in function_of(call.sch).params):
        raise StepFailed(
            _(
                "{name} comes from the caller, in the caller's layout; make a copy with "
                "cache_read or cache_write, and change the layout of that"
            ),
            name=buffer.name,
        )


def _pad_value(call: Call) -> Any:
    """Return the padding value of a new layout, in the dtype of the buffer."""
    given = call.values["pad_value"]
    if given is None:
        return None
    dtype = str(accessed(call.block, call.values["buffer"]).ty.dtype)
    if dtype.startswith(("float", "bfloat")):
        return tirx.FloatImm(dtype, float(given))
    if int(given) != given:
        raise StepFailed(_("the padding of {dtype} must be a whole number"), dtype=dtype)
    return tirx.IntImm(dtype, int(given))


def _padding(argument: Argument, instruction: Any | None) -> str:
    """Return the padding value of a new layout in the dtype of the buffer, which TVM insists on."""
    if argument is None or instruction is None:
        return ""
    (value,) = instruction.attrs[2].final_indices
    return f'tirx.const({value.value!r}, "{value.ty.dtype}")'


# --- the table ----------------------------------------------------------------------------------


def _buffer(name: str, verb: str) -> Field:
    help = _("One of the buffers that the block {verb}.", verb=verb)
    return field(name, _("Buffer"), "buffer", help, default=0, low=0)


READ = _buffer("read_buffer_index", "reads")
WRITE = _buffer("write_buffer_index", "writes")
_WRITTEN = _buffer("buffer_index", "writes")
_ACCESSED = field(
    "buffer", _("Buffer"), "choice", _("One of the buffers that the block reads or writes.")
)
SCOPE = field(
    "storage_scope",
    _("Scope"),
    "choice",
    _("Memory of the buffer: global, or local to a thread."),
    default="global",
    choices=("global", "local"),
)
_INDEX_MAP = field(
    "index_map",
    _("Index map"),
    "index map",
    _("From the axes of the block to the indices of the copy: i, j -> j, i."),
)
_BUFFERS: Mapping[str, Choices] = {
    "buffer": lambda _unused, block: tuple(index_maps.buffers_of(block))
}

MEMORY_PRIMITIVES = (
    PrimitiveSpec(
        name="cache_read",
        group=_("Memory"),
        title=_("read {read_buffer_index} in {block} from a {storage_scope} copy"),
        offer=_("read from a copy"),
        parameters=(BLOCK, READ, SCOPE),
        candidates=_reads,
        guard=buffer_of_block,
    ),
    PrimitiveSpec(
        name="cache_write",
        group=_("Memory"),
        title=_("write {write_buffer_index} to a {storage_scope} copy"),
        offer=_("write to a separate buffer first"),
        parameters=(BLOCK, WRITE, SCOPE),
        candidates=one_block,
        guard=buffer_of_block,
    ),
    PrimitiveSpec(
        name="reindex_cache_read",
        group=_("Memory"),
        title=_("read {read_buffer_index} in {block} from a copy indexed {index_map}"),
        offer=_("read from a copy with other indices"),
        parameters=(BLOCK, READ, SCOPE, _INDEX_MAP),
        candidates=partial(_reindexed, reads=True),
        guard=_reindexes_copy,
        converted={"index_map": index_maps.of_block},
    ),
    PrimitiveSpec(
        name="reindex_cache_write",
        group=_("Memory"),
        title=_("write {write_buffer_index} in {block} to a buffer indexed {index_map} first"),
        offer=_("write to a buffer with other indices first"),
        parameters=(BLOCK, WRITE, SCOPE, _INDEX_MAP),
        candidates=partial(_reindexed, reads=False),
        guard=_reindexes_copy,
        converted={"index_map": index_maps.of_block},
    ),
    PrimitiveSpec(
        name="cache_inplace",
        group=_("Memory"),
        title=_("copy {read_buffer_index} in {block} before and after"),
        offer=_("copy the buffer it reads and writes in place"),
        parameters=(BLOCK, READ, SCOPE),
        candidates=_reads,
        guard=buffer_of_block,
        many=True,
    ),
    PrimitiveSpec(
        name="cache_index",
        group=_("Memory"),
        title=_("compute the indices of {block} in advance"),
        offer=_("compute its indices in advance"),
        parameters=(
            BLOCK,
            SCOPE,
            field(
                "cse_thresh",
                _("Uses"),
                "integer",
                _("Number of occurrences from which an expression is computed in advance."),
                default=0,
                low=0,
                high=1000,
            ),
        ),
        candidates=one_block,
        many=True,
    ),
    PrimitiveSpec(
        name="reindex",
        group=_("Memory"),
        title=_("copy {buffer} to a buffer with the axes of {block}"),
        offer=_("copy to a buffer with the axes of the block"),
        parameters=(BLOCK, _ACCESSED),
        choices=_BUFFERS,
        candidates=_accessed,
        guard=_reindexes,
    ),
    PrimitiveSpec(
        name="set_scope",
        group=_("Memory"),
        title=_("keep {buffer_index} of {block} in {storage_scope} memory"),
        offer=_("keep its output in another memory"),
        parameters=(BLOCK, _WRITTEN, msgspec.structs.replace(SCOPE, default="local")),
        candidates=one_block,
        guard=buffer_of_block,
    ),
    PrimitiveSpec(
        name="storage_align",
        group=_("Memory"),
        title=_("align axis {axis} of {buffer_index} to {factor}"),
        offer=_("align the rows of its output"),
        parameters=(
            BLOCK,
            _WRITTEN,
            field(
                "axis",
                _("Axis"),
                "integer",
                _("The dimension whose stride is aligned; counted from the back if below 0."),
                default=0,
            ),
            field(
                "factor",
                _("Factor"),
                "integer",
                _("The stride is a multiple of it, plus the offset; in elements."),
                default=32,
                low=1,
                high=4096,
            ),
            field("offset", _("Offset"), "integer", _("In elements."), default=0, low=0, high=4096),
        ),
        candidates=_aligned,
        guard=_aligns,
    ),
    PrimitiveSpec(
        name="unsafe_set_dtype",
        group=_("Memory"),
        title=_("keep {buffer_index} of {block} as {dtype}"),
        offer=_("keep its output in another dtype"),
        parameters=(
            BLOCK,
            _WRITTEN,
            field(
                "dtype",
                _("Dtype"),
                "choice",
                _("Values are converted when they are written and read."),
                default="float16",
                choices=("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64"),
            ),
        ),
        candidates=_dtype,
        guard=_sets_dtype,
    ),
    PrimitiveSpec(
        name="transform_layout",
        group=_("Layout"),
        title=_("lay out {buffer} as {index_map}"),
        offer=_("change the layout of a buffer"),
        parameters=(
            BLOCK,
            _ACCESSED,
            field(
                "index_map",
                _("Index map"),
                "index map",
                _("From the indices of the buffer to those of the new one: i, j -> j, i."),
            ),
            field(
                "pad_value",
                _("Padding"),
                "number",
                _("Value of the new buffer where the old one has none."),
                optional=True,
            ),
        ),
        choices=_BUFFERS,
        candidates=_layout,
        guard=_lays_out,
        converted={"index_map": index_maps.of_buffer, "pad_value": _pad_value},
        texts={"pad_value": _padding},
    ),
    PrimitiveSpec(
        name="transform_block_layout",
        group=_("Layout"),
        title=_("make the axes of {block} {index_map}"),
        offer=_("change its axes and loops"),
        parameters=(
            BLOCK,
            field(
                "index_map",
                _("Index map"),
                "index map",
                _("From the axes of the block to its new ones: i, j -> i // 4, i % 4, j."),
            ),
        ),
        candidates=_block_layout,
        converted={"index_map": index_maps.of_block_bijective},
    ),
)
