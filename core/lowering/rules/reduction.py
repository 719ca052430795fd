"""Reductions: sums, means, extrema and norms."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import te, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, is_nan, summand, to_float
from lowerscope.core.lowering.legal_forms import Reduced, nan_test
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.arithmetic import add, div, maximum, minimum, mul, pow, sub
from lowerscope.core.lowering.rules.elementwise import truth
from lowerscope.core.lowering.rules.shape import transpose, unsqueeze
from lowerscope.core.lowering.values import (
    Value,
    axis_of,
    dtype_name,
    dtype_of,
    is_empty,
    is_float,
    is_tensor,
    rank_of,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten

Axes = int | Sequence[int] | None


@rule(torch.sum, "sum", aten.sum.default, aten.sum.dim_IntList)
def sum(
    b: NodeBuilder, input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    return b.emit(op.sum(summand(b, input, dtype), axes_of(input, dim), keepdims=keepdim))


@rule(torch.trace, "trace", aten.trace.default)
def trace(b: NodeBuilder, input: Value) -> Value:
    rows, columns = shape_of(input)
    places = torch.arange(builtins.min(rows, columns)) * (columns + 1)
    line = b.emit(op.reshape(input, (-1,)))
    return sum(b, b.emit(op.take(line, b.constant(places), 0, mode="clip")))


@rule(torch.prod, "prod", aten.prod.default, aten.prod.dim_int)
def prod(
    b: NodeBuilder, input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    return b.emit(op.prod(summand(b, input, dtype), axes_of(input, dim), keepdims=keepdim))


@rule(torch.mean, "mean", aten.mean.default, aten.mean.dim)
def mean(
    b: NodeBuilder, input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    value = input if dtype is None else cast(b, input, dtype_name(dtype))
    if is_empty(shape_of(input)):
        # NaN; TVM would divide by the constant 0, which it rejects.
        return mul(b, sum(b, value, dim, keepdim), math.nan)
    return b.emit(op.mean(value, axes_of(input, dim), keepdims=keepdim))


@rule(torch.var, "var", aten.var.correction, aten.var.dim)
def var(
    b: NodeBuilder,
    input: Value,
    dim: Axes = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Value:
    if isinstance(dim, bool):
        # torch.var(x, unbiased)
        return var(b, input, None, dim, keepdim)
    axes = axes_of(input, dim)
    count = math.prod(shape_of(input)[axis] for axis in axes)
    subtract = int(unbiased) if correction is None else correction
    if count <= subtract:
        raise Refused(_("it has too few elements for its correction"))
    centred = sub(b, input, b.emit(op.mean(input, axes, keepdims=True)))
    total = b.emit(op.sum(b.emit(op.square(centred)), axes, keepdims=keepdim))
    return mul(b, total, 1 / (count - subtract))


@rule(torch.std, "std", aten.std.correction, aten.std.dim)
def std(
    b: NodeBuilder,
    input: Value,
    dim: Axes = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Value:
    return b.emit(op.sqrt(var(b, input, dim, unbiased, keepdim, correction=correction)))


@rule(torch.var_mean, aten.var_mean.correction)
def var_mean(
    b: NodeBuilder,
    input: Value,
    dim: Axes = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Value:
    variance = var(b, input, dim, unbiased, keepdim, correction=correction)
    return variance, mean(b, input, None if isinstance(dim, bool) else dim, keepdim)


@rule(torch.std_mean, aten.std_mean.correction)
def std_mean(
    b: NodeBuilder,
    input: Value,
    dim: Axes = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Value:
    variance, average = var_mean(b, input, dim, unbiased, keepdim, correction=correction)
    return b.emit(op.sqrt(variance)), average


@rule(torch.nansum, "nansum", aten.nansum.default)
def nansum(
    b: NodeBuilder, input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    if not is_float(dtype_of(input)):
        return sum(b, input, dim, keepdim, dtype=dtype)
    kept = b.emit(op.where(is_nan(b, input), scalar(0, dtype_of(input)), input))
    return sum(b, kept, dim, keepdim, dtype=dtype)


@rule(torch.aminmax, "aminmax", aten.aminmax.default)
def aminmax(
    b: NodeBuilder, input: Value, *, dim: int | None = None, keepdim: bool = False
) -> Value:
    return amin(b, input, dim, keepdim), amax(b, input, dim, keepdim)


@rule(torch.count_nonzero, "count_nonzero", aten.count_nonzero.default)
def count_nonzero(b: NodeBuilder, input: Value, dim: Axes = None) -> Value:
    return sum(b, truth(b, input), dim)


@rule(torch.amax, "amax", aten.amax.default)
def amax(b: NodeBuilder, input: Value, dim: Axes = (), keepdim: bool = False) -> Value:
    return b.emit(op.max(input, axes_of(input, dim), keepdims=keepdim))


@rule(torch.amin, "amin", aten.amin.default)
def amin(b: NodeBuilder, input: Value, dim: Axes = (), keepdim: bool = False) -> Value:
    return b.emit(op.min(input, axes_of(input, dim), keepdims=keepdim))


@rule(torch.max, "max", aten.max.default, aten.max.dim, aten.max.other)
def max(
    b: NodeBuilder, input: Value, dim: Any = None, keepdim: bool = False, other: Value = None
) -> Value:
    other = dim if is_tensor(dim) else other
    if other is not None:
        return maximum(b, input, other)
    return _extremum(b, input, dim, keepdim, op.max)


@rule(torch.min, "min", aten.min.default, aten.min.dim, aten.min.other)
def min(
    b: NodeBuilder, input: Value, dim: Any = None, keepdim: bool = False, other: Value = None
) -> Value:
    other = dim if is_tensor(dim) else other
    if other is not None:
        return minimum(b, input, other)
    return _extremum(b, input, dim, keepdim, op.min)


@rule(torch.argmax, "argmax", aten.argmax.default)
def argmax(b: NodeBuilder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _argument(b, input, dim, keepdim, op.max)


@rule(torch.argmin, "argmin", aten.argmin.default)
def argmin(b: NodeBuilder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _argument(b, input, dim, keepdim, op.min)


@rule(torch.all, "all", aten.all.default, aten.all.dim, aten.all.dims)
def all(b: NodeBuilder, input: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return _of_truth(b, op.min, 1, input, dim, keepdim)


@rule(torch.any, "any", aten.any.default, aten.any.dim, aten.any.dims)
def any(b: NodeBuilder, input: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    return _of_truth(b, op.max, 0, input, dim, keepdim)


def _of_truth(
    b: NodeBuilder,
    reduce: Callable[..., Value],
    nothing: int,
    input: Value,
    dim: Axes,
    keepdim: bool,
) -> Value:
    """Return a reduction of truth values; `nothing` for empty ones."""
    axes, shape = axes_of(input, dim), shape_of(input)
    if 0 in [shape[axis] for axis in axes if isinstance(shape[axis], int)]:
        # TVM's reduction of an empty axis is the least or largest integer, or is never written.
        ones = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
        values = b.emit(op.full(ones, scalar(nothing, "int8"), "int8"))
    else:
        values = b.emit(op.astype(truth(b, input), "int8"))
    found = b.emit(reduce(values, axes, keepdims=keepdim))
    return b.emit(op.astype(found, "bool"))


@rule(torch.logsumexp, "logsumexp", aten.logsumexp.default)
def logsumexp(b: NodeBuilder, input: Value, dim: Axes, keepdim: bool = False) -> Value:
    axes = axes_of(input, dim)
    largest = b.emit(op.max(input, axes, keepdims=True))
    # If all are infinite, the difference of infinities would be NaN.
    infinite = b.emit(op.equal(b.emit(op.abs(largest)), scalar(math.inf, dtype_of(largest))))
    largest = b.emit(op.where(infinite, scalar(0, dtype_of(largest)), largest))
    total = sum(b, b.emit(op.exp(sub(b, input, largest))), axes, keepdim)
    kept = largest if keepdim else b.emit(op.squeeze(largest, axes))
    return add(b, b.emit(op.log(total)), kept)


@rule(torch.norm, "norm")
def norm(
    b: NodeBuilder,
    input: Value,
    p: Any = "fro",
    dim: Axes = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    if isinstance(p, str) and p != "fro":
        raise Refused(_("it is the {p} norm", p=p))
    return vector_norm(b, input, 2 if p == "fro" or p is None else p, dim, keepdim, dtype=dtype)


@rule(torch.linalg.norm)
def linalg_norm(
    b: NodeBuilder,
    input: Value,
    ord: Any = None,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Value:
    if ord is not None and not isinstance(dim, int):
        raise Refused(_("it is a norm of matrices"))
    return vector_norm(b, input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@rule(torch.linalg.matrix_norm)
def matrix_norm(
    b: NodeBuilder,
    input: Value,
    ord: Any = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Value:
    if ord != "fro":
        raise Refused(_("it is the {ord} norm of a matrix", ord=ord))
    return vector_norm(b, input, 2, dim, keepdim, dtype=dtype)


@rule(torch.linalg.vector_norm, aten.linalg_vector_norm.default)
def vector_norm(
    b: NodeBuilder,
    input: Value,
    ord: Any = 2,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Value:
    axes = axes_of(input, dim)
    value = to_float(b, input) if dtype is None else cast(b, input, dtype_name(dtype))
    size = b.emit(op.abs(value))
    if ord in (math.inf, -math.inf):
        extremum = op.max if ord > 0 else op.min
        return b.emit(extremum(size, axes, keepdims=keepdim))
    if ord == 0:
        present = b.emit(op.not_equal(value, scalar(0, dtype_of(value))))
        return sum(b, cast(b, present, dtype_of(value)), axes, keepdim)
    if ord == 1:
        return sum(b, size, axes, keepdim)
    total = sum(b, pow(b, size, ord), axes, keepdim)
    return b.emit(op.sqrt(total)) if ord == 2 else pow(b, total, 1 / ord)


def axes_of(value: Value, dim: Axes) -> list[int]:
    """Return the axes named by `dim`, from the front; all of them for none."""
    rank = rank_of(value)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(rank))
    if rank == 0:
        return []
    named = [dim] if isinstance(dim, int) else list(dim)
    return [axis_of(axis, rank) for axis in named]


def te_first_place(A: te.Tensor, best: te.Tensor, axes: Sequence[int], keepdims: bool) -> te.Tensor:
    """Return the first place of an extremum, or of a NaN, among the elements along some axes.

    `best`: the extremum, with the axes of `A`. Unlike a search with the largest value so far, a
    comparison with it is a vector of them.
    """
    reduced = Reduced(A, axes, keepdims)
    extents = [A.shape[axis] for axis in axes]
    sizes = [int(each) for each in extents if isinstance(each, tirx.IntImm)]
    is_small = len(sizes) == len(extents) and math.prod(sizes) < 2**31
    dtype = "int32" if is_small else "int64"

    def first(*i: Any) -> Any:
        place: Any = tirx.const(0, dtype)
        for extent, over in zip(extents, reduced.over, strict=True):
            place = place * tirx.Cast(dtype, extent) + tirx.Cast(dtype, over.var)
        index = reduced.index(i)
        element = A(*index)
        is_it = element.equal(best(*(0 if n in axes else each for n, each in enumerate(index))))
        if is_float(str(A.dtype)):
            # Where there is a NaN, it is the extremum, and equals nothing.
            is_it = tirx.any(is_it, nan_test(element))
        return te.min(tirx.Select(is_it, place, tirx.max_value(dtype)), axis=reduced.over)

    found = te.compute(reduced.shape, first, name="first")
    return te.compute(reduced.shape, lambda *i: tirx.Cast("int64", found(*i)), name="place")


def _argument(
    b: NodeBuilder, input: Value, dim: int | None, keepdim: bool, reduce: Callable[..., Value]
) -> Value:
    if not rank_of(input):
        return b.emit(op.zeros((), "int64"))
    axes = axes_of(input, dim)
    return _place(b, input, b.emit(reduce(input, axes, keepdims=True)), axes, keepdim, reduce)


def _place(
    b: NodeBuilder,
    input: Value,
    best: Value,
    axes: Sequence[int],
    keepdim: bool,
    reduce: Callable[..., Value],
) -> Value:
    name = f"arg{reduce.__name__}"
    return b.emit_te(te_first_place, input, best, axes, keepdim, primfunc_name_hint=name)


def _extremum(
    b: NodeBuilder, input: Value, dim: int | None, keepdim: bool, reduce: Callable[..., Value]
) -> Value:
    if dtype_of(input) == "bool":
        found = _extremum(b, cast(b, input, "int8"), dim, keepdim, reduce)
        if dim is None:
            return cast(b, found, "bool")
        return cast(b, found[0], "bool"), found[1]
    if dim is None:
        return b.emit(reduce(input))
    if not rank_of(input):
        return input, b.emit(op.zeros((), "int64"))
    axes = axes_of(input, dim)
    best = b.emit(reduce(input, axes, keepdims=True))
    value = best if keepdim else b.emit(op.squeeze(best, axes))
    return value, _place(b, input, best, axes, keepdim, reduce)


@rule(torch.cdist, aten.cdist.default)
def cdist(b: NodeBuilder, x1: Value, x2: Value, p: float = 2.0, compute_mode: Any = None) -> Value:
    if p == 2 and _multiplies(x1, x2, compute_mode):
        return _euclidean(b, x1, x2)
    gap = sub(b, unsqueeze(b, x1, -2), unsqueeze(b, x2, -3))
    return vector_norm(b, gap, p, -1)


_MANY = 25
"""Number of points from which on torch multiplies matrices for their distances."""


def _multiplies(x1: Value, x2: Value, mode: Any) -> bool:
    """Return whether torch computes Euclidean distances by a matrix product, as it does of many."""
    if mode in (None, 0, "use_mm_for_euclid_dist_if_necessary"):
        counts = [shape_of(each)[-2] for each in (x1, x2)]
        return builtins.any(not isinstance(each, int) or each > _MANY for each in counts)
    return mode in (1, "use_mm_for_euclid_dist")


def _euclidean(b: NodeBuilder, x1: Value, x2: Value) -> Value:
    squares = [sum(b, b.emit(op.square(each)), -1, keepdim=True) for each in (x1, x2)]
    product = b.emit(op.matmul(x1, transpose(b, x2, -1, -2)))
    total = add(b, add(b, mul(b, product, -2.0), squares[0]), transpose(b, squares[1], -1, -2))
    return b.emit(op.sqrt(maximum(b, total, 0.0)))


@rule(aten._cdist_forward.default, name="cdist")
def aten_cdist(b: NodeBuilder, x1: Value, x2: Value, p: float, compute_mode: Any) -> Value:
    return cdist(b, x1, x2, p, compute_mode)


@rule(F.pairwise_distance, torch.pairwise_distance, aten.pairwise_distance.default)
def pairwise_distance(
    b: NodeBuilder, x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    return vector_norm(b, add(b, sub(b, x1, x2), eps), p, -1, keepdim)


@rule(nn.PairwiseDistance)
def pairwise_distance_module(
    b: NodeBuilder, module: nn.PairwiseDistance, x1: Value, x2: Value
) -> Value:
    return pairwise_distance(b, x1, x2, module.norm, module.eps, module.keepdim)


@rule(
    F.cosine_similarity,
    torch.cosine_similarity,
    aten.cosine_similarity.default,
    nn.CosineSimilarity,
)
def cosine_similarity(
    b: NodeBuilder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8
) -> Value:
    norms = [maximum(b, vector_norm(b, each, 2, dim, keepdim=True), eps) for each in (x1, x2)]
    first, second = (div(b, each, norm) for each, norm in zip((x1, x2), norms, strict=True))
    return sum(b, mul(b, first, second), dim)


@rule(F.normalize)
def normalize(
    b: NodeBuilder, input: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12
) -> Value:
    axis = axis_of(dim, rank_of(input))
    if p != 2:
        return div(b, input, maximum(b, vector_norm(b, input, p, axis, keepdim=True), eps))
    norm = b.emit(op.sqrt(b.emit(op.sum(b.emit(op.square(input)), axis, keepdims=True))))
    return div(b, input, maximum(b, norm, scalar(eps, dtype_of(input))))
