"""The groups that ``FuseOps`` makes, and the arguments of their parameters at calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tvm import IRModule, ir, relax, tirx

from lowerscope.core.passes.bindings import Matches
from lowerscope.core.relax_bindings import callee_of, relax_functions

_CALL_TIR = ir.Op.get("relax.call_tir")


@dataclass(frozen=True)
class FusedGroup:
    """A group of bindings that ``FuseOps`` has put into a function.

    Attributes
    ----------
    name
        Of the function.
    module
        That the function is in.
    function
        The Relax function.
    origins
        The bindings of the lowered module that became those in it, by the ids of the latter;
        ``None`` where it is in the displayed module itself.
    """

    name: str
    module: IRModule
    function: Any
    origins: Matches | None = None


def groups_in(module: IRModule, origins: Matches) -> Mapping[str, FusedGroup]:
    """Return the groups of a module by name."""
    return {
        name: FusedGroup(name, module, function, origins)
        for name, function in relax_functions(module)
        if is_group(function)
    }


def group_called(
    value: Any, module: IRModule, fused: Mapping[str, FusedGroup] = MappingProxyType({})
) -> FusedGroup | None:
    """Return the group that a binding's value calls, if any.

    Parameters
    ----------
    module
        The module of the binding.
    fused
        The original groups of TensorIR functions, by name.
    """
    callee = callee_of(value)
    if not isinstance(callee, ir.GlobalVar):
        return None
    name, function = str(callee.name_hint), module.functions.get(callee)
    if is_group(function):
        return FusedGroup(name, module, function)
    return fused.get(name) if isinstance(function, tirx.PrimFunc) else None


def given_to(group: FusedGroup, value: Any) -> Mapping[Any, Any] | None:
    """Return the arguments of a group's parameters at `value`, its call or what that has become.

    ``FuseTIR`` takes the tensors of tuples one by one, in order. ``None`` where the arguments are
    no longer those of the group, such as where it gets the memory to write into.
    """
    params = list(group.function.params)
    if group.origins is None:
        return dict(zip(params, value.args, strict=True))
    if value.op != _CALL_TIR or not isinstance(value.args[1], relax.Tuple):
        return None
    fields = list(value.args[1].fields)
    given: dict[Any, Any] = {}
    for param in params:
        if isinstance(param.ty, relax.ShapeType):
            continue
        count = len(param.ty.fields) if isinstance(param.ty, relax.TupleType) else 1
        taken, fields = fields[:count], fields[count:]
        if len(taken) < count:
            return None
        is_tuple = isinstance(param.ty, relax.TupleType)
        given[param] = relax.Tuple(taken) if is_tuple else taken[0]
    return None if fields else given


def is_group(function: Any) -> bool:
    """Return whether a function is one that ``FuseOps`` made."""
    return (
        isinstance(function, relax.Function)
        and function.attrs is not None
        and bool(function.attrs.get("Primitive"))
    )
