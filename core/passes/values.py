"""Value numbering of a module's bindings: equal values have equal numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm_ffi
from tvm import IRModule, ir, relax

from lowerscope.core.relax_bindings import Bound, bound_in, callee_of, relax_functions
from lowerscope.core.relax_constants import elements_of

_CALL_TIR = "relax.call_tir"


@dataclass(slots=True, eq=False)
class Leaf:
    """A binding that computes something, as reached from a function that nothing calls.

    Attributes
    ----------
    ids
        Of the bindings that call its function, outermost first, and its own.
    bound
        The binding.
    number
        Of its value.
    reads
        Addresses of the variables that its value reads.
    callee
        Name of the module's function that it calls; empty for none.
    """

    ids: tuple[str, ...]
    bound: Bound
    number: int
    reads: frozenset[int]
    callee: str

    @property
    def address(self) -> int:
        """Address of its variable."""
        return hash(self.bound.binding.var)


@dataclass
class Numbers:
    """Value numbers: the same operator on values of the same numbers has the same number."""

    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _tuples: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, key: tuple[Any, ...]) -> int:
        """Return the number of a key."""
        return self._known.setdefault(key, len(self._known))

    def of_tuple(self, fields: tuple[int, ...]) -> int:
        """Return the number of a tuple of values."""
        number = self.of(("tuple", *fields))
        self._tuples[number] = fields
        return number

    def of_item(self, whole: int, index: int) -> int:
        """Return the number of an item of a tuple."""
        fields = self._tuples.get(whole)
        return self.of(("item", whole, index)) if fields is None else fields[index]


class Unfolded:
    """The bindings of a module in execution order, through its calls.

    Parameters
    ----------
    numbers
        Shared by modules whose values are compared.
    whole
        Names of functions that are not expanded at their calls.
    anchors
        Known numbers of variables, by address. The first binding of each gets it.
    """

    def __init__(
        self,
        module: IRModule,
        numbers: Numbers,
        whole: frozenset[str] = frozenset(),
        anchors: dict[int, int] | None = None,
    ) -> None:
        self.leaves: list[Leaf] = []
        self._numbers = numbers
        self._whole = whole
        self._anchors = dict(anchors or {})
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._functions = dict(relax_functions(module))
        self._bound = {name: bound_in(name, each) for name, each in self._functions.items()}
        called = {
            str(callee.name_hint)
            for bounds in self._bound.values()
            for bound in bounds
            if isinstance(callee := callee_of(_value(bound)), ir.GlobalVar)
        }
        for name, function in self._functions.items():
            if name not in called:
                parameters = [
                    numbers.of(("parameter", name, each.name)) for each in function.params
                ]
                self._unfold(name, parameters, (), (name,))

    def _unfold(
        self, name: str, arguments: Sequence[int], chain: tuple[str, ...], inside: tuple[str, ...]
    ) -> int:
        """Add the bindings of a function that is called by `chain`; return its value's number."""
        function = self._functions[name]
        known = dict(zip(map(hash, function.params), arguments, strict=False))
        for bound in self._bound[name]:
            value = _value(bound)
            address = hash(bound.binding.var)
            reads: set[int] = set()
            callee = callee_of(value)
            called = str(callee.name_hint) if isinstance(callee, ir.GlobalVar) else ""
            ids = (*chain, bound.id)
            if called in self._functions and called not in (*inside, *self._whole):
                passed = [self._number(each, known, reads) for each in _passed(value)]
                known[address] = self._unfold(called, passed, ids, (*inside, called))
                continue
            number = self._number(value, known, reads)
            # A function may be called from several places: the variable is that of the first.
            number = self._anchors.pop(address, number)
            known[address] = number
            self.leaves.append(Leaf(ids, bound, number, frozenset(reads), called))
        return self._number(function.body.body, known, set())

    def _number(self, value: Any, known: dict[int, int], reads: set[int]) -> int:
        kind = type(value)
        if kind in (relax.Var, relax.DataflowVar):
            address = hash(value)
            reads.add(address)
            return known[address] if address in known else self._numbers.of(("free", address))
        if kind is ir.GenericConst:
            return self._numbers.of(("constant", *_constant(value.value)))
        if kind is relax.Tuple:
            return self._numbers.of_tuple(
                tuple(self._number(each, known, reads) for each in value.fields)
            )
        if kind is relax.TupleGetItem:
            whole = self._number(value.tuple_value, known, reads)
            return self._numbers.of_item(whole, int(value.index))
        if kind is relax.Call:
            passed = tuple(self._number(each, known, reads) for each in _passed(value))
            attributes = 0 if value.attrs is None else tvm_ffi.structural_hash(value.attrs)
            key = ("call", _operator(value), attributes, *passed)
            if _makes_memory(value.op):
                # Each call returns new memory: they are equal by order only.
                self._seen[key] += 1
                key = (*key, f"#{self._seen[key]}")
            return self._numbers.of(key)
        if value is None or kind in (relax.If, relax.Function, relax.SeqExpr):
            return self._numbers.of(("own", hash(value)))
        return self._numbers.of(("expression", kind.__name__, tvm_ffi.structural_hash(value)))


def _value(bound: Bound) -> Any:
    return getattr(bound.binding, "value", None)


def _makes_memory(operator: Any) -> bool:
    return isinstance(operator, ir.Op) and "alloc" in operator.name


def _constant(value: Any) -> tuple[object, ...]:
    # Passes re-wrap constants around the same elements.
    return elements_of(value) if isinstance(value, tvm_ffi.Tensor) else (str(value),)


def _operator(call: Any) -> str:
    """Return the callee: a function of the module has one name, however it is called."""
    callee = callee_of(call)
    if isinstance(callee, ir.GlobalVar):
        return f"@{callee.name_hint}"
    if isinstance(call.op, ir.Op):
        return str(call.op.name)
    if isinstance(call.op, relax.ExternFunc):
        return f"extern {call.op.global_symbol}"
    return f"variable {hash(call.op)}"


def _passed(call: Any) -> list[Any]:
    """Return the arguments that a call passes, those of ``call_tir`` flattened."""
    arguments = list(call.args)
    if isinstance(call.op, ir.Op) and call.op.name == _CALL_TIR:
        _, given, *more = arguments
        return [*(given.fields if type(given) is relax.Tuple else [given]), *more]
    return arguments
