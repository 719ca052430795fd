"""Named dimensions of a model's inputs, and the error for a model that fixes their size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.records.snapshot import SourceLine
from lowerscope.core.tracing.failures import where_of

CONSTRAINT = "fixed-dimension"
"""Problem code of a model that does not take all sizes of a dimension."""

Range = tuple[int, int]


@dataclass(frozen=True)
class NamedInputs:
    """The shapes of a model's inputs, with names for some extents.

    Attributes
    ----------
    shapes
        Of the tensors in order.
    ranges
        Smallest and largest size of each name.
    """

    shapes: tuple[tuple[int | str, ...], ...]
    ranges: Mapping[str, Range]


def fixed_dimension(
    demand: str, named: NamedInputs, line: SourceLine | None, at: str = ""
) -> LowerscopeError:
    """Return the error for a model that does not take all sizes of a dimension.

    Parameters
    ----------
    demand
        Torch's constraint: ``batch == 7``.
    at
        The node that has it.
    """
    names = [name for name in named.ranges if name in demand] or list(named.ranges)
    name = names[0]
    low, high = named.ranges[name]
    place = f" at node {at}" if at else ""
    return LowerscopeError(
        f"{name} cannot be any size from {low} to {high}: torch needs {demand}{place}",
        where=where_of(line),
        todo=f"narrow --dim {name}, write a number in place of {name}, or change the model",
        code=CONSTRAINT,
    )
