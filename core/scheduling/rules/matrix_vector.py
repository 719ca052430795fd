"""Products of a matrix and a vector: each element of the matrix is read once, in its own order."""

from __future__ import annotations

from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import Contraction, contraction_of
from lowerscope.core.scheduling.rules.row_wise import row_by_row
from lowerscope.core.scheduling.rules.writing import Writing


class MatrixVectorRule:
    """Rows of a matrix times a vector, where the values of a row are adjacent.

    Adjacent columns are in the lanes of a contraction; so is a matrix whose layout can be changed
    when the model is built.
    """

    name = "matrix times vector"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        found = contraction_of(writing)
        if found is None or not _has_rows(found):
            return None
        return row_by_row(writing, machine)


def _has_rows(found: Contraction) -> bool:
    """Return whether one buffer has a row for each result, and the other one row for all."""
    results = [axis for axis, extent in enumerate(found.spatial) if extent > 1]
    for matrix, vector in ((0, 1), (1, 0)):
        if (
            results
            and not found.free[matrix]
            and all(found.is_read_by(matrix, axis) for axis in results)
            and not any(found.is_read_by(vector, axis) for axis in results)
        ):
            return found.plain[matrix][-1] >= len(found.spatial)
    return False
