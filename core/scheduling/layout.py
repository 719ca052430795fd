"""Primitives of layouts: of buffers, and of the axes of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lowerscope.core.records.schedule import Field
from lowerscope.core.schedules import Argument
from lowerscope.core.scheduling import index_maps, layout_guards
from lowerscope.core.scheduling.blocks import BLOCK
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.loops import inner_extent
from lowerscope.core.scheduling.memory import ACCESSED
from lowerscope.core.scheduling.picking import block_alone
from lowerscope.core.scheduling.sizes import known


def _layout(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    stmt = site.found[block].stmt
    for name, buffer in index_maps.buffers_of(stmt).items():
        shape = list(buffer.ty.shape)
        axes = index_maps.buffer_axes(len(shape))
        yield {
            "block": site.named[block],
            "buffer": name,
            "index_map": _blocked(axes, [known(extent) for extent in shape]),
        }


def _blocked(axes: tuple[str, ...], sizes: list[int | None]) -> str:
    """Return a map that makes a part of the widest divisible dimension innermost."""
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


def _block_layout(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    stmt = site.found[block].stmt
    axes = index_maps.block_axes(stmt)
    sizes = [known(axis.dom.extent) for axis in stmt.iter_vars]
    yield {"block": site.named[block], "index_map": _blocked(axes, sizes)}
    yield {"block": site.named[block], "index_map": index_maps.identity(axes)}


def _padding(argument: Argument, instruction: Any | None) -> str:
    """Return the padding value of a new layout in the dtype of the buffer, which TVM insists on."""
    if argument is None or instruction is None:
        return ""
    (value,) = instruction.attrs[2].final_indices
    return f'tirx.const({value.value!r}, "{value.ty.dtype}")'


ENTRIES = (
    Entry(
        name="transform_layout",
        group="Layout",
        title="lay out {buffer} as {index_map}",
        offer="change the layout of a buffer",
        parameters=(
            BLOCK,
            ACCESSED,
            Field(
                name="index_map",
                label="Index map",
                kind="index map",
                help="From the indices of the buffer to those of the new one: i, j -> j, i.",
            ),
            Field(
                name="pad_value",
                label="Padding",
                kind="number",
                optional=True,
                help="What the new buffer holds where the old one has nothing.",
            ),
        ),
        candidates=_layout,
        guard=layout_guards.transform_layout,
        converted={
            "index_map": index_maps.of_buffer,
            "pad_value": layout_guards.pad_value,
        },
        texts={"index_map": index_maps.python_of, "pad_value": _padding},
    ),
    Entry(
        name="transform_block_layout",
        group="Layout",
        title="make the axes of {block} {index_map}",
        offer="change its axes and loops",
        parameters=(
            BLOCK,
            Field(
                name="index_map",
                label="Index map",
                kind="index map",
                help="From the axes of the block to its new ones: i, j -> i // 4, i % 4, j.",
            ),
        ),
        candidates=_block_layout,
        converted={"index_map": index_maps.of_block_bijective},
        texts={"index_map": index_maps.python_of},
    ),
)
