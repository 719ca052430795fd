"""Application of one primitive to a schedule, its verification, and its description as a call."""

from __future__ import annotations

import inspect
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
import tvm
import tvm_ffi
from tvm import ir, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx.analysis import undefined_vars

from lowerscope.core.files.python_text import quoted
from lowerscope.core.ir.tensorir import collected, known
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.schedule import Argument, At, Made, Primitive, Reference
from lowerscope.core.model.schedule_records import Field
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.index_maps import python_of
from lowerscope.core.schedule.primitive import MAX_UNROLLED, Call, PrimitiveSpec
from lowerscope.core.schedule.primitive_table import entry_of, given, value
from lowerscope.core.schedule.references import (
    Output,
    Outputs,
    Place,
    around,
    function_of,
    places,
    resolve,
    unresolved,
)
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed, step_error

MAX_STATEMENTS = 2048
"""`MAX_UNROLLED` with short loops in the copies, which LLVM unrolls by itself: 1,024 of a padding
take 2 s, and 3,136 take 30."""

MAX_ELEMENTS = 16384
"""The same, with the lanes of vectors in the copies: 8,192 that are gathered take half a minute,
and 262,144 had not ended after five."""

SHORT = 128
"""Iterations of the loops inside of an unrolled one that LLVM unrolls."""

MAX_BYTES = 2**31
"""Maximum bytes of allocated buffers, unless the function had half as many before."""


def verify(before: Schedule, after: Schedule) -> None:
    """Reject a result that cannot be built or run.

    Raises `StepFailed` if a loop in parallel stands in another, or a vectorized one in another, or
    values are handed on inside of a vectorized one; if it vectorizes a call or booleans that cannot
    be; if the parameters of the function have changed; if it reads uninitialised memory, or would
    take minutes to build or more memory than there is.
    """
    old, new = function_of(before), function_of(after)
    if not _same_interface(old, new):
        raise StepFailed(
            _(
                "it would change the arguments of the function, and the model calls it with "
                "the old ones: use a copy (cache_read, cache_write)"
            )
        )
    found = places(new)
    _no_nesting(found)
    _has_vector_forms(found)
    _no_vectors_of_flags(found)
    _not_inside_vectors(found)
    _no_strays(found)
    _written_first(found)
    _can_be_laid_out(found)
    _not_too_long(found)
    _not_too_large(places(old), found)


def _same_interface(old: tirx.PrimFunc, new: tirx.PrimFunc) -> bool:
    return len(old.params) == len(new.params) and all(
        mine.same_as(theirs) or tvm_ffi.structural_equal(mine.ty, theirs.ty, map_free_vars=True)
        for mine, theirs in zip(old.params, new.params, strict=True)
    )


_NESTED = {
    tirx.ForKind.PARALLEL: _(
        "{name} is inside {outer}, which runs in parallel already: fuse them, or choose one"
    ),
    tirx.ForKind.VECTORIZED: _(
        "{name} is inside {outer}, which is vectorized already: fuse them, or choose one"
    ),
}


def _no_nesting(found: Sequence[Place]) -> None:
    for place in found:
        for outer in _around(found, place) if place.kind in _NESTED else ():
            if outer.kind == place.kind:
                raise StepFailed(_NESTED[place.kind].format(name=place.name, outer=outer.name))


def _has_vector_forms(found: Sequence[Place]) -> None:
    """Reject a vectorized call of a function that LLVM has for scalars alone."""
    for place in found:
        is_vector = place.kind == tirx.ForKind.VECTORIZED
        for call in collected(place.stmt.body, ir.Call) if is_vector else ():
            if isinstance(call.op, ir.Op) and _is_scalar_alone(call.op):
                raise StepFailed(
                    _("{name} is vectorized, and TVM cannot build {name2} of a vector"),
                    name=place.name,
                    name2=call.op.name,
                )


def _no_vectors_of_flags(found: Sequence[Place]) -> None:
    """Reject vectors of booleans in memory of the function's own.

    TVM makes them vectors of int8, and computes ``not`` of these bit by bit.
    """
    flags = {buffer for buffer in _allocated(found) if str(buffer.dtype) == "bool"}
    for place in found if flags else ():
        if place.is_block and any(region.source in flags for region in place.regions):
            for outer in _around(found, place):
                if outer.kind == tirx.ForKind.VECTORIZED:
                    raise StepFailed(
                        _(
                            "{name} is vectorized, and {name2} keeps booleans in memory of the "
                            "function: TVM mixes these up"
                        ),
                        name=outer.name,
                        name2=place.name,
                    )


def _is_scalar_alone(op: ir.Op) -> bool:
    """Return whether TVM vectorizes a call, and has only a scalar C function for it then."""
    has = {name: op.get_attr(name) is not None for name in _LOWERINGS}
    return (
        has["default.FLowerIntrinsic"]
        and bool(op.get_attr("TVectorizable"))
        and sum(has.values()) == 1
    )


_LOWERINGS = (
    "default.FLowerIntrinsic",
    "llvm.FLowerIntrinsic",
    "default.FLegalize",
    "llvm.FLegalize",
)
"""Attributes by which TVM lowers a call: the first makes C functions of mathematical ones."""


def _not_inside_vectors(found: Sequence[Place]) -> None:
    """Reject a buffer inside of a vectorized loop: TVM allocates one for all lanes."""
    made = set(_allocated(found))
    inside = _with_blocks(found)
    common: dict[tirx.Buffer, set[int]] = {}
    for index, place in enumerate(found):
        if place.is_block and index not in inside:
            nest = {index, *around(found, place)}
            for region in place.regions:
                if region.source in made:
                    common[region.source] = common.get(region.source, nest) & nest
    for buffer, places_around in common.items():
        for index in sorted(places_around):
            place = found[index]
            if place.kind == tirx.ForKind.VECTORIZED:
                raise StepFailed(
                    _(
                        "{name} is vectorized, and {name2} is written and read in it alone: "
                        "TVM would mix up the values of its lanes; vectorize a loop of one block"
                    ),
                    name=place.name,
                    name2=buffer.name,
                )


def _around(found: Sequence[Place], place: Place) -> Iterator[Place]:
    return (found[each] for each in around(found, place))


def _no_strays(found: Sequence[Place]) -> None:
    """Reject axes of a block that are used outside of it: cache_inplace leaves them there."""
    owners = {axis.var: place for place in found if place.is_block for axis in place.stmt.iter_vars}
    for place in found:
        bound = place.realize.iter_values if place.is_block else [place.stmt.extent]
        for each in bound:
            for variable in _variables(each):
                owner = owners.get(variable)
                if owner is not None and all(owner is not outer for outer in _around(found, place)):
                    raise StepFailed(
                        _("TVM would use the axis {name} of {name2} outside of it"),
                        name=variable.name,
                        name2=owner.name,
                    )


def _variables(value: Any) -> Sequence[Any]:
    if known(value) is not None:
        return ()
    return (value,) if isinstance(value, tirx.Var) else undefined_vars(value)


def _written_first(found: Sequence[Place]) -> None:
    """Reject a buffer that is read before it is written: TVM moves some too far."""
    made = set(_allocated(found))
    inside = _with_blocks(found)
    for index, place in enumerate(found):
        if not place.is_block or index in inside:
            continue
        for region in place.reads:
            if region.source in made and all(
                not region.source.same_as(each.source) for each in place.writes
            ):
                raise StepFailed(
                    _("{name} would read {name2} before anything has written it"),
                    name=place.name,
                    name2=region.source.name,
                )
        made -= {region.source for region in place.writes}


def _can_be_laid_out(found: Sequence[Place]) -> None:
    """Reject buffers whose place in memory the build cannot determine."""
    made = _allocated(found)
    for buffer in made:
        # The strides of cache_index are 32 bits wide.
        wide = len(buffer.ty.shape) > 1 and str(buffer.ty.shape[0].ty.dtype) == "int64"
        if wide and len(buffer.ty.strides) == 1:
            raise StepFailed(
                _("TVM mixes indices of 32 and 64 bits in {name}: it cannot be built"),
                name=buffer.name,
            )
    read = {region.source for place in found if place.is_block for region in place.reads}
    for place in found:
        if place.is_block and "buffer_dim_align" in place.stmt.annotations:
            for region in place.writes:
                if region.source in made and region.source not in read:
                    raise StepFailed(
                        _(
                            "no block reads {name}, and TVM cannot build an alignment "
                            "without consumers"
                        ),
                        name=region.source.name,
                    )


def _with_blocks(found: Sequence[Place]) -> set[int]:
    """Return the places of loops and blocks that have blocks in them."""
    parents = {place.parent for place in found if place.is_block}
    return {each for index in parents for each in (index, *around(found, found[index]))}


def _not_too_long(found: Sequence[Place]) -> None:
    """Reject unrolled loops that make too much code together."""
    inside = _with_blocks(found)
    copies, statements, elements = 0, 0, 0
    for index, place in enumerate(found):
        if not place.is_block or index in inside:
            continue
        made, short, lanes = 1, 1, 1
        unrolled = False
        for each in _around(found, place):
            if each.is_block:
                continue
            extent = known(each.stmt.extent) or 1
            if each.stmt.kind == tirx.ForKind.VECTORIZED:
                lanes *= extent
            elif each.stmt.kind == tirx.ForKind.UNROLLED:
                unrolled = True
                made *= extent
            elif not unrolled and each.stmt.kind == tirx.ForKind.SERIAL and short * extent <= SHORT:
                short *= extent
        if unrolled:
            copies += made
            statements += made * short
            elements += made * lanes
    if copies > MAX_UNROLLED or statements > MAX_STATEMENTS or elements > MAX_ELEMENTS:
        raise StepFailed(
            _(
                "the unrolled loops make {copies} copies of blocks, which take minutes to "
                "build; the limit is {max_unrolled}, and lower with short loops or vectors: "
                "split the loop and unroll a part"
            ),
            copies=copies,
            max_unrolled=MAX_UNROLLED,
        )


def _not_too_large(old: Sequence[Place], new: Sequence[Place]) -> None:
    """Reject excessive buffers, such as those of paddings of many axes."""
    before, after = sum(each.bytes for each in old), sum(each.bytes for each in new)
    if after > MAX_BYTES and after > 2 * before:
        raise StepFailed(
            _("its buffers would take {after}, and before it {before}"),
            after=bytes_text(after),
            before=bytes_text(before),
        )


def _allocated(found: Sequence[Place]) -> list[Any]:
    return [buffer for place in found for buffer in place.allocated]


@dataclass(frozen=True)
class Applied:
    """Result of a primitive.

    `sch`: the schedule after it; the one before is unchanged. `title`: its effect in words: ``split
    k into 4 × 32``; empty where it was not wanted.
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
    titled: bool = True,
) -> Applied:
    """Apply `primitive` to a copy of `sch`.

    Raises `StepFailed` if TVM or a guard rejects it.

    `sch`: on a module that holds the function alone.
    `outputs`: results of the earlier steps, by their ids.
    `absent`: why a step that is not in `outputs` is not, such as ``"step 2, which made this, is
        off"``, by its id.
    `titled`: whether the result has a title.
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
    title = title_of(entry, arguments, sch, values) if titled else ""
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
        verify(before, sch)
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
        return _(", ").join(_plain(each, names) for each in argument)
    return "…" if argument is None else str(argument)


def _words(
    field: Field, argument: Argument, sch: Schedule, values: Mapping[str, Any], entry: PrimitiveSpec
) -> str:
    value = values[field.name]
    if isinstance(value, LoopRV | SBlockRV):
        return name_of(sch, value)
    if field.kind == "loops":
        return _(", ").join(name_of(sch, each) for each in value)
    if field.kind == "factors":
        loop = values.get("loop")
        whole = known(sch.get(loop).extent) if loop is not None else None
        sign = " + " if entry.name == "loop_partition" else " × "
        return sign.join(_factors(value, argument, whole, entry))
    if field.kind == "buffer":
        names = buffer_names(sch.get(values["block"]), field.name)
        return names[value] if 0 <= value < len(names) else _("buffer {number}", number=value)
    if field.kind == "order":
        axes = [str(axis.var.name) for axis in sch.get(values["block"]).iter_vars]
        return _(", ").join(axes[each] if each < len(axes) else str(each) for each in value)
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

    `names`: gives the variable that holds a loop, a block or a number.
    `outputs`: the variables for the results of the step.
    `instruction`: what TVM noted of it in its trace; ``None`` where it was not applied.
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
