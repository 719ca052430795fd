"""Loss functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.activation import log_softmax, logsigmoid
from lowerscope.core.lowering.rules.arithmetic import add, div, maximum, mul, sub
from lowerscope.core.lowering.rules.indexing import gather
from lowerscope.core.lowering.rules.reduction import mean, sum
from lowerscope.core.lowering.rules.shape import unsqueeze
from lowerscope.core.lowering.values import Value, dtype_of, is_float, rank_of, scalar, shape_of
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_REDUCTIONS = ("none", "mean", "sum")
"""Reductions, indexed by ATen's numbers."""


@rule(F.mse_loss, nn.MSELoss)
def mse_loss(
    b: NodeBuilder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Value = None,
) -> Value:
    _refuse_old(size_average, reduce)
    loss = b.emit(op.square(sub(b, input, target)))
    return _reduced(b, loss if weight is None else mul(b, loss, weight), reduction)


@rule(F.l1_loss, nn.L1Loss)
def l1_loss(
    b: NodeBuilder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    _refuse_old(size_average, reduce)
    return _reduced(b, b.emit(op.abs(sub(b, input, target))), reduction)


@rule(F.smooth_l1_loss, nn.SmoothL1Loss)
def smooth_l1_loss(
    b: NodeBuilder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Value:
    _refuse_old(size_average, reduce)
    if beta == 0:
        return l1_loss(b, input, target, reduction=reduction)
    distance = b.emit(op.abs(sub(b, input, target)))
    near = mul(b, b.emit(op.square(distance)), 0.5 / beta)
    far = sub(b, distance, 0.5 * beta)
    is_near = b.emit(op.less(distance, scalar(beta, dtype_of(distance))))
    return _reduced(b, b.emit(op.where(is_near, near, far)), reduction)


@rule(F.huber_loss, nn.HuberLoss)
def huber_loss(
    b: NodeBuilder,
    input: Value,
    target: Value,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Value = None,
) -> Value:
    if weight is not None:
        raise Refused(_("it has weights"))
    loss = smooth_l1_loss(b, input, target, reduction=reduction, beta=delta)
    return mul(b, loss, delta)


@rule(F.binary_cross_entropy, nn.BCELoss)
def binary_cross_entropy(
    b: NodeBuilder,
    input: Value,
    target: Value,
    weight: Value = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    _refuse_old(size_average, reduce)
    # torch bounds the logarithms at -100.
    log_yes = maximum(b, b.emit(op.log(input)), -100.0)
    log_no = maximum(b, b.emit(op.log(sub(b, 1, input))), -100.0)
    gain = add(b, mul(b, target, log_yes), mul(b, sub(b, 1, target), log_no))
    loss = b.emit(op.negative(gain))
    return _reduced(b, loss if weight is None else mul(b, loss, weight), reduction)


@rule(F.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss)
def binary_cross_entropy_with_logits(
    b: NodeBuilder,
    input: Value,
    target: Value,
    weight: Value = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Value = None,
) -> Value:
    _refuse_old(size_average, reduce)
    log_yes = logsigmoid(b, input)
    log_no = sub(b, log_yes, input)
    if pos_weight is not None:
        log_yes = mul(b, log_yes, pos_weight)
    gain = add(b, mul(b, target, log_yes), mul(b, sub(b, 1, target), log_no))
    loss = b.emit(op.negative(gain))
    return _reduced(b, loss if weight is None else mul(b, loss, weight), reduction)


@rule(F.kl_div, nn.KLDivLoss)
def kl_div(
    b: NodeBuilder,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Value:
    _refuse_old(size_average, reduce)
    if log_target:
        loss = mul(b, b.emit(op.exp(target)), sub(b, target, input))
    else:
        # The loss is 0 where the target is.
        zero = scalar(0, dtype_of(target))
        positive = b.emit(op.greater(target, zero))
        bounded = b.emit(op.where(positive, target, scalar(1, dtype_of(target))))
        whole = mul(b, target, sub(b, b.emit(op.log(bounded)), input))
        loss = b.emit(op.where(positive, whole, zero))
    if reduction == "batchmean":
        return div(b, sum(b, loss), shape_of(input)[0])
    return _reduced(b, loss, reduction)


@rule(F.nll_loss, nn.NLLLoss)
def nll_loss(
    b: NodeBuilder,
    input: Value,
    target: Value,
    weight: Value = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    _refuse_old(size_average, reduce)
    axis = 1 if rank_of(input) > 1 else 0
    dtype = dtype_of(input)
    ignored = b.emit(op.equal(target, scalar(ignore_index, dtype_of(target))))
    place = b.emit(op.where(ignored, scalar(0, dtype_of(target)), target))
    found = gather(b, input, axis, unsqueeze(b, place, axis))
    loss = b.emit(op.negative(b.emit(op.squeeze(found, [axis]))))
    counts = cast(b, b.emit(op.logical_not(ignored)), dtype)
    if weight is not None:
        counts = mul(b, counts, b.emit(op.take(weight, place, 0, mode="clip")))
    loss = mul(b, loss, counts)
    if reduction == "mean":
        return div(b, sum(b, loss), sum(b, counts))
    return _reduced(b, loss, reduction)


@rule(F.cross_entropy, nn.CrossEntropyLoss)
def cross_entropy(
    b: NodeBuilder,
    input: Value,
    target: Value,
    weight: Value = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    _refuse_old(size_average, reduce)
    axis = 1 if rank_of(input) > 1 else 0
    scores = log_softmax(b, input, axis)
    classes = shape_of(input)[axis]
    if not is_float(dtype_of(target)):
        options = {"ignore_index": ignore_index, "reduction": reduction}
        loss = nll_loss(b, scores, target, weight, **options)
        if not label_smoothing:
            return loss
        if weight is not None:
            raise Refused(_("it smooths its labels, and has weights"))
        even = _even_loss(b, scores, target, axis, ignore_index, reduction)
        share = label_smoothing / classes
        return add(b, mul(b, loss, 1 - label_smoothing), mul(b, even, share))
    if weight is not None:
        raise Refused(_("it has weights for targets that are probabilities"))
    if label_smoothing:
        target = add(b, mul(b, target, 1 - label_smoothing), label_smoothing / classes)
    loss = b.emit(op.negative(sum(b, mul(b, scores, target), axis)))
    if reduction == "mean":
        count = 1
        for each in shape_of(loss):
            count *= each
        return div(b, sum(b, loss), count)
    return _reduced(b, loss, reduction)


def _even_loss(
    b: NodeBuilder, scores: Value, target: Value, axis: int, ignore_index: int, reduction: str
) -> Value:
    """Return the loss with all classes as targets, summed."""
    ignored = b.emit(op.equal(target, scalar(ignore_index, dtype_of(target))))
    counts = cast(b, b.emit(op.logical_not(ignored)), dtype_of(scores))
    loss = mul(b, b.emit(op.negative(sum(b, scores, axis))), counts)
    if reduction == "mean":
        return div(b, sum(b, loss), sum(b, counts))
    return _reduced(b, loss, reduction)


_ATEN: dict[str, tuple[Callable[..., Value], tuple[str, ...]]] = {
    "mse_loss": (mse_loss, ("reduction",)),
    "l1_loss": (l1_loss, ("reduction",)),
    "smooth_l1_loss": (smooth_l1_loss, ("reduction", "beta")),
    "huber_loss": (huber_loss, ("reduction", "delta")),
    "kl_div": (kl_div, ("reduction", "log_target")),
    "binary_cross_entropy": (binary_cross_entropy, ("weight", "reduction")),
    "binary_cross_entropy_with_logits": (
        binary_cross_entropy_with_logits,
        ("weight", "pos_weight", "reduction"),
    ),
    "nll_loss_nd": (nll_loss, ("weight", "reduction", "ignore_index")),
    "cross_entropy_loss": (
        cross_entropy,
        ("weight", "reduction", "ignore_index", "label_smoothing"),
    ),
}
"""ATen's operators with the order of their options; a reduction is a number there."""


def _of_aten(lower: Callable[..., Value], names: tuple[str, ...]) -> Callable[..., Value]:
    def lower_aten(b: NodeBuilder, input: Value, target: Value, *args: Any, **kwargs: Any) -> Value:
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        options["reduction"] = _REDUCTIONS[options.get("reduction", 1)]
        return lower(b, input, target, **options)

    return lower_aten


for _name, (_lower, _names) in _ATEN.items():
    _packet = getattr(aten, _name, None)
    if _packet is not None:
        rule(_packet.default, name=_lower.__name__)(_of_aten(_lower, _names))


def _reduced(b: NodeBuilder, loss: Value, reduction: Any) -> Value:
    if reduction == "none":
        return loss
    return mean(b, loss) if reduction == "mean" else sum(b, loss)


def _refuse_old(size_average: Any, reduce: Any) -> None:
    if size_average is not None or reduce is not None:
        raise Refused(_("it uses size_average or reduce, which torch has deprecated"))
