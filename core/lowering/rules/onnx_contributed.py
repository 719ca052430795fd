"""Operators of onnxruntime's own set, ``com.microsoft``: fused, quantised, and of transformers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import Refused
from lowerscope.core.lowering.rules.onnx_operators import (
    Attributes,
    along,
    attention,
    centred,
    converted,
    joined_heads,
    rms_normalization,
    rotated,
    split_heads,
)
from lowerscope.core.lowering.values import Value, dtype_of, rank_of, scalar, shape_of
from lowerscope.core.model.texts import _


def _sum(b: NodeBuilder, *values: Value) -> Value:
    total, *others = (each for each in values if each is not None)
    for each in others:
        total = b.emit(op.add(total, each))
    return total


# --- Normalisation ---


def _skip_layer_normalization(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    skip: Value,
    scale: Value,
    shift: Value = None,
    bias: Value = None,
) -> list[Value]:
    total = _sum(b, x, skip, bias)
    if shift is None:
        shift = b.emit(op.zeros(shape_of(scale), dtype_of(scale)))
    epsilon = attributes.get("epsilon", 1e-12)
    made = b.emit(op.nn.layer_norm(total, scale, shift, axes=-1, epsilon=epsilon))
    return _with_sum(attributes, made, total)


def _with_sum(attributes: Attributes, made: Value, total: Value) -> list[Value]:
    """Return the outputs; the mean and the deviation, which only training reads, are none."""
    count = attributes["tvm_custom"]["num_outputs"]
    return [made] if count == 1 else [made, total, total, total]


def _skip_rms_normalization(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    skip: Value,
    scale: Value,
    bias: Value = None,
) -> list[Value]:
    total = _sum(b, x, skip, bias)
    made = rms_normalization(b, {"epsilon": 1e-12} | attributes, total, scale)
    return _with_sum(attributes, made, total)


# --- Fused ---


def _quick_gelu(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    scaled = b.emit(op.multiply(x, scalar(attributes.get("alpha", 1.702), dtype_of(x))))
    return b.emit(op.multiply(x, b.emit(op.sigmoid(scaled))))


def _fused_matmul(b: NodeBuilder, attributes: Attributes, x: Value, y: Value) -> Value:
    if attributes.get("transBatchA") or attributes.get("transBatchB"):
        raise Refused(_("some of its options are not lowered"))
    factors = []
    for value, name in ((x, "transA"), (y, "transB")):
        rank = rank_of(value)
        order = [*range(rank - 2), rank - 1, rank - 2]
        turns = attributes.get(name) and rank > 1
        factors.append(b.emit(op.permute_dims(value, order)) if turns else value)
    made = b.emit(op.matmul(*factors))
    alpha = attributes.get("alpha", 1.0)
    return made if alpha == 1 else b.emit(op.multiply(made, scalar(alpha, dtype_of(made))))


def _fused_conv(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    weight: Value,
    bias: Value = None,
    added: Value = None,
) -> Value:
    made = b.emit(converted(b, "Conv", 11, [x, weight, bias], attributes))
    return _activated(b, attributes, _sum(b, made, added), attributes.get("activation_params", ()))


def _fused_gemm(
    b: NodeBuilder, attributes: Attributes, x: Value, y: Value, bias: Value = None
) -> Value:
    made = b.emit(converted(b, "Gemm", 13, [x, y, bias], attributes))
    names = ("activation_alpha", "activation_beta")
    given = [attributes[each] for each in names if each in attributes]
    return _activated(b, attributes, made, given)


def _activated(b: NodeBuilder, attributes: Attributes, x: Value, given: Any) -> Value:
    name = attributes.get("activation", b"").decode()
    if name in _PLAIN:
        return b.emit(_PLAIN[name](x))
    if name == "LeakyRelu":
        return b.emit(op.nn.leakyrelu(x, given[0] if given else 0.01))
    if name == "Clip":
        return b.emit(op.clip(x, *given))
    if name:
        raise Refused(_("some of its options are not lowered"))
    return x


_PLAIN: dict[str, Callable[..., Value]] = {
    "Relu": op.nn.relu,
    "Tanh": op.tanh,
    "Sigmoid": op.sigmoid,
}


# --- Attention ---


def _multi_head_attention(
    b: NodeBuilder,
    attributes: Attributes,
    query: Value,
    key: Value,
    value: Value = None,
    bias: Value = None,
    padding: Value = None,
    added: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    *rest: Value,
) -> list[Value]:
    given = (query, key, value)
    if any(each is None or rank_of(each) != 3 for each in given) or any(
        each is not None for each in (padding, *rest)
    ):
        raise Refused(_("some of its options are not lowered"))
    if bias is not None:
        size = shape_of(query)[2]
        ends = (0, size, 2 * size, shape_of(bias)[0])
        biases = [
            b.emit(op.strided_slice(bias, [0], [low], [high])) for low, high in pairwise(ends)
        ]
        query, key, value = (_sum(b, *pair) for pair in zip(given, biases, strict=True))
    found = attention(b, _heads(attributes), query, key, value, added, past_key, past_value)
    return found[:3]


def _heads(attributes: Attributes) -> Attributes:
    """Return the attributes of ONNX's own attention."""
    heads = attributes["num_heads"]
    found = {"q_num_heads": heads, "kv_num_heads": heads}
    if attributes.get("unidirectional"):
        found["is_causal"] = 1
    return {**found, "scale": attributes["scale"]} if attributes.get("scale") else found


def _packed_attention(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    weights: Value,
    bias: Value = None,
    mask: Value = None,
    past: Value = None,
    added: Value = None,
    *rest: Value,
) -> list[Value]:
    """Attention with one matrix for queries, keys and values, and a mask of the keys."""
    others = any(each is not None for each in (past, *rest))
    if others or attributes.get("qkv_hidden_sizes") or attributes.get("do_rotary"):
        raise Refused(_("some of its options are not lowered"))
    if mask is not None and rank_of(mask) != 2:
        raise Refused(_("its mask holds lengths"))
    whole = _sum(b, b.emit(op.matmul(x, weights)), bias)
    parts = b.emit(op.split(whole, 3, 2))
    query, key, value = (b.emit(parts[index]) for index in range(3))
    if mask is not None:
        low = attributes.get("mask_filter_value", -10000.0)
        hidden = b.emit(op.subtract(scalar(1.0, "float32"), cast(b, mask, "float32")))
        hidden = b.emit(op.multiply(hidden, scalar(low, "float32")))
        added = _sum(b, b.emit(op.expand_dims(hidden, [1, 2])), added)
    return attention(b, _heads(attributes), query, key, value, added)[:1]


def _rotary_embedding(
    b: NodeBuilder, attributes: Attributes, x: Value, places: Value, cos: Value, sin: Value
) -> Value:
    if attributes.get("is_packed_batching") or attributes.get("scale", 1.0) != 1:
        raise Refused(_("some of its options are not lowered"))
    flat = rank_of(x) == 3
    count = attributes.get("rotary_embedding_dim", 0)
    if flat:
        whole = count == 0
        size = 2 * shape_of(cos)[1]
        x = split_heads(b, x, shape_of(x)[2] // size if whole else attributes["num_heads"])
    if rank_of(places) == 1:
        length = shape_of(x)[2]
        places = _sum(b, places, b.emit(op.arange(0, length, 1, "int64")))
        places = b.emit(op.expand_dims(places, 0))
    cos, sin = (b.emit(op.take(each, places, 0)) for each in (cos, sin))
    made = rotated(b, attributes, x, cos, sin)
    return joined_heads(b, made) if flat else made


# --- Quantised ---


def _matmul_of_bits(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    packed: Value,
    scales: Value,
    zeros: Value = None,
    order: Value = None,
    bias: Value = None,
) -> Value:
    """Multiply by a matrix of 4 or 8 bits, with a scale for each block of a column."""
    bits, rows, columns = (attributes[each] for each in ("bits", "K", "N"))
    size = attributes["block_size"]
    if bits not in (4, 8) or order is not None or attributes.get("accuracy_level", 0) == 4:
        raise Refused(_("some of its options are not lowered"))
    blocks = -(-rows // size)
    shape = (columns, blocks, size)
    numbers = b.emit(op.reshape(_unpacked(b, packed, bits), shape))
    scale = b.emit(op.reshape(scales, (columns, blocks, 1)))
    if zeros is None:
        zero = scalar(float(1 << (bits - 1)), "float32")
    elif dtype_of(zeros) == "uint8":
        given = _unpacked(b, b.emit(op.reshape(zeros, (columns, -1))), bits)
        zero = b.emit(op.strided_slice(given, [1], [0], [blocks]))
        zero = b.emit(op.reshape(zero, (columns, blocks, 1)))
    else:
        zero = cast(b, b.emit(op.reshape(zeros, (columns, blocks, 1))), "float32")
    weight = b.emit(op.subtract(numbers, zero))
    weight = b.emit(op.multiply(weight, cast(b, scale, "float32")))
    weight = b.emit(op.reshape(weight, (columns, blocks * size)))
    if blocks * size > rows:
        weight = b.emit(op.strided_slice(weight, [1], [0], [rows]))
    return _sum(b, b.emit(op.matmul(x, b.emit(op.permute_dims(weight)))), bias)


def _unpacked(b: NodeBuilder, packed: Value, bits: int) -> Value:
    """Return numbers of 4 or 8 bits as float32; of a byte, the lower ones are first."""
    if bits == 8:
        return cast(b, packed, "float32")
    low = b.emit(op.bitwise_and(packed, scalar(15, "uint8")))
    high = b.emit(op.right_shift(packed, scalar(4, "uint8")))
    last = rank_of(packed)
    pairs = b.emit(op.stack([low, high], last))
    *before, count = shape_of(packed)
    return cast(b, b.emit(op.reshape(pairs, (*before, 2 * count))), "float32")


def _real(b: NodeBuilder, x: Value, scale: Value, zero: Value, axis: int | None = None) -> Value:
    """Return what quantised numbers stand for."""
    return b.emit(
        op.multiply(
            cast(b, centred(b, x, zero, axis), "float32"), along(b, scale, "float32", x, axis)
        )
    )


def _quantised(b: NodeBuilder, real: Value, scale: Value, zero: Value) -> Value:
    made = b.emit(op.round(b.emit(op.divide(real, along(b, scale, "float32", real, None)))))
    return _clipped(b, made if zero is None else _sum(b, made, cast(b, zero, "float32")), zero)


def _number(b: NodeBuilder, function: Callable[..., Value], x: Value, y: Value) -> Value:
    """Compute with two scales, at once if they are constants."""
    if not all(isinstance(each, ir.GenericConst) for each in (x, y)):
        return b.emit(function(x, y))
    values = (each.value.numpy().reshape(()) for each in (x, y))
    return scalar(getattr(np, function.__name__)(*values).item(), "float32")


def _qlinear_add(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    """Add in the order of onnxruntime, as many sums are half of a number."""
    scale, zero = _scale_of(given, 6)
    moved = scalar(0.0, "float32") if zero is None else cast(b, zero, "float32")
    terms = []
    for x, own, own_zero in (given[:3], given[3:6]):
        ratio = _number(b, op.divide, own, scale)
        if own_zero is not None:
            share = _number(b, op.multiply, ratio, cast(b, own_zero, "float32"))
            moved = _number(b, op.subtract, moved, share)
        terms.append(b.emit(op.multiply(cast(b, x, "float32"), ratio)))
    total = _sum(b, b.emit(op.add(terms[0], moved)), terms[1])
    return _clipped(b, b.emit(op.round(total)), zero)


def _qlinear_mul(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    scale, zero = _scale_of(given, 6)
    factor = _number(b, op.divide, _number(b, op.multiply, given[1], given[4]), scale)
    factors = (centred(b, given[at], given[at + 2]) for at in (0, 3))
    return _scaled(b, b.emit(op.multiply(*factors)), factor, zero)


def _global_average(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    if attributes.get("channels_last"):
        raise Refused(_("some of its options are not lowered"))
    axes = list(range(2, rank_of(given[0])))
    scale, zero = _scale_of(given, 3)
    total = b.emit(op.sum(centred(b, given[0], given[2]), axes, keepdims=True))
    count = math.prod(shape_of(given[0])[2:])
    whole = _number(b, op.multiply, scale, scalar(float(count), "float32"))
    return _scaled(b, total, _number(b, op.divide, given[1], whole), zero)


def _scaled(b: NodeBuilder, total: Value, factor: Value, zero: Value) -> Value:
    """Return an integer times a factor as a quantised number."""
    made = b.emit(op.round(b.emit(op.multiply(cast(b, total, "float32"), factor))))
    return _clipped(b, made if zero is None else _sum(b, made, cast(b, zero, "float32")), zero)


def _clipped(b: NodeBuilder, real: Value, zero: Value) -> Value:
    dtype = "uint8" if zero is None else dtype_of(zero)
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    return cast(b, b.emit(op.clip(real, low, high)), dtype)


def _of_one(
    function: Callable[..., Value], b: NodeBuilder, attributes: Attributes, *given: Value
) -> Value:
    real = function(b, attributes, _real(b, *given[:3]))
    return _quantised(b, real, *_scale_of(given, 3))


def _by_table(
    function: Callable[[Any, Attributes], Any],
    b: NodeBuilder,
    attributes: Attributes,
    *given: Value,
) -> Value:
    """Look the result up among those of all numbers, as onnxruntime does."""
    x, *others = given
    if not all(each is None or isinstance(each, ir.GenericConst) for each in others):
        raise Refused(_("it needs a number, which is known only when the model runs"))
    scale, zero, new_scale, new_zero = (
        np.float32(0) if each is None else each.value.numpy().reshape(())
        for each in (*others, None)[:4]
    )
    dtype = dtype_of(x)
    limits = np.iinfo(dtype)
    numbers = np.arange(limits.min, limits.max + 1)
    real = (numbers - int(zero)).astype("float32") * scale
    made = np.rint(function(real, attributes) / new_scale) + int(new_zero)
    table = np.clip(made, limits.min, limits.max).astype(dtype)
    places = b.emit(op.subtract(cast(b, x, "int32"), scalar(limits.min, "int32")))
    return b.emit(op.take(relax.const(table), places, 0))


def _scale_of(given: tuple[Value, ...], at: int) -> tuple[Value, Value]:
    return given[at], given[at + 1] if len(given) > at + 1 else None


def _leaky(x: Any, attributes: Attributes) -> Any:
    return np.where(x >= 0, x, x * np.float32(attributes.get("alpha", 0.01)))


def _sigmoid(x: Any, attributes: Attributes) -> Any:
    return 1 / (1 + np.exp(-x))


def _average(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    if attributes.get("channels_last"):
        raise Refused(_("some of its options are not lowered"))
    return b.emit(converted(b, "AveragePool", 11, [x], attributes))


def _softmax(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    if attributes.get("opset", 13) < 13:
        raise Refused(_("some of its options are not lowered"))
    return b.emit(op.nn.softmax(x, attributes.get("axis", -1)))


def _concat(b: NodeBuilder, attributes: Attributes, *given: Value) -> Value:
    scale, zero, *rest = given
    parts = [_real(b, *rest[at : at + 3]) for at in range(0, len(rest), 3)]
    return _quantised(b, b.emit(op.concat(parts, attributes["axis"])), scale, zero)


def _matmul_to_float(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    weight: Value,
    scale: Value,
    scale_of_weight: Value,
    zero: Value = None,
    zero_of_weight: Value = None,
    bias: Value = None,
) -> Value:
    factors = centred(b, x, zero), centred(b, weight, zero_of_weight, -1)
    total = cast(b, b.emit(op.matmul(*factors)), "float32")
    factor = b.emit(op.multiply(scale, along(b, scale_of_weight, "float32", total, -1)))
    return _sum(b, b.emit(op.multiply(total, factor)), bias)


def _dynamic_matmul(
    b: NodeBuilder,
    attributes: Attributes,
    x: Value,
    weight: Value,
    scale_of_weight: Value,
    zero_of_weight: Value = None,
    bias: Value = None,
) -> Value:
    found = converted(b, "DynamicQuantizeLinear", 11, [x], attributes)
    number, scale, zero = (b.emit(found.fields[index]) for index in range(3))
    given = (number, weight, scale, scale_of_weight, zero, zero_of_weight, bias)
    return _matmul_to_float(b, attributes, *given)


CONTRIBUTED: dict[str, Callable[..., Any]] = {
    "SkipLayerNormalization": _skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": _skip_rms_normalization,
    "QuickGelu": _quick_gelu,
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "MultiHeadAttention": _multi_head_attention,
    "Attention": _packed_attention,
    "RotaryEmbedding": _rotary_embedding,
    "MatMulNBits": _matmul_of_bits,
    "QLinearAdd": _qlinear_add,
    "QLinearMul": _qlinear_mul,
    "QLinearLeakyRelu": partial(_by_table, _leaky),
    "QLinearSigmoid": partial(_by_table, _sigmoid),
    "QLinearGlobalAveragePool": _global_average,
    "QLinearAveragePool": partial(_of_one, _average),
    "QLinearSoftmax": partial(_of_one, _softmax),
    "QLinearConcat": _concat,
    "MatMulIntegerToFloat": _matmul_to_float,
    "DynamicQuantizeMatMul": _dynamic_matmul,
}
"""Conversions of operators, by name."""
