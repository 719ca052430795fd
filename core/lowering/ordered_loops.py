"""TE functions whose loops have an order: scans, selection of the largest, and linear algebra.

Each is a ``te.extern`` of plain loops. TVM's own scans walk down the columns of rows, it sorts a
whole row for its first elements, and it has no linear algebra.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tirx

Index = list[Any]


def loop(extent: Any, body: Callable[[Any], Any], start: Any = 0, *, shared: bool = False) -> Any:
    """Return a loop from `start` up to `extent`; `shared`: threads share it."""
    var = tirx.Var("i", "int64")
    kind = tirx.ForKind.PARALLEL if shared else tirx.ForKind.SERIAL
    begins_at_0 = isinstance(start, int) and start == 0
    count = long(extent) if begins_at_0 else long(extent) - long(start)
    return tirx.For(var, long(0), count, kind, body(var if begins_at_0 else long(start) + var))


def nest(extents: Sequence[Any], body: Callable[[Index], Any], *, shared: bool = False) -> Any:
    """Return loops over `extents`; `shared`: threads share the outermost."""
    if not extents:
        return body([])
    return loop(
        extents[0],
        lambda first: nest(extents[1:], lambda rest: body([first, *rest])),
        shared=shared,
    )


def long(value: Any) -> Any:
    """Return an extent or an index as an int64 expression."""
    if isinstance(value, (int, tirx.IntImm)):
        return tirx.const(int(value), "int64")
    return value if str(value.ty.dtype) == "int64" else tirx.Cast("int64", value)


def in_order(*statements: Any) -> Any:
    """Return statements one after the other."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def _is_float(dtype: Any) -> bool:
    return str(dtype).startswith(("float", "bfloat"))


# --- Scans along an axis ---


def _scan(
    shape: Sequence[Any],
    axis: int,
    first: Callable[[Index], Any],
    following: Callable[[Index, Index], Any],
) -> Any:
    """Return loops over a shape, the elements beside one another along `axis` innermost.

    `first`: the statement for an element that is the first along the axis.
    `following`: the one for another, given its index and that of the one before.
    """
    outer, inner = shape[:axis], shape[axis + 1 :]

    def line(before: Index) -> Any:
        def step(place: Any) -> Any:
            return nest(
                inner,
                lambda after: following([*before, place, *after], [*before, place - 1, *after]),
            )

        # An extent that depends on data may be 0.
        begin = loop(
            tirx.min(long(shape[axis]), long(1)),
            lambda place: nest(inner, lambda after: first([*before, place, *after])),
        )
        return in_order(begin, loop(shape[axis], step, 1))

    return nest(outer, line, shared=True)


def te_scan(A: te.Tensor, axis: int, dtype: str, kind: str) -> te.Tensor:
    """Return sums, products or logarithms of sums of exponentials, so far along `axis`."""
    combine = _COMBINED[kind]

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (x,), (out,) = inputs, outputs

        def value(at: Index) -> Any:
            return x[tuple(at)] if str(A.dtype) == dtype else tirx.Cast(dtype, x[tuple(at)])

        return _scan(
            A.shape,
            axis,
            lambda at: tirx.BufferStore(out, value(at), at),
            lambda at, before: tirx.BufferStore(out, combine(out[tuple(before)], value(at)), at),
        )

    return te.extern([A.shape], [A], body, dtype=[dtype], name=kind)


def _log_of_sum(old: Any, new: Any) -> Any:
    high, low = (tirx.Select(old > new, *pair) for pair in ((old, new), (new, old)))
    value = high + tirx.log(tirx.const(1.0, "float64") + tirx.exp(low - high))
    # The difference of equal infinities is NaN.
    return tirx.Select(tirx.EQ(old, new), old + tirx.const(math.log(2), "float64"), value)


_COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "cumsum": lambda old, new: old + new,
    "cumprod": lambda old, new: old * new,
    "logcumsumexp": _log_of_sum,
}
"""Combinations of an element with the result before it, by the names of scans."""


def te_cumulative_extremum(A: te.Tensor, axis: int, largest: bool) -> Any:
    """Return the largest or smallest elements so far along `axis`, and their last places.

    A NaN is ahead of every number.
    """

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (x,), (values, places) = inputs, outputs

        def first(at: Index) -> Any:
            return in_order(
                tirx.BufferStore(values, x[tuple(at)], at), tirx.BufferStore(places, long(0), at)
            )

        def following(at: Index, before: Index) -> Any:
            new, old = x[tuple(at)], values[tuple(before)]
            ahead = new >= old if largest else new <= old
            if _is_float(A.dtype):
                ahead = tirx.any(ahead, tirx.isnan(new))
            place = tirx.Select(ahead, at[axis], places[tuple(before)])
            return in_order(
                tirx.BufferStore(places, place, at),
                tirx.BufferStore(values, tirx.Select(ahead, new, old), at),
            )

        return _scan(A.shape, axis, first, following)

    types = [str(A.dtype), "int64"]
    name = "cummax" if largest else "cummin"
    return te.extern([A.shape, A.shape], [A], body, dtype=types, name=name)


# --- The first elements of an order ---


def te_sort_key(A: te.Tensor) -> te.Tensor:
    """Return integers in the order of floats: both zeros are equal, and NaN is the largest."""
    dtype = str(A.dtype).replace("float", "int")
    number = tirx.const
    largest = tirx.max_value(dtype)

    def key(*i: Any) -> Any:
        value = A(*i)
        bits = tirx.reinterpret(dtype, value)
        # The bits of a negative number, except for its sign, are in the reverse order.
        ordered = tirx.Select(bits < number(0, dtype), bits ^ largest, bits)
        ordered = tirx.Select(tirx.EQ(value, number(0, A.dtype)), number(0, dtype), ordered)
        return tirx.Select(tirx.isnan(value), largest, ordered)

    return te.compute(A.shape, key, name="sort_key")


def te_topk(A: te.Tensor, axis: int, count: int, largest: bool) -> Any:
    """Return the first `count` elements along `axis` in order, and their places.

    Each element is inserted into the list of the first ones if it is ahead of the last of these.
    Of equal ones, the first is ahead. NaN is the largest.
    """
    shape = [*A.shape[:axis], count, *A.shape[axis + 1 :]]

    def is_ahead(new: Any, old: Any) -> Any:
        ahead = new > old if largest else new < old
        if not _is_float(A.dtype):
            return ahead
        nan, other = (new, old) if largest else (old, new)
        return tirx.any(ahead, tirx.all(tirx.isnan(nan), tirx.Not(tirx.isnan(other))))

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (x,), (values, places) = inputs, outputs

        def line(rest: Index) -> Any:
            def at(place: Any) -> Index:
                return [*rest[:axis], place, *rest[axis:]]

            def put(slot: Any, value: Any, place: Any) -> Any:
                return in_order(
                    tirx.BufferStore(values, value, at(slot)),
                    tirx.BufferStore(places, place, at(slot)),
                )

            def precedes(new: Any, slot: Any) -> Any:
                # A place below 0 is one without an element.
                return tirx.any(
                    is_ahead(new, values[tuple(at(slot))]), places[tuple(at(slot))] < long(0)
                )

            def insert(new: Any, place: Any) -> Any:
                def shift(step: Any) -> Any:
                    slot = long(count - 1) - step
                    before = slot - 1
                    moved = put(slot, values[tuple(at(before))], places[tuple(at(before))])
                    return tirx.IfThenElse(
                        precedes(new, before),
                        moved,
                        tirx.IfThenElse(precedes(new, slot), put(slot, new, place), None),
                    )

                first = tirx.IfThenElse(precedes(new, long(0)), put(long(0), new, place), None)
                return in_order(loop(count - 1, shift), first)

            def step(place: Any) -> Any:
                new = x[tuple(at(place))]
                return tirx.IfThenElse(precedes(new, long(count - 1)), insert(new, place), None)

            none = tirx.const(0, A.dtype)
            return in_order(
                loop(count, lambda slot: put(slot, none, long(-1))), loop(A.shape[axis], step)
            )

        return nest([*A.shape[:axis], *A.shape[axis + 1 :]], line, shared=True)

    types = [str(A.dtype), "int64"]
    return te.extern([shape, shape], [A], body, dtype=types, name="topk")


def te_searchsorted(sequence: te.Tensor, values: te.Tensor, right: bool) -> Any:
    """Return where each value is to be inserted along the last axis of a sorted sequence.

    The sequence has one axis, or those of `values`. The search halves as torch's does, so that it
    ends at the same place where there is a NaN, or no order. The second result is where each
    search stopped from above.
    """
    length = sequence.shape[-1]
    size = getattr(length, "value", length)
    halvings = size.bit_length() if isinstance(size, int) else 63

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (ordered, wanted), (starts, ends) = inputs, outputs

        def find(at: Index) -> Any:
            begin, end = starts[tuple(at)], ends[tuple(at)]
            middle = begin + ((end - begin) >> long(1))
            row = at[:-1] if len(sequence.shape) > 1 else []
            element, value = ordered[(*row, middle)], wanted[tuple(at)]
            stops = element > value if right else element >= value
            halve = tirx.IfThenElse(
                stops, tirx.BufferStore(ends, middle, at), tirx.BufferStore(starts, middle + 1, at)
            )
            return in_order(
                tirx.BufferStore(starts, long(0), at),
                tirx.BufferStore(ends, long(length), at),
                loop(halvings, lambda _step: tirx.IfThenElse(begin < end, halve, None)),
            )

        return nest(values.shape, find, shared=True)

    shapes, types = [values.shape, values.shape], ["int64", "int64"]
    return te.extern(shapes, [sequence, values], body, dtype=types, name="searchsorted")


# --- Linear algebra on stacks of small matrices ---


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

        return loop(batch, one, shared=True)

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

        return loop(A.shape[0], one, shared=True)

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

        return loop(A.shape[0], one, shared=True)

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
