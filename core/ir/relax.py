"""The bindings of Relax functions with their ids, and what each of them calls."""

from __future__ import annotations

import re
import threading
from collections import Counter, UserList
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from tvm import IRModule, ir, relax, tirx

BUILTIN = "vm.builtin."
"""Prefix of the virtual machine's own functions."""

_NOT_IN_NAMES = re.compile(r"\W")


class _OfThread(threading.local, UserList[Any]):
    """A list of which each thread has its own."""


# TVM has one for all threads: two of them that build functions at once would mix them up.
relax.BlockBuilder._stack = _OfThread()


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding of a Relax function.

    `id`: ``relax:FUNCTION/VARIABLE``. Where a variable's name comes more than once in a function,
        the later ids end in ``#2``, ``#3`` and so on.
    `variable`: the variable's name.
    `name`: the variable as the script writes it: the later ones of a name end in ``_1``, ``_2``.
    `binding`: the ``VarBinding`` or ``MatchCast``.
    """

    id: str
    variable: str
    name: str
    binding: Any

    @property
    def value(self) -> Any:
        """The value of the binding; ``None`` where it has none."""
        return getattr(self.binding, "value", None)


def relax_functions(module: IRModule) -> Iterator[tuple[str, Any]]:
    """Yield name and function of each Relax function of `module`, ``main`` first."""
    # Exact types: TVM's classes are abstract ones to Python, and `isinstance` of these is slow.
    functions = [
        (variable.name_hint, function)
        for variable, function in module.functions_items()
        if type(function) is relax.Function
    ]
    yield from sorted(functions, key=lambda item: item[0] != "main")


def bound_in(name: str, function: Any) -> tuple[Bound, ...]:
    """Return the bindings of a Relax function, those of branches and inner functions included."""
    seen: Counter[str] = Counter()
    written = {parameter.name for parameter in getattr(function, "params", ())}
    result: list[Bound] = []
    for binding in _bindings(function):
        # A str, where TVM has a kind of its own.
        variable = str(binding.var.name)
        seen[variable] += 1
        position = f"#{seen[variable]}" if seen[variable] > 1 else ""
        title = _unused(variable, written)
        written.add(title)
        result.append(Bound(f"relax:{name}/{variable}{position}", variable, title, binding))
    return tuple(result)


def binding_ids(module: IRModule) -> tuple[Bound, ...]:
    """Return the bindings of every Relax function of `module`, in order."""
    return tuple(
        bound for name, function in relax_functions(module) for bound in bound_in(name, function)
    )


class Bindings:
    """The bindings of modules; the last few of these are walked once each."""

    MOST = 4

    def __init__(self) -> None:
        # The modules are kept with them, so that no other one gets the address of one.
        self._known: dict[int, tuple[IRModule, tuple[Bound, ...]]] = {}

    def of(self, module: IRModule) -> tuple[Bound, ...]:
        """Return the bindings of every Relax function of `module`, in order."""
        address = module.__chandle__()
        known = self._known.get(address)
        if known is None:
            known = module, binding_ids(module)
            # Replaced and not changed: other threads may read it.
            before = list(self._known.items())[1 - self.MOST :]
            self._known = {**dict(before), address: known}
        return known[1]


def entity_of(callee: Any, module: IRModule) -> str:
    """Return the id of a function that is called: ``relax:…``, ``tir:…`` or ``ext:…``."""
    if isinstance(callee, relax.ExternFunc):
        own = own_function(module, str(callee.global_symbol))
        return f"ext:{callee.global_symbol}" if own is None else f"tir:{own.name_hint}"
    function = module.functions.get(callee)
    if isinstance(function, relax.ExternFunc):
        return f"ext:{function.global_symbol}"
    kind = "relax" if isinstance(function, relax.Function) else "tir"
    return f"{kind}:{callee.name_hint}"


def own_function(module: IRModule, symbol: str) -> Any | None:
    """Return the variable of the TensorIR function that code outside knows as `symbol`, if any.

    The virtual machine looks for functions that are called by name among these first.
    """
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc) and function.attrs.get("global_symbol") == symbol:
            return variable
    return None


def callee_of(value: Any) -> Any | None:
    """Return the ``GlobalVar`` or ``ExternFunc`` that a binding's value calls, if any.

    The operators that call a function, such as ``call_tir`` and ``call_dps_packed``, have it as
    their first argument.
    """
    if type(value) is not relax.Call:
        return None
    callee = value.op
    if type(callee) is ir.Op and len(value.args) > 0:
        callee = value.args[0]
    return callee if type(callee) in (ir.GlobalVar, relax.ExternFunc) else None


def called_name(value: Any) -> str:
    """Return the name of the function of its module that a value calls; empty for none."""
    callee: Any = callee_of(value)
    return str(callee.name_hint) if type(callee) is ir.GlobalVar else ""


def operator_of(value: Any) -> str:
    """Return the name of the operator that a value calls, such as ``relax.add``; empty for none."""
    is_call = type(value) is relax.Call and type(value.op) is ir.Op
    return str(value.op.name) if is_call else ""


def writes_arguments(binding: Any) -> bool:
    """Return whether a binding is a call that a pass has made: it only writes into its arguments.

    Such a call of a function of the module returns an empty tuple; one of an external function has
    no known type.
    """
    kind = binding.var.ty
    if isinstance(kind, relax.TupleType):
        return not kind.fields
    value: Any = getattr(binding, "value", None)
    return (
        type(value) is relax.Call
        and type(value.op) is relax.ExternFunc
        and not isinstance(kind, relax.TensorType)
        and not str(value.op.global_symbol).startswith(BUILTIN)
    )


def calls_of(
    module: IRModule, bounds: Sequence[Bound] | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Return, for the id of each function that is called, the ids of the bindings that do.

    `bounds`: the bindings of `module`, where they are known.
    """
    calls: dict[str, list[str]] = {}
    for bound in binding_ids(module) if bounds is None else bounds:
        callee = callee_of(bound.value)
        if callee is not None:
            calls.setdefault(entity_of(callee, module), []).append(bound.id)
    return {function: tuple(bindings) for function, bindings in calls.items()}


def _unused(name: str, used: set[str]) -> str:
    """Return the name that TVM's printer gives a variable where those of `used` are taken."""
    # Most are free, and there are thousands of them.
    if name.isidentifier() and name not in used:
        return name
    plain = _NOT_IN_NAMES.sub("_", name)
    candidates = chain([plain], (f"{plain}_{number}" for number in count(1)))
    return next(candidate for candidate in candidates if candidate not in used)


_WITH_BINDINGS = (relax.Function, relax.If, relax.SeqExpr)


def _bindings(expression: Any) -> Iterator[Any]:
    kind = type(expression)
    if kind is relax.Function:
        yield from _bindings(expression.body)
    elif kind is relax.If:
        yield from _bindings(expression.true_branch)
        yield from _bindings(expression.false_branch)
    elif kind is relax.SeqExpr:
        for block in expression.blocks:
            for binding in block.bindings:
                yield binding
                value = getattr(binding, "value", None)
                if type(value) in _WITH_BINDINGS:
                    yield from _bindings(value)


# --- Identity of constants by address: TVM re-wraps shared data ---

Elements = tuple[int, tuple[int, ...], str]
"""Address, shape and dtype."""


def elements_of(tensor: Any) -> Elements:
    """Return a key that TVM tensors over the same elements share while one of them exists."""
    return tensor.data_ptr(), tuple(tensor.shape), str(tensor.dtype)
