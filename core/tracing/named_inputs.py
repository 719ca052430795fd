"""Named dimensions of a model's inputs, and the error for a model that fixes their size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.tracing.trace_errors import where_of

CONSTRAINT = "fixed-dimension"
"""Problem code of a model that does not take all sizes of a dimension."""

Range = tuple[int, int]


@dataclass(frozen=True)
class NamedInputs:
    """The shapes of a model's inputs, with names for some extents.

    `shapes`: of the tensors in order.
    `ranges`: smallest and largest size of each name.
    """

    shapes: tuple[tuple[int | str, ...], ...]
    ranges: Mapping[str, Range]


def fixed_dimension(
    demand: str,
    named: NamedInputs,
    line: SourceLine | None,
    at: str = "",
    engine: str = "torch",
) -> LowerscopeError:
    """Return the error for a model that does not take all sizes of a dimension.

    `demand`: Torch's constraint: ``batch == 7``.
    `at`: the node that has it.
    `engine`: what cannot compute other sizes.
    """
    names = [name for name in named.ranges if name in demand] or list(named.ranges)
    name = names[0]
    low, high = named.ranges[name]
    place = _(" at node {at}", at=at) if at else ""
    return LowerscopeError(
        _(
            "{name} cannot have every size from {low} to {high}: {engine} needs {demand}{place}",
            engine=engine,
            name=name,
            low=low,
            high=high,
            demand=demand,
            place=place,
        ),
        where=where_of(line),
        todo=_(
            "narrow --dim {name}, give a number in place of {name}, or change the model", name=name
        ),
        code=CONSTRAINT,
    )
