"""Depthwise and grouped convolutions: each output channel reads a few input channels alone."""

from __future__ import annotations

from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.rows import write_rows
from lowerscope.core.scheduling.rules.windows import window_of
from lowerscope.core.scheduling.rules.writing import Writing


class DepthwiseRule:
    """Sums over windows of products, both of whose factors differ from channel to channel.

    There is no reuse between channels, so the vectors lie along the rows of a channel, and no
    weights need another layout.
    """

    name = "depthwise"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        found = window_of(writing)
        if found is None or len(found.reads) != 2 or not found.is_window:
            return None
        if not any(found.is_shared(axis) for axis in range(len(found.spatial))):
            return None
        return write_rows(writing, found, machine)


class RowsRule:
    """Sums over windows without an axis for the lanes of a tile: a single filter, any batch."""

    name = "rows"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        found = window_of(writing)
        if found is None or len(found.reads) != 2 or not found.is_window:
            return None
        return write_rows(writing, found, machine)
