"""LegalizeOps with a cache for equal calls, and cancellation, for large models.

TVM makes a function for each call of an operator, and drops it if the module has an equal one: 4 ms
of the processor for a layer of six calls. A call of the same operator with the same attributes on
tensors of the same types has the function of the first one: 0.5 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import GenericConst

Legalise = Callable[[relax.BlockBuilder, Any], Any]

LEGALISE = "LegalizeOps"

_CALL_TIR = tvm.ir.Op.get("relax.call_tir")


def legalise_operators(make: Callable[..., Any], check: Callable[[], None], **given: Any) -> Any:
    """Return the pass ``LegalizeOps``, which does what TVM's does.

    Args:
        check: Called before each call of an operator; may raise to cancel.
    """
    legalised = _Legalised(check)
    forms = {
        name: legalised.form(name, stock)
        for name in _relax_operators(len(tvm.ir.Op.list_op_names()))
        if (stock := tvm.ir.Op.get(name).get_attr("FLegalize"))
    }
    return make(customize_legalize_map=forms, **given)


@lru_cache(maxsize=1)
def _relax_operators(_count: int) -> tuple[str, ...]:
    """Return the names of all operators of Relax, of so many operators in all.

    They are only ever added, and going through TVM's array takes a tenth of opening a small model.
    """
    return tuple(name for name in tvm.ir.Op.list_op_names() if name.startswith("relax."))


@dataclass(frozen=True)
class _Known:
    """Legalised form of a call: its attributes and type, and the arguments passed."""

    attrs: Any
    type: Any
    result: Any
    places: tuple[int, ...]


class _Legalised:
    """Legalised calls in one module."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._known: dict[Hashable, list[_Known]] = {}

    def form(self, name: str, stock: Legalise) -> Legalise:
        """Return the legalisation of an operator: `stock`, for the first of equal calls only."""

        def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
            self._check()
            key = _key(name, call)
            alike = [] if key is None else self._known.setdefault(key, [])
            for known in alike:
                if _equal(known.attrs, call.attrs) and _equal(known.type, call.ty):
                    return _again(known, call)
            result = stock(builder, call)
            places = None if key is None else _places(result, call)
            if places is not None:
                alike.append(_Known(call.attrs, call.ty, result, places))
            return result

        return legalise


def _key(name: str, call: Any) -> Hashable | None:
    """Return the key of a call's function besides attributes; ``None`` if unknown."""
    parts = []
    for number, each in enumerate(call.args):
        part = _part(each)
        if part is None:
            return None
        # A tensor passed twice is one argument of the function.
        same = next(place for place, other in enumerate(call.args) if each.same_as(other))
        parts.append((part, number if same == number else same))
    return (name, *parts)


def _part(value: Any) -> Hashable | None:
    if isinstance(value, relax.ShapeExpr):
        return _numbers(value)
    if not isinstance(value, relax.Expr) or not isinstance(value.ty, relax.TensorType):
        return None
    if isinstance(value, GenericConst) and value.ty.ndim == 0:
        # It becomes a number in the function.
        return str(value.ty.dtype), value.value.numpy().tobytes()
    if value.ty.vdevice is not None or not isinstance(value.ty.shape, relax.ShapeExpr):
        return None
    numbers = _numbers(value.ty.shape)
    return None if numbers is None else (str(value.ty.dtype), numbers)


def _numbers(shape: relax.ShapeExpr) -> tuple[int, ...] | None:
    values = tuple(shape.values)
    if not all(isinstance(each, tirx.IntImm) for each in values):
        return None
    return tuple(int(each) for each in values)


def _places(result: Any, call: Any) -> tuple[int, ...] | None:
    """Return the arguments that a call's function takes; ``None`` if it is more than a call."""
    if not isinstance(result, tvm.ir.Call) or not _CALL_TIR.same_as(result.op):
        return None
    if len(result.args) != 2 or not isinstance(result.args[1], relax.Tuple):
        return None
    places = []
    for each in result.args[1].fields:
        place = next((i for i, given in enumerate(call.args) if each.same_as(given)), None)
        if place is None:
            return None
        places.append(place)
    return tuple(places)


def _again(known: _Known, call: Any) -> Any:
    """Return the call of the same function with another call's arguments."""
    given = relax.Tuple([call.args[place] for place in known.places])
    result = known.result
    return relax.Call(_CALL_TIR, [result.args[0], given], result.attrs, result.ty_args)


def _equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return bool(tvm_ffi.structural_equal(one, other))
