"""TensorIR of Relax operators for which TVM's own is wrong or slow.

TVM's relu turns NaN into 0; its max and min lose a NaN that is followed by a number, and start at
the largest finite number. torch keeps NaN, and so do these. TVM's scatters walk down the columns
of rows, and misplace an index that is smaller than the data. The forms here replace TVM's wherever
an operator is legalised; the Relax operators themselves are unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import tvm
from tvm import relax, te, tirx, topi

from lowerscope.core.lowering.values import is_scalar_constant

# --- NaN-propagating reducers: max, min, argmax and argmin ---


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
    # TVM takes `y == y` for true. An extremum of a number and NaN so far is that NaN. The sum is
    # NaN as well: LLVM would make comparisons of both selections if they had `y` in common, and
    # each would wait for the last.
    number = y <= tirx.infinity(_dtype_of(y))
    return tirx.Select(number, tirx.max(y, x) if largest else tirx.min(y, x), y + y)


def nan_test(value: Any) -> Any:
    """Return a test for NaN, by the bits where these are known: TVM has no vectors of its own.

    Of bfloat16, it has no test at all.
    """
    dtype = str(value.ty.dtype)
    if dtype not in _INFINITIES:
        return tirx.isnan(value)
    bits, infinity = _INFINITIES[dtype]
    return tirx.reinterpret(bits, value) & tirx.max_value(bits) > tirx.const(infinity, bits)


_INFINITIES = {
    "float64": ("int64", 0x7FF0000000000000),
    "float32": ("int32", 0x7F800000),
    "bfloat16": ("int16", 0x7F80),
}
"""Integers of the same width, and the bits of infinity, by float."""


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


_ABOVE_TVM = 11
"""Priority above that of TVM's own entries, which is 10."""

Legalise = Callable[[relax.BlockBuilder, Any], Any]


class Reduced:
    """The axes of a reduction: the remaining ones, and the input's index by them."""

    def __init__(self, A: te.Tensor, axes: Sequence[int], keepdims: bool) -> None:
        self._rank = len(A.shape)
        self._axes = axes
        self._kept = keepdims
        self.over = [te.reduce_axis((0, A.shape[axis]), name=f"k{axis}") for axis in axes]
        rest = [axis for axis in range(self._rank) if keepdims or axis not in axes]
        self.shape = [1 if axis in axes else A.shape[axis] for axis in rest]

    def index(self, place: Sequence[Any]) -> list[Any]:
        """Return the index into the input of an element at `place` of the output."""
        over, left = iter(self.over), iter(place)
        index = []
        for axis in range(self._rank):
            if axis in self._axes:
                index.append(next(over))
                if self._kept:
                    next(left)
            else:
                index.append(next(left))
        return index


def _reduction(largest: bool, stock: Legalise) -> Legalise:
    name = "max" if largest else "min"

    def reduce(A: te.Tensor, axes: Sequence[int], keepdims: bool) -> te.Tensor:
        reduced = Reduced(A, axes, keepdims)
        reducer = extremum(largest)
        return te.compute(
            reduced.shape,
            lambda *i: reducer(A(*reduced.index(i)), axis=reduced.over),
            # TVM's name: schedules also fit modules that TVM legalises.
            name=f"{A.op.name}_red",
        )

    def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
        axes = _axes_of(call.args[0], call.attrs.axis)
        if not axes:
            return stock(builder, call)
        return builder.call_te(
            reduce, call.args[0], axes, bool(call.attrs.keepdims), primfunc_name_hint=name
        )

    return legalise


def _search(largest: bool, stock: Legalise) -> Legalise:
    name = "argmax" if largest else "argmin"

    def search(A: te.Tensor, axes: Sequence[int], keepdims: bool) -> te.Tensor:
        reduced = Reduced(A, axes, keepdims)
        reducer = place(largest)

        def found(*i: Any) -> Any:
            place: Any = tirx.const(0, "int64")
            for axis, over in zip(axes, reduced.over, strict=True):
                place = place * tirx.Cast("int64", A.shape[axis]) + tirx.Cast("int64", over.var)
            return reducer((place, A(*reduced.index(i))), axis=reduced.over)

        # TVM's names.
        pairs = te.compute(reduced.shape, found, name=f"{A.op.name}_red_temp")
        return te.compute(reduced.shape, lambda *i: pairs[0](*i), name=f"{A.op.name}_red")

    def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
        chosen = call.attrs.axis
        axes = _axes_of(call.args[0], None if chosen is None else [chosen])
        if not axes:
            return stock(builder, call)
        return builder.call_te(
            search, call.args[0], axes, bool(call.attrs.keepdims), primfunc_name_hint=name
        )

    return legalise


def _pooling(dimensions: int, stock: Legalise) -> Legalise:
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[dimensions]

    def pool(
        A: te.Tensor,
        shape: Sequence[Any],
        size: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
    ) -> te.Tensor:
        before = padding[:dimensions]
        extents = zip(A.shape[2:], shape[2:], size, strides, before, dilation, strict=True)
        # With a rounded-up output size, reads beyond the padding are padding as well.
        after = [
            tirx.max((out - 1) * step + (window - 1) * apart + 1 - extent - first, 0)
            for extent, out, window, step, first, apart in extents
        ]
        if any(before) or not all(isinstance(each, tirx.IntImm) and each == 0 for each in after):
            A = topi.nn.pad(
                A, [0, 0, *before], [0, 0, *after], farthest(True, A.dtype), name="pad_temp"
            )
        over = [te.reduce_axis((0, window), name=f"rv{axis}") for axis, window in enumerate(size)]
        reducer = extremum(largest=True)

        def largest(*i: Any) -> Any:
            index = [
                at * step + k * apart
                for at, step, k, apart in zip(i[2:], strides, over, dilation, strict=True)
            ]
            return reducer(A(*i[:2], *index), axis=over)

        return te.compute(shape, largest, name="pool_max")

    def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
        attrs = call.attrs
        if attrs.layout != layout or attrs.out_layout != layout or not _is_float(call.args[0]):
            return stock(builder, call)
        numbers = (attrs.pool_size, attrs.strides, attrs.padding, attrs.dilation)
        return builder.call_te(
            pool,
            call.args[0],
            list(call.ty.shape.values),
            *([int(each) for each in values] for values in numbers),
            primfunc_name_hint=f"max_pool{dimensions}d",
        )

    return legalise


def _relu(stock: Legalise) -> Legalise:
    def relu(A: te.Tensor) -> te.Tensor:
        # In this order NaN stays NaN.
        zero = tirx.const(0, A.dtype)
        return te.compute(A.shape, lambda *i: te.max(zero, A(*i)), name="compute")

    def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
        if not _is_float(call.args[0]):
            return stock(builder, call)
        return builder.call_te(relu, call.args[0])

    return legalise


_ELEMENTWISE = 0
"""TVM's pattern of functions that compute each element of one."""


def _maximum(stock: Legalise) -> Legalise:
    """Keep the function of ``maximum(0, x)`` apart from that of relu, which is equal.

    One name would stand for both. An exported program has TVM's relu, and two names.
    """

    def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
        first, second = call.args
        is_zero = is_scalar_constant(first) and not float(first.value.numpy())
        if not is_zero or not _is_float(second):
            return stock(builder, call)
        zero = tirx.const(0, str(second.ty.dtype.dtype))
        attributes = {"op_pattern": _ELEMENTWISE}
        return builder.call_te(
            topi.maximum, zero, second, primfunc_name_hint="maximum", primfunc_attrs=attributes
        )

    return legalise


_COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: _kept_of(False, old, new),
    "max": lambda old, new: _kept_of(True, old, new),
}
"""Reductions of scatters, by their names in Relax."""


def _kept_of(largest: bool, old: Any, new: Any) -> Any:
    if str(old.ty.dtype).startswith(("float", "bfloat")):
        keeps = tirx.any(old > new if largest else old < new, nan_test(old))
        return tirx.Select(keeps, old, new)
    return tirx.max(old, new) if largest else tirx.min(old, new)


_LANES = 16
"""Number of columns that a thread writes, where rows are long."""

_SHARED = 1 << 15
"""Number of elements from which threads share them."""


def _scattered(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int, reduction: str, rows: bool
) -> te.Tensor:
    """Return the data with updates, in one pass over these along their memory.

    `rows`: an index has one place for each slice of the updates, and not one for each element.
    """

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        old, places, new = inputs
        (out,) = outputs

        def copied(at: list[Any]) -> Any:
            return tirx.BufferStore(out, old[tuple(at)], at)

        def written(at: list[Any]) -> Any:
            place = places[at[0], 0] if rows else places[tuple(at)]
            extent = tirx.Cast(str(indices.dtype), data.shape[axis])
            target = list(at)
            target[axis] = tirx.Select(place < 0, place + extent, place)
            value = _COMBINED[reduction](out[tuple(target)], new[tuple(at)])
            return tirx.BufferStore(out, value, target)

        return tirx.SeqStmt([_loops(out.shape, -1, copied), _loops(new.shape, axis, written)])

    out = str(data.dtype)
    return te.extern([data.shape], [data, indices, updates], body, dtype=out, name="scatter")


def _loops(shape: Sequence[Any], ordered: int, body: Callable[[list[Any]], Any]) -> Any:
    """Return loops over a shape, the outermost parallel; that over the axis `ordered` is not."""
    extents = [int(each) if isinstance(each, tirx.IntImm) else None for each in shape]
    at: list[Any] = [tirx.Var(f"i{axis}", "int64") for axis in range(len(shape))]
    nest = list(zip(at, shape, strict=True))
    last = extents[-1]
    if ordered == 0 and len(shape) > 1 and last and last % _LANES == 0 and last > _LANES:
        outer, inner = tirx.Var("columns", "int64"), tirx.Var("lane", "int64")
        at[-1] = outer * _LANES + inner
        nest = [(outer, last // _LANES), *nest[:-1], (inner, _LANES)]
        ordered = 1
    total = None if None in extents else math.prod(each or 0 for each in extents)
    stmt = body(at)
    for depth, (var, extent) in reversed(list(enumerate(nest))):
        shares = depth == 0 and ordered != 0 and (total is None or total >= _SHARED)
        kind = tirx.ForKind.PARALLEL if shares else tirx.ForKind.SERIAL
        stmt = tirx.For(var, tirx.const(0, "int64"), tirx.Cast("int64", extent), kind, stmt)
    return stmt


def _scatter(rows: bool, stock: Legalise) -> Legalise:
    def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
        data, indices, updates = call.args
        target = tvm.target.Target.current(allow_none=True)
        for_gpu = target is not None and "gpu" in target.keys
        reduction = str(call.attrs.reduction)
        ranks = [each.ty.ndim for each in call.args]
        if for_gpu or reduction not in _COMBINED or ranks[0] < 1:
            return stock(builder, call)
        if rows and (ranks[1] != 2 or not _is_one(indices.ty.shape.values[1])):
            return stock(builder, call)
        axis = 0 if rows else int(call.attrs.axis) % ranks[0]
        name = str(call.op.name).removeprefix("relax.")
        return builder.call_te(
            _scattered, data, indices, updates, axis, reduction, rows, primfunc_name_hint=name
        )

    return legalise


def _is_one(extent: Any) -> bool:
    return isinstance(extent, tirx.IntImm) and int(extent) == 1


def _is_float(value: Any) -> bool:
    return str(value.ty.dtype).startswith(("float", "bfloat"))


def _axes_of(value: Any, chosen: Any) -> list[int]:
    """Return the reduced axes; empty if TVM's own form is right."""
    rank = value.ty.ndim
    axes = range(rank) if chosen is None else sorted(int(axis) % rank for axis in chosen)
    extents = value.ty.shape.values if isinstance(value.ty.shape, relax.ShapeExpr) else ()
    empty = any(isinstance(extents[axis], tirx.IntImm) and extents[axis] == 0 for axis in axes)
    return list(axes) if _is_float(value) and extents and not empty else []


def _enter(name: str, form: Callable[[Legalise], Legalise]) -> None:
    stock = tvm.ir.Op.get(name).get_attr("FLegalize")
    tvm.ir.register_op_attr(name, "FLegalize", form(stock), _ABOVE_TVM)


_enter("relax.nn.relu", _relu)
_enter("relax.maximum", _maximum)
_enter("relax.max", partial(_reduction, True))
_enter("relax.min", partial(_reduction, False))
_enter("relax.argmax", partial(_search, True))
_enter("relax.argmin", partial(_search, False))
_enter("relax.scatter_elements", partial(_scatter, False))
_enter("relax.scatter_nd", partial(_scatter, True))
for _dimensions in (1, 2, 3):
    _enter(f"relax.nn.max_pool{_dimensions}d", partial(_pooling, _dimensions))
