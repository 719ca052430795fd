"""Poolings: the largest value of a window, or its mean."""

from __future__ import annotations

from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.rows import write_rows
from lowerscope.core.scheduling.rules.windows import window_of
from lowerscope.core.scheduling.rules.writing import Writing


class PoolingRule:
    """Reductions over windows of a single buffer."""

    name = "pooling"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Write the steps, and return what they were written to.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard refuses one of the steps.
        """
        found = window_of(writing)
        if found is None or len(found.reads) != 1 or not found.is_window:
            return None
        return write_rows(writing, found, machine)
