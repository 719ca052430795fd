"""Application of one primitive to a schedule, and its description in words and as a call."""

from __future__ import annotations

import inspect
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.files.python_text import quoted
from lowerscope.core.model.schedule import Argument, At, Made, Primitive, Reference
from lowerscope.core.model.schedule_records import Field
from lowerscope.core.schedule import verify
from lowerscope.core.schedule.failures import REFUSED, StepFailed, step_error
from lowerscope.core.schedule.index_maps import python_of
from lowerscope.core.schedule.parameters import known
from lowerscope.core.schedule.primitive import Call, PrimitiveSpec
from lowerscope.core.schedule.references import Output, Outputs, resolve, unresolved
from lowerscope.core.schedule.table import entry_of, given, value


@dataclass(frozen=True)
class Applied:
    """Result of a primitive.

    `sch`: the schedule after it; the one before is unchanged. `title`: its effect in words: ``split
    k into 4 × 32``.
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

    Raises `StepFailed` if TVM or a guard rejects it.

    Parameters
    ----------
    sch
        On a module that holds the function alone.
    outputs
        Results of the earlier steps, by their ids.
    absent
        Why a step that is not in `outputs` is not, such as ``"step 2, which made this, is off"``,
        by its id.
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
    call = Call(sch=sch, target=target, values=values, forced=primitive.forced)
    if entry.guard is not None:
        entry.guard(call)
    if entry.draws:
        # A replay must draw the same, and so must what was shown before it got its id.
        drawn = msgspec.json.encode((primitive.name, primitive.arguments))
        sch.seed(zlib.crc32(drawn) % (2**31 - 2) + 1)
    made = _called(entry, call)
    if entry.name != "compute_inline":
        # It leaves loops and buffers as they are; rules apply it hundreds of times to a function.
        verify.check(before, sch)
    return Applied(sch=sch, outputs=made, title=title)


def _called(entry: PrimitiveSpec, call: Call) -> tuple[Output, ...]:
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


def title_of(
    entry: PrimitiveSpec,
    arguments: Mapping[str, Argument],
    sch: Schedule,
    values: Mapping[str, Any],
) -> str:
    """Return the description of a step, with loops, blocks and buffers by their names.

    `sch` and `values`: the schedule before the step, and its arguments as TVM takes them.
    """
    return entry.title.format(
        **{
            field.name: _words(field, arguments[field.name], sch, values, entry)
            for field in entry.parameters
        }
    )


def title_unresolved(primitive: Primitive, names: Mapping[Reference, str]) -> str:
    """Return the description of a step that was not applied.

    `names`: of the loops and blocks that it works on, as far as they exist.
    """
    entry = entry_of(primitive.name)
    arguments = given(entry, primitive)
    return entry.title.format(
        **{field.name: _plain(arguments[field.name], names) for field in entry.parameters}
    )


def _plain(argument: Argument, names: Mapping[Reference, str] = MappingProxyType({})) -> str:
    if isinstance(argument, Made | At):
        return names.get(argument) or unresolved(argument)
    if isinstance(argument, tuple):
        return ", ".join(_plain(each, names) for each in argument)
    return "…" if argument is None else str(argument)


def _words(
    field: Field, argument: Argument, sch: Schedule, values: Mapping[str, Any], entry: PrimitiveSpec
) -> str:
    value = values[field.name]
    if isinstance(value, LoopRV | SBlockRV):
        return name_of(sch, value)
    if field.kind == "loops":
        return ", ".join(name_of(sch, each) for each in value)
    if field.kind == "factors":
        loop = values.get("loop")
        whole = known(sch.get(loop).extent) if loop is not None else None
        sign = " + " if entry.name == "loop_partition" else " × "
        return sign.join(_factors(value, argument, whole, entry))
    if field.kind == "buffer":
        names = buffer_names(sch.get(values["block"]), field.name)
        return names[value] if 0 <= value < len(names) else f"buffer {value}"
    if field.kind == "order":
        axes = [str(axis.var.name) for axis in sch.get(values["block"]).iter_vars]
        return ", ".join(axes[each] if each < len(axes) else str(each) for each in value)
    return _plain(argument)


def _factors(value: Any, argument: Argument, whole: int | None, entry: PrimitiveSpec) -> list[str]:
    given_ones = argument if isinstance(argument, tuple) else (argument,)
    sizes = [known(each) for each in value]
    others = [size for size, each in zip(sizes, value, strict=True) if each is not None]
    rest = "…"
    if whole is not None and all(size is not None and size > 0 for size in others):
        numbers = [size or 0 for size in others]
        is_sum = entry.name == "loop_partition"
        rest = str(whole - sum(numbers) if is_sum else -(-whole // math.prod(numbers)))
    return [
        rest if each is None else _plain(text) if size is None else str(size)
        for each, size, text in zip(value, sizes, given_ones, strict=True)
    ]


def name_of(sch: Schedule, output: LoopRV | SBlockRV) -> str:
    """Return the name of a loop's variable or of a block."""
    stmt = sch.get(output)
    return str(stmt.loop_var.name if isinstance(stmt, tirx.For) else stmt.name_hint)


def buffer_names(block: Any, argument: str) -> list[str]:
    """Return the names of the buffers that an argument of kind ``"buffer"`` counts.

    Those that the block reads or writes, by the argument's name.
    """
    reads = [str(region.source.name) for region in block.reads]
    writes = [str(region.source.name) for region in block.writes]
    return reads if argument == "read_buffer_index" else writes


def call_text(
    primitive: Primitive,
    names: Callable[[Reference], str],
    outputs: tuple[str, ...],
    instruction: Any | None = None,
) -> str:
    """Return a step as a line of Python: ``l4, l5 = sch.split(l2, factors=[4, 32])``.

    Parameters
    ----------
    names
        Gives the variable that holds a loop, a block or a number.
    outputs
        The variables for the results of the step.
    instruction
        What TVM noted of it in its trace; ``None`` where it was not applied.
    """
    entry = entry_of(primitive.name)
    arguments = given(entry, primitive)
    parts: list[str] = []
    for index, field in enumerate(entry.parameters):
        argument = arguments[field.name]
        if argument is None or argument == _default(entry.name, field.name):
            continue
        if field.name == entry.starred and isinstance(argument, tuple):
            parts.extend(_python(each, names) for each in argument)
            continue
        text = entry.texts[field.name](argument, instruction) if field.name in entry.texts else ""
        if field.kind == "index map":
            text = python_of(argument)
        text = text or _python(_annotated(argument) if field.kind == "value" else argument, names)
        parts.append(text if not index else f"{field.name}={text}")
    call = f"sch.{entry.name}({', '.join(parts)})"
    if not outputs:
        return call
    left = ", ".join(outputs) + ("," if entry.many and len(outputs) == 1 else "")
    return f"{left} = {call}"


def _annotated(argument: Argument) -> Argument:
    """Return the value of an annotation: a number for TVM where it is on or off, see `value`."""
    if isinstance(argument, tuple):
        return tuple(int(each) if isinstance(each, bool) else each for each in argument)
    return int(argument) if isinstance(argument, bool) else argument


def _python(argument: Argument, names: Callable[[Reference], str]) -> str:
    if isinstance(argument, Made | At):
        return names(argument)
    if isinstance(argument, tuple):
        return f"[{', '.join(_python(each, names) for each in argument)}]"
    return quoted(argument) if isinstance(argument, str) else repr(argument)


@cache
def _default(primitive: str, argument: str) -> object:
    """Return TVM's own default of an argument; ``inspect.Parameter.empty`` without one."""
    parameters = inspect.signature(getattr(Schedule, primitive)).parameters
    return parameters[argument].default if argument in parameters else inspect.Parameter.empty
