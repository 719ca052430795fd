"""Memory plan of ``main``, read from the module that is compiled to bytecode.

``StaticPlanBlockMemory`` assigns tensors to shared storages, and ``KillAfterLastUse`` frees each
behind the last call that uses a tensor in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import ir, relax

from lowerscope.core.build.build import RecordedBuild
from lowerscope.core.ir.relax import bound_in, relax_functions
from lowerscope.core.model.run_records import MemoryRecord, Storage, StoredTensor

AFTER_KILLS = "KillAfterLastUse"
"""The pass after which all allocations and frees are explicit in the module."""

_CALLS = ("relax.vm.call_tir_dyn", "relax.reshape")
_STORAGE, _TENSOR = "relax.memory.alloc_storage", "relax.memory.alloc_tensor"


@dataclass
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    written: int
    last: int


@dataclass
class _Taken:
    size: int
    begin: int
    end: int
    tensors: list[_Tensor] = field(default_factory=list)


class _Unknown(Exception):
    """The memory of a run is unknown before it runs; the argument says why."""


def planned_memory(build: RecordedBuild, name: str = "main") -> MemoryRecord:
    """Return the memory that a run of a Relax function allocates, by call; see `run.calls`."""
    module = next(each.after for each in build.runs if each.name == AFTER_KILLS)
    function = dict(relax_functions(module)).get(name) if module is not None else None
    if function is None:
        return MemoryRecord(reason=f"there is no function {name}")
    plan = _Plan()
    try:
        for bound in bound_in(name, function):
            plan.take(str(bound.name), bound.binding)
    except _Unknown as reason:
        return MemoryRecord(reason=str(reason))
    returned = plan.roots(function.body.body)
    return plan.record(returned, _constants(function))


class _Plan:
    """The allocations so far; ``call`` is the index of the next call."""

    def __init__(self) -> None:
        self.call = 0
        self._storages: dict[int, _Taken] = {}
        self._tensors: dict[int, _Tensor] = {}
        self._aliases: dict[int, Any] = {}

    def take(self, name: str, binding: Any) -> None:
        """Process the next binding."""
        value: Any = getattr(binding, "value", None)
        if type(value) is relax.If:
            raise _Unknown("which of its branches are run is known only while it runs")
        operator = str(getattr(getattr(value, "op", None), "name", ""))
        if operator == _STORAGE:
            size = _extents(value.args[0])[0]
            self._storages[hash(binding.var)] = _Taken(size, self.call, self.call)
        elif operator == _TENSOR:
            self._allocate(name, binding)
        elif type(value) is relax.Call and (
            type(value.op) in (ir.GlobalVar, relax.ExternFunc) or operator in _CALLS
        ):
            self._note_call(binding, value, operator)
        elif value is not None:
            self._aliases[hash(binding.var)] = value

    def _allocate(self, name: str, binding: Any) -> None:
        value = binding.value
        storage = self._storages[hash(value.args[0])]
        shape = _extents(value.args[2])
        dtype = str(value.args[3].value)
        size = _bytes(shape, dtype)
        tensor = _Tensor(name, shape, dtype, size, self.call, self.call)
        self._tensors[hash(binding.var)] = tensor
        storage.tensors.append(tensor)

    def _note_call(self, binding: Any, value: Any, operator: str) -> None:
        for argument in value.args:
            for tensor in self.roots(argument):
                tensor.last = self.call
        if operator == "relax.reshape":
            # Another view of the same memory.
            self._aliases[hash(binding.var)] = value.args[0]
        self.call += 1

    def roots(self, expression: Any) -> Iterator[_Tensor]:
        """Yield the tensors that an expression is or contains."""
        if type(expression) is relax.Tuple:
            for each in expression.fields:
                yield from self.roots(each)
        elif type(expression) is relax.TupleGetItem:
            yield from self.roots(expression.tuple_value)
        elif hash(expression) in self._tensors:
            yield self._tensors[hash(expression)]
        elif hash(expression) in self._aliases:
            yield from self.roots(self._aliases[hash(expression)])

    def record(self, returned: Iterator[_Tensor], constants: int) -> MemoryRecord:
        """Return the record of the plan; `returned` are the tensors of the outputs."""
        outputs = {id(each) for each in returned}
        last = max(self.call - 1, 0)
        storages = []
        for taken in self._storages.values():
            tensors = tuple(
                StoredTensor(
                    name=each.name,
                    shape=each.shape,
                    dtype=each.dtype,
                    size=each.size,
                    written=min(each.written, last),
                    last=last if id(each) in outputs else min(each.last, last),
                    returned=id(each) in outputs,
                )
                for each in taken.tensors
            )
            end = max((each.last for each in tensors), default=taken.end)
            storages.append(
                Storage(size=taken.size, begin=min(taken.begin, last), end=end, tensors=tensors)
            )
        live = [0] * self.call
        for storage in storages:
            for index in range(storage.begin, min(storage.end + 1, self.call)):
                live[index] += storage.size
        return MemoryRecord(storages=tuple(storages), live=tuple(live), constants=constants)


def _extents(shape: Any) -> tuple[int, ...]:
    values = shape.values
    if not all(hasattr(each, "value") for each in values):
        raise _Unknown("sizes are known only while it runs: a dimension has a name")
    return tuple(int(each.value) for each in values)


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    kind = tvm.DataType(dtype)
    return (math.prod(shape) * int(kind.bits) * int(kind.lanes) + 7) // 8


def _constants(function: Any) -> int:
    """Return the bytes of the constants of a function, each tensor once."""
    found: dict[int, int] = {}

    def note(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst) and isinstance(
            expression.value, tvm.runtime.Tensor
        ):
            tensor = expression.value
            shape = tuple(int(each) for each in tensor.shape)
            found[hash(tensor)] = _bytes(shape, str(tensor.dtype))

    relax.analysis.post_order_visit(function, note)
    return sum(found.values())
