"""Linear algebra on stacks of small matrices: solutions, inverses, Cholesky factors, covariance."""

from __future__ import annotations

import math
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, to_float
from lowerscope.core.lowering.matrix_loops import te_cholesky, te_solve, te_solve_triangular
from lowerscope.core.lowering.rule_table import Missing, Refused, rule
from lowerscope.core.lowering.rules.arithmetic import div, sub
from lowerscope.core.lowering.rules.elementwise import clamp
from lowerscope.core.lowering.rules.linear import matmul
from lowerscope.core.lowering.rules.reduction import mean
from lowerscope.core.lowering.rules.shape import broadcast_to, reshape_to, transpose, unsqueeze
from lowerscope.core.lowering.values import (
    Value,
    dtype_of,
    is_empty,
    rank_of,
    same_sizes,
    scalar,
    shape_of,
    torch_dtype,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_ROWS = 64
"""Most rows of a matrix: torch's library is faster for larger ones."""


def _stack(b: NodeBuilder, input: Value) -> Value:
    """Return square matrices as one stack.

    Raises `Refused` if they are empty, large, or no floats.
    """
    shape = shape_of(input)
    is_small = isinstance(shape[-1], int) and shape[-1] <= _ROWS and not is_empty(shape)
    if dtype_of(input) not in ("float32", "float64") or not is_small:
        raise Refused(_("it has no small stacks of float matrices"))
    return reshape_to(b, input, [math.prod(shape[:-2]), *shape[-2:]])


def _beside(b: NodeBuilder, a: Value, other: Value) -> tuple[Value, Value, tuple[Any, ...]]:
    """Return two stacks of the same length, and the shape of a result for the second."""
    first, second = (shape_of(each)[:-2] for each in (a, other))
    if same_sizes(first, second) or not second:
        batch = first
    elif not first:
        batch = second
    elif all(isinstance(each, int) for each in (*first, *second)):
        batch = torch.broadcast_shapes(first, second)  # type: ignore[no-untyped-call]
    else:
        raise Refused(_("a size of it has a name"))
    sides = [broadcast_to(b, each, [*batch, *shape_of(each)[-2:]]) for each in (a, other)]
    stack = _stack(b, sides[0])
    shape = (*batch, *shape_of(other)[-2:])
    if is_empty(shape):
        raise Refused(_("it has no small stacks of float matrices"))
    return stack, reshape_to(b, sides[1], [math.prod(batch), *shape[-2:]]), shape


def _solved(b: NodeBuilder, a: Value, other: Value) -> Value:
    """Return the solution and the determinant."""
    found = b.emit_te(te_solve, a, other, primfunc_name_hint="solve")
    return b.emit(found[0]), b.emit(found[1])


@rule(torch.linalg.solve, aten.linalg_solve.default, name="linalg_solve")
def solve(b: NodeBuilder, A: Value, B: Value, *, left: bool = True) -> Value:
    is_vector = rank_of(B) == 1 or (
        rank_of(B) == rank_of(A) - 1 and same_sizes(shape_of(B), shape_of(A)[:-1])
    )
    other = unsqueeze(b, B, -1) if is_vector else B
    if not left:
        A, other = transpose(b, A, -1, -2), transpose(b, other, -1, -2)
    stack, right, shape = _beside(b, A, other)
    found = reshape_to(b, _solved(b, stack, right)[0], shape)
    if is_vector:
        return b.emit(op.squeeze(found, [-1]))
    return found if left else transpose(b, found, -1, -2)


@rule(torch.inverse, torch.linalg.inv, "inverse", aten.inverse.default, aten.linalg_inv.default)
def inverse(b: NodeBuilder, A: Value) -> Value:
    stack = _stack(b, A)
    count, rows = shape_of(stack)[:2]
    one = b.constant(torch.eye(rows, dtype=torch_dtype(dtype_of(A))))
    ones = broadcast_to(b, one, [count, rows, rows])
    return reshape_to(b, _solved(b, stack, ones)[0], shape_of(A))


@rule(torch.linalg.inv_ex, aten.linalg_inv_ex.default, name="inv_ex")
def inv_ex(b: NodeBuilder, A: Value, *, check_errors: bool = False) -> Value:
    return inverse(b, A), Missing(_("TVM does not check whether a matrix is singular"))


@rule(torch.det, torch.linalg.det, "det", aten.det.default, aten.linalg_det.default)
def det(b: NodeBuilder, A: Value) -> Value:
    stack = _stack(b, A)
    count, rows = shape_of(stack)[:2]
    zeros = broadcast_to(b, scalar(0, dtype_of(A)), [count, rows, 1])
    return reshape_to(b, _solved(b, stack, zeros)[1], shape_of(A)[:-2])


@rule(
    *(torch.linalg.cholesky, torch.cholesky, "cholesky"),
    *(aten.cholesky.default, aten.linalg_cholesky.default),
)
def cholesky(b: NodeBuilder, input: Value, upper: bool = False) -> Value:
    found = b.emit_te(te_cholesky, _stack(b, input), primfunc_name_hint="cholesky")
    found = reshape_to(b, found, shape_of(input))
    return found if upper else transpose(b, found, -1, -2)


@rule(torch.linalg.solve_triangular, aten.linalg_solve_triangular.default)
def solve_triangular(
    b: NodeBuilder,
    A: Value,
    B: Value,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    if not left:
        sides = (transpose(b, each, -1, -2) for each in (A, B))
        found = solve_triangular(b, *sides, upper=not upper, unitriangular=unitriangular)
        return transpose(b, found, -1, -2)
    stack, right, shape = _beside(b, A, B)
    name = "solve_triangular"
    found = b.emit_te(
        te_solve_triangular, stack, right, upper, unitriangular, primfunc_name_hint=name
    )
    return reshape_to(b, found, shape)


@rule(torch.triangular_solve, "triangular_solve", aten.triangular_solve.default)
def triangular_solve(
    b: NodeBuilder,
    input: Value,
    A: Value,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Value:
    if transpose:
        raise Refused(_("its matrices are transposed"))
    found = solve_triangular(b, A, input, upper=upper, unitriangular=unitriangular)
    return found, A


@rule(torch.cholesky_solve, "cholesky_solve", aten.cholesky_solve.default)
def cholesky_solve(b: NodeBuilder, input: Value, L: Value, upper: bool = False) -> Value:
    other = transpose(b, L, -1, -2)
    lower, higher = (other, L) if upper else (L, other)
    half = solve_triangular(b, lower, input, upper=False)
    return solve_triangular(b, higher, half, upper=True)


@rule(torch.cov, "cov", aten.cov.default)
def cov(
    b: NodeBuilder,
    input: Value,
    *,
    correction: int = 1,
    fweights: Value = None,
    aweights: Value = None,
) -> Value:
    if fweights is not None or aweights is not None:
        raise Refused(_("its observations have weights"))
    rows = input if rank_of(input) == 2 else reshape_to(b, input, [1, -1])
    rows, count = to_float(b, rows), shape_of(rows)[1]
    apart = sub(b, rows, mean(b, rows, 1, keepdim=True))
    products = matmul(b, apart, transpose(b, apart, 0, 1))
    found = div(b, products, max(count - correction, 0))
    return found if rank_of(input) == 2 else reshape_to(b, found, [])


@rule(torch.corrcoef, "corrcoef", aten.corrcoef.default)
def corrcoef(b: NodeBuilder, input: Value) -> Value:
    if rank_of(input) < 2:
        found = cov(b, input)
        return div(b, found, found)
    products = cov(b, input)
    rows = shape_of(input)[0]
    places = b.constant(torch.arange(rows) * (rows + 1))
    line = reshape_to(b, products, [-1])
    scale = b.emit(op.sqrt(b.emit(op.take(line, places, 0, mode="clip"))))
    found = div(b, div(b, products, unsqueeze(b, scale, 1)), unsqueeze(b, scale, 0))
    return clamp(b, found, -1, 1)
