"""Complex numbers, and the discrete Fourier transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, wraps
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.complex_numbers import (
    Part,
    complex_of,
    in_one_dtype,
    joined,
    minus,
    multiplied,
    of_complex,
    part_dtype,
    parts_of,
    plus,
    times,
)
from lowerscope.core.lowering.fourier_loops import (
    Transform,
    is_smooth,
    next_smooth,
    te_transform,
    twiddles,
)
from lowerscope.core.lowering.rule_table import Lower, Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add, atan2, div, hypot, maximum, mul, sub
from lowerscope.core.lowering.rules.convolution import pad_by
from lowerscope.core.lowering.rules.creation import ones
from lowerscope.core.lowering.rules.reduction import (
    linalg_norm,
    matrix_norm,
    norm,
    var,
    vector_norm,
)
from lowerscope.core.lowering.rules.shape import attribute, broadcast_to, permute_to, reshape_to
from lowerscope.core.lowering.rules.writing import unfold
from lowerscope.core.lowering.values import (
    COMPLEX,
    EncodedTensor,
    Value,
    axis_of,
    dtype_of,
    is_float,
    is_tensor,
    rank_of,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


def _encoded(value: Value) -> EncodedTensor:
    if not isinstance(value, EncodedTensor):
        raise Refused(_("its argument is not complex"))
    return value


# From and to real tensors


@exact(torch.view_as_complex, aten.view_as_complex.default)
def view_as_complex(b: NodeBuilder, input: Value) -> Value:
    dtype = {"float32": "complex64", "float64": "complex128"}.get(dtype_of(input))
    if dtype is None:
        raise Refused(_("TVM has no {dtype}", dtype="complex32"))
    return EncodedTensor(input, dtype)


@of_complex("view_as_real")
@exact(torch.view_as_real, aten.view_as_real.default)
def view_as_real(b: NodeBuilder, input: Value) -> Value:
    return _encoded(input).value


@exact(torch.complex, aten.complex.default)
def complex(b: NodeBuilder, real: Value, imag: Value) -> Value:
    return joined(b, (real, imag), complex_of(real))


@rule(torch.polar, aten.polar.default)
def polar(b: NodeBuilder, abs: Value, angle: Value) -> Value:
    dtype = complex_of(abs)
    cosine, sine = b.emit(op.cos(angle)), b.emit(op.sin(angle))
    return joined(b, (mul(b, abs, cosine), mul(b, abs, sine)), dtype)


@of_complex("real")
@exact(torch.real, aten.real.default)
def real(b: NodeBuilder, input: Value) -> Value:
    return parts_of(b, input)[0]


@of_complex("imag")
@exact(torch.imag, aten.imag.default)
def imag(b: NodeBuilder, input: Value) -> Value:
    _real, imaginary = parts_of(b, _encoded(input))
    return imaginary


@of_complex("conj")
@exact(torch.conj, "conj", torch.conj_physical, aten.conj.default, aten._conj.default)
def conj(b: NodeBuilder, input: Value) -> Value:
    if not isinstance(input, EncodedTensor):
        return input
    first, second = parts_of(b, input)
    return joined(b, (first, minus(b, None, second)), input.dtype)


@of_complex("resolve_conj")
@exact(torch.resolve_conj, "resolve_conj", "resolve_neg", torch.resolve_neg)
def resolve_conj(b: NodeBuilder, input: Value) -> Value:
    return input


@of_complex("attribute")
def complex_attribute(b: NodeBuilder, input: Value, name: str) -> Any:
    first, second = parts_of(b, input)
    match name:
        case "real":
            return first
        case "imag":
            return second
        case "dtype":
            return getattr(torch, input.dtype)
        case "T" | "mT":
            parts = (attribute(b, each, name) for each in (first, second))
            return joined(b, parts, input.dtype)
        case "H" | "mH":
            return complex_attribute(b, conj(b, input), "mT")
        case _:
            return attribute(b, first, name)


@of_complex("size")
def complex_size(b: NodeBuilder, input: Value, dim: int | None = None) -> Any:
    shape = shape_of(input.value)[:-1]
    return shape if dim is None else shape[dim]


@of_complex("dim")
def complex_dim(b: NodeBuilder, input: Value) -> int:
    return rank_of(input.value) - 1


@of_complex("numel")
def complex_numel(b: NodeBuilder, input: Value) -> int:
    return math.prod(complex_size(b, input))


@of_complex("is_complex")
@exact(torch.is_complex, "is_complex", name="is_complex")
def is_complex_tensor(b: NodeBuilder, input: Value) -> bool:
    return isinstance(input, EncodedTensor)


@of_complex("is_floating_point")
def complex_is_floating_point(b: NodeBuilder, input: Value) -> bool:
    return False


@of_complex("eq")
def complex_eq(b: NodeBuilder, input: Value, other: Value) -> Value:
    _dtype, (first, second) = in_one_dtype(b, [input, other])
    none = cast(b, 0.0, dtype_of(first[0]))
    same = (
        b.emit(op.equal(*(none if each is None else each for each in pair)))
        for pair in zip(first, second, strict=True)
    )
    return b.emit(op.logical_and(*same))


@of_complex("ne")
def complex_ne(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.logical_not(complex_eq(b, input, other)))


@of_complex("to")
def complex_to(b: NodeBuilder, input: Value, *args: Any, dtype: Any = None, **_others: Any) -> Any:
    kinds = [each for each in (*args, dtype) if isinstance(each, torch.dtype)]
    kind = str(kinds[0]).removeprefix("torch.") if kinds else _dtype_among(args)
    if not kind or (isinstance(input, EncodedTensor) and input.dtype == kind):
        return input
    if kind == "bool":
        return complex_ne(b, input, 0)
    if kind in COMPLEX:
        return joined(b, parts_of(b, input), kind)
    return cast(b, parts_of(b, input)[0], kind)


def _dtype_among(args: Sequence[Any]) -> str:
    """Return the dtype of the first tensor among arguments; empty for none."""
    for each in args:
        if isinstance(each, EncodedTensor):
            return each.dtype
        if is_tensor(each):
            return dtype_of(each)
    return ""


@of_complex("type_as")
def complex_type_as(b: NodeBuilder, input: Value, other: Value) -> Value:
    return complex_to(b, input, other)


@exact("cfloat")
def cfloat(b: NodeBuilder, input: Value) -> Value:
    return complex_to(b, input, torch.complex64)


# Arithmetic


@of_complex("add")
def complex_add(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    dtype, (first, second, factor) = in_one_dtype(b, [input, other, alpha])
    if alpha != 1:
        second = multiplied(b, times(b), second, factor)
    return joined(b, (plus(b, *each) for each in zip(first, second, strict=True)), dtype)


@of_complex("sub")
def complex_sub(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    return complex_add(b, input, other, -alpha)


@of_complex("rsub")
def complex_rsub(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    return complex_add(b, other, input, -alpha)


@of_complex("mul")
def complex_mul(b: NodeBuilder, input: Value, other: Value) -> Value:
    dtype, (first, second) = in_one_dtype(b, [input, other])
    return joined(b, multiplied(b, times(b), first, second), dtype)


@of_complex("square")
def complex_square(b: NodeBuilder, input: Value) -> Value:
    return complex_mul(b, input, input)


@of_complex("pow")
def complex_pow(b: NodeBuilder, input: Value, exponent: Value) -> Value:
    if exponent not in (1, 2, 3):
        return complex_exp(b, complex_mul(b, complex_log(b, input), exponent))
    value = input
    for _time in range(int(exponent) - 1):
        value = complex_mul(b, value, input)
    return value


@of_complex("div")
def complex_div(
    b: NodeBuilder, input: Value, other: Value, rounding_mode: str | None = None
) -> Value:
    dtype, ((a, c), (d, e)) = in_one_dtype(b, [input, other])
    if e is None:
        parts = (None if each is None else div(b, each, d) for each in (a, c))
        return joined(b, parts, dtype)
    # Scaled by the larger part, since squares overflow.
    scale = maximum(b, b.emit(op.abs(cast(b, d, dtype_of(e)))), b.emit(op.abs(e)))
    d_scaled, e_scaled = div(b, d, scale), div(b, e, scale)
    below = plus(b, mul(b, d, d_scaled), mul(b, e, e_scaled))
    above = multiplied(b, times(b), (a, c), (d_scaled, minus(b, None, e_scaled)))
    return joined(b, (div(b, each, below) for each in above), dtype)


@of_complex("reversed_div")
def complex_reversed_div(b: NodeBuilder, input: Value, other: Value) -> Value:
    return complex_div(b, other, input)


@of_complex("reciprocal")
def complex_reciprocal(b: NodeBuilder, input: Value) -> Value:
    return complex_div(b, 1.0, input)


@of_complex("abs")
def complex_abs(b: NodeBuilder, input: Value) -> Value:
    return hypot(b, *parts_of(b, input))


@of_complex("angle")
@rule(torch.angle, "angle", aten.angle.default)
def angle(b: NodeBuilder, input: Value) -> Value:
    first, second = parts_of(b, _encoded(input))
    return atan2(b, second, first)


@of_complex("isnan")
def complex_isnan(b: NodeBuilder, input: Value) -> Value:
    return complex_ne(b, input, input)


@of_complex("lerp")
def complex_lerp(b: NodeBuilder, input: Value, end: Value, weight: Value) -> Value:
    return complex_add(b, input, complex_mul(b, complex_sub(b, end, input), weight))


@of_complex("addmm")
@of_complex("baddbmm")
def complex_addmm(
    b: NodeBuilder, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    def product(one: Part, other: Part) -> Part:
        return None if one is None or other is None else b.emit(op.matmul(one, other))

    dtype, factors = in_one_dtype(b, [mat1, mat2])
    found = joined(b, multiplied(b, product, *factors), dtype)
    return complex_add(b, complex_mul(b, input, beta), complex_mul(b, found, alpha))


@of_complex("exp")
def complex_exp(b: NodeBuilder, input: Value) -> Value:
    first, second = parts_of(b, input)
    return polar(b, b.emit(op.exp(first)), second)


@of_complex("log")
def complex_log(b: NodeBuilder, input: Value) -> Value:
    if not isinstance(input, EncodedTensor):
        input = joined(b, in_one_dtype(b, [input, 0j])[1][0], complex_of(input, 0j))
    length = b.emit(op.log(complex_abs(b, input)))
    return joined(b, (length, angle(b, input)), input.dtype)


@of_complex("sqrt")
def complex_sqrt(b: NodeBuilder, input: Value) -> Value:
    return polar(b, b.emit(op.sqrt(complex_abs(b, input))), mul(b, angle(b, input), 0.5))


@of_complex("sin")
def complex_sin(b: NodeBuilder, input: Value) -> Value:
    first, second = parts_of(b, input)
    grown, turned = b.emit(op.cosh(second)), b.emit(op.sinh(second))
    real, imaginary = b.emit(op.sin(first)), b.emit(op.cos(first))
    return joined(b, (mul(b, real, grown), mul(b, imaginary, turned)), input.dtype)


@of_complex("cos")
def complex_cos(b: NodeBuilder, input: Value) -> Value:
    return complex_sin(b, complex_add(b, input, math.pi / 2))


@of_complex("tanh")
def complex_tanh(b: NodeBuilder, input: Value) -> Value:
    first, second = parts_of(b, input)
    twice = mul(b, second, 2)
    # Of the larger part alone, since its exponential overflows.
    small = b.emit(op.exp(mul(b, b.emit(op.abs(first)), -2)))
    cosine, sine = (mul(b, each, small) for each in (b.emit(op.cos(twice)), b.emit(op.sin(twice))))
    below = add(b, add(b, mul(b, cosine, 2), mul(b, small, small)), 1)
    above = mul(b, b.emit(op.sign(first)), sub(b, 1, mul(b, small, small)))
    return joined(b, (div(b, above, below), div(b, mul(b, sine, 2), below)), input.dtype)


@of_complex("sigmoid")
def complex_sigmoid(b: NodeBuilder, input: Value) -> Value:
    half = complex_tanh(b, complex_mul(b, input, 0.5))
    return complex_mul(b, complex_add(b, half, 1), 0.5)


# Made, and reduced


@of_complex("ones")
def complex_ones(b: NodeBuilder, *size: Any, dtype: torch.dtype) -> Value:
    return complex_to(b, ones(b, *size, dtype=dtype.to_real()), dtype)


@of_complex("ones_like")
def complex_ones_like(b: NodeBuilder, input: Value, *, dtype: Any = None) -> Value:
    return complex_new_ones(b, input, complex_size(b, input), dtype=dtype)


@of_complex("new_ones")
def complex_new_ones(b: NodeBuilder, input: Value, *size: Any, dtype: Any = None) -> Value:
    kind = dtype or getattr(torch, input.dtype)
    return complex_to(b, ones(b, *size, dtype=kind.to_real()), kind)


def _of_sizes(shown: str, lower: Lower) -> None:
    """Register a norm: that of the absolute values."""

    @wraps(lower)
    def of_sizes(b: NodeBuilder, input: Value, *args: Any, **kwargs: Any) -> Value:
        return lower(b, complex_abs(b, input), *args, **kwargs)

    of_complex(shown)(of_sizes)


_of_sizes("norm", norm)
_of_sizes("linalg_norm", linalg_norm)
_of_sizes("matrix_norm", matrix_norm)
_of_sizes("vector_norm", vector_norm)


@of_complex("var")
def complex_var(b: NodeBuilder, input: Value, *args: Any, **kwargs: Any) -> Value:
    first, second = parts_of(b, input)
    return add(b, var(b, first, *args, **kwargs), var(b, second, *args, **kwargs))


@of_complex("std")
def complex_std(b: NodeBuilder, input: Value, *args: Any, **kwargs: Any) -> Value:
    return b.emit(op.sqrt(complex_var(b, input, *args, **kwargs)))


# The discrete Fourier transform


def _along(
    b: NodeBuilder, parts: tuple[Part, Part], axis: int, wanted: Transform
) -> tuple[Part, Part]:
    """Transform a complex tensor, given by its parts, along an axis."""
    first, second = parts
    if wanted.n == 1:
        return first, None if wanted.only_real else second
    if not is_smooth(wanted.n):
        return _along_any(b, parts, axis, wanted)
    dtype = dtype_of(first)
    table = torch.from_numpy(twiddles(wanted.n, wanted.sign)).to(getattr(torch, dtype))
    made = b.emit_te(
        partial(te_transform, axis=axis, wanted=wanted),
        [each for each in (first, second) if each is not None],
        b.constant(table),
        primfunc_name_hint="fft",
    )
    return (made, None) if wanted.only_real else (b.emit(made[0]), b.emit(made[1]))


def _along_any(
    b: NodeBuilder, parts: tuple[Part, Part], axis: int, wanted: Transform
) -> tuple[Part, Part]:
    """Transform an axis with a large prime factor, by a convolution (Bluestein, 1970)."""
    n, count = wanted.n, wanted.count
    after = rank_of(parts[0]) - 1 - axis

    def constant(values: torch.Tensor) -> Any:
        part = values.to(getattr(torch, dtype_of(parts[0])))
        return b.constant(part.reshape(-1, *[1] * after))

    given, of_real = shape_of(parts[0])[axis], parts[1] is None
    if given < n:
        # Those that are not given are the conjugates of others: their real parts are the same.
        twice = torch.full((given,), 2.0, dtype=torch.float64)
        twice[2 * torch.arange(given) % n == 0] = 1
        first, second = multiplied(b, times(b), parts, (constant(twice), None))
        parts = _sized(b, first, axis, n), _sized(b, second, axis, n)
    angles = (torch.arange(n) ** 2 % (2 * n)).double() * (wanted.sign * math.pi / n)
    chirp = torch.polar(torch.ones_like(angles), angles)
    length = next_smooth(2 * n - 1)
    kernel = torch.zeros(length, dtype=chirp.dtype)
    kernel[:n] = chirp.conj()
    kernel[length - n + 1 :] = chirp.conj()[1:].flip(0)
    spectrum, product = torch.fft.fft(kernel), times(b)

    def by(parts: tuple[Part, Part], factor: torch.Tensor) -> tuple[Part, Part]:
        return multiplied(b, product, parts, (constant(factor.real), constant(factor.imag)))

    first, second = (_sized(b, each, axis, length) for each in by(parts, chirp))
    forward = Transform(length, -1, 1.0, length)
    there = by(_along(b, (first, second), axis, forward), spectrum)
    back = _along(b, there, axis, Transform(length, 1, wanted.scale / length, count))
    first, second = by(back, chirp[:count])
    if of_real and second is not None:
        # The sum of real numbers, and that with alternating signs, are real.
        is_real = (2 * torch.arange(count) % n == 0).reshape(-1, *[1] * after)
        second = b.emit(op.where(b.constant(is_real), scalar(0.0, dtype_of(second)), second))
    return first, None if wanted.only_real else second


def _sized(b: NodeBuilder, part: Part, axis: int, count: Any) -> Part:
    """Return an axis cut, or continued with zeros, to `count` elements."""
    if part is None:
        return None
    n = shape_of(part)[axis]
    if not isinstance(n, int) or not isinstance(count, int):
        raise Refused(_("it needs a number, and the dimension is symbolic"))
    if count <= n:
        whole = count == n
        return part if whole else b.emit(op.strided_slice(part, [axis], [0], [count], [1]))
    after = [0, 0] * (rank_of(part) - 1 - axis)
    return pad_by(b, part, [*after, 0, count - n], "constant", 0)


def _permuted(b: NodeBuilder, parts: tuple[Part, Part], order: Sequence[int]) -> tuple[Part, Part]:
    first, second = (None if each is None else permute_to(b, each, order) for each in parts)
    return first, second


def transformed(
    b: NodeBuilder,
    input: Value,
    dims: Sequence[int],
    sizes: Sequence[int | None],
    *,
    inverse: bool,
    scale: Any,
    kind: str = "complex",
) -> Value:
    """Return the transform over some axes.

    `scale`: ``"none"``, ``"by_root_n"`` or ``"by_n"``.
    `kind`: ``"complex"``, ``"from real"`` where half of the last of `dims` is the result, or
        ``"to real"`` where it is given.
    """
    if not isinstance(input, EncodedTensor) and not is_float(dtype_of(input)):
        input = cast(b, input, "float32")
    dtype = complex_of(input)
    if part_dtype(dtype) != _dtype_of_parts(input):
        raise Refused(_("TVM has no {dtype}", dtype="complex32"))
    first, second = parts_of(b, input)
    rank = rank_of(first)
    axes = [axis_of(each, rank) for each in dims]
    order = list(zip(axes, sizes, strict=True))
    if kind == "from real":
        order.reverse()
    sign = 1 if inverse else -1
    for place, (axis, size) in enumerate(order):
        # The loops need numbers for the sizes that follow the axis.
        is_named = any(not isinstance(each, int) for each in shape_of(first)[axis + 1 :])
        to_last = [*(each for each in range(rank) if each != axis), axis]
        back = [to_last.index(each) for each in range(rank)]
        if is_named:
            first, second = _permuted(b, (first, second), to_last)
            axis = rank - 1
        only_real = kind == "to real" and place == len(order) - 1
        n = shape_of(first)[axis] if size is None else size
        if only_real:
            n = 2 * (n - 1) if size is None else size
        given = n // 2 + 1 if only_real else n
        first, second = (_sized(b, each, axis, given) for each in (first, second))
        count = n // 2 + 1 if kind == "from real" and place == 0 else n
        factor = {"none": 1.0, "by_root_n": n**-0.5, "by_n": 1 / n}[scale]
        wanted = Transform(n, sign, factor, count, only_real)
        first, second = _along(b, (first, second), axis, wanted)
        if is_named:
            first, second = _permuted(b, (first, second), back)
    return first if kind == "to real" else joined(b, (first, second), dtype)


def _dtype_of_parts(value: Value) -> str:
    return part_dtype(value.dtype) if isinstance(value, EncodedTensor) else dtype_of(value)


_SCALES = ("none", "by_root_n", "by_n")


@rule(aten._fft_r2c.default, name="fft_r2c")
def fft_r2c(
    b: NodeBuilder, input: Value, dim: Sequence[int], normalization: int, onesided: bool
) -> Value:
    kind = "from real" if onesided else "complex"
    scale, sizes = _SCALES[normalization], [None] * len(dim)
    return transformed(b, input, dim, sizes, inverse=False, scale=scale, kind=kind)


@of_complex("fft_c2c")
@rule(aten._fft_c2c.default, name="fft_c2c")
def fft_c2c(
    b: NodeBuilder, input: Value, dim: Sequence[int], normalization: int, forward: bool
) -> Value:
    scale, sizes = _SCALES[normalization], [None] * len(dim)
    return transformed(b, input, dim, sizes, inverse=not forward, scale=scale)


@of_complex("fft_c2r")
@rule(aten._fft_c2r.default, name="fft_c2r")
def fft_c2r(
    b: NodeBuilder, input: Value, dim: Sequence[int], normalization: int, last_dim_size: int
) -> Value:
    sizes = [*([None] * (len(dim) - 1)), last_dim_size]
    scale = _SCALES[normalization]
    return transformed(b, input, dim, sizes, inverse=True, scale=scale, kind="to real")


def _enter_transform(name: str, *, inverse: bool, kind: str, axes: int) -> None:
    """Register one of torch's functions; `axes`: of which it is by default, 0 for all."""

    def lower(
        b: NodeBuilder, input: Value, s: Any = None, dim: Any = None, norm: Any = None
    ) -> Any:
        rank = rank_of(parts_of(b, input)[0])
        sizes = [s] if isinstance(s, int) else s
        if dim is None:
            count = len(sizes) if sizes is not None and not axes else axes or rank
            dims = list(range(-count, 0))
        else:
            dims = [dim] if isinstance(dim, int) else list(dim)
        sizes = [None] * len(dims) if sizes is None else [None if n == -1 else n for n in sizes]
        scale = {"ortho": "by_root_n", "forward": "none" if inverse else "by_n"}.get(
            norm or "backward", "by_n" if inverse else "none"
        )
        return transformed(b, input, dims, sizes, inverse=inverse, scale=scale, kind=kind)

    def of_one(b: NodeBuilder, input: Value, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        return lower(b, input, n, dim, norm)

    shown = f"fft_{name}"
    keys = (getattr(torch.fft, name), getattr(aten, shown).default)
    of_complex(shown)(rule(*keys, name=shown)(of_one if axes == 1 else lower))


for _axes, _suffix in ((1, ""), (2, "2"), (0, "n")):
    _enter_transform(f"fft{_suffix}", inverse=False, kind="complex", axes=_axes)
    _enter_transform(f"ifft{_suffix}", inverse=True, kind="complex", axes=_axes)
    _enter_transform(f"rfft{_suffix}", inverse=False, kind="from real", axes=_axes)
    _enter_transform(f"irfft{_suffix}", inverse=True, kind="to real", axes=_axes)


@rule(torch.stft, "stft", aten.stft.center)
def stft(
    b: NodeBuilder,
    input: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Value:
    if isinstance(input, EncodedTensor) or isinstance(window, EncodedTensor):
        raise Refused(_("its argument is complex"))
    if align_to_window:
        raise Refused(_("it sets align_to_window"))
    hop = n_fft // 4 if hop_length is None else hop_length
    if center:
        input = _padded_signal(b, input, n_fft // 2, pad_mode)
    frames = unfold(b, input, -1, n_fft, hop)
    if window is not None or win_length not in (None, n_fft):
        window = _whole_window(b, window, n_fft, win_length, dtype_of(input))
        frames = mul(b, frames, window)
    count = n_fft // 2 + 1 if onesided is not False else n_fft
    scale = n_fft**-0.5 if normalized else 1.0
    axes = rank_of(frames)
    order = [*range(axes - 2), axes - 1, axes - 2]
    parts = _along(b, (frames, None), axes - 1, Transform(n_fft, -1, scale, count))
    made = joined(b, _permuted(b, parts, order), complex_of(input))
    return made if return_complex is not False else made.value


@of_complex("istft")
@rule(torch.istft, "istft", aten.istft.default)
def istft(
    b: NodeBuilder,
    input: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Value:
    parts = parts_of(b, _encoded(input))
    *batch, rows, frames = shape_of(parts[0])
    hop = n_fft // 4 if hop_length is None else hop_length
    if return_complex or isinstance(window, EncodedTensor):
        raise Refused(_("its result is complex"))
    if not isinstance(frames, int):
        raise Refused(_("it needs a number, and the dimension is symbolic"))
    if onesided is (rows == n_fft):
        raise Refused(_("its spectrum has {count} rows", count=rows))
    if n_fft % hop:
        raise Refused(_("its windows are no whole number of hops"))
    scale = n_fft**-0.5 if normalized else 1 / n_fft
    last = len(batch) + 1
    parts = _permuted(b, parts, [*range(last - 1), last, last - 1])
    signal, _none = _along(b, parts, last, Transform(n_fft, 1, scale, n_fft, only_real=True))
    window = _whole_window(b, window, n_fft, win_length, dtype_of(signal))
    squares = broadcast_to(b, mul(b, window, window), [frames, n_fft])
    added, weights = (_overlapped(b, each, hop) for each in (mul(b, signal, window), squares))
    whole = n_fft + hop * (frames - 1)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else min(start + length, whole)
    added, weights = (
        b.emit(op.strided_slice(each, [rank_of(each) - 1], [start], [end]))
        for each in (added, weights)
    )
    made = div(b, added, weights)
    rest = 0 if length is None else length - (end - start)
    return pad_by(b, made, [0, rest], "constant", 0) if rest else made


def _whole_window(
    b: NodeBuilder, window: Value, n_fft: int, win_length: int | None, dtype: str
) -> Value:
    """Return the window with zeros around it, of `n_fft` elements; of ones if there is none."""
    length = n_fft if win_length is None else win_length
    if window is None:
        window = b.constant(torch.ones(length, dtype=getattr(torch, dtype)))
    left = (n_fft - length) // 2
    widths = [left, n_fft - length - left]
    return pad_by(b, window, widths, "constant", 0) if any(widths) else window


def _overlapped(b: NodeBuilder, frames: Value, hop: int) -> Value:
    """Return the sum of frames, each `hop` elements after the one before."""
    *batch, count, width = shape_of(frames)
    parts = width // hop
    axis, total = len(batch), None
    for part in range(parts):
        ends = [part * hop], [(part + 1) * hop]
        piece = b.emit(op.strided_slice(frames, [axis + 1], *ends))
        piece = pad_by(b, piece, [0, 0, part, parts - 1 - part], "constant", 0)
        total = piece if total is None else add(b, total, piece)
    return reshape_to(b, total, [*batch, (count + parts - 1) * hop])


def _padded_signal(b: NodeBuilder, input: Value, width: int, mode: str) -> Value:
    """Pad a signal, or a batch of signals, on both sides; some modes need three axes."""
    shape = shape_of(input)
    wide = reshape_to(b, input, [1] * (3 - len(shape)) + list(shape))
    padded = pad_by(b, wide, [width, width], mode, 0)
    return reshape_to(b, padded, [*shape[:-1], shape_of(padded)[-1]])
