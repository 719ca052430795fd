"""Calls of the virtual machine: their bytecode, and the bindings, nodes and values of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import tvm
import tvm_ffi
from tvm import relax

from lowerscope.core.build.build import RecordedBuild
from lowerscope.core.ir.relax import (
    BUILTIN,
    bound_in,
    callee_of,
    operator_of,
    relax_functions,
    writes_arguments,
)
from lowerscope.core.lowering.types import LoweredModel
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import Matches, bindings_by_name, inverse, match_bindings
from lowerscope.core.passes.transforming import TransformedModel
from lowerscope.core.stages import Stages

_FUNCTION = re.compile(r"@([\w.]+):$")
_CALL = re.compile(r" +call +(\S+) +in:")


@dataclass(frozen=True)
class BytecodeLine:
    """A line of bytecode; ``call`` is the name of the called function, if any."""

    text: str
    call: str = ""


def bytecode_of(executable: str, name: str) -> tuple[BytecodeLine, ...]:
    """Return the bytecode of one function; empty if there is no such function."""
    lines = executable.split("\n")
    begin = next((i for i, line in enumerate(lines) if line == f"@{name}:"), None)
    if begin is None:
        return ()
    end = next((i for i in range(begin, len(lines)) if not lines[i].strip()), len(lines))
    found = []
    for line in lines[begin:end]:
        call = _CALL.match(line)
        found.append(BytecodeLine(line.rstrip(), call[1] if call is not None else ""))
    return tuple(found)


def functions_in(executable: str) -> tuple[str, ...]:
    """Return the names of the functions that have bytecode."""
    matches = (_FUNCTION.match(line) for line in executable.split("\n"))
    return tuple(match[1] for match in matches if match is not None)


def match_calls(lines: Sequence[BytecodeLine], callees: Sequence[str]) -> dict[int, int]:
    """Return the index in `callees` of the call on each line, by line index.

    Both are in program order. Calls that the virtual machine makes on its own have no match.
    """
    matches: dict[int, int] = {}
    next_one = 0
    for index, line in enumerate(lines):
        if not line.call:
            continue
        found = next((i for i in range(next_one, len(callees)) if callees[i] == line.call), None)
        if found is not None:
            matches[index] = found
            next_one = found + 1
    return matches


BEFORE_CALLS = "CallTIRRewrite"
"""The pass after which a binding's call is one of the bytecode."""

_RESHAPE = f"{BUILTIN}reshape"
_WITH_SIZES = f"{BUILTIN}call_tir_dyn"
"""Builtin that calls a TensorIR function with sizes besides tensors; the sizes come last."""

_ALLOCATES = tuple(f"relax.{each}.alloc_tensor" for each in ("builtin", "memory", "vm"))
_WRITES = ("relax.call_tir", "relax.call_dps_packed")

Source = tuple[int, int]
"""A call, and the index of a tensor of its value."""

Gives = Literal["written", "returned", ""]


@dataclass(frozen=True, eq=False)
class BoundCall:
    """A binding that becomes a call of the bytecode."""

    binding: str  # its id in the module that was built
    callee: str  # name of the called function: of TensorIR, external, or a builtin
    event: str  # name of the call in the virtual machine's notifications
    variable: Any
    # Location of its value: its last arguments, into which it is written, or the return value;
    # empty if unknown.
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


class CallsOf:
    """The calls of a Relax function, and the bindings of the built module that they compute."""

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
            value = bound.value
            callee = callee_of(value)
            if isinstance(callee, relax.ExternFunc):
                symbol = str(callee.global_symbol)
            elif callee is not None:
                symbol = str(callee.name_hint)
            elif operator_of(value) == "relax.reshape":
                symbol = _RESHAPE
            else:
                continue
            assert isinstance(value, relax.Call)
            gives, values = _value_of(value, bound.binding.var.ty)
            if writes_arguments(bound.binding):
                values = self._count_written(value)
                gives = "written" if values else ""
            if symbol.startswith(BUILTIN) and gives == "written":
                # It checks a shape, or stores sizes.
                gives, values = "", 0
            has_sizes = operator_of(value) == "relax.call_tir" and len(value.args) > 2
            yield BoundCall(
                binding=next(iter(earlier.get(bound.id, ())), bound.id),
                callee=symbol,
                event=_WITH_SIZES if has_sizes else symbol,
                variable=bound.binding.var,
                gives=gives,
                values=values,
            )

    def _count_written(self, value: Any) -> int:
        """Return the number of output arguments of a call made by a pass.

        These are new memory; a function of the module has at least one.
        """
        arguments = _arguments_made(value)
        count = 0
        for each in reversed(arguments):
            made = self._values.get(hash(each)) if isinstance(each, tvm.ir.Var) else None
            if operator_of(made) not in _ALLOCATES or hash(each) in self._written:
                break
            count += 1
        if isinstance(value.op, tvm.ir.GlobalVar):
            count = max(count, 1)
        self._written.update(map(hash, arguments[len(arguments) - count :]))
        return count

    def source_of(self, binding: str, item: int = 0) -> Source | None:
        """Return the call that gives the value of a binding of the built module.

        Returns:
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
        if call.gives == "written" and not isinstance(value.op, tvm.ir.Op):
            # A pass has already made the call: its outputs come last.
            given = tuple(value.args[: len(value.args) - call.values])
            return None if any(isinstance(each, relax.ShapeExpr) for each in given) else given
        plain = operator_of(value) in _WRITES and call.event != _WITH_SIZES
        return tuple(value.args[1].fields) if plain else None

    def sources(self, index: int) -> tuple[Source | None, ...]:
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
            variable, value = bound.binding.var, bound.value
            # The outputs of a call made by a pass may be read.
            if value is not None and (hash(variable) in read or writes_arguments(bound.binding)):
                relax.analysis.post_order_visit(value, note)
                if hash(variable) in index_of:
                    found.add(index_of[hash(variable)])
        return frozenset(found)

    def value_bound_to(self, variable: Any) -> Any:
        """Return the value bound to a variable just before calls are made; ``None`` for none."""
        return self._values.get(hash(variable))

    def source_of_variable(self, variable: Any) -> Source | None:
        """Return call and tensor of a variable's value; ``None`` if no call gives it.

        The variable may be a member of a tuple as well.
        """
        if isinstance(variable, relax.TupleGetItem):
            return self._source(variable.tuple_value, variable.index)
        return self._source(variable, 0)

    def _source(self, variable: Any, item: int) -> Source | None:
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
    def _giving(self) -> dict[int, Source]:
        """Call and tensor of each variable's value, by variable; of several calls, the last."""
        giving: dict[int, Source] = {}
        for index, call in enumerate(self.calls):
            if call.gives:
                giving[hash(call.variable)] = index, 0
            value = self._values[hash(call.variable)]
            if call.gives == "written" and operator_of(value) not in _WRITES:
                arguments = _arguments_made(value)
                for place, each in enumerate(arguments[len(arguments) - call.values :]):
                    giving[hash(each)] = index, place
        return giving


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
    if operator_of(value) in _WRITES:
        return "written", len(parts)
    if operator_of(value) == "relax.call_tir_inplace":
        return "", 0
    return "returned", len(parts)


class Owners:
    """Mapping between calls, the FX nodes and bindings that they compute, and their values."""

    def __init__(self, stages: Stages, lowered: LoweredModel, calls: CallsOf) -> None:
        self.nodes = lowered.nodes
        self.calls: tuple[BoundCall, ...] = calls.calls
        self._source_of = calls.source_of
        self._became = stages.transformed.bindings_in_main
        self._made_anew = _made_anew(stages.transformed)
        self.fates = stages.transformed.fates
        main = lowered.module["main"]
        bounds = bound_in("main", main)
        self._ids = {hash(each.binding.var): each.id for each in bounds}
        self._values = {each.id: each.binding.value for each in bounds}
        self._readers = _readers(main, self._ids, self._values)
        node_of = {
            f"relax:main/{name}": f"fx:{node.node}"
            for node in lowered.nodes.values()
            for name in node.bindings
        }
        self.all = (*(f"fx:{name}" for name in lowered.nodes), *self._values)
        origins = inverse(self._became)
        # An alias takes no time.
        self.bindings_of = [
            tuple(each for each in origins.get(call.binding, ()) if not self._is_name(each))
            for call in self.calls
        ]
        self.nodes_of = [
            tuple(dict.fromkeys(node_of[each] for each in bindings if each in node_of))
            for bindings in self.bindings_of
        ]
        self._calls_for = _places((*self.nodes_of, *self.bindings_of), len(self.calls))
        self._together = {
            found: tuple(each for each in dict.fromkeys(came) if not self._is_name(each))
            for found, came in origins.items()
        }

    def calls_for(self, entity: str) -> tuple[int, ...]:
        """Return the indices of the calls that compute a node or a binding."""
        return self._calls_for.get(entity, ())

    def source_of(self, binding: str, item: int = 0) -> Source | str:
        """Return call and tensor of a binding's value before the passes, or why there is none."""
        binding = self._named(binding)
        fate = self.fates.get(binding)
        if binding in self._made_anew:
            return _("not comparable: changed by {made_anew}", made_anew=self._made_anew[binding])
        found = self._became.get(binding, ())
        if not found:
            return (
                fate.text
                if fate is not None
                else _("its binding no longer exists after the passes")
            )
        together = self._together[found[-1]]
        if binding in together and len(together) > 1:
            # Of bindings computed by one call, its value is that of the ones others read.
            given = [each for each in together if self._is_read_outside(each, together)]
            if given != [binding]:
                why = fate.text if fate is not None else _("a call computes several bindings")
                return _("it has no value of its own: {why}", why=why)
        source = self._source_of(found[-1], item)
        return source if source is not None else _("no call gives its value by itself")

    def binding_of(self, value: Any) -> str | None:
        """Return the id of the binding that a Relax value is the variable of."""
        return self._ids.get(hash(value))

    def _is_name(self, binding: str) -> bool:
        return hash(self._values[binding]) in self._ids

    def _named(self, binding: str) -> str:
        while self._is_name(binding):
            binding = self._ids[hash(self._values[binding])]
        return binding

    def _is_read_outside(self, binding: str, together: Collection[str]) -> bool:
        return any(
            self._is_read_outside(each, together)
            if self._is_passed_by(each)
            else each not in together
            for each in self._readers.get(binding, ("",))
        )

    def _is_passed_by(self, reader: str) -> bool:
        """Return whether the readers of a reader read its input: it is an alias, or folded."""
        return bool(reader) and (self._is_name(reader) or not self._became.get(reader))


def _places(owners: Sequence[Sequence[str]], calls: int) -> Mapping[str, tuple[int, ...]]:
    """Return the calls of each entity; a list of all of them, or several lists."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(owners):
        for entity in dict.fromkeys(each):
            found.setdefault(entity, []).append(place % calls)
    return {entity: tuple(places) for entity, places in found.items()}


def _made_anew(transformed: TransformedModel) -> Mapping[str, str]:
    """Return the step that kept only name and type of a binding, by lowered binding.

    If neither the variable nor the value is kept, the value need not be the same: a pass that folds
    later operators into a convolution gives it other weights, and its name.
    """
    found: dict[str, str] = {}
    for number, run in enumerate(transformed.runs, start=1):
        if run.depth > 0 or run.after is None:
            continue
        guessed = bindings_by_name(run.before, run.after)
        if guessed:
            origins = transformed.origins_before(number)
            came = [origin for each in guessed for origin in origins.get(each, ())]
            found.update(dict.fromkeys(came, run.name.removeprefix("relax.")))
    return found


def _readers(
    main: Any, ids: Mapping[int, str], values: Mapping[str, Any]
) -> Mapping[str, tuple[str, ...]]:
    """Return the readers of each binding; ``""`` for the return value."""
    readers: dict[str, dict[str, None]] = {}

    def note(expression: Any, reader: str) -> None:
        read = ids.get(hash(expression))
        if read is not None and read != reader:
            readers.setdefault(read, {})[reader] = None

    for name, value in values.items():
        relax.analysis.post_order_visit(value, lambda each, at=name: note(each, at))
    relax.analysis.post_order_visit(main.body.body, lambda each: note(each, ""))
    return {read: tuple(found) for read, found in readers.items()}
