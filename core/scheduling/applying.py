"""Application of one primitive to a schedule."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import tvm
from tvm.s_tir import Schedule

from lowerscope.core.schedules import Primitive
from lowerscope.core.scheduling import results
from lowerscope.core.scheduling.arguments import given, value
from lowerscope.core.scheduling.entry import Call, Entry
from lowerscope.core.scheduling.failures import REFUSED, StepFailed, step_error
from lowerscope.core.scheduling.primitives import entry_of
from lowerscope.core.scheduling.references import Output, Outputs, resolve
from lowerscope.core.scheduling.titles import title_of


@dataclass(frozen=True)
class Applied:
    """Result of a primitive.

    Attributes
    ----------
    sch
        The schedule after it; the one before is unchanged.
    outputs
        Its results, in the order of `Made.output`.
    title
        Its effect in words: ``split k into 4 × 32``.
    """

    sch: Schedule
    outputs: tuple[Output, ...]
    title: str


def apply(
    sch: Schedule,
    primitive: Primitive,
    outputs: Outputs,
    target: tvm.target.Target,
    *,
    absent: Mapping[str, str] | None = None,
) -> Applied:
    """Apply `primitive` to a copy of `sch`.

    Parameters
    ----------
    sch
        On a module that holds the function alone.
    outputs
        Results of the earlier steps, by their ids.
    absent
        Why a step that is not in `outputs` is not, such as ``"step 2, which made this, is
        off"``, by its id.

    Raises
    ------
    StepFailed
        If TVM or a guard rejects it.
    """
    entry = entry_of(primitive.name)
    arguments = given(entry, primitive)
    before = sch
    sch = sch.copy()

    def resolved(reference: Any) -> Output:
        return resolve(sch, reference, outputs, absent)

    values = {
        field.name: value(field, arguments[field.name], resolved) for field in entry.parameters
    }
    title = title_of(entry, arguments, sch, values)
    call = Call(sch=sch, target=target, values=values, given=arguments, forced=primitive.forced)
    if entry.guard is not None:
        entry.guard(call)
    if entry.draws:
        # A replay must draw the same, and so must what was shown before it got its id.
        drawn = msgspec.json.encode((primitive.name, primitive.arguments))
        sch.seed(zlib.crc32(drawn) % (2**31 - 2) + 1)
    made = _called(entry, call)
    if entry.name != "compute_inline":
        # It leaves loops and buffers as they are; rules apply it hundreds of times to a function.
        results.check(before, sch)
    return Applied(sch=sch, outputs=made, title=title)


def _called(entry: Entry, call: Call) -> tuple[Output, ...]:
    values = dict(call.values)
    method = getattr(call.sch, entry.name)
    try:
        for name, convert in entry.converted.items():
            values[name] = convert(call)
        starred = values.pop(entry.starred) if entry.starred else ()
        made = method(*starred, **{name: each for name, each in values.items() if each is not None})
    except REFUSED as error:
        raise StepFailed.of(step_error(error)) from error
    if made is None:
        return ()
    return tuple(made) if entry.many else (made,)
