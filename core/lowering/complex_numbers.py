"""Complex tensors as pairs of real ones: rules for them, made of the rules for real tensors.

Tensors that are encoded as bytes are moved by the rules as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import BoundArguments, signature
from typing import Any

import torch
from tvm import ir
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, torch_common_dtype
from lowerscope.core.lowering.rule_table import Lower, Refused, Rule, find_rule
from lowerscope.core.lowering.values import (
    BYTES,
    COMPLEX,
    EncodedTensor,
    Value,
    is_tensor,
    leaves,
    rank_of,
    same_sizes,
    shape_of,
)
from lowerscope.core.model.texts import _

Part = Any
"""A real tensor or number; ``None`` for 0."""

OF_COMPLEX: dict[str, Lower] = {}
"""Rules for complex arguments, by the name of the rule for real ones."""

_PARTWISE = frozenset(
    {
        *("reshape", "flatten", "ravel", "unflatten", "squeeze", "unsqueeze", "transpose", "t"),
        *("permute", "movedim", "expand", "repeat", "tile", "flip", "fliplr", "flipud", "rot90"),
        *("roll", "tril", "triu", "identity", "getitem", "select", "slice", "narrow", "chunk"),
        *("split", "tensor_split", "unbind", "index_select", "take_along_dim", "gather", "unfold"),
        *("cat", "stack", "hstack", "vstack", "dstack", "column_stack", "repeat_interleave"),
        *("sum", "mean", "cumsum", "trace", "neg", "copy", "slice_scatter", "zeros"),
        *("select_scatter", "index_put", "index_add", "index_copy", "zeros_like", "new_zeros"),
        *("where", "fill", "zero", "masked_fill", "pad", "full", "full_like", "new_full"),
        *("diagonal", "diagonal_scatter", "scatter"),
    }
)
"""Rules that hold for real and imaginary parts, one by one."""

_MOVES = frozenset(
    {
        *("reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "t", "permute"),
        *("movedim", "expand", "identity", "getitem", "select", "slice", "narrow"),
    }
)
"""Rules that move the elements of one tensor, whatever they are."""

_CASTS = frozenset({"to", "float", "double", "half", "bfloat16"})
"""Rules that read numbers that are encoded as bytes."""

_BILINEAR = frozenset({"matmul", "einsum", "outer", "linear"})
"""Rules for products of two tensors."""

_CONJUGATES = (torch.vdot, "vdot", torch.ops.aten.vdot.default)
"""Keys of `matmul` that take the conjugate of the first of complex arguments."""


def is_complex(value: Any) -> bool:
    """Return whether a leaf of a node's arguments is complex, or a complex dtype."""
    if isinstance(value, EncodedTensor):
        return value.dtype in COMPLEX
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.") in COMPLEX
    return isinstance(value, complex)


def rule_for(target: Any, args: Any, kwargs: Any) -> Rule | None:
    """Return the rule for a call, or ``None``: that for complex arguments, if there are any."""
    rule = find_rule(target)
    given = list(leaves([args, kwargs], slices=True))
    if rule is None or rule.name == "check":
        return rule
    if any(isinstance(each, EncodedTensor) and each.dtype in BYTES for each in given):
        if rule.name in _MOVES:
            return replace(rule, lower=_of_bytes(rule), exact=True)
        return replace(rule, exact=True) if rule.name in _CASTS else None
    if not any(map(is_complex, given)):
        return rule
    if rule.name in OF_COMPLEX:
        return replace(rule, lower=OF_COMPLEX[rule.name], exact=True)
    if rule.name in _PARTWISE:
        return replace(rule, lower=_partwise(rule), exact=True)
    if rule.name in _BILINEAR:
        conjugated = target in _CONJUGATES
        return replace(rule, lower=_bilinear(rule, conjugated), exact=True)
    return None


def of_complex(name: str) -> Callable[[Lower], Lower]:
    """Register the decorated function as the rule `name` for complex arguments."""

    def enter(lower: Lower) -> Lower:
        OF_COMPLEX[name] = lower
        return lower

    return enter


def part_dtype(dtype: str) -> str:
    """Return the dtype of the parts of numbers of `dtype`: ``float32`` for ``complex64``."""
    return COMPLEX.get(dtype, dtype)


def parts_of(b: NodeBuilder, value: Value) -> tuple[Part, Part]:
    """Return the real and the imaginary part of a tensor or number, of its own dtype."""
    if isinstance(value, complex):
        return value.real, value.imag
    if not isinstance(value, EncodedTensor):
        return value, None
    if value.parts is not None:
        return value.parts
    axis = rank_of(value.value) - 1
    return _member(b, value.value, axis, 0), _member(b, value.value, axis, 1)


def _member(b: NodeBuilder, value: Value, axis: int, place: int) -> Value:
    cut = b.emit(op.strided_slice(value, [axis], [place], [place + 1], [1]))
    return b.emit(op.squeeze(cut, [axis]))


def joined(b: NodeBuilder, parts: Iterable[Part], dtype: str) -> EncodedTensor:
    """Return the complex tensor of two parts; at least one of them is a tensor."""
    kind = part_dtype(dtype)
    real, imaginary = parts
    tensors = [each for each in (real, imaginary) if is_tensor(each)]
    shape = shape_of(max(tensors, key=rank_of))
    real, imaginary = (_filled(b, each, shape, kind) for each in (real, imaginary))
    value = b.emit(op.stack([real, imaginary], rank_of(real)))
    return EncodedTensor(value, dtype, (real, imaginary))


def _filled(b: NodeBuilder, part: Part, shape: Sequence[Any], dtype: str) -> Value:
    """Return a part as a tensor of this shape and dtype."""
    if part is None:
        return b.emit(op.zeros(list(shape), dtype))
    value = cast(b, part, dtype)
    if same_sizes(shape_of(value), shape):
        return value
    return b.emit(op.broadcast_to(value, list(shape)))


def complex_of(*values: Value) -> str:
    """Return the complex dtype to which torch promotes these values."""
    dtype = str(torch_common_dtype(*values)).removeprefix("torch.")
    return {"float64": "complex128"}.get(dtype, dtype if dtype in COMPLEX else "complex64")


def _of_bytes(rule: Rule) -> Lower:
    @wraps(rule.lower)
    def lower(b: NodeBuilder, *args: Any, **kwargs: Any) -> Value:
        given = list(leaves([args, kwargs]))
        if any(isinstance(each, torch.dtype) for each in given):
            return rule.lower(b, *args, **kwargs)
        dtype = next(each.dtype for each in given if isinstance(each, EncodedTensor))

        def held(value: Any) -> Any:
            return value.value if isinstance(value, EncodedTensor) else value

        made = rule.lower(b, *_mapped(args, held), **_mapped(kwargs, held))
        return _mapped(made, lambda each: EncodedTensor(each, dtype) if is_tensor(each) else each)

    return lower


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a nest of values with each leaf changed."""
    if isinstance(value, tuple | list):
        made = [_mapped(each, change) for each in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    return change(value)


_ELEMENTS = frozenset(
    {"input", "tensors", "src", "source", "values", "value", "fill_value", "other"}
)
"""Parameters of rules that take elements of the result; others take sizes, indices or masks."""


def _partwise(rule: Rule) -> Lower:
    @wraps(rule.lower)
    def lower(b: NodeBuilder, *args: Any, **kwargs: Any) -> Value:
        bound = signature(rule.lower).bind(b, *args, **kwargs)
        dtypes = [each for each in leaves([args, kwargs]) if isinstance(each, torch.dtype)]
        elements = [bound.arguments[name] for name in bound.arguments if name in _ELEMENTS]
        given = filter(_is_element, leaves(elements))
        dtype = str(dtypes[0]).removeprefix("torch.") if dtypes else complex_of(*given)
        _check_is_partwise(bound.arguments)

        def of_part(index: int) -> Value:
            def part(value: Any) -> Any:
                return _part(b, value, index, part_dtype(dtype))

            changed = {
                name: _mapped(each, part if name in _ELEMENTS else _real_dtype)
                for name, each in bound.arguments.items()
            }
            made = BoundArguments(bound.signature, changed)
            return rule.lower(*made.args, **made.kwargs)

        if dtype not in COMPLEX:
            return of_part(0)
        return _joined_all(b, of_part(0), of_part(1), dtype)

    return lower


def _check_is_partwise(arguments: Mapping[str, Any]) -> None:
    """Raise `Refused` if an argument changes both parts in the same way."""
    for name, each in arguments.items():
        others = name not in _ELEMENTS and any(
            is_complex(leaf) and not isinstance(leaf, torch.dtype) for leaf in leaves(each)
        )
        fills = bool(getattr(each, "value", False)) if name == "module" else False
        if others or fills:
            raise Refused(
                _("{name} cannot be applied to real and imaginary parts separately", name=name)
            )


def _part(b: NodeBuilder, value: Any, index: int, dtype: str) -> Any:
    """Return the part of an element or of a tensor of elements, of this dtype."""
    if not _is_element(value):
        return value
    found = parts_of(b, value)[index]
    if found is None:
        return b.emit(op.zeros(list(shape_of(value)), dtype)) if is_tensor(value) else 0.0
    return cast(b, found, dtype) if is_tensor(found) else found


def _is_element(value: Any) -> bool:
    return isinstance(value, EncodedTensor | int | float | complex) or is_tensor(value)


def _real_dtype(value: Any) -> Any:
    """Return the dtype of the parts, for a complex dtype; another value unchanged."""
    if not isinstance(value, torch.dtype):
        return value
    return getattr(torch, part_dtype(str(value).removeprefix("torch.")))


def _joined_all(b: NodeBuilder, real: Value, imaginary: Value, dtype: str) -> Value:
    if isinstance(real, ir.Expr) and not is_tensor(real):
        members = range(len(real.ty.fields))
        real = tuple(b.emit(real[each]) for each in members)
        imaginary = tuple(b.emit(imaginary[each]) for each in members)
    if isinstance(real, (tuple, list)):
        pairs = zip(real, imaginary, strict=True)
        return type(real)(_joined_all(b, *each, dtype) for each in pairs)
    return joined(b, (real, imaginary), dtype)


def _bilinear(rule: Rule, conjugated: bool) -> Lower:
    @wraps(rule.lower)
    def lower(b: NodeBuilder, *args: Any, **kwargs: Any) -> Value:
        bias = None
        if rule.name == "linear":
            bias = kwargs.pop("bias", None) if len(args) < 3 else args[2]
            args = args[:2]
        factors = [
            each
            for each in leaves([args, kwargs])
            if isinstance(each, EncodedTensor) or is_tensor(each)
        ]
        if len(factors) != 2:
            raise Refused(_("it is not a product of two complex tensors"))
        dtype = complex_of(*factors)
        first, second = (_cast(b, parts_of(b, each), dtype) for each in factors)
        if conjugated:
            first = first[0], minus(b, None, first[1])

        def product(one: Part, other: Part) -> Part:
            if one is None or other is None:
                return None
            given = iter((one, other))

            def of(value: Any) -> Any:
                is_factor = isinstance(value, EncodedTensor) or is_tensor(value)
                return next(given) if is_factor else value

            return rule.lower(b, *_mapped(args, of), **_mapped(kwargs, of))

        parts = multiplied(b, product, first, second)
        if bias is not None:
            added = zip(parts, _cast(b, parts_of(b, bias), dtype), strict=True)
            parts = tuple(plus(b, *each) for each in added)
        return joined(b, parts, dtype)

    return lower


def _cast(b: NodeBuilder, parts: tuple[Part, Part], dtype: str) -> tuple[Part, Part]:
    kind = part_dtype(dtype)
    real, imaginary = (None if each is None else cast(b, each, kind) for each in parts)
    return real, imaginary


def multiplied(
    b: NodeBuilder,
    product: Callable[[Part, Part], Part],
    first: tuple[Part, Part],
    second: tuple[Part, Part],
) -> tuple[Part, Part]:
    """Return the parts of the product of two complex values, given that of real ones."""
    (a, c), (d, e) = first, second
    real = minus(b, product(a, d), product(c, e))
    return real, plus(b, product(a, e), product(c, d))


def times(b: NodeBuilder) -> Callable[[Part, Part], Part]:
    """Return the elementwise product of two parts of one dtype."""

    def product(one: Part, other: Part) -> Part:
        return None if one is None or other is None else b.emit(op.multiply(one, other))

    return product


def plus(b: NodeBuilder, one: Part, other: Part) -> Part:
    """Return the sum of two parts of one dtype."""
    if one is None or other is None:
        return other if one is None else one
    return b.emit(op.add(one, other))


def minus(b: NodeBuilder, one: Part, other: Part) -> Part:
    """Return the difference of two parts of one dtype."""
    if other is None:
        return one
    return b.emit(op.negative(other) if one is None else op.subtract(one, other))


def in_one_dtype(b: NodeBuilder, values: Sequence[Value]) -> tuple[str, list[tuple[Part, Part]]]:
    """Return the complex dtype of some values together, and their parts, cast to it."""
    dtype = complex_of(*values)
    return dtype, [_cast(b, parts_of(b, each), dtype) for each in values]
