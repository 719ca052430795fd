"""The table of lowering rules: one entry for each operator, looked up by what a node calls.

A rule is a function whose parameters are named as torch names them, so that Python itself
matches positional and keyword arguments, and an argument that the rule does not know is refused
instead of ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import Value

Lower = Callable[..., Value]
Found = TypeVar("Found")


class Refused(Exception):
    """A rule's word that it does not cover what it is given, with the reason."""


@dataclass(frozen=True)
class Missing:
    """A member of an operator's result that TVM does not compute; an error once it is read."""

    reason: str


@dataclass(frozen=True)
class Rule:
    """How one operator is lowered.

    Attributes
    ----------
    name
        As it is shown.
    lower
        Called with the builder, the module for a ``call_module`` node, and the node's arguments.
    """

    name: str
    lower: Lower

    def apply(self, builder: NodeBuilder, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Lower one call.

        Raises
        ------
        Refused
            If the rule does not take these arguments, or refuses their values.
        """
        kwargs = {_SYNONYMS.get(key, key): value for key, value in kwargs.items()}
        for key in _WITHOUT_EFFECT:
            kwargs.pop(key, None)
        if kwargs.get("out", ...) is None:
            del kwargs["out"]
        signature = _signature_of(self.lower)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL and name in kwargs:
                # x.permute(dims=(1, 0)) is x.permute(1, 0)
                args = (*args, kwargs.pop(name))
        try:
            signature.bind(builder, *args, **kwargs)
        except TypeError as error:
            raise Refused(f"its arguments are not covered: {error}") from error
        return self.lower(builder, *args, **kwargs)


@cache
def _signature_of(lower: Lower) -> inspect.Signature:
    return inspect.signature(lower)


def find_rule(target: Any) -> Rule | None:
    """Return the rule for what a node calls, or ``None``."""
    return find_in(RULES, target)


def find_in(table: Mapping[Any, Found], target: Any) -> Found | None:
    """Return the entry for what a node calls, or ``None``.

    A method or operator that ends in an underscore is the in-place form of the one without; the
    tracer has followed what it changes.
    """
    found = table.get(target)
    if found is None and isinstance(target, str) and not target.endswith("__"):
        return table.get(target.removesuffix("_"))
    if found is None and isinstance(target, torch._ops.OpOverload):
        return table.get(functional_form(target))
    return found


def functional_form(target: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    """Return what ``aten.relu_`` computes without changing its argument: ``aten.relu``.

    ``None`` where `target` changes nothing, or has no such form.
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
"""Names that torch takes from NumPy, and ATen's own name for the first argument."""

_WITHOUT_EFFECT = ("layout", "device", "pin_memory", "memory_format", "requires_grad", "inplace")
"""Arguments that change neither a value nor a shape; in-place changes the tracer has followed."""


def rule(*keys: Any, name: str = "") -> Callable[[Lower], Lower]:
    """Enter the decorated function as the rule for each of `keys`."""

    def enter(lower: Lower) -> Lower:
        entry = Rule(name or lower.__name__.removesuffix("_module"), lower)
        for key in dict.fromkeys(keys):
            assert key not in RULES, f"two rules for {key}"
            RULES[key] = entry
        return lower

    return enter
