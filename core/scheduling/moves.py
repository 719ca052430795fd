"""The menu of primitives for the selection, each tried on a copy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import tvm
from tvm.s_tir import Schedule

from lowerscope.core.records.schedule import Move, StepError
from lowerscope.core.schedules import Primitive, Reference
from lowerscope.core.scheduling.applying import apply
from lowerscope.core.scheduling.entry import Chosen, Entry, Site
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.forms import form
from lowerscope.core.scheduling.help_texts import help_texts
from lowerscope.core.scheduling.primitives import PRIMITIVES
from lowerscope.core.scheduling.references import (
    Outputs,
    function_of,
    places,
    references,
    resolve,
    stmt_of,
)

MAX_TRIES = 8
"""Attempts for a primitive before it is greyed out."""


def moves(
    sch: Schedule,
    chosen: tuple[Reference, ...],
    outputs: Outputs,
    target: tvm.target.Target,
    *,
    step: str = "",
) -> tuple[Move, ...]:
    """Return the primitives for the selection, legal or not, with the reason.

    Parameters
    ----------
    sch
        The function alone in its module; it is not changed.
    chosen
        The selected loops and blocks, in the order in which they were selected.
    outputs
        Results of the steps so far, by their ids.
    step
        Id of the primitives that it returns.

    Returns
    -------
    tuple of Move
        In the order of `PRIMITIVES`; those for another kind of selection are left out.
    """
    site = _site(sch, chosen, outputs, target)
    return tuple(
        move
        for entry in PRIMITIVES.values()
        for move in [_move(site, entry, step)]
        if move is not None
    )


def _site(
    sch: Schedule, chosen: tuple[Reference, ...], outputs: Outputs, target: tvm.target.Target
) -> Site:
    found = tuple(places(function_of(sch)))
    by_stmt = references(sch, outputs)
    indices = {place.stmt: index for index, place in enumerate(found)}
    looking = sch.copy()
    selected: list[Chosen] = []
    for reference in chosen:
        try:
            stmt = stmt_of(looking, resolve(looking, reference, outputs))
        except StepFailed:
            continue
        if stmt in indices:
            index = indices[stmt]
            selected.append(Chosen(by_stmt[stmt], found[index], index))
    return Site(
        sch=sch,
        target=target,
        found=found,
        # A loop without a block cannot be named, nor changed.
        named=tuple(by_stmt.get(place.stmt) for place in found),  # type: ignore[misc]
        outputs=outputs,
        chosen=tuple(selected),
    )


def _move(site: Site, entry: Entry, step: str) -> Move | None:
    first: Primitive | None = None
    unsafe: tuple[Primitive, StepError] | None = None
    error = StepError(message="")
    for primitive in _tried(site, entry, step):
        refused = _error(site, primitive)
        if refused is None:
            return _made(site, entry, primitive, StepError(message=""))
        if refused.unsafe:
            anyway = _error(site, msgspec.structs.replace(primitive, forced=True))
            if anyway is None:
                unsafe = unsafe or (primitive, refused)
            else:
                refused = anyway
        if first is None:
            first, error = primitive, refused
    if unsafe is not None:
        return _made(site, entry, *unsafe)
    return None if first is None else _made(site, entry, first, error)


def _error(site: Site, primitive: Primitive) -> StepError | None:
    try:
        apply(site.sch, primitive, site.outputs, site.target)
    except StepFailed as failed:
        return failed.error
    return None


def _tried(site: Site, entry: Entry, step: str) -> Iterator[Primitive]:
    for arguments in itertools.islice(entry.candidates(site), MAX_TRIES):
        whole = {field.name: field.default for field in entry.parameters} | arguments
        yield Primitive(id=step, name=entry.name, arguments=whole)


def _made(site: Site, entry: Entry, primitive: Primitive, error: StepError) -> Move:
    text = help_texts()[entry.name]
    return Move(
        name=entry.name,
        title=entry.offer,
        group=entry.group,
        help=text.help,
        before=text.before,
        after=text.after,
        legal=not error.message,
        primitive=primitive,
        reason=error.message,
        unsafe=error.unsafe,
        fields=form(site, entry, primitive.arguments),
    )
