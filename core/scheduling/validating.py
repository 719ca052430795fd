"""Validation of schedules from outside, before they are applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tvm import tirx
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.records.schedule import Field
from lowerscope.core.schedules import Made, Primitive, Reference, Schedule, fits, references_of
from lowerscope.core.scheduling.arguments import Resolve, given, value
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.primitives import entry_of
from lowerscope.core.scheduling.references import Output


def check_schedules(
    schedules: Sequence[Schedule], structures: Mapping[str, str], where: str
) -> None:
    """Reject schedules that do not fit a module.

    Parameters
    ----------
    structures
        The structural hashes of its functions, by name.
    where
        Where the schedules come from.

    Raises
    ------
    LowerscopeError
        If one fits no function, or has an unknown primitive, or an argument that is unknown or of
        another type.
    """
    for schedule in schedules:
        if not any(fits(schedule, *each) for each in structures.items()):
            raise _unfitting(schedule, structures, where)
        for problem in _problems(schedule):
            raise LowerscopeError(
                problem, where=where, todo="Correct the file, or save the schedule anew"
            )


def _unfitting(schedule: Schedule, structures: Mapping[str, str], where: str) -> LowerscopeError:
    if schedule.function in structures:
        return LowerscopeError(
            f"the schedule was made for another structure of {schedule.function}",
            where=where,
            todo="Open the model with the sizes, the lowering and the passes that it was made with",
        )
    names = tuple(sorted(structures))
    return LowerscopeError(
        f"the schedule is for {schedule.function}, and there is no such function",
        where=where,
        todo=f"Choose one of {listed(names)}" if names else "Legalise the module's operators",
        choices=names,
    )


def _problems(schedule: Schedule) -> Iterator[str]:
    before: set[str] = set()
    for primitive in schedule.primitives:
        step = f"step {primitive.id!r} of the schedule of {schedule.function}"
        try:
            _check(primitive)
        except StepFailed as failed:
            yield f"{step}: {failed.error.message}"
        for reference in references_of(primitive):
            if isinstance(reference, Made) and reference.step not in before:
                yield f"{step}: there is no step {reference.step!r} before it"
        before.add(primitive.id)


def _check(primitive: Primitive) -> None:
    entry = entry_of(primitive.name)
    arguments = given(entry, primitive)
    for field in entry.parameters:
        value(field, arguments[field.name], _standing_for(field))


def _standing_for(field: Field) -> Resolve:
    """Return a resolver that gives a dummy loop, block or number, as the field takes one."""

    def resolve(reference: Reference) -> Output:
        if field.kind in ("loop", "loops", "loop or block"):
            return LoopRV()
        return SBlockRV() if field.kind == "block" else tirx.IntImm("int32", 1)

    return resolve
