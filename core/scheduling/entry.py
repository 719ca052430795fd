"""Specifications of primitives: the entries of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm.s_tir import Schedule

from lowerscope.core.records.schedule import Field
from lowerscope.core.schedules import Argument, Reference
from lowerscope.core.scheduling.references import Outputs, Place

Arguments = dict[str, Argument]


@dataclass(frozen=True)
class Chosen:
    """A selected loop or block."""

    reference: Reference
    place: Place
    index: int


@dataclass(frozen=True)
class Site:
    """A selection in a function, for which primitives are offered.

    Attributes
    ----------
    sch
        The schedule of the function; it is not changed.
    target
        The target of the function.
    found
        Its loops and blocks.
    named
        The reference to each, in the order of `found`.
    outputs
        Results of the steps so far.
    chosen
        The selection, in the order in which it was made.
    """

    sch: Schedule
    target: tvm.target.Target
    found: tuple[Place, ...]
    named: tuple[Reference, ...]
    outputs: Outputs
    chosen: tuple[Chosen, ...]


@dataclass(frozen=True)
class Call:
    """A primitive that is about to be applied.

    Attributes
    ----------
    sch
        A copy of the schedule, which it is applied to.
    target
        The target of the function.
    values
        The arguments as TVM takes them.
    given
        The arguments as they are in the recipe, with defaults for those that are missing.
    forced
        `Primitive.forced`.
    """

    sch: Schedule
    target: tvm.target.Target
    values: Mapping[str, Any]
    given: Mapping[str, Argument]
    forced: bool


Candidates = Callable[[Site], Iterator[Arguments]]
"""Arguments to try for the selection, the best first; none where it does not fit."""

Text = Callable[[Argument, Any | None], str]
"""Formats an argument, with the instruction that TVM noted; ``None`` where it was not applied."""

Guard = Callable[[Call], None]
"""Raises `StepFailed` for uses that TVM would wrongly accept, or crash on."""


@dataclass(frozen=True)
class Entry:
    """Specification of a primitive.

    Attributes
    ----------
    name
        Name of the method of ``tvm.s_tir.Schedule``.
    group
        Its heading in the menu.
    title
        Description of a step, with its arguments in braces.
    parameters
        Its arguments, by TVM's names.
    candidates
        See `Candidates`.
    offer
        Its short description in the menu.
    guard
        See `Guard`.
    starred
        The argument whose members TVM takes as positional arguments.
    converted
        Converts arguments to TVM's values whose meaning depends on other arguments.
    texts
        Formatters of arguments in Python that are not written as they are: see `Text`.
    many
        Whether it returns a list; otherwise one result, or none.
    draws
        Whether it draws at random, where its decision is not given.
    """

    name: str
    group: str
    title: str
    parameters: tuple[Field, ...]
    candidates: Candidates
    offer: str
    guard: Guard | None = None
    starred: str = ""
    converted: Mapping[str, Callable[[Call], Any]] = field(default_factory=dict)
    texts: Mapping[str, Text] = field(default_factory=dict)
    many: bool = False
    draws: bool = False
    by_name: Mapping[str, Field] = field(init=False)

    def __post_init__(self) -> None:
        by_name = {parameter.name: parameter for parameter in self.parameters}
        object.__setattr__(self, "by_name", by_name)
