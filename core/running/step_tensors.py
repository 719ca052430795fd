"""Names of the tensors that the calls of a run read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tvm import ir, relax

from lowerscope.core.comparing.finding_tensors import constants_by_name
from lowerscope.core.comparing.tensor_values import first_of, statistics_of
from lowerscope.core.execution.bytecode import bytecode_of
from lowerscope.core.memo import key_of
from lowerscope.core.passes.following import inverse
from lowerscope.core.records.comparison import CallSide, TensorPlace
from lowerscope.core.records.run_step import RunStep, StepTensor, TensorKind
from lowerscope.core.relax_constants import Elements, elements_of
from lowerscope.core.running.calls import CallsOf
from lowerscope.core.running.kept_values import KeptCall, KeptTensor
from lowerscope.core.stages import Stages

FIRST = 8
"""Number of first elements of a tensor that are returned."""

DIGITS = 4
"""Significant digits of the elements."""

Named = tuple[str, TensorKind, str]
"""A name, its kind, and an id; name and id may be empty."""


_UNKNOWN: Named = ("", "value", "")


@dataclass(frozen=True)
class CallNames:
    """The names of a call's inputs and outputs, in the order of its arguments."""

    read: tuple[Named, ...]
    written: tuple[Named, ...]


def step_names(stages: Stages) -> tuple[CallNames, ...]:
    """Return the names of the tensors of each call of ``main``.

    Computed values are named by the binding before the passes, unless that has been merged into
    another.
    """
    calls = CallsOf(stages.recorded, "main")
    names = _Names(stages, calls)
    return tuple(
        CallNames(names.read(index), names.written(index)) for index in range(len(calls.calls))
    )


class _Names:
    def __init__(self, stages: Stages, calls: CallsOf) -> None:
        self._stages = stages
        self._calls = calls

    def read(self, index: int) -> tuple[Named, ...]:
        """Return the tensors that a call reads, in the order of its arguments."""
        return tuple(self._name_of(each) for each in self._reads(index))

    def written(self, index: int) -> tuple[Named, ...]:
        """Return the output tensors of a call."""
        return tuple(self._value(index, item) for item in range(self._calls.calls[index].values))

    def _reads(self, index: int) -> Iterator[Any]:
        """Yield the expressions of a call's input tensors, in the order of its arguments."""
        call = self._calls.calls[index]
        value = self._calls.value_bound_to(call.variable)
        operator = str(getattr(value.op, "name", ""))
        if operator == "relax.reshape":
            args = value.args[:1]
        elif operator in ("relax.call_tir", "relax.call_dps_packed"):
            args = value.args[1:2]
        elif isinstance(value.op, (ir.GlobalVar, relax.ExternFunc)):
            # A pass has already made the call: its outputs come last.
            count = call.values if call.gives == "written" else 0
            args = value.args[: len(value.args) - count]
        else:
            args = value.args[1:]
        for argument in args:
            yield from self._tensors_in(argument)

    def _tensors_in(self, expression: Any) -> Iterator[Any]:
        named = self._calls.value_bound_to(expression)
        kind = getattr(expression, "ty", None)
        if isinstance(named, (ir.Var, ir.GenericConst, relax.Tuple)):
            yield from self._tensors_in(named)
        elif isinstance(expression, relax.Tuple):
            for each in expression.fields:
                yield from self._tensors_in(each)
        elif isinstance(kind, relax.TupleType):
            for place in range(len(kind.fields)):
                yield relax.TupleGetItem(expression, place)
        elif isinstance(kind, relax.TensorType):
            yield expression

    def _name_of(self, expression: Any) -> Named:
        if isinstance(expression, ir.GenericConst):
            name, entity = self._constants.get(elements_of(expression.value), ("", ""))
            return name or "a constant", "constant", entity
        source = self._calls.source_of_variable(expression)
        if source is not None:
            return self._value(*source)
        name = str(getattr(expression, "name", ""))
        return name, "input", f"relax:main/{name}" if name else ""

    def _value(self, index: int, item: int) -> Named:
        call = self._calls.calls[index]
        origins = self._origins.get(call.binding, ())
        entity = origins[-1] if origins else ""
        name = (entity or call.binding).rpartition("/")[2]
        return f"{name}[{item}]" if call.values > 1 else name, "value", entity

    @cached_property
    def _origins(self) -> Any:
        return inverse(self._stages.transformed.bindings_in_main)

    @cached_property
    def _constants(self) -> dict[Elements, tuple[str, str]]:
        return {
            elements_of(each.data): (
                each.name,
                f"{'param' if each.from_model else 'const'}:{each.name}",
            )
            for each in constants_by_name(self._stages)
        }


def run_step(stages: Stages, kept: KeptCall, call: int, lines: tuple[int, int]) -> RunStep:
    """Return the full record of one call of a run of ``main``.

    Parameters
    ----------
    kept
        Its cached inputs and outputs.
    call
        Its index.
    lines
        The first and the last line of the bytecode of ``main`` to include, from 1.
    """
    names = stages.keep(
        "step tensors",
        key_of("step tensors", stages.build_key, stages.lower_key),
        lambda: step_names(stages),
    )[call]
    first, last = lines
    bytecode = bytecode_of(stages.recorded.built.executable.as_text(), "main") if last else ()
    return RunStep(
        call=call,
        tensors=(
            *_described("read", call, kept.read, names.read),
            *_described("written", call, kept.written, names.written),
        ),
        instructions=tuple(line.text for line in bytecode[first - 1 : last]) if last else (),
        first_line=first if last else 0,
    )


def _described(
    side: CallSide, call: int, tensors: Sequence[KeptTensor], names: Sequence[Named]
) -> Iterator[StepTensor]:
    # If a call has other arguments than individual tensors, they do not match the binding's.
    known = names if len(names) == len(tensors) else [_UNKNOWN] * len(tensors)
    for item, (tensor, (name, kind, entity)) in enumerate(zip(tensors, known, strict=True)):
        value = tensor.value
        yield StepTensor(
            place=TensorPlace(call=call, item=item, side=side),
            name=name,
            kind=kind,
            entity=entity,
            shape=tensor.shape,
            dtype=tensor.dtype,
            statistics=tensor.statistics if value is None else statistics_of(value),
            first=() if value is None else first_of(value, FIRST, DIGITS),
        )
