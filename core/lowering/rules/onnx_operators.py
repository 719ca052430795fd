"""ONNX operators that TVM's importer lacks, or converts to something else."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import Refused
from lowerscope.core.lowering.rules.complex import stft, transformed
from lowerscope.core.lowering.rules.creation import in_dtype
from lowerscope.core.lowering.rules.shape import permute_to, reshape_to
from lowerscope.core.lowering.values import (
    COMPLEX,
    EncodedTensor,
    Value,
    dtype_of,
    extents_of,
    is_float,
    is_size,
    is_tensor,
    rank_of,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import node_of

Attributes = dict[str, Any]


@cache
def converters() -> dict[str, Any]:
    """Return the converters of TVM's importer, by operator."""
    from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

    found: dict[str, Any] = _get_convert_map()
    return found


def converted(
    b: NodeBuilder, kind: str, version: int, given: Sequence[Value], attributes: Attributes
) -> Any:
    """Return what the converter of an operator makes."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return converters()[kind].get_converter(version)(b, given, attributes, [{}, {}])


# --- Where TVM's converters are wrong ---


def _is_inf(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    found = b.emit(op.isinf(x))
    zero = scalar(0, dtype_of(x))
    for name, side in (("detect_negative", op.greater), ("detect_positive", op.less)):
        if not attributes.get(name, 1):
            found = b.emit(op.logical_and(found, b.emit(side(x, zero))))
    return found


def _pow(b: NodeBuilder, attributes: Attributes, x: Value, y: Value) -> Value:
    wide = dtype_of(x) if is_float(dtype_of(x)) else "float64"
    made = b.emit(op.power(cast(b, x, wide), cast(b, y, wide)))
    return cast(b, made, dtype_of(x))


def rms_normalization(b: NodeBuilder, attributes: Attributes, x: Value, scale: Value) -> Value:
    rank = rank_of(x)
    axes = list(range(attributes.get("axis", -1) % rank, rank))
    mean = b.emit(op.mean(b.emit(op.square(x)), axes, keepdims=True))
    epsilon = scalar(attributes.get("epsilon", 1e-5), dtype_of(x))
    root = b.emit(op.sqrt(b.emit(op.add(mean, epsilon))))
    return b.emit(op.multiply(b.emit(op.divide(x, root)), scale))


def _celu(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    alpha, zero = scalar(attributes.get("alpha", 1.0), dtype_of(x)), scalar(0, dtype_of(x))
    grown = b.emit(op.exp(b.emit(op.divide(b.emit(op.minimum(x, zero)), alpha))))
    below = b.emit(op.multiply(alpha, b.emit(op.subtract(grown, scalar(1, dtype_of(x))))))
    return b.emit(op.add(b.emit(op.maximum(x, zero)), below))


def _swish(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    scaled = b.emit(op.multiply(x, scalar(attributes.get("alpha", 1.0), dtype_of(x))))
    return b.emit(op.multiply(x, b.emit(op.sigmoid(scaled))))


def _cast_like(b: NodeBuilder, attributes: Attributes, x: Value, like: Value) -> Value:
    if not is_tensor(x) or not is_tensor(like) or dtype_of(like) != "bfloat16":
        return None
    return in_dtype(b, x, "bfloat16")


def _cast(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    is_half = attributes["to"] == _BFLOAT16
    return in_dtype(b, x, "bfloat16") if is_half and is_tensor(x) else None


_BFLOAT16 = 16
"""ONNX's number of the dtype, to which TVM's own cast does not round."""


def _reshape(b: NodeBuilder, attributes: Attributes, x: Value, shape: Value = None) -> Value:
    """Give a tensor other extents; what is left for one of them is a quotient without a rest."""
    if isinstance(shape, relax.ShapeExpr):
        sizes = list(extents_of(shape))
    elif isinstance(shape, ir.GenericConst):
        sizes = shape.value.numpy().tolist()
    else:
        return None
    if is_size(x) and sizes in ([-1], [1]):
        return relax.ShapeExpr([x])
    if not is_tensor(x) or isinstance(x, ir.GenericConst):
        return None
    if not attributes.get("allowzero"):
        sizes = [shape_of(x)[axis] if each == 0 else each for axis, each in enumerate(sizes)]
    return reshape_to(b, x, sizes)


# --- Integers ---


def centred(b: NodeBuilder, x: Value, zero: Value, axis: int | None = None) -> Value:
    """Return quantised numbers as int32, without their zero point.

    Args:
        axis: The axis of a zero point with one number for each slice.
    """
    wide = cast(b, x, "int32")
    return wide if zero is None else b.emit(op.subtract(wide, along(b, zero, "int32", x, axis)))


def along(b: NodeBuilder, value: Value, dtype: str, x: Value, axis: int | None) -> Value:
    """Return a number, or one for each slice of `x` along an axis, to compute with `x`."""
    if isinstance(value, ir.GenericConst) and shape_of(value) in ((), (1,)):
        return scalar(value.value.numpy().item(), dtype)
    value = cast(b, value, dtype)
    if shape_of(value) in ((), (1,)) or axis is None:
        return b.emit(op.reshape(value, []))
    return b.emit(op.reshape(value, [-1] + [1] * (rank_of(x) - 1 - axis % rank_of(x))))


def _requantised(
    b: NodeBuilder, total: Value, scales: Sequence[Value], zero: Value, axis: int | None
) -> Value:
    """Return sums of products as quantised numbers.

    Args:
        scales: Those of the factors and of the result.
    """
    first, second, last = (along(b, each, "float32", total, axis) for each in scales)
    scale = b.emit(op.divide(b.emit(op.multiply(first, second)), last))
    real = b.emit(op.round(b.emit(op.multiply(cast(b, total, "float32"), scale))))
    dtype = dtype_of(zero)
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    moved = b.emit(op.add(real, along(b, zero, "float32", total, axis)))
    return cast(b, b.emit(op.clip(moved, low, high)), dtype)


def _conv_integer(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    weight: Value,
    zero: Value = None,
    zero_of_weight: Value = None,
) -> Value:
    factors = centred(b, x, zero), centred(b, weight, zero_of_weight, 0)
    return converted(b, "Conv", 11, [*factors, None], attributes)


def _qlinear_conv(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    x, scale, zero, weight, scale_of_weight, zero_of_weight, scale_of_result, last, *bias = given
    factors = centred(b, x, zero), centred(b, weight, zero_of_weight, 0)
    total = b.emit(converted(b, "Conv", 11, [*factors, *(bias or [None])], attributes))
    return _requantised(b, total, (scale, scale_of_weight, scale_of_result), last, 1)


def _qlinear_matmul(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    x, scale, zero, weight, scale_of_weight, zero_of_weight, scale_of_result, last = given
    if any(shape_of(each) not in ((), (1,)) for each in (scale, zero)):
        raise Refused(_("its first factor has a scale for each row"))
    factors = centred(b, x, zero), centred(b, weight, zero_of_weight, -1)
    total = b.emit(op.matmul(*factors))
    return _requantised(b, total, (scale, scale_of_weight, scale_of_result), last, -1)


# --- Fourier transforms ---


def number_of(value: Value) -> Any:
    """Return the number that a constant holds.

    Raises `Refused` if it is known only when the model runs.
    """
    if not isinstance(value, ir.GenericConst):
        raise Refused(_("it needs a number, which is known only when the model runs"))
    return value.value.numpy().item()


def _dft(
    b: NodeBuilder, attributes: Attributes, x: Value, length: Value = None, axis: Value = None
) -> Value:
    """Transform an axis; numbers are real, or pairs along the last axis."""
    inverse, half = bool(attributes.get("inverse")), bool(attributes.get("onesided"))
    if inverse and half:
        raise Refused(_("some of its options are not lowered"))
    at = attributes.get("axis", 1 if attributes["version"] < 20 else -2)
    at = (at if axis is None else number_of(axis)) % rank_of(x)
    last = rank_of(x) - 1
    is_real = shape_of(x)[last] == 1
    given = b.emit(op.squeeze(x, [last])) if is_real else EncodedTensor(x, _PAIRS[dtype_of(x)])
    size = None if length is None else number_of(length)
    kind = "from real" if half and is_real else "complex"
    scale = "by_n" if inverse else "none"
    made = transformed(b, given, [at], [size], inverse=inverse, scale=scale, kind=kind).value
    if not half or is_real:
        return made
    count = shape_of(made)[at] // 2 + 1
    return b.emit(op.strided_slice(made, [at], [0], [count]))


_PAIRS = {part: whole for whole, part in COMPLEX.items()}


def _stft(
    b: NodeBuilder,
    attributes: Attributes,
    signal: Value,
    step: Value,
    window: Value = None,
    length: Value = None,
) -> Value:
    if rank_of(signal) == 3:
        if shape_of(signal)[2] != 1:
            raise Refused(_("its argument is complex"))
        signal = b.emit(op.squeeze(signal, [2]))
    count = number_of(length) if length is not None else shape_of(window)[0]
    half = bool(attributes.get("onesided", 1))
    hop = number_of(step)
    made = stft(b, signal, count, hop, window=window, center=False, onesided=half)
    return b.emit(op.permute_dims(made.value, [0, 2, 1, 3]))


# --- Recurrent layers ---

_MOST_STEPS = 128
"""Most steps of a recurrent layer: code for more would take minutes to compile."""

_USUAL = {
    "LSTM": (b"Sigmoid", b"Tanh", b"Tanh"),
    "GRU": (b"Sigmoid", b"Tanh"),
    "RNN": (b"Tanh",),
}
"""Activations of each recurrent layer, of one direction."""


def _recurrent(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    weight: Value,
    recurrent: Value,
    bias: Value = None,
    lengths: Value = None,
    *state: Value,
) -> list[Value]:
    kind = attributes["tvm_custom"]["name"]
    steps, batch, _size = shape_of(x)
    directions, _gates, hidden = shape_of(recurrent)
    _check_recurrent(attributes, steps, directions, lengths, state)
    results: list[list[Value]] = []
    for index in range(directions):
        w, r, both = (_slice(b, each, 0, index) for each in (weight, recurrent, bias))
        backward = attributes.get("direction") == b"reverse" or index == 1
        held = [_slice(b, each, 0, index) for each in (*state, None, None)[: len(_STATE[kind])]]
        held = [b.emit(op.zeros((batch, hidden), "float32")) if h is None else h for h in held]
        across = b.emit(op.permute_dims(r))
        own, other = _biases(b, both, bool(attributes.get("linear_before_reset")))
        seen = b.emit(op.matmul(x, b.emit(op.permute_dims(w))))
        seen = seen if own is None else b.emit(op.add(seen, own))
        made = []
        for step in range(steps)[:: -1 if backward else 1]:
            held = _STEPS[kind](b, _slice(b, seen, 0, step), held, across, other)
            made.append(held[0])
        results.append([b.emit(op.stack(made[:: -1 if backward else 1], 0)), *held])
    axes = (1, 0, 0)
    return [
        b.emit(op.stack(list(each), axis))
        for each, axis in zip(zip(*results, strict=True), axes, strict=False)
    ]


_STATE = {"LSTM": ("h", "c"), "GRU": ("h",), "RNN": ("h",)}


def _check_recurrent(
    attributes: Attributes, steps: Any, directions: int, lengths: Value, state: Sequence[Value]
) -> None:
    kind = attributes["tvm_custom"]["name"]
    usual = attributes.get("activations", _USUAL[kind] * directions)
    if (
        tuple(usual) != _USUAL[kind] * directions
        or attributes.get("clip")
        or attributes.get("input_forget")
        or attributes.get("layout")
        or lengths is not None
        or any(each is not None for each in state[len(_STATE[kind]) :])
    ):
        raise Refused(_("some of its options are not lowered"))
    if not isinstance(steps, int):
        raise Refused(_("the length of its sequence is not fixed"))
    if steps > _MOST_STEPS:
        raise Refused(_("its sequence has more than {most} steps", most=_MOST_STEPS))


def _slice(b: NodeBuilder, value: Value, axis: int, index: int) -> Value:
    if value is None:
        return None
    return b.emit(op.squeeze(b.emit(op.strided_slice(value, [axis], [index], [index + 1])), [axis]))


def _gates(b: NodeBuilder, value: Value, low: int, high: int) -> Value:
    """Return some of the gates in the last axis of a value, in terms of the state's size."""
    return b.emit(op.strided_slice(value, [rank_of(value) - 1], [low], [high]))


def _biases(b: NodeBuilder, both: Value, apart: bool) -> tuple[Value, Value]:
    """Return the bias to add to the products with the input, and to those with the state."""
    if both is None:
        return None, None
    half = shape_of(both)[0] // 2
    own, other = _gates(b, both, 0, half), _gates(b, both, half, 2 * half)
    return (own, other) if apart else (b.emit(op.add(own, other)), None)


def _step_of_rnn(
    b: NodeBuilder, seen: Value, held: list[Value], across: Value, other: Value
) -> list[Value]:
    total = b.emit(op.add(seen, b.emit(op.matmul(held[0], across))))
    return [b.emit(op.tanh(total))]


def _step_of_lstm(
    b: NodeBuilder, seen: Value, held: list[Value], across: Value, other: Value
) -> list[Value]:
    h, c = held
    size = shape_of(h)[1]
    total = b.emit(op.add(seen, b.emit(op.matmul(h, across))))
    i, o, f = (b.emit(op.sigmoid(_gates(b, total, at * size, (at + 1) * size))) for at in range(3))
    new = b.emit(op.tanh(_gates(b, total, 3 * size, 4 * size)))
    c = b.emit(op.add(b.emit(op.multiply(f, c)), b.emit(op.multiply(i, new))))
    return [b.emit(op.multiply(o, b.emit(op.tanh(c)))), c]


def _step_of_gru(
    b: NodeBuilder, seen: Value, held: list[Value], across: Value, other: Value
) -> list[Value]:
    (h,) = held
    size = shape_of(h)[1]

    def product(state: Value, low: int, high: int) -> Value:
        made = b.emit(op.matmul(state, _gates(b, across, low * size, high * size)))
        if other is None:
            return made
        return b.emit(op.add(made, _gates(b, other, low * size, high * size)))

    total = b.emit(op.add(_gates(b, seen, 0, 2 * size), product(h, 0, 2)))
    update, reset = (
        b.emit(op.sigmoid(_gates(b, total, at * size, (at + 1) * size))) for at in range(2)
    )
    if other is None:
        inner = product(b.emit(op.multiply(reset, h)), 2, 3)
    else:
        inner = b.emit(op.multiply(reset, product(h, 2, 3)))
    new = b.emit(op.tanh(b.emit(op.add(_gates(b, seen, 2 * size, 3 * size), inner))))
    # The same as (1 - update) * new + update * h, with one product.
    return [b.emit(op.add(new, b.emit(op.multiply(update, b.emit(op.subtract(h, new))))))]


_STEPS: dict[str, Callable[..., list[Value]]] = {
    "LSTM": _step_of_lstm,
    "GRU": _step_of_gru,
    "RNN": _step_of_rnn,
}


# --- Attention ---

_OF_ATTENTION = frozenset(
    {
        *("tvm_custom", "version", "q_num_heads", "kv_num_heads", "scale", "is_causal", "softcap"),
        *("qk_matmul_output_mode", "softmax_precision"),
    }
)


def attention(
    b: NodeBuilder,
    attributes: Attributes,
    query: Value,
    key: Value,
    value: Value,
    mask: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    lengths: Value = None,
) -> list[Value]:
    if set(attributes) - _OF_ATTENTION or lengths is not None:
        raise Refused(_("some of its options are not lowered"))
    flat = rank_of(query) == 3
    if flat:
        query = split_heads(b, query, attributes["q_num_heads"])
        key, value = (split_heads(b, each, attributes["kv_num_heads"]) for each in (key, value))
    if past_key is not None:
        key, value = (b.emit(op.concat(each, 2)) for each in ([past_key, key], [past_value, value]))
    present = [key, value]
    groups = shape_of(query)[1] // shape_of(key)[1]
    if groups > 1:
        key, value = (b.emit(op.repeat(each, groups, 1)) for each in present)
    scores = _scores(b, attributes, query, key)
    biases = [] if mask is None else [_bias_of(b, mask, scores)]
    if attributes.get("is_causal"):
        biases.append(_bias_of(b, _causal_mask(b, query, key, past_key), scores))
    weights = _weights(b, scores, biases)
    made = b.emit(op.matmul(weights, value))
    made = joined_heads(b, made) if flat else made
    mode = attributes.get("qk_matmul_output_mode", 0)
    products = {0: [scores], 3: [weights]}.get(mode, []) if not attributes.get("softcap") else []
    return [made, *present, *products]


def joined_heads(b: NodeBuilder, value: Value) -> Value:
    """Return heads side by side, as (batch, length, size)."""
    batch, heads, length, size = shape_of(value)
    made = b.emit(op.permute_dims(value, [0, 2, 1, 3]))
    return b.emit(op.reshape(made, (batch, length, heads * size)))


def split_heads(b: NodeBuilder, value: Value, heads: int) -> Value:
    """Return (batch, length, size) as (batch, heads, length, size of a head)."""
    batch, length, size = shape_of(value)
    apart = b.emit(op.reshape(value, (batch, length, heads, size // heads)))
    return b.emit(op.permute_dims(apart, [0, 2, 1, 3]))


def _scores(b: NodeBuilder, attributes: Attributes, query: Value, key: Value) -> Value:
    root = attributes.get("scale", shape_of(query)[3] ** -0.5) ** 0.5
    query, key = (b.emit(op.multiply(each, scalar(root, dtype_of(each)))) for each in (query, key))
    scores = b.emit(op.matmul(query, b.emit(op.permute_dims(key, [0, 1, 3, 2]))))
    cap = attributes.get("softcap", 0.0)
    if cap > 0:
        limited = b.emit(op.tanh(b.emit(op.divide(scores, scalar(cap, dtype_of(scores))))))
        scores = b.emit(op.multiply(limited, scalar(cap, dtype_of(scores))))
    return scores


def _causal_mask(b: NodeBuilder, query: Value, key: Value, past: Value) -> Value:
    """Return the mask of the keys up to each query's own position."""
    shape = (shape_of(query)[2], shape_of(key)[2])
    before = 0 if past is None else shape_of(past)[2]
    if not isinstance(before, int):
        raise Refused(_("some of its options are not lowered"))
    below = b.emit(op.tril(b.emit(op.ones(shape, "float32")), before))
    return cast(b, below, "bool")


def _bias_of(b: NodeBuilder, mask: Value, scores: Value) -> Value:
    """Return a mask as what is added to the scores."""
    if shape_of(mask)[-1] != shape_of(scores)[-1]:
        raise Refused(_("its mask is shorter than its keys"))
    if dtype_of(mask) != "bool":
        return mask
    return b.emit(op.where(mask, scalar(0, "float32"), scalar(-math.inf, "float32")))


def _weights(b: NodeBuilder, scores: Value, biases: Sequence[Value]) -> Value:
    """Return the weights of the values; all are 0 where a mask has no key."""
    if not biases:
        return b.emit(op.nn.softmax(scores, -1))
    bias = biases[0] if len(biases) == 1 else b.emit(op.add(*biases))
    weights = b.emit(op.nn.softmax(b.emit(op.add(scores, bias)), -1))
    highest = b.emit(op.max(bias, [-1], keepdims=True))
    seen = b.emit(op.greater(highest, scalar(-math.inf, "float32")))
    return b.emit(op.where(seen, weights, scalar(0, "float32")))


def _dequantize_blocks(
    b: NodeBuilder, attributes: Attributes, value: Value, scale: Value, zero: Value = None
) -> Value:
    """Return what a `DequantizeLinear` with a scale for each block does; ``None`` for others."""
    size, axis = attributes.get("block_size", 0), attributes.get("axis", 1)
    if not size:
        return None
    extent = shape_of(value)[axis]
    if not isinstance(extent, int):
        raise Refused(_("some of its options are not lowered"))

    def spread(each: Value) -> Value:
        """Return a value of each block as one of each element; the last block may be shorter."""
        whole = b.emit(op.repeat(each, size, axis))
        rest = shape_of(whole)[axis] != extent
        return b.emit(op.strided_slice(whole, [axis], [0], [extent])) if rest else whole

    made = cast(b, value, dtype_of(scale))
    if zero is not None:
        made = b.emit(op.subtract(made, spread(cast(b, zero, dtype_of(scale)))))
    return b.emit(op.multiply(made, spread(scale)))


# --- Rotary embedding ---


def _rotary_embedding(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    cos: Value,
    sin: Value,
    places: Value = None,
) -> Value:
    if places is not None:
        cos, sin = (b.emit(op.take(each, places, 0)) for each in (cos, sin))
    flat = rank_of(x) == 3
    x = split_heads(b, x, attributes["num_heads"]) if flat else x
    made = rotated(b, attributes, x, cos, sin)
    return joined_heads(b, made) if flat else made


def rotated(b: NodeBuilder, attributes: Attributes, x: Value, cos: Value, sin: Value) -> Value:
    """Return heads turned by angles, given for each token by its cosines and sines."""
    last, size = rank_of(x) - 1, shape_of(x)[-1]
    count = attributes.get("rotary_embedding_dim", 0) or size

    def part(low: int, high: int, step: int = 1) -> Value:
        return b.emit(op.strided_slice(x, [last], [low], [high], [step]))

    cos, sin = (b.emit(op.expand_dims(_first(b, each, count // 2), 1)) for each in (cos, sin))
    apart = bool(attributes.get("interleaved"))
    if apart:
        real, other = part(0, count, 2), part(1, count, 2)
    else:
        real, other = part(0, count // 2), part(count // 2, count)

    def product(first: Value, second: Value) -> Value:
        return b.emit(op.multiply(first, second))

    turned = [
        b.emit(op.subtract(product(real, cos), product(other, sin))),
        b.emit(op.add(product(real, sin), product(other, cos))),
    ]
    if apart:
        stacked = b.emit(op.stack(turned, last + 1))
        turned = [b.emit(op.reshape(stacked, (*shape_of(x)[:-1], count)))]
    rest = [part(count, size)] if count < size else []
    return b.emit(op.concat([*turned, *rest], last)) if len([*turned, *rest]) > 1 else turned[0]


def _first(b: NodeBuilder, value: Value, count: int) -> Value:
    last = rank_of(value) - 1
    if shape_of(value)[last] == count:
        return value
    return b.emit(op.strided_slice(value, [last], [0], [count]))


# --- Resizing ---


def _resize(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    """Resize as TVM's converter, or else one axis after the other as onnxruntime does rows."""
    version = attributes["version"]
    # Before version 13 a size stands beside scales without elements.
    given = tuple(None if _is_empty_constant(each) else each for each in given)
    if not _resizes_otherwise(attributes, given):
        return converted(b, "Resize", version, given, attributes)
    x, *rest = given
    if version < 11:
        rest = [None, *rest]
    roi, scales, sizes, *_more = [*rest, None, None, None]
    rank = rank_of(x)
    axes = [each % rank for each in attributes.get("axes", range(rank))]
    factors = _numbers(scales)
    wanted = [] if factors else _numbers(sizes)
    policy = attributes.get("keep_aspect_ratio_policy", b"stretch")
    if wanted and policy != b"stretch":
        ratios = [n / shape_of(x)[axis] for n, axis in zip(wanted, axes, strict=True)]
        ratio = min(ratios) if policy == b"not_larger" else max(ratios)
        factors, wanted = [ratio] * len(axes), []
    crops = attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    region = _numbers(roi) if crops else []
    if crops and len(region) != 2 * len(axes):
        raise Refused(_("it needs a number, which is known only when the model runs"))
    for index, axis in enumerate(axes):
        factor = factors[index] if factors else None
        size = wanted[index] if wanted else None
        ends = [region[index], region[index + len(axes)]] if crops else [0.0, 1.0]
        if (factor == 1 or size == shape_of(x)[axis]) and ends == [0.0, 1.0]:
            continue
        x = _resized(b, attributes, x, axis, factor, size, ends)
    return x


def _is_empty_constant(value: Value) -> bool:
    return isinstance(value, ir.GenericConst) and shape_of(value) == (0,)


def _numbers(value: Value) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, ir.GenericConst):
        raise Refused(_("it needs a number, which is known only when the model runs"))
    found: list[Any] = value.value.numpy().tolist()
    return found


_OF_ONE_AXIS = frozenset(
    {
        *("mode", "coordinate_transformation_mode", "cubic_coeff_a", "nearest_mode"),
        *("exclude_outside", "antialias"),
    }
)


def _resized(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    axis: int,
    factor: float | None,
    size: int | None,
    ends: Sequence[float],
) -> Value:
    extent = shape_of(x)[axis]
    if not isinstance(extent, int):
        raise Refused(_("a size of it has a name"))
    version = attributes["version"]
    own = {name: attributes[name] for name in _OF_ONE_AXIS & attributes.keys()}

    def line(rows: torch.Tensor, outside: float) -> torch.Tensor:
        given = {"x": rows}
        if version > 10:
            own["extrapolation_value"] = outside
            given["roi"] = torch.tensor([0.0, ends[0], 1.0, ends[1]])
        if size is None:
            given["scales"] = torch.tensor([1.0, factor])
        else:
            given["scales"] = torch.empty(0)
            given["sizes"] = torch.tensor([len(rows), size])
        names = [name if version < 13 or given[name].numel() else "" for name in given]
        node = node_of("Resize", {"": version}, names, **own)
        made: torch.Tensor = node(*(given[name] if name else None for name in names))
        return made

    nearest = attributes.get("mode", b"nearest") == b"nearest"
    if nearest:
        places = line(torch.arange(extent, dtype=torch.float32)[None], -1.0)[0]
        if (places < 0).any():
            raise Refused(_("some of its options are not lowered"))
        return b.emit(op.take(x, b.constant(places.long()), axis))
    if not is_float(dtype_of(x)):
        raise Refused(_("its input is no float"))
    weights = b.constant(line(torch.eye(extent), 0.0))
    order = [*(each for each in range(rank_of(x)) if each != axis), axis]
    made = b.emit(op.matmul(permute_to(b, x, order), cast(b, weights, dtype_of(x))))
    outside = attributes.get("extrapolation_value", 0.0)
    beyond = line(torch.zeros(1, extent), outside)[0]
    if beyond.any():
        made = b.emit(op.add(made, cast(b, b.constant(beyond), dtype_of(x))))
    return permute_to(b, made, [order.index(each) for each in range(rank_of(x))])


OWN: dict[str, Callable[..., Any]] = {
    "Reshape": _reshape,
    "Cast": _cast,
    "CastLike": _cast_like,
    "DFT": _dft,
    "STFT": _stft,
    "Resize": _resize,
    "RotaryEmbedding": _rotary_embedding,
    "SimplifiedLayerNormalization": rms_normalization,
    "DequantizeLinear": _dequantize_blocks,
    "IsInf": _is_inf,
    "Pow": _pow,
    "RMSNormalization": rms_normalization,
    "Celu": _celu,
    "Swish": _swish,
    "ConvInteger": _conv_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "Attention": attention,
}
"""Conversions that TVM lacks, or which ignore attributes, or make code that cannot be built.

TVM's converter is used where one returns ``None``.
"""


def _resizes_otherwise(attributes: Attributes, given: Sequence[Value]) -> bool:
    """Return whether TVM's resizing, which knows the sizes alone, differs from ONNX's."""
    if attributes.get("antialias") or attributes.get("exclude_outside") or "axes" in attributes:
        return True
    if attributes.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return True
    # Before version 11 there is no region, and no size.
    scales = given[2] if len(given) > 2 else given[1]
    before = [each for each in shape_of(given[0]) if isinstance(each, int)]
    mode = attributes.get("coordinate_transformation_mode", b"half_pixel")
    sizes = given[3] if len(given) > 3 else None
    if isinstance(sizes, ir.GenericConst):
        after = [float(each) for each in sizes.value.numpy().tolist()]
    elif isinstance(scales, ir.GenericConst) and len(before) == scales.value.numpy().size:
        after = [a * b for a, b in zip(before, scales.value.numpy().tolist(), strict=True)]
    else:
        return mode not in _MODES
    # The scale of sizes that were rounded is another one.
    rounded = any(abs(each - round(each)) > 1e-3 for each in after)
    return rounded or mode not in _MODES or (mode == b"align_corners" and 1 in after[2:])


_MODES = (b"half_pixel", b"asymmetric", b"align_corners", b"pytorch_half_pixel")


def _reduces_otherwise(attributes: Attributes, given: Sequence[Value]) -> bool:
    return dtype_of(given[0]) == "bool" or 0 in shape_of(given[0])


def _skips_its_function(attributes: Attributes, given: Sequence[Value]) -> bool:
    """Return whether a reduction over no axes still computes of each element."""
    return bool(attributes.get("noop_with_empty_axes")) and (len(given) < 2 or given[1] is None)


WRONG: dict[str, Callable[[Attributes, Sequence[Value]], bool]] = {
    "ReduceMax": _reduces_otherwise,
    "ReduceMin": _reduces_otherwise,
    **dict.fromkeys(
        ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
        _skips_its_function,
    ),
    "BatchNormalization": lambda attributes, given: bool(attributes.get("training_mode")),
    "BitShift": lambda attributes, given: dtype_of(given[0]).startswith("int"),
    "Mod": lambda attributes, given: is_float(dtype_of(given[0])) and not attributes.get("fmod"),
    "NonMaxSuppression": lambda attributes, given: True,
    "RoiAlign": lambda attributes, given: attributes.get("mode", b"avg") != b"avg",
}
"""Cases in which TVM's converters compute something else."""
