"""Primitives of memory: copies of buffers, their storage scope, and their access."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lowerscope.core.records.schedule import Field
from lowerscope.core.scheduling import index_maps, memory_guards
from lowerscope.core.scheduling.blocks import BLOCK
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
from lowerscope.core.scheduling.loop_guards import uses_any
from lowerscope.core.scheduling.picking import block_alone

READ = Field(
    name="read_buffer_index",
    label="Buffer",
    kind="buffer",
    default=0,
    low=0,
    help="One of the buffers that the block reads.",
)
WRITE = Field(
    name="write_buffer_index",
    label="Buffer",
    kind="buffer",
    default=0,
    low=0,
    help="One of the buffers that the block writes.",
)
ACCESSED = Field(
    name="buffer",
    label="Buffer",
    kind="choice",
    help="One of the buffers that the block reads or writes.",
)
SCOPE = Field(
    name="storage_scope",
    label="Scope",
    kind="choice",
    default="global",
    choices=("global", "local"),
    help="Where the buffer is kept: global memory, or local to a thread.",
)


def _reads(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is not None:
        for index in range(max(1, len(site.found[block].stmt.reads))):
            yield {"block": site.named[block], "read_buffer_index": index}


def _writes(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is not None:
        yield {"block": site.named[block], "write_buffer_index": 0}


def _index(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is not None:
        yield {"block": site.named[block]}


def _reindexed(site: Site, *, reads: bool) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    stmt = site.found[block].stmt
    axes = index_maps.block_axes(stmt)
    name = "read_buffer_index" if reads else "write_buffer_index"
    for index, region in enumerate(stmt.reads if reads else stmt.writes):
        used = [axis for axis in stmt.iter_vars if uses_any(region.region, axis.var)]
        kept = ", ".join(str(axis.var.name) for axis in used) or "0"
        yield {
            "block": site.named[block],
            name: index,
            "index_map": f"{', '.join(axes)} -> {kept}",
        }
    if not (stmt.reads if reads else stmt.writes):
        yield {"block": site.named[block], "index_map": index_maps.identity(axes)}


def _reindexed_reads(site: Site) -> Iterator[Arguments]:
    yield from _reindexed(site, reads=True)


def _reindexed_writes(site: Site) -> Iterator[Arguments]:
    yield from _reindexed(site, reads=False)


def _accessed(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is not None:
        for name in index_maps.buffers_of(site.found[block].stmt):
            yield {"block": site.named[block], "buffer": name}


def _aligned(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    written = site.found[block].stmt.writes
    dimensions = len(written[0].source.ty.shape) if written else 1
    yield {"block": site.named[block], "axis": max(0, dimensions - 2)}


def _dtype(site: Site) -> Iterator[Arguments]:
    block = block_alone(site)
    if block is None:
        return
    written = site.found[block].stmt.writes
    dtype = str(written[0].source.ty.dtype) if written else ""
    yield {
        "block": site.named[block],
        "dtype": "float64" if dtype == "float32" else "int32" if dtype == "int64" else "float32",
    }


_INDEX_MAP = Field(
    name="index_map",
    label="Index map",
    kind="index map",
    help="From the axes of the block to the indices of the copy: i, j -> j, i.",
)
_WRITTEN = Field(
    name="buffer_index",
    label="Buffer",
    kind="buffer",
    default=0,
    low=0,
    help="One of the buffers that the block writes.",
)

ENTRIES = (
    Entry(
        name="cache_read",
        group="Memory",
        title="read {read_buffer_index} in {block} from a {storage_scope} copy",
        offer="read from a copy",
        parameters=(BLOCK, READ, SCOPE),
        candidates=_reads,
        guard=memory_guards.buffer_of_block,
    ),
    Entry(
        name="cache_write",
        group="Memory",
        title="write {write_buffer_index} to a {storage_scope} copy",
        offer="write to a buffer of its own first",
        parameters=(BLOCK, WRITE, SCOPE),
        candidates=_writes,
        guard=memory_guards.buffer_of_block,
    ),
    Entry(
        name="reindex_cache_read",
        group="Memory",
        title="read {read_buffer_index} in {block} from a copy indexed {index_map}",
        offer="read from a copy with other indices",
        parameters=(BLOCK, READ, SCOPE, _INDEX_MAP),
        candidates=_reindexed_reads,
        guard=memory_guards.reindexed_copy,
        converted={"index_map": index_maps.of_block},
        texts={"index_map": index_maps.python_of},
    ),
    Entry(
        name="reindex_cache_write",
        group="Memory",
        title="write {write_buffer_index} in {block} to a buffer indexed {index_map} first",
        offer="write to a buffer with other indices first",
        parameters=(BLOCK, WRITE, SCOPE, _INDEX_MAP),
        candidates=_reindexed_writes,
        guard=memory_guards.reindexed_copy,
        converted={"index_map": index_maps.of_block},
        texts={"index_map": index_maps.python_of},
    ),
    Entry(
        name="cache_inplace",
        group="Memory",
        title="copy {read_buffer_index} in {block} before and after",
        offer="copy what it reads and writes in place",
        parameters=(BLOCK, READ, SCOPE),
        candidates=_reads,
        guard=memory_guards.buffer_of_block,
        many=True,
    ),
    Entry(
        name="cache_index",
        group="Memory",
        title="compute the indices of {block} in advance",
        offer="compute its indices in advance",
        parameters=(
            BLOCK,
            SCOPE,
            Field(
                name="cse_thresh",
                label="Uses",
                kind="integer",
                default=0,
                low=0,
                high=1000,
                help="How often an expression has to be there to be computed in advance.",
            ),
        ),
        candidates=_index,
        many=True,
    ),
    Entry(
        name="reindex",
        group="Memory",
        title="copy {buffer} to a buffer with the axes of {block}",
        offer="copy to a buffer with the axes of the block",
        parameters=(
            BLOCK,
            ACCESSED,
        ),
        candidates=_accessed,
        guard=memory_guards.reindex,
    ),
    Entry(
        name="set_scope",
        group="Memory",
        title="keep {buffer_index} of {block} in {storage_scope} memory",
        offer="keep what it writes in another memory",
        parameters=(BLOCK, _WRITTEN, msgspec.structs.replace(SCOPE, default="local")),
        candidates=_index,
        guard=memory_guards.buffer_of_block,
    ),
    Entry(
        name="storage_align",
        group="Memory",
        title="align axis {axis} of {buffer_index} to {factor}",
        offer="align the rows of what it writes",
        parameters=(
            BLOCK,
            _WRITTEN,
            Field(
                name="axis",
                label="Axis",
                kind="integer",
                default=0,
                help="The dimension whose stride is aligned; from the back if below 0.",
            ),
            Field(
                name="factor",
                label="Factor",
                kind="integer",
                default=32,
                low=1,
                high=4096,
                help="The stride is a multiple of it, plus the offset; in elements.",
            ),
            Field(
                name="offset",
                label="Offset",
                kind="integer",
                default=0,
                low=0,
                high=4096,
                help="In elements.",
            ),
        ),
        candidates=_aligned,
        guard=memory_guards.storage_align,
    ),
    Entry(
        name="unsafe_set_dtype",
        group="Memory",
        title="keep {buffer_index} of {block} as {dtype}",
        offer="keep what it writes in another dtype",
        parameters=(
            BLOCK,
            _WRITTEN,
            Field(
                name="dtype",
                label="Dtype",
                kind="choice",
                default="float16",
                choices=("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64"),
                help="Values are converted when they are written and read.",
            ),
        ),
        candidates=_dtype,
        guard=memory_guards.unsafe_set_dtype,
    ),
)
