"""What Lowerscope knows of a primitive: an entry of the table."""

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
    """A loop or block that is selected."""

    reference: Reference
    place: Place
    index: int


@dataclass(frozen=True)
class Site:
    """Where a primitive is offered: a function, and what is selected of it.

    Attributes
    ----------
    sch
        The schedule of the function; it is looked at and not changed.
    target
        What the function is compiled for.
    found
        Its loops and blocks.
    named
        How each is named, in the order of `found`.
    outputs
        What the steps so far gave back.
    chosen
        What is selected, in the order in which it was.
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
        What the function is compiled for.
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
"""Arguments to try for what is selected, the best first; none where it does not take that."""

Text = Callable[[Argument, Any | None], str]
"""Writes an argument, with the instruction that TVM noted; ``None`` where it was not applied."""

Guard = Callable[[Call], None]
"""Raises `StepFailed` for what TVM would accept, or die of."""


@dataclass(frozen=True)
class Entry:
    """A primitive.

    Attributes
    ----------
    name
        As the method of ``tvm.s_tir.Schedule`` is called.
    group
        The heading that it stands under in the menu.
    title
        What a step does, with its arguments in braces.
    parameters
        Its arguments, called as TVM calls them.
    candidates
        See `Candidates`.
    offer
        What it does, in a few words, in the menu.
    guard
        See `Guard`.
    starred
        The argument whose members TVM takes as positional arguments.
    converted
        What makes a value of TVM of an argument whose meaning hangs on the others.
    texts
        How arguments are written in Python, where that is not as they are: see `Text`.
    many
        Whether it gives back a list; otherwise one result, or none.
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
