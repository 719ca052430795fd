"""TE functions of linear algebra on stacks of small matrices, which TVM has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tirx

from lowerscope.core.lowering.ordered_loops import (
    Index,
    are_worth_threads,
    in_order,
    long,
    loop,
    nest,
)


def te_solve(A: te.Tensor, B: te.Tensor) -> Any:
    """Return ``A^-1 B`` and the determinant of `A`, by elimination with pivots.

    The third result is what becomes of `A`: a triangular matrix and the factors.
    """
    batch, size = A.shape[0], A.shape[1]
    columns = B.shape[2]
    dtype = str(A.dtype)

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (a, right), (x, determinant, work, pivot) = inputs, outputs

        def absolute(value: Any) -> Any:
            return tirx.Select(value < tirx.const(0, dtype), tirx.const(0, dtype) - value, value)

        def one(n: Any) -> Any:
            def swap(buffer: Any, row: Any) -> Any:
                def exchange(column: Any) -> Any:
                    kept = tirx.Var("kept", dtype)
                    other = pivot[n]
                    return in_order(
                        tirx.Bind(kept, buffer[n, row, column]),
                        tirx.BufferStore(buffer, buffer[n, other, column], [n, row, column]),
                        tirx.BufferStore(buffer, kept, [n, other, column]),
                    )

                return exchange

            def choose(step: Any) -> Any:
                def better(row: Any) -> Any:
                    ahead = absolute(work[n, row, step]) > absolute(work[n, pivot[n], step])
                    return tirx.IfThenElse(ahead, tirx.BufferStore(pivot, row, [n]), None)

                return in_order(
                    tirx.BufferStore(pivot, step, [n]),
                    loop(size, better, step + 1),
                    tirx.IfThenElse(
                        tirx.NE(pivot[n], step),
                        in_order(
                            loop(size, swap(work, step), step),
                            loop(columns, swap(x, step)),
                            tirx.BufferStore(
                                determinant, tirx.const(0, dtype) - determinant[n], [n]
                            ),
                        ),
                        None,
                    ),
                )

            def eliminate(step: Any) -> Any:
                def less(row: Any) -> Any:
                    factor, above = tirx.Var("factor", dtype), work[n, row, step]
                    # Below a pivot of 0 there are zeros alone; 0/0 would give no determinant.
                    is_zero = tirx.EQ(above, tirx.const(0, dtype))
                    share = tirx.Select(is_zero, above, above / work[n, step, step])
                    return in_order(
                        tirx.Bind(factor, share),
                        loop(
                            size,
                            lambda j: _subtract(work, [n, row, j], work[n, step, j] * factor),
                            step + 1,
                        ),
                        loop(columns, lambda j: _subtract(x, [n, row, j], x[n, step, j] * factor)),
                    )

                return in_order(
                    choose(step),
                    tirx.BufferStore(determinant, determinant[n] * work[n, step, step], [n]),
                    loop(size, less, step + 1),
                )

            return in_order(
                _copied(work, a, n),
                _copied(x, right, n),
                tirx.BufferStore(determinant, tirx.const(1, dtype), [n]),
                loop(size, eliminate),
                _substitute(work, x, n, upper=True, unit=False),
            )

        return loop(batch, one, shared=are_worth_threads([*A.shape, size]))

    return te.extern(
        [B.shape, [batch], A.shape, [batch]],
        [A, B],
        body,
        dtype=[dtype, dtype, dtype, "int64"],
        name="solve",
    )


def te_solve_triangular(A: te.Tensor, B: te.Tensor, upper: bool, unit: bool) -> te.Tensor:
    """Return ``A^-1 B`` for triangular matrices; `unit`: with ones on the diagonal."""

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (a, right), (x,) = inputs, outputs

        def one(n: Any) -> Any:
            return in_order(_copied(x, right, n), _substitute(a, x, n, upper=upper, unit=unit))

        return loop(A.shape[0], one, shared=are_worth_threads([*A.shape, A.shape[-1]]))

    return te.extern([B.shape], [A, B], body, dtype=[str(A.dtype)], name="solve_triangular")


def te_cholesky(A: te.Tensor) -> te.Tensor:
    """Return the upper Cholesky factors; of `A` only the lower triangle is read."""
    size = A.shape[1]
    dtype = str(A.dtype)

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (a,), (u,) = inputs, outputs

        def one(n: Any) -> Any:
            def begin(row: Any) -> Any:
                def value(column: Any) -> Any:
                    is_upper = column >= row
                    symmetric = a[n, tirx.max(row, column), tirx.min(row, column)]
                    kept = tirx.Select(is_upper, symmetric, tirx.const(0, dtype))
                    return tirx.BufferStore(u, kept, [n, row, column])

                return loop(size, value)

            def step(row: Any) -> Any:
                scale = tirx.Var("scale", dtype)

                def less(below: Any) -> Any:
                    factor = tirx.Var("factor", dtype)
                    return in_order(
                        tirx.Bind(factor, u[n, row, below]),
                        loop(
                            size,
                            lambda j: _subtract(u, [n, below, j], u[n, row, j] * factor),
                            below,
                        ),
                    )

                return in_order(
                    tirx.Bind(scale, tirx.sqrt(u[n, row, row])),
                    loop(
                        size,
                        lambda j: tirx.BufferStore(u, u[n, row, j] / scale, [n, row, j]),
                        row,
                    ),
                    loop(size, less, row + 1),
                )

            return in_order(loop(size, begin), loop(size, step))

        return loop(A.shape[0], one, shared=are_worth_threads([*A.shape, A.shape[-1]]))

    return te.extern([A.shape], [A], body, dtype=[dtype], name="cholesky")


def _subtract(buffer: Any, at: Index, value: Any) -> Any:
    return tirx.BufferStore(buffer, buffer[tuple(at)] - value, at)


def _copied(to: Any, source: Any, n: Any) -> Any:
    return nest(to.shape[1:], lambda at: tirx.BufferStore(to, source[(n, *at)], [n, *at]))


def _substitute(a: Any, x: Any, n: Any, *, upper: bool, unit: bool) -> Any:
    """Return the loops that solve one triangular system in place."""
    size, columns = a.shape[1], x.shape[2]

    def solve(step: Any) -> Any:
        row = long(size) - 1 - step if upper else step

        def less(other: Any) -> Any:
            return loop(
                columns, lambda j: _subtract(x, [n, row, j], a[n, row, other] * x[n, other, j])
            )

        def divided(j: Any) -> Any:
            return tirx.BufferStore(x, x[n, row, j] / a[n, row, row], [n, row, j])

        known = loop(size, less, row + 1) if upper else loop(row, less)
        return known if unit else in_order(known, loop(columns, divided))

    return loop(size, solve)
