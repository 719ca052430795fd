"""The table of primitives, and the conversion and validation of their arguments."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm import tirx
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.schedule import (
    Argument,
    At,
    Made,
    Primitive,
    Reference,
    Schedule,
    fits,
    references_of,
)
from lowerscope.core.model.schedule_records import Field
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.block_primitives import BLOCK_PRIMITIVES, REDUCTION_PRIMITIVES
from lowerscope.core.schedule.loop_primitives import (
    ANNOTATION_PRIMITIVES,
    LOOP_PRIMITIVES,
    SAMPLING_PRIMITIVES,
)
from lowerscope.core.schedule.memory_primitives import MEMORY_PRIMITIVES
from lowerscope.core.schedule.primitive import PrimitiveSpec
from lowerscope.core.schedule.references import Output
from lowerscope.core.schedule.step_errors import StepFailed

PRIMITIVES: dict[str, PrimitiveSpec] = {
    entry.name: entry
    for entry in (
        *LOOP_PRIMITIVES,
        *BLOCK_PRIMITIVES,
        *MEMORY_PRIMITIVES,
        *REDUCTION_PRIMITIVES,
        *ANNOTATION_PRIMITIVES,
        *SAMPLING_PRIMITIVES,
    )
}
"""In the order of the menu."""


def entry_of(name: str) -> PrimitiveSpec:
    """Return the entry of a primitive.

    Raises `StepFailed` if there is no primitive of this name.
    """
    entry = PRIMITIVES.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, PRIMITIVES, n=1)
        raise StepFailed(
            _("there is no primitive {name!r}; did you mean {near}?", name=name, near=near[0])
            if near
            else _("there is no primitive {name!r}", name=name)
        )
    return entry


Resolve = Callable[[Reference], Output]
Convert = Callable[[Field, Argument, Resolve], Any]

_WIDEST = 2**31 - 1
"""Limit of numbers: TVM uses 32 bits in many places, and cuts off the rest."""


def given(entry: PrimitiveSpec, primitive: Primitive) -> dict[str, Argument]:
    """Return all arguments of a primitive, with defaults for those that are missing.

    Raises `StepFailed` if there are arguments that it does not take.
    """
    for name in primitive.arguments:
        if name not in entry.by_name:
            known = _(", ").join(entry.by_name)
            raise StepFailed(
                _("{name} does not take {name2!r}; it takes {known}"),
                name=entry.name,
                name2=name,
                known=known,
            )
    return {
        field.name: primitive.arguments.get(field.name, field.default) for field in entry.parameters
    }


def value(field: Field, argument: Argument, resolve: Resolve) -> Any:
    """Return an argument as TVM takes it.

    Raises `StepFailed` if it is not what the field takes.
    """
    if argument is None:
        if field.optional:
            return None
        raise StepFailed(_("{label} is missing"), label=field.label)
    return _KINDS[field.kind](field, argument, resolve)


_RVS: Mapping[str, tuple[Any, str]] = {
    "loop": (LoopRV, _("{label} takes a loop")),
    "block": (SBlockRV, _("{label} takes a block")),
    "loop or block": (LoopRV | SBlockRV, _("{label} takes a loop or a block")),
}


def _refused(field: Field, message: str, argument: Any = None, **more: Any) -> StepFailed:
    return StepFailed(message, label=field.label, argument=argument, **more)


def _rv(field: Field, argument: Argument, resolve: Resolve) -> Output:
    kind, text = _RVS["loop" if field.kind == "loops" else field.kind]
    if not isinstance(argument, Made | At):
        raise _refused(field, _("{label} takes a loop or a block, and not {argument!r}"), argument)
    output = resolve(argument)
    if not isinstance(output, kind):
        raise _refused(field, text)
    return output


def _several(field: Field, argument: Argument) -> tuple[Any, ...]:
    if not isinstance(argument, tuple):
        raise _refused(field, _("{label} takes several values, and not {argument!r}"), argument)
    return argument


def _integer(field: Field, argument: Argument, resolve: Resolve) -> int:
    if not isinstance(argument, int) or isinstance(argument, bool):
        raise _refused(field, _("{label} takes a whole number, and not {argument!r}"), argument)
    low = -_WIDEST if field.low is None else field.low
    high = _WIDEST if field.high is None else field.high
    if argument < low:
        raise _refused(field, _("{label} is at least {low}, and not {argument}"), argument, low=low)
    if argument > high:
        raise _refused(
            field, _("{label} is at most {high}, and not {argument}"), argument, high=high
        )
    return argument


def _number_or_made(field: Field, argument: Argument, resolve: Resolve) -> Any:
    """Return a number, or a result that a step has drawn."""
    if isinstance(argument, Made | At):
        output = resolve(argument)
        if isinstance(output, LoopRV | SBlockRV):
            raise _refused(field, _("{label} takes numbers, and not a loop or a block"))
        return output
    return _integer(field, argument, resolve)


def _factors(field: Field, argument: Argument, resolve: Resolve) -> list[Any]:
    factors = _several(field, argument)
    if not factors:
        raise _refused(field, _("{label} needs at least one value"))
    if sum(factor is None for factor in factors) > 1:
        raise StepFailed(_("at most one factor can be left open"))
    return [
        None if factor is None else _number_or_made(field, factor, resolve) for factor in factors
    ]


def _each(convert: Convert) -> Convert:
    """Return the conversion of several values by that of one."""
    return lambda field, argument, resolve: [
        convert(field, each, resolve) for each in _several(field, argument)
    ]


def _order(field: Field, argument: Argument, resolve: Resolve) -> list[int]:
    order: list[int] = _each(_integer)(field, argument, resolve)
    if sorted(order) != list(range(len(order))):
        raise _refused(
            field, _("{label} takes each place from 0 once, and not {order}"), order=order
        )
    return order


def _flag(field: Field, argument: Argument, resolve: Resolve) -> bool:
    if not isinstance(argument, bool):
        raise _refused(field, _("{label} is on or off, and not {argument!r}"), argument)
    return argument


def _text(field: Field, argument: Argument, resolve: Resolve) -> str:
    if not isinstance(argument, str):
        raise _refused(field, _("{label} takes a string"))
    return argument


def _choice(field: Field, argument: Argument, resolve: Resolve) -> str:
    text = _text(field, argument, resolve)
    if field.choices and text not in field.choices:
        raise _refused(
            field,
            _("{label} is one of {choices}, and not {text!r}"),
            choices=_(", ").join(field.choices),
            text=text,
        )
    return text


def _number(field: Field, argument: Argument, resolve: Resolve) -> float:
    if (
        isinstance(argument, bool)
        or not isinstance(argument, int | float)
        or not math.isfinite(argument)
    ):
        raise _refused(field, _("{label} takes a number, and not {argument!r}"), argument)
    return argument


def _annotation(field: Field, argument: Argument, resolve: Resolve) -> Any:
    members = argument if isinstance(argument, tuple) else (argument,)
    if not members:
        raise _refused(field, _("{label} needs at least one value"))
    for each in members:
        if isinstance(each, Made | At):
            output = resolve(each)
            if isinstance(output, LoopRV | SBlockRV):
                raise _refused(field, _("{label} takes numbers and strings"))
        elif isinstance(each, int) and abs(each) > _WIDEST:
            raise _refused(field, _("{label} takes numbers up to {widest}"), widest=_WIDEST)
        elif each is None or (isinstance(each, float) and not math.isfinite(each)):
            raise _refused(field, _("{label} takes numbers and strings"))
    values = [_annotated(each, resolve) for each in members]
    return values if isinstance(argument, tuple) else values[0]


def _annotated(each: Any, resolve: Resolve) -> Any:
    if isinstance(each, Made | At):
        return resolve(each)
    return tirx.IntImm("int32", int(each)) if isinstance(each, bool) else each


_KINDS: Mapping[str, Convert] = {
    "loop": _rv,
    "loops": _each(_rv),
    "block": _rv,
    "loop or block": _rv,
    "buffer": _integer,
    "factors": _factors,
    "order": _order,
    "integer": _integer,
    "number": _number,
    "flag": _flag,
    "choice": _choice,
    "text": _text,
    "value": _annotation,
    # The axes are known when the rest is: the entry makes the map.
    "index map": _text,
    "integers": _each(_integer),
    "numbers": _each(lambda *each: float(_number(*each))),
}


def check_schedules(
    schedules: Sequence[Schedule], structures: Mapping[str, str], where: str
) -> None:
    """Reject schedules that do not fit a module.

    `structures`: the structural hashes of its functions, by name. Raises `LowerscopeError` if one
    fits no function, or has an unknown primitive, or an argument that is unknown or of another
    type.
    """
    for schedule in schedules:
        if not any(fits(schedule, *each) for each in structures.items()):
            raise _unfitting(schedule, structures, where)
        for problem in _problems(schedule):
            raise LowerscopeError(
                problem, where=where, todo=_("Correct the file, or save the schedule again")
            )


def _unfitting(schedule: Schedule, structures: Mapping[str, str], where: str) -> LowerscopeError:
    if schedule.function in structures:
        return LowerscopeError(
            _(
                "the schedule was made for another structure of {function}",
                function=schedule.function,
            ),
            where=where,
            todo=_("Open the model with the sizes, the lowering and the passes it was made with"),
        )
    names = tuple(sorted(structures))
    return LowerscopeError(
        _(
            "the schedule is for {function}, and there is no such function",
            function=schedule.function,
        ),
        where=where,
        todo=_("Choose one of {listed}", listed=listed(names))
        if names
        else _("Legalise the module's operators"),
        choices=names,
    )


def _problems(schedule: Schedule) -> Iterator[str]:
    before: set[str] = set()
    for primitive in schedule.primitives:
        step = _(
            "step {id!r} of the schedule of {function}", id=primitive.id, function=schedule.function
        )
        try:
            _check(primitive)
        except StepFailed as failed:
            yield f"{step}: {failed.error.message}"
        for reference in references_of(primitive):
            if isinstance(reference, Made) and reference.step not in before:
                yield _(
                    "{step}: there is no step {step2!r} before it", step=step, step2=reference.step
                )
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
