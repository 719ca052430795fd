"""NaN-propagating reducers: max, min, argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import tvm
from tvm import te, tirx


def farthest(largest: bool, dtype: str) -> Any:
    """Return the initial value of the reduction: the infinity that every element supersedes."""
    infinity = tirx.infinity(dtype)
    return -infinity if largest else infinity


def extremum(largest: bool) -> Any:
    """Return the reducer to the largest or smallest element, which propagates NaN."""
    return te.comm_reducer(
        lambda x, y: _ahead_of(largest, x, y),
        lambda dtype: farthest(largest, dtype),
        name="max" if largest else "min",
    )


def place(largest: bool) -> Any:
    """Return the reducer of places and elements to the first NaN, or the first extremum."""
    return te.comm_reducer(
        lambda x, y: _first(largest, x, y),
        lambda index, dtype: _nowhere(largest, index, dtype),
        name="argmax" if largest else "argmin",
    )


def _ahead_of(largest: bool, x: Any, y: Any) -> Any:
    return tirx.Select(tirx.any(x > y if largest else x < y, tirx.isnan(x)), x, y)


def _first(largest: bool, x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, Any]:
    ahead = x[1] > y[1] if largest else x[1] < y[1]
    # Of parts that are reduced by themselves, a later one may have come first.
    alike = tirx.any(x[1] == y[1], tirx.all(tirx.isnan(x[1]), tirx.isnan(y[1])))
    nan = tirx.all(tirx.isnan(x[1]), tirx.Not(tirx.isnan(y[1])))
    keeps = tirx.any(ahead, nan, tirx.all(alike, x[0] < y[0]))
    return tirx.Select(keeps, x[0], y[0]), tirx.Select(keeps, x[1], y[1])


def _nowhere(largest: bool, index: str, dtype: str) -> tuple[Any, Any]:
    # Later than any, so that an infinity that equals the start still has its own place.
    return tirx.max_value(index), farthest(largest, dtype)


@cache
def make_known() -> None:
    """Register the reducers for ``rfactor``: TVM cannot see that they may be reordered."""
    register = tvm.get_global_func("s_tir.schedule.RegisterReducer")
    for largest in (True, False):
        name = "max" if largest else "min"
        register(1, *_kept(name, _extremum_parts(largest)))
        register(2, *_kept(f"arg{name}", _place_parts(largest)))


Part = Callable[..., list[Any]]


def _extremum_parts(largest: bool) -> tuple[Part, Part]:
    return (
        lambda x, y: [_ahead_of(largest, x[0], y[0])],
        lambda values: [farthest(largest, _dtype_of(values[0]))],
    )


def _place_parts(largest: bool) -> tuple[Part, Part]:
    return (
        lambda x, y: list(_first(largest, x, y)),
        lambda values: list(_nowhere(largest, *(_dtype_of(each) for each in values))),
    )


def _dtype_of(value: Any) -> str:
    return str(value.ty.dtype)


def _kept(name: str, parts: tuple[Part, Part]) -> Iterator[Any]:
    """Yield functions that are never released.

    TVM's list of reducers outlives Python, which would crash when the list releases them. Functions
    that are registered as global ones are never released.
    """
    for place, part in zip(("combine", "start"), parts, strict=True):
        known = f"lowerscope.reducer.{name}.{place}"
        tvm.register_global_func(known, part, override=True)
        yield tvm.get_global_func(known)
