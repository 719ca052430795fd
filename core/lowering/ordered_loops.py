"""Plain loops for a ``te.extern``, and scans, which consist of them.

TVM's own scans walk down the columns of rows.
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


_WORTH_THREADS = 1 << 16
"""Number of steps from which threads share them: they wait for one another at the end."""

_NAMED = 64
"""Number that a named extent counts as."""


def are_worth_threads(extents: Sequence[Any], times: int = 1) -> bool:
    """Return whether so many elements, each of so many steps, are worth threads."""
    known = [int(long(each)) if isinstance(long(each), tirx.IntImm) else _NAMED for each in extents]
    return math.prod(known) * times >= _WORTH_THREADS


def long(value: Any) -> Any:
    """Return an extent or an index as an int64 expression."""
    if isinstance(value, (int, tirx.IntImm)):
        return tirx.const(int(value), "int64")
    return value if str(value.ty.dtype) == "int64" else tirx.Cast("int64", value)


def in_order(*statements: Any) -> Any:
    """Return statements one after the other."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def is_float_dtype(dtype: Any) -> bool:
    return str(dtype).startswith(("float", "bfloat"))


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

    return nest(outer, line, shared=are_worth_threads(shape))


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
            if is_float_dtype(A.dtype):
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
