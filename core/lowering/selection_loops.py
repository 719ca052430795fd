"""TE functions that select elements by their order, as plain loops.

TVM sorts a whole row for its first elements, or for the one in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tirx

from lowerscope.core.lowering.ordered_loops import (
    Index,
    are_worth_threads,
    in_order,
    is_float_dtype,
    long,
    loop,
    nest,
)


def te_sort_key(A: te.Tensor) -> te.Tensor:
    """Return integers in the order of floats: both zeros are equal, and NaN is the largest."""
    return te.compute(A.shape, lambda *i: _key(A(*i)), name="sort_key")


def _key(value: Any) -> Any:
    """Return an integer in the order of `value`, which may be one."""
    kind = str(value.ty.dtype)
    if not is_float_dtype(kind):
        return value
    dtype, number = kind.replace("float", "int"), tirx.const
    largest, bits = tirx.max_value(dtype), tirx.reinterpret(dtype, value)
    # The bits of a negative number, except for its sign, are in the reverse order.
    ordered = tirx.Select(bits < number(0, dtype), bits ^ largest, bits)
    ordered = tirx.Select(tirx.EQ(value, number(0, kind)), number(0, dtype), ordered)
    return tirx.Select(tirx.isnan(value), largest, ordered)


def te_kth(A: te.Tensor, axis: int, rank: int | None) -> Any:
    """Return the element of a rank along `axis`, counted from 1, and the first place of it.

    The range of its key is halved by counting the keys up to the middle: each count is one pass
    that LLVM vectorizes. NaN is the largest.

    `rank`: ``None`` for the lower one in the middle, or for a NaN, if there is one. The other
        results are the keys, and the bounds, the count and the rank of each search.
    """
    rest, length = [*A.shape[:axis], *A.shape[axis + 1 :]], A.shape[axis]
    kind = str(A.dtype)
    dtype = kind.replace("float", "int")
    low, high, count, wanted = range(4)

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (x,), (values, places, keys, state) = inputs, outputs

        def line(at: Index) -> Any:
            def known(slot: int) -> Any:
                return state[(*at, slot)]

            def put(slot: int, value: Any) -> Any:
                return tirx.BufferStore(state, tirx.Cast(dtype, value), [*at, slot])

            def element(place: Any) -> Any:
                return x[(*at[:axis], place, *at[axis:])]

            def fill(place: Any) -> Any:
                key = tirx.Var("key", dtype)
                stored = tirx.BufferStore(keys, key, [*at, place])
                found = [tirx.Bind(key, _key(element(place))), stored]
                if rank is None and is_float_dtype(kind):
                    is_nan = tirx.EQ(key, tirx.max_value(dtype))
                    found.append(tirx.IfThenElse(is_nan, put(wanted, length), None))
                return in_order(*found)

            def halve(_step: Any) -> Any:
                middle = tirx.Var("middle", dtype)
                # Their sum may be no integer of so many bits.
                half = (known(low) & known(high)) + ((known(low) ^ known(high)) >> 1)

                def add(place: Any) -> Any:
                    return put(count, known(count) + tirx.Cast(dtype, keys[(*at, place)] <= middle))

                halved = in_order(
                    tirx.Bind(middle, half),
                    put(count, 0),
                    loop(length, add),
                    tirx.IfThenElse(
                        known(count) >= known(wanted), put(high, middle), put(low, middle + 1)
                    ),
                )
                return tirx.IfThenElse(known(low) < known(high), halved, None)

            def place_of(step: Any) -> Any:
                place = long(length) - 1 - step
                is_it = tirx.EQ(keys[(*at, place)], known(low))
                return tirx.BufferStore(places, tirx.Select(is_it, place, places[tuple(at)]), at)

            return in_order(
                put(low, tirx.min_value(dtype)),
                put(high, tirx.max_value(dtype)),
                put(wanted, tirx.floordiv(long(length) + 1, 2) if rank is None else rank),
                loop(length, fill),
                loop(int(dtype.removeprefix("int")), halve),
                tirx.BufferStore(places, long(0), at),
                loop(length, place_of),
                tirx.BufferStore(values, element(places[tuple(at)]), at),
            )

        bits = int(dtype.removeprefix("int"))
        return nest(rest, line, shared=are_worth_threads(A.shape, bits))

    shapes = [rest, rest, [*rest, length], [*rest, 4]]
    types = [kind, "int64", dtype, dtype]
    return te.extern(shapes, [A], body, dtype=types, name="kth")


def te_ahead(keys: te.Tensor, state: te.Tensor, count: int, largest: bool) -> Any:
    """Return the places of the first `count` keys of each row, those beyond the last of them first.

    `keys`, `state`: of `te_kth`, whose element is the last of them. Of equal ones, the first count.
    The other result is the number of places, which is `count`.
    """
    *rest, length = keys.shape

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (key, search), (places, filled) = inputs, outputs

        def line(at: Index) -> Any:
            last, known = search[(*at, 0)], filled[tuple(at)]

            def keep(place: Any) -> Any:
                return in_order(
                    tirx.BufferStore(places, place, [*at, known]),
                    tirx.BufferStore(filled, known + 1, at),
                )

            def ahead(place: Any) -> Any:
                own = key[(*at, place)]
                return tirx.IfThenElse(own > last if largest else own < last, keep(place), None)

            def equal(place: Any) -> Any:
                is_kept = tirx.all(tirx.EQ(key[(*at, place)], last), known < long(count))
                return tirx.IfThenElse(is_kept, keep(place), None)

            start = tirx.BufferStore(filled, long(0), at)
            return in_order(start, loop(length, ahead), loop(length, equal))

        return nest(rest, line, shared=are_worth_threads(keys.shape))

    shapes, types = [[*rest, count], rest], ["int64", "int64"]
    return te.extern(shapes, [keys, state], body, dtype=types, name="ahead")


def te_topk(A: te.Tensor, axis: int, count: int, largest: bool) -> Any:
    """Return the first `count` elements along `axis` in order, and their places.

    Each element is inserted into the list of the first ones if it is ahead of the last of these.
    Of equal ones, the first is ahead. NaN is the largest.
    """
    shape = [*A.shape[:axis], count, *A.shape[axis + 1 :]]

    def is_ahead(new: Any, old: Any) -> Any:
        ahead = new > old if largest else new < old
        if not is_float_dtype(A.dtype):
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

        return nest(
            [*A.shape[:axis], *A.shape[axis + 1 :]], line, shared=are_worth_threads(A.shape)
        )

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

        return nest(values.shape, find, shared=are_worth_threads(values.shape, halvings))

    shapes, types = [values.shape, values.shape], ["int64", "int64"]
    return te.extern(shapes, [sequence, values], body, dtype=types, name="searchsorted")


def te_bags(
    weight: te.Tensor,
    places: te.Tensor,
    rest: Sequence[te.Tensor],
    mode: str,
    count: Any,
    unread: int | None,
) -> te.Tensor:
    """Return the sum, the mean or the maximum of some rows of a table for each bag.

    Args:
        weight: The table.
        places: Numbers of rows: of all bags one after the other, or a row of them for each bag.
        rest: The place where each bag begins, unless `places` has a row for each; and a factor for
            each row that is read, if there are factors.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        count: Number of bags.
        unread: A row that is in no bag.
    """
    dtype, width = str(weight.dtype), weight.shape[1]
    # As in torch, halves are added in float32.
    wide = dtype if dtype == "float64" else "float32"
    in_rows = len(places.shape) == 2

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        table, numbers, *others = inputs
        offsets = None if in_rows else others.pop(0)
        (factors,) = others or (None,)
        (out,) = outputs

        def bag(at: Index) -> Any:
            total = tirx.decl_buffer((long(width),), wide, "total", layout=None)
            read = tirx.decl_buffer((long(1),), "int64", "read", layout=None)

            def add(place: Any) -> Any:
                index = [*at, place] if in_rows else [place]
                number = tirx.Var("row", "int64")
                row = tirx.max(
                    long(0), tirx.min(long(numbers[tuple(index)]), long(weight.shape[0]) - 1)
                )

                def one(column: Any) -> Any:
                    new = tirx.Cast(wide, table[number, column])
                    if factors is not None:
                        new = new * tirx.Cast(wide, factors[tuple(index)])
                    old = total[column]
                    if mode == "max":
                        is_first = tirx.EQ(read[0], long(0))
                        made = tirx.Select(tirx.any(is_first, new > old, tirx.isnan(new)), new, old)
                    else:
                        made = old + new
                    return tirx.BufferStore(total, made, [column])

                added = in_order(
                    loop(width, one), tirx.BufferStore(read, read[0] + long(1), [long(0)])
                )
                if unread is not None:
                    added = tirx.IfThenElse(tirx.NE(number, long(unread)), added, None)
                return in_order(tirx.Bind(number, row), added)

            if offsets is None:
                rows = loop(places.shape[1], add)
            else:
                starts, every = long(offsets.ty.shape[0]), long(places.shape[0])
                begin, after = tirx.Var("begin", "int64"), tirx.Var("after", "int64")
                following = tirx.if_then_else(
                    at[0] + 1 < starts, long(offsets[tirx.min(at[0] + 1, starts - 1)]), every
                )
                rows = in_order(
                    tirx.Bind(begin, long(offsets[at[0]])),
                    tirx.Bind(after, tirx.min(following, every)),
                    loop(after, add, begin),
                )

            def write(column: Any) -> Any:
                value = total[column]
                if mode == "mean":
                    value = value / tirx.Cast(wide, tirx.max(read[0], long(1)))
                return tirx.BufferStore(out, tirx.Cast(dtype, value), [*at, column])

            return in_order(
                tirx.AllocBuffer(total),
                tirx.AllocBuffer(read),
                tirx.BufferStore(read, long(0), [long(0)]),
                loop(
                    width,
                    lambda column: tirx.BufferStore(total, tirx.const(0, wide), [column]),
                ),
                rows,
                loop(width, write),
            )

        return nest([count], bag, shared=are_worth_threads([*places.shape, width]))

    return te.extern([[count, width]], [weight, places, *rest], body, dtype=[dtype], name="bags")
