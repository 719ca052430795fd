"""Inputs of a tile: inlined copies, and layouts in the order in which registers are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.schedules import At, Reference
from lowerscope.core.scheduling.references import Place
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import (
    Contraction,
    blocks_of,
    contraction_of,
    is_spatial,
)
from lowerscope.core.scheduling.rules.sharing import share_out
from lowerscope.core.scheduling.rules.tiling import Tile
from lowerscope.core.scheduling.rules.writing import Writing

PREPROC = "meta_schedule.layout_rewrite_preproc"
"""Annotation of a block that ``SplitLayoutRewritePreproc`` makes a function of its own."""


def leave_out_copies(writing: Writing) -> None:
    """Inline the blocks before the sums that only copy, such as a padding of zero width."""
    found = blocks_of(writing)
    for place in found[:-1]:
        if all(is_spatial(each.stmt) for each in found[: found.index(place) + 1]):
            if not _is_copy(place):
                continue
            why = "it copies what can be read where it is"
            writing.do("compute_inline", why, block=At(block=place.name))


def _is_copy(place: Place) -> bool:
    block: Any = place.stmt
    store = block.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, TensorLoad):
        return False
    own = [axis.var for axis in block.iter_vars]
    return _same(store.indices, own) and _same(store.value.indices, own)


def _same(indices: Sequence[Any], axes: Sequence[Any]) -> bool:
    return len(indices) == len(axes) and all(
        index.same_as(axis) for index, axis in zip(indices, axes, strict=True)
    )


def registers(count: int) -> str:
    """Return a number of vector registers in words."""
    return "one vector register" if count == 1 else f"{count} vector registers"


def pad(writing: Writing, found: Contraction, tile: Tile) -> tuple[Contraction, str]:
    """Pad the vector axis to whole tiles; return the contraction then, and the padding block."""
    known = set(writing.blocks())
    sizes = [1] * (len(found.spatial) + len(found.reduced))
    sizes[tile.vector] = tile.width
    writing.do(
        "pad_einsum",
        f"{found.spatial[tile.vector]} are no whole number of tiles: zeros fill the last one",
        block=At(block=found.block),
        padding=tuple(sizes),
    )
    longer = contraction_of(writing)
    assert longer is not None, "padding leaves a product a product"
    (filled,) = (block for block in longer.before if block not in known)
    return longer, filled


def pack(
    writing: Writing, found: Contraction, tile: Tile, machine: Machine, *, filled: str, free: bool
) -> None:
    """Change the layout of the registers' input to the order in which they are filled.

    Parameters
    ----------
    filled
        The block that pads it to whole tiles, whose result gets the layout; empty for none.
    free
        Whether that can be done when the model is built.
    """
    read = tile.packed
    copy: Reference = At(block=filled)
    if not filled:
        (copy,) = writing.do(
            "cache_read",
            "what registers are filled with is read from a copy of its own layout",
            block=At(block=found.block),
            read_buffer_index=read,
            storage_scope="global",
        )
    axes = [f"i{each}" for each in range(len(found.plain[read]))]
    left = axes[found.plain[read].index(tile.vector)]
    outer = [f"{left} // {tile.width}", *(each for each in axes if each != left)]
    writing.do(
        "transform_layout",
        f"{tile.width} of them side by side are {registers(tile.vectors)},"
        " and the next product finds its own behind them",
        block=At(block=found.block),
        buffer=str(writing.block(At(block=found.block)).reads[read].source.name),
        index_map=f"{', '.join(axes)} -> {', '.join(outer)}, {left} % {tile.width}",
    )
    if free:
        writing.do(
            "annotate",
            "of constants, that is done once, when the model is built",
            block_or_loop=copy,
            ann_key=PREPROC,
            ann_val=True,
        )
    elif machine.threads > 1:
        block = str(writing.block(copy).name_hint)
        share_out(writing, writing.loops(block)[:-1], machine)


def lay_out_sums(writing: Writing, found: Contraction, tile: Tile) -> None:
    """Change the layout of the sums to that of registers: the lanes are adjacent."""
    axes = [f"i{each}" for each in range(len(found.spatial))]
    left = axes[tile.vector]
    outer = [f"{each} // {tile.width}" if each == left else each for each in axes]
    writing.do(
        "transform_layout",
        "so are the sums, or each of them would be stored by itself",
        block=At(block=found.block),
        buffer=str(writing.block(At(block=found.block)).writes[0].source.name),
        index_map=f"{', '.join(axes)} -> {', '.join(outer)}, {left} % {tile.width}",
    )
