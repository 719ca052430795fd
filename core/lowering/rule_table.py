"""Table of lowering rules: one entry for each operator, by the target of a node.

A rule is a function whose parameters have torch's names, so that Python itself matches positional
and keyword arguments, and an unknown argument is rejected instead of ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from torch import nn
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.values import (
    HALF,
    EncodedTensor,
    Value,
    dtype_of,
    held_from,
    held_type,
    is_dtype,
    is_float,
    is_tensor,
    leaves,
)
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import OnnxNode

Lower = Callable[..., Value]
Found = TypeVar("Found")


class Refused(Exception):
    """Rejection of arguments that a rule does not cover, with the reason."""


@dataclass(frozen=True)
class Missing:
    """A member of an operator's result that TVM does not compute; reading it is an error."""

    reason: str


@dataclass(frozen=True)
class Rule:
    """Lowering rule of one operator.

    `lower`: called with the builder, the module for a ``call_module`` node, and the node's
        arguments.
    `exact`: whether its results are exact in half precision too, since it moves elements or rounds
        once. The others compute in float32 there, as torch does, and round at the end.
    `rounds_as_input`: whether the result has the dtype of `input` if other arguments have another
        one.
    `of_module`: whether it is a function that stands for a module: of its parameters, those that
        the call does not give are the module's attributes of the same names.
    """

    name: str
    lower: Lower
    exact: bool = False
    rounds_as_input: bool = False
    of_module: bool = False

    def apply(self, builder: NodeBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Lower one call.

        Raises `Refused` if the rule does not have these parameters, or rejects their values.
        """
        kwargs = {_SYNONYMS.get(key, key): value for key, value in kwargs.items()}
        for key in _WITHOUT_EFFECT:
            kwargs.pop(key, None)
        if kwargs.get("out", ...) is None:
            del kwargs["out"]
        signature = _signature_of(self.lower)
        if signature.rest in kwargs:
            # x.permute(dims=(1, 0)) is x.permute(1, 0)
            args = (*args, kwargs.pop(signature.rest))
        own: dict[str, Any] = {}
        if self.of_module:
            module, *args = args
            own = _attributes(module, signature, args, kwargs)
        if own or kwargs or not signature.fewest <= len(args) <= signature.most:
            try:
                signature.whole.bind(builder, *args, **kwargs, **own)
            except TypeError as error:
                raise Refused(_("its arguments are not supported: {error}", error=error)) from error
        half = "" if self.exact else _half_dtype((args, kwargs))
        if self.rounds_as_input:
            half = _half_dtype(kwargs["input"] if "input" in kwargs else args[0])
        if not half:
            constants = _constants(builder, own)
            if not any(isinstance(each, EncodedTensor) for each in leaves([args, kwargs])):
                refuse_encoded(constants)
            return self.lower(builder, *args, **kwargs, **constants)
        args, kwargs = _in_float32(builder, args), _in_float32(builder, kwargs)
        with builder.constants_in_float32():
            value = self.lower(builder, *args, **kwargs, **_constants(builder, own))
        asked = any(isinstance(each, torch.dtype) for each in (*args, *kwargs.values()))
        return value if asked else _rounded(builder, value, half)


def _half_dtype(value: Any) -> str:
    """Return the half-precision dtype of all floating-point arguments; else empty."""
    dtypes = {dtype for dtype in map(dtype_of, filter(is_tensor, leaves(value))) if is_float(dtype)}
    only = dtypes.pop() if len(dtypes) == 1 else ""
    return only if only in HALF else ""


def _in_float32(builder: NodeBuilder, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_in_float32(builder, each) for each in value)
    if isinstance(value, dict):
        return {key: _in_float32(builder, each) for key, each in value.items()}
    if is_tensor(value) and dtype_of(value) in HALF:
        return builder.emit(op.astype(value, "float32"))
    return value


def _rounded(builder: NodeBuilder, value: Value, half: str) -> Value:
    """Round a value computed in float32 to half precision."""
    if isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        members = range(len(value.ty.fields))
        return tuple(_rounded(builder, builder.emit(value[each]), half) for each in members)
    if isinstance(value, (tuple, list)):
        return type(value)(_rounded(builder, each, half) for each in value)
    if is_tensor(value) and dtype_of(value) == "float32":
        return builder.emit(op.astype(value, half))
    return value


@dataclass(frozen=True)
class _Signature:
    """Signature of a rule: number of positional arguments after the builder, and names."""

    whole: inspect.Signature
    fewest: int
    most: float
    rest: str
    names: tuple[str, ...]


def _attributes(
    module: nn.Module, signature: _Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the attributes of a module for the parameters that its call does not give."""
    missing = [name for name in signature.names[len(args) :] if name not in kwargs]
    return {name: getattr(module, name) for name in missing if hasattr(module, name)}


def refuse_encoded(values: Any) -> None:
    """Raise `Refused` if there is a tensor among some values of a dtype that TVM lacks."""
    for each in leaves(values, slices=True):
        if isinstance(each, EncodedTensor):
            raise Refused(_("TVM has no {dtype}", dtype=each.dtype))


def _constants(builder: NodeBuilder, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: constant(builder, value) if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


def constant(builder: NodeBuilder, tensor: torch.Tensor) -> Value:
    """Return one of the model's tensors as a constant, encoded if TVM lacks its dtype."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if is_dtype(dtype):
        return builder.constant(tensor)
    if held_type((), dtype) is None:
        raise Refused(_("TVM has no {dtype}", dtype=dtype))
    return EncodedTensor(builder.constant(held_from(tensor.detach())), dtype)


@cache
def _signature_of(lower: Lower) -> _Signature:
    whole = inspect.signature(lower)
    kinds = inspect.Parameter
    parameters = list(whole.parameters.values())
    positional = [
        each
        for each in parameters
        if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    rest = next((each.name for each in parameters if each.kind is kinds.VAR_POSITIONAL), "")
    needed = sum(each.default is kinds.empty for each in positional)
    names = tuple(each.name for each in parameters[1:] if each.name != rest)
    most = float("inf") if rest else len(positional) - 1
    return _Signature(whole, needed - 1, most, rest, names)


def find_rule(target: Any) -> Rule | None:
    """Return the rule for the target of a node, or ``None``."""
    return find_in(RULES, target)


def find_in(table: Mapping[Any, Found], target: Any) -> Found | None:
    """Return the entry for the target of a node, or ``None``.

    A method or operator that ends in an underscore is the in-place form of the one without; the
    tracer has already tracked its mutations.
    """
    found = table.get(target)
    if found is None and isinstance(target, type) and issubclass(target, OnnxNode):
        # Each of its operators is a subclass.
        return table.get(OnnxNode)
    if found is None and isinstance(target, str) and not target.endswith("__"):
        return table.get(target.removesuffix("_"))
    if found is None and isinstance(target, torch._ops.OpOverload):
        # Operators of other libraries exist when these are imported: they are named.
        return table.get(functional_form(target)) or table.get(target._schema.name)
    return found


def functional_form(target: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    """Return the functional form of an in-place operator: ``aten.relu`` for ``aten.relu_``.

    ``None`` if `target` changes nothing, or has no such form.
    """
    name = target._schema.name.rpartition("::")[2]
    if not target._schema.is_mutable or not name.endswith("_"):
        return None
    packet = getattr(getattr(torch.ops, target.namespace), name.removesuffix("_"), None)
    found = getattr(packet, target._overloadname, None)
    return None if found is None or found._schema.is_mutable else found


RULES: dict[Any, Rule] = {}
"""Rules by module type, function object, method name or ATen overload."""

_SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "self": "input"}
"""NumPy-style names that torch accepts, and ATen's own name of the first argument."""

_WITHOUT_EFFECT = ("layout", "device", "pin_memory", "memory_format", "requires_grad", "inplace")
"""Arguments without an effect on value or shape; mutations are tracked by the tracer."""


def rule(*keys: Any, name: str = "", rounds_as_input: bool = False) -> Callable[[Lower], Lower]:
    """Register the decorated function as the rule for each of `keys`; see `Rule`.

    Of a class of modules, it is either given the module, as its parameter `module`, or the module's
    attributes of the names of its parameters.
    """
    return _entering(keys, name, rounds_as_input=rounds_as_input)


def exact(*keys: Any, name: str = "") -> Callable[[Lower], Lower]:
    """Register the decorated function as `rule` does; see `Rule.exact`."""
    return _entering(keys, name, is_exact=True)


def _entering(
    keys: tuple[Any, ...], name: str, *, is_exact: bool = False, rounds_as_input: bool = False
) -> Callable[[Lower], Lower]:
    def enter(lower: Lower) -> Lower:
        shown = name or lower.__name__.removesuffix("_module")
        takes_module = "module" in _signature_of(lower).names[:1]
        for key in dict.fromkeys(keys):
            assert key not in RULES, f"two rules for {key}"
            of_module = isinstance(key, type) and not takes_module
            RULES[key] = Rule(shown, lower, is_exact, rounds_as_input, of_module)
        return lower

    return enter
