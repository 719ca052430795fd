"""A single block behind a reduction, which can be cut into tiles of the output."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.schedules import At
from lowerscope.core.scheduling.rules.writing import Writing


def gather(writing: Writing, block: str, after: Sequence[str]) -> str:
    """Leave one block behind a reduction, by inlining or a cache, and return its name.

    Parameters
    ----------
    block
        The block that reduces.
    after
        Those that are computed from its result, the last one last.

    Raises
    ------
    StepFailed
        If TVM or a guard rejects one of the steps.
    """
    if not after:
        writing.do(
            "cache_write",
            "what is reduced is kept apart until it is complete",
            block=At(block=block),
            write_buffer_index=0,
            storage_scope="local",
        )
        return writing.blocks()[-1]
    for each in after[:-1]:
        writing.do(
            "compute_inline", "what is done with a sum is done at once", block=At(block=each)
        )
    return after[-1]
