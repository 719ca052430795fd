"""Calls of the virtual machine: the bindings that they compute, their values and their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import tvm
import tvm_ffi
from tvm import relax

from lowerscope.core.build_steps import RecordedBuild
from lowerscope.core.execution.bytecode import BUILTIN
from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.following import inverse
from lowerscope.core.relax_bindings import bound_in, callee_of, relax_functions

BEFORE_CALLS = "CallTIRRewrite"
"""The pass after which a binding's call is one of the bytecode."""

_RESHAPE = f"{BUILTIN}reshape"
_WITH_SIZES = f"{BUILTIN}call_tir_dyn"
"""Builtin that calls a TensorIR function with sizes besides tensors; the sizes come last."""

_ALLOCATES = tuple(f"relax.{each}.alloc_tensor" for each in ("builtin", "memory", "vm"))
_WRITES = ("relax.call_tir", "relax.call_dps_packed")

Gives = Literal["written", "returned", ""]


@dataclass(frozen=True, eq=False)
class BoundCall:
    """A binding that becomes a call of the bytecode.

    Attributes
    ----------
    binding
        Its id in the module that was built.
    callee
        Name of the called function: of TensorIR, external, or a builtin.
    event
        Name of the call in the virtual machine's notifications.
    variable
        The variable that is bound, just before calls are made.
    gives
        Location of its value: its last arguments, into which it is written, or the return value;
        empty if unknown.
    values
        Number of tensors of the value.
    """

    binding: str
    callee: str
    event: str
    variable: Any
    gives: Gives
    values: int

    @property
    def sizes_last(self) -> int:
        """Number of size arguments behind the tensors."""
        return int(self.event == _WITH_SIZES)

    def values_of(self, returned: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the tensors of the value, from a call's return value and arguments."""
        if self.gives == "written":
            end = len(args) - self.sizes_last
            return tuple(args[end - self.values : end])
        if self.gives == "returned":
            return (returned,) if self.values == 1 else tuple(returned)
        return ()

    def reads_of(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the tensors that a call reads, from its arguments, including members of tuples."""
        if self.gives == "written":
            args = args[: len(args) - (self.event == _WITH_SIZES) - self.values]
        return tuple(_tensors(args))


def _tensors(args: Sequence[Any]) -> Iterator[Any]:
    for each in args:
        if isinstance(each, tvm.runtime.Tensor):
            yield each
        elif isinstance(each, (tuple, list, tvm_ffi.Array)):
            yield from _tensors(each)


def calls_in(build: RecordedBuild, name: str) -> tuple[BoundCall, ...]:
    """Return the bindings of a function that become calls of the bytecode, in order."""
    return CallsOf(build, name).calls


class CallsOf:
    """The calls of a Relax function, and the bindings of the built module that they compute.

    Attributes
    ----------
    before
        The module just before calls are made of its bindings.
    """

    def __init__(self, build: RecordedBuild, name: str) -> None:
        run = next(each for each in build.runs if each.name == BEFORE_CALLS)
        self.before = run.before
        function = dict(relax_functions(run.before)).get(name)
        self._bounds = () if function is None else bound_in(name, function)
        self._returned = None if function is None else function.body.body
        self._matches: Matches = match_bindings(build.module, run.before)
        self._written: set[int] = set()

    @cached_property
    def calls(self) -> tuple[BoundCall, ...]:
        """The bindings that become calls, in order."""
        return tuple(self._calls())

    def _calls(self) -> Iterator[BoundCall]:
        earlier = inverse(self._matches)
        for bound in self._bounds:
            value = getattr(bound.binding, "value", None)
            callee = callee_of(value)
            if isinstance(callee, relax.ExternFunc):
                symbol = str(callee.global_symbol)
            elif callee is not None:
                symbol = str(callee.name_hint)
            elif _operator(value) == "relax.reshape":
                symbol = _RESHAPE
            else:
                continue
            assert isinstance(value, relax.Call)
            gives, values = _value_of(value, bound.binding.var.ty)
            if gives == "written" and not values:
                values = self._count_written(value)
            if symbol.startswith(BUILTIN) and gives == "written":
                # It checks a shape, or stores sizes.
                gives, values = "", 0
            has_sizes = _operator(value) == "relax.call_tir" and len(value.args) > 2
            yield BoundCall(
                binding=next(iter(earlier.get(bound.id, ())), bound.id),
                callee=symbol,
                event=_WITH_SIZES if has_sizes else symbol,
                variable=bound.binding.var,
                gives=gives,
                values=values,
            )

    def _count_written(self, value: Any) -> int:
        """Return the number of output arguments of a call made by a pass."""
        arguments = _arguments_made(value)
        count = 0
        for each in reversed(arguments):
            made = self._values.get(hash(each)) if isinstance(each, tvm.ir.Var) else None
            if _operator(made) not in _ALLOCATES or hash(each) in self._written:
                break
            count += 1
        count = max(count, 1)
        self._written.update(map(hash, arguments[len(arguments) - count :]))
        return count

    def source_of(self, binding: str, item: int = 0) -> tuple[int, int] | None:
        """Return the call that gives the value of a binding of the built module.

        Parameters
        ----------
        item
            Index of the tensor, if the value is a tuple.

        Returns
        -------
        source
            The index of the call, and that of the tensor; ``None`` if no call gives it.
        """
        # Bindings added by a pass precede the binding itself.
        found = self._matches.get(binding, ())[-1:]
        bound = next((each for each in self._bounds if each.id in found), None)
        return None if bound is None else self._source(bound.binding.var, item)

    def argument_of(self, variable: Any) -> Any:
        """Return the constant, or the argument of the function, that a variable names."""
        while hash(variable) in self._values:
            variable = self._values[hash(variable)]
        return variable

    def arguments(self, index: int) -> tuple[Any, ...] | None:
        """Return the arguments of a call; ``None`` unless they are individual tensors."""
        call = self.calls[index]
        value = self._values[hash(call.variable)]
        if call.event == _RESHAPE:
            return (value.args[0],)
        if isinstance(value.op, tvm.ir.GlobalVar) and call.gives == "written":
            # A pass has already made the call: its outputs come last.
            return tuple(value.args[: len(value.args) - call.values])
        plain = _operator(value) in _WRITES and call.event != _WITH_SIZES
        return tuple(value.args[1].fields) if plain else None

    def sources(self, index: int) -> tuple[tuple[int, int] | None, ...]:
        """Return the calls that gave the arguments of a call, if known, in order."""
        return tuple(map(self.source_of_variable, self.arguments(index) or ()))

    @cached_property
    def needed(self) -> frozenset[int]:
        """The calls that the return value depends on."""
        read: set[int] = set()

        def note(expression: Any) -> None:
            if isinstance(expression, tvm.ir.Var):
                read.add(hash(expression))

        if self._returned is not None:
            relax.analysis.post_order_visit(self._returned, note)
        index_of = {hash(call.variable): index for index, call in enumerate(self.calls)}
        found: set[int] = set()
        for bound in reversed(self._bounds):
            variable, value = bound.binding.var, getattr(bound.binding, "value", None)
            # A call made by a pass returns nothing: its outputs may be read.
            written = isinstance(value, relax.Call) and isinstance(variable.ty, relax.TupleType)
            if value is not None and (
                hash(variable) in read or (written and not variable.ty.fields)
            ):
                relax.analysis.post_order_visit(value, note)
                if hash(variable) in index_of:
                    found.add(index_of[hash(variable)])
        return frozenset(found)

    def value_bound_to(self, variable: Any) -> Any:
        """Return the value bound to a variable just before calls are made; ``None`` for none."""
        return self._values.get(hash(variable))

    def source_of_variable(self, variable: Any) -> tuple[int, int] | None:
        """Return call and tensor of a variable's value; ``None`` if no call gives it.

        The variable may be a member of a tuple as well.
        """
        if isinstance(variable, relax.TupleGetItem):
            return self._source(variable.tuple_value, variable.index)
        return self._source(variable, 0)

    def _source(self, variable: Any, item: int) -> tuple[int, int] | None:
        given = self._giving.get(hash(variable))
        if given is not None:
            return given[0], given[1] + item
        value = self._values.get(hash(variable))
        if isinstance(value, relax.TupleGetItem) and item == 0:
            # A pass may have split the value that made a tuple.
            made = self._values.get(hash(value.tuple_value))
            if isinstance(made, relax.Tuple):
                return self._source(made.fields[value.index], 0)
            return self._source(value.tuple_value, value.index)
        if isinstance(value, relax.Tuple):
            return self.source_of_variable(value.fields[item])
        if isinstance(value, tvm.ir.Var):
            return self._source(value, item)
        return None

    @cached_property
    def _values(self) -> dict[int, Any]:
        return {hash(each.binding.var): each.binding.value for each in self._bounds}

    @cached_property
    def _giving(self) -> dict[int, tuple[int, int]]:
        """Call and tensor of each variable's value, by variable; of several calls, the last."""
        giving: dict[int, tuple[int, int]] = {}
        for index, call in enumerate(self.calls):
            if call.gives:
                giving[hash(call.variable)] = index, 0
            value = self._values[hash(call.variable)]
            if call.gives == "written" and _operator(value) not in _WRITES:
                arguments = _arguments_made(value)
                for place, each in enumerate(arguments[len(arguments) - call.values :]):
                    giving[hash(each)] = index, place
        return giving


def _operator(value: Any) -> str:
    return str(getattr(getattr(value, "op", None), "name", ""))


def _arguments_made(value: Any) -> tuple[Any, ...]:
    """Return the arguments of a call made by a pass: its output tensors come last."""
    if isinstance(value.op, tvm.ir.Op):
        given = value.args[1]
        return tuple(given.fields) if isinstance(given, relax.Tuple) else (given,)
    return tuple(value.args)


def _value_of(value: Any, kind: Any) -> tuple[Gives, int]:
    """Return location and number of tensors of a call's value: 0 if it is already made."""
    is_tuple = isinstance(kind, relax.TupleType)
    parts = tuple(kind.fields) if is_tuple else (kind,)
    if not all(isinstance(each, relax.TensorType) for each in parts):
        return "", 0
    if _operator(value) in _WRITES:
        return "written", len(parts)
    if not parts:
        # The call was already made: it returns nothing, and writes into its last arguments.
        return "written", 0
    if _operator(value) == "relax.call_tir_inplace":
        return "", 0
    return "returned", len(parts)
