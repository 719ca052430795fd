"""Primitives of memory: copies of buffers, where they are kept, and how."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.schedule_records import Field
from lowerscope.core.scheduling.blocks import BLOCK
from lowerscope.core.scheduling.entry import Arguments, Entry, Site
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


ENTRIES = (
    Entry(
        name="cache_read",
        group="Memory",
        title="read {read_buffer_index} in {block} from a copy in {storage_scope} memory",
        offer="read from a copy",
        parameters=(BLOCK, READ, SCOPE),
        candidates=_reads,
    ),
    Entry(
        name="cache_write",
        group="Memory",
        title="write {write_buffer_index} in {block} to a buffer in {storage_scope} memory first",
        offer="write to a buffer of its own first",
        parameters=(BLOCK, WRITE, SCOPE),
        candidates=_writes,
    ),
)
