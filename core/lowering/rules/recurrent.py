"""Recurrent layers: a product for all steps at once, and one loop over the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from tvm import te, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.ordered_loops import Index, in_order, long, loop, nest
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.linear import linear
from lowerscope.core.lowering.rules.shape import permute_to, reshape_to, squeeze, unsqueeze
from lowerscope.core.lowering.values import Value, dtype_of, is_float, rank_of, shape_of
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_LANES = 16
"""Number of units that are computed as a vector."""

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

_WORTH_THREADS = 1 << 18
"""Number of products in a step from which threads share them: they wait at the end of each."""


def te_recurrence(
    given: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor,
    hidden: te.Tensor,
    cell: te.Tensor,
    kind: str,
    reverse: bool,
) -> Any:
    """Return the states of all steps of a recurrent layer, and the last hidden and cell state.

    `given`: what the inputs contribute: steps, rows, gates and units.
    `weight`: of the hidden state: blocks of units, units that are read, gates and lanes.
    `bias`: of the hidden state: blocks of units, gates and lanes.
    `hidden`, `cell`: the states before: rows and units; all kinds but the LSTM ignore the latter.
    `reverse`: whether the last step comes first.

    The further results are memory to work in: the hidden states before and after a step, and sums.
    """
    steps, rows, gates, units = given.shape
    blocks, _read, _gates, lanes = weight.shape
    dtype = str(given.dtype)
    # A number of rows that is named may be small.
    count = int(rows) if isinstance(long(rows), tirx.IntImm) else 1
    shared = int(blocks) > 1 and count * int(units) ** 2 * int(gates) >= _WORTH_THREADS

    def body(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        (x, w, b, h0, c0), (y, last, c, h, sums) = inputs, outputs

        def step(number: Any) -> Any:
            time = long(steps) - 1 - number if reverse else number
            old, new = tirx.floormod(number, 2), tirx.floormod(number + 1, 2)

            def of_row(block: Any, row: Any) -> Any:
                def stored(value: Callable[[int, Any], Any]) -> Any:
                    def store(gate: int) -> Any:
                        lane = tirx.Var("lane", "int64")
                        at = [block, row, gate, lane]
                        body = tirx.BufferStore(sums, value(gate, lane), at)
                        return tirx.For(lane, long(0), long(lanes), tirx.ForKind.VECTORIZED, body)

                    return in_order(*map(store, range(int(gates))))

                def product(unit: Any) -> Any:
                    read = h[old, row, unit]
                    return stored(
                        lambda gate, lane: (
                            sums[block, row, gate, lane] + read * w[block, unit, gate, lane]
                        )
                    )

                def state(lane: Any) -> Any:
                    unit = long(block) * int(lanes) + lane
                    own = [x[time, row, gate, unit] for gate in range(int(gates))]
                    given = [sums[block, row, gate, lane] for gate in range(int(gates))]
                    value = tirx.Var("state", dtype)
                    before: list[Any] = []
                    if kind == "lstm":
                        kept = tirx.Var("cell", dtype)
                        memory, output = _lstm(own, given, c[row, unit])
                        before = [tirx.Bind(kept, memory), tirx.BufferStore(c, kept, [row, unit])]
                        made = output * tirx.tanh(kept)
                    else:
                        made = _STEPS[kind](own, given, h[old, row, unit])
                    return in_order(
                        *before,
                        tirx.Bind(value, made),
                        tirx.BufferStore(y, value, [time, row, unit]),
                        tirx.BufferStore(h, value, [new, row, unit]),
                    )

                whole = not int(units) % int(lanes)
                extent = lanes if whole else tirx.min(lanes, long(units) - block * int(lanes))
                begin = stored(lambda gate, lane: b[block, gate, lane])
                return in_order(begin, loop(units, product), loop(extent, state))

            def of_block(block: Any) -> Any:
                return loop(rows, lambda row: of_row(block, row))

            return loop(blocks, of_block, shared=shared)

        def copied(to: Any, source: Any, first: Index, second: Index) -> Any:
            return nest(
                [rows, units],
                lambda at: tirx.BufferStore(to, source[(*second, *at)], [*first, *at]),
            )

        return in_order(
            copied(h, h0, [long(0)], []),
            copied(c, c0, [], []),
            loop(steps, step),
            copied(last, h, [], [tirx.floormod(long(steps), 2)]),
        )

    state = [rows, units]
    shapes = [[steps, *state], state, state, [2, *state], [blocks, rows, gates, lanes]]
    given_all = [given, weight, bias, hidden, cell]
    return te.extern(shapes, given_all, body, dtype=[dtype] * len(shapes), name=kind)


def _lstm(own: Sequence[Any], sums: Sequence[Any], cell: Any) -> tuple[Any, Any]:
    """Return the new cell, and the output gate."""
    reads, forgets, new, gives = (one + other for one, other in zip(own, sums, strict=True))
    memory = tirx.sigmoid(forgets) * cell + tirx.sigmoid(reads) * tirx.tanh(new)
    return memory, tirx.sigmoid(gives)


def _gru(own: Sequence[Any], sums: Sequence[Any], hidden: Any) -> Any:
    resets, updates = (tirx.sigmoid(own[each] + sums[each]) for each in range(2))
    new = tirx.tanh(own[2] + resets * sums[2])
    return (hidden - new) * updates + new


_STEPS: dict[str, Callable[..., Any]] = {
    "gru": _gru,
    "rnn_tanh": lambda own, sums, _hidden: tirx.tanh(own[0] + sums[0]),
    "rnn_relu": lambda own, sums, _hidden: tirx.max(
        own[0] + sums[0], tirx.const(0, str(own[0].ty.dtype))
    ),
}
"""The state after a step by kind, of what inputs and hidden state give to each gate, and it."""


def _recurrence(
    b: NodeBuilder,
    kind: str,
    input: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """Return the outputs of recurrent layers, and their last states."""
    gates, size = _GATES[kind], 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    if rank_of(input) != 3 or len(params) != size * num_layers * directions:
        # With projections, there is one more a layer; its parts are lowered.
        raise Refused("")
    if not is_float(dtype_of(input)):
        raise Refused(_("its input is no float"))
    value = permute_to(b, input, [1, 0, 2]) if batch_first else input
    steps, rows, _features = shape_of(value)
    units = shape_of(params[1])[1]
    lasts: list[list[Value]] = [[] for _each in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            own, of_hidden, *biases = params[place * size : (place + 1) * size]
            product = linear(b, value, own, biases[0] if biases else None)
            given = reshape_to(b, product, [steps, rows, gates, units])
            bias = biases[1] if biases else b.emit(op.zeros((gates * units,), dtype_of(input)))
            before = [_layer_of(b, each, place) for each in states]
            found = b.emit_te(
                te_recurrence,
                given,
                _packed(b, of_hidden, gates, units),
                _packed(b, bias, gates, units),
                before[0],
                before[-1],
                kind,
                bool(direction),
                primfunc_name_hint=kind,
            )
            outputs.append(b.emit(found[0]))
            for each, index in zip(lasts, (1, 2), strict=False):
                each.append(b.emit(found[index]))
        value = outputs[0] if directions == 1 else b.emit(op.concat(outputs, 2))
    stacked = [b.emit(op.stack(each, 0)) for each in lasts]
    return (permute_to(b, value, [1, 0, 2]) if batch_first else value, *stacked)


def _layer_of(b: NodeBuilder, states: Value, place: int) -> Value:
    one = b.emit(op.strided_slice(states, [0], [place], [place + 1]))
    return squeeze(b, one, 0)


def _packed(b: NodeBuilder, weight: Value, gates: int, units: int) -> Value:
    """Return a weight of the gates' units with the units in blocks of lanes, innermost."""
    read = shape_of(weight)[1:]
    missing = -units % _LANES
    value = reshape_to(b, weight, [gates, units, *read])
    if missing:
        zeros = b.emit(op.zeros((gates, missing, *read), dtype_of(weight)))
        value = b.emit(op.concat([value, zeros], 1))
    value = reshape_to(b, value, [gates, (units + missing) // _LANES, _LANES, *read])
    return permute_to(b, value, [1, 3, 0, 2] if read else [1, 0, 2])


def _check_dropout(dropout: float, train: bool, num_layers: int) -> None:
    if dropout and train and num_layers > 1:
        raise Refused(_("{name} is random", name="dropout"))


def _recurrent(kind: str) -> Callable[..., tuple[Value, ...]]:
    def recurrent(
        b: NodeBuilder,
        input: Value,
        hx: Value | Sequence[Value],
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Value, ...]:
        _check_dropout(dropout, train, num_layers)
        states = hx if isinstance(hx, list | tuple) else [hx]
        return _recurrence(
            b, kind, input, states, params, has_biases, num_layers, bidirectional, batch_first
        )

    return recurrent


for _kind in _GATES:
    rule(getattr(aten, _kind).input, name=_kind)(_recurrent(_kind))


def recurrent_module(b: NodeBuilder, module: Any, input: Value, hx: Any = None) -> tuple[Any, Any]:
    if rank_of(input) not in (2, 3) or module.proj_size:
        raise Refused("")
    _check_dropout(module.dropout, module.training, module.num_layers)
    single = rank_of(input) == 2
    axis = 0 if module.batch_first else 1
    kind = module.mode.lower()
    count = 2 if kind == "lstm" else 1
    states = list(hx) if isinstance(hx, tuple | list) else [hx] * count
    if hx is None:
        rows = 1 if single else shape_of(input)[axis]
        layers = module.num_layers * (2 if module.bidirectional else 1)
        shape = (layers, rows, module.hidden_size)
        states = [b.emit(op.zeros(shape, dtype_of(input)))] * count
    elif single:
        states = [unsqueeze(b, each, 1) for each in states]
    value, *lasts = _recurrence(
        b,
        kind,
        unsqueeze(b, input, axis) if single else input,
        states,
        [b.constant(each) for each in module._flat_weights],
        module.bias,
        module.num_layers,
        module.bidirectional,
        module.batch_first,
    )
    if single:
        value, lasts = squeeze(b, value, axis), [squeeze(b, each, 1) for each in lasts]
    return value, tuple(lasts) if kind == "lstm" else lasts[0]


for _module in (nn.LSTM, nn.GRU, nn.RNN):
    rule(_module, name=_module.__name__.lower())(recurrent_module)
