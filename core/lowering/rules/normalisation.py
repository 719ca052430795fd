"""Normalisation by statistics, dropout, and operators without effect at inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
import tvm_ffi
from torch import nn
from tvm import te
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import Missing, Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add, mul, sub
from lowerscope.core.lowering.values import Value, dtype_of, rank_of, shape_of
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_TRAINING = _("it is in training mode")


@rule(F.batch_norm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, rounds_as_input=True)
def batch_norm(
    b: NodeBuilder,
    input: Value,
    running_mean: Value,
    running_var: Value,
    weight: Value = None,
    bias: Value = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    if running_mean is None or running_var is None:
        axes = [axis for axis in range(rank_of(input)) if axis != 1]
        return _normalise(b, input, axes, _by_channel(b, input, weight, bias), eps)
    if training:
        raise Refused(_TRAINING)
    channels, dtype = shape_of(input)[1], dtype_of(running_mean)
    weight = _filled(b, channels, 1, dtype) if weight is None else weight
    bias = _filled(b, channels, 0, dtype) if bias is None else bias
    normalised = b.emit(
        op.nn.batch_norm(
            input,
            weight,
            bias,
            running_mean,
            running_var,
            axis=1,
            epsilon=eps,
            momentum=0.0,
            training=False,
        )
    )
    return b.emit(normalised[0])


@rule(torch.batch_norm, aten.batch_norm.default, name="batch_norm", rounds_as_input=True)
def batch_norm_in_torchs_order(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Value:
    return batch_norm(b, input, running_mean, running_var, weight, bias, training, eps=eps)


@rule(aten._native_batch_norm_legit_no_training.default, name="batch_norm", rounds_as_input=True)
def aten_batch_norm(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> Value:
    value = batch_norm(b, input, running_mean, running_var, weight, bias, eps=eps)
    return value, *[Missing(_("it belongs to training"))] * 2


@rule(aten._native_batch_norm_legit.no_stats, name="batch_norm", rounds_as_input=True)
def aten_batch_norm_of_batch(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> Value:
    value = batch_norm(b, input, None, None, weight, bias, eps=eps)
    return value, *[Missing(_("it belongs to training"))] * 2


@rule(F.layer_norm, torch.layer_norm, aten.layer_norm.default, nn.LayerNorm, rounds_as_input=True)
def layer_norm(
    b: NodeBuilder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value = None,
    bias: Value = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:
    shape, dtype = tuple(normalized_shape), dtype_of(input)
    if 0 in shape:
        return input
    if dtype == "float64":
        # TVM's own operator supports only narrower dtypes.
        return _normalise(b, input, list(range(-len(shape), 0)), (weight, bias), eps)
    weight = b.constant(torch.ones(shape)) if weight is None else weight
    bias = b.constant(torch.zeros(shape)) if bias is None else bias
    axes = list(range(-len(shape), 0))
    operands = (input, cast(b, weight, dtype), cast(b, bias, dtype))
    return b.emit(op.nn.layer_norm(*operands, axes=axes, epsilon=eps))


@rule(aten.native_layer_norm.default, name="layer_norm", rounds_as_input=True)
def aten_layer_norm(
    b: NodeBuilder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value,
    bias: Value,
    eps: float,
) -> Value:
    value = layer_norm(b, input, normalized_shape, weight, bias, eps)
    return value, *[Missing(_("it belongs to training"))] * 2


@rule(F.rms_norm, torch.rms_norm, aten.rms_norm.default, nn.RMSNorm, rounds_as_input=True)
def rms_norm(
    b: NodeBuilder,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value = None,
    eps: float | None = None,
) -> Value:
    axes = list(range(-len(normalized_shape), 0))
    epsilon = torch.finfo(getattr(torch, dtype_of(input))).eps if eps is None else eps
    mean = b.emit(op.mean(b.emit(op.square(input)), axes, keepdims=True))
    value = mul(b, input, b.emit(op.rsqrt(add(b, mean, epsilon))))
    return value if weight is None else mul(b, value, weight)


@rule(F.group_norm, torch.group_norm, aten.group_norm.default, nn.GroupNorm, rounds_as_input=True)
def group_norm(
    b: NodeBuilder,
    input: Value,
    num_groups: int,
    weight: Value = None,
    bias: Value = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:
    batch, channels, *spatial = shape_of(input)
    # Sums read it in rows, without places in planes.
    grouped = b.emit(
        op.reshape(input, (batch, num_groups, channels // num_groups * math.prod(spatial)))
    )
    return b.emit_te(
        te_group_norm, input, grouped, weight, bias, eps, primfunc_name_hint="group_norm"
    )


def te_group_norm(A: Any, grouped: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Return the TE of a norm over groups of channels.

    `grouped`: the values again, those of each group as a row.
    """
    batch, groups, count = grouped.shape
    own = A.shape[1] // groups
    of_one = tvm_ffi.structural_equal(groups, A.shape[1])
    row = te.reduce_axis((0, count), name="k")
    length = count.astype(A.dtype)
    sums = te.compute(
        (batch, groups), lambda n, g: te.sum(grouped[n, g, row], axis=row), name="sums"
    )
    mean = te.compute((batch, groups), lambda n, g: sums[n, g] / length, name="mean")

    def squared(n: Any, g: Any) -> Any:
        centred = grouped[n, g, row] - mean[n, g]
        return te.sum(centred * centred, axis=row)

    squares = te.compute((batch, groups), squared, name="squares")
    scale = te.compute(
        (batch, groups), lambda n, g: 1 / te.sqrt(squares[n, g] / length + eps), name="scale"
    )

    def normal(n: Any, c: Any, *at: Any) -> Any:
        g = c if of_one else c // own if int(groups) > 1 else 0
        value = (A[n, c, *at] - mean[n, g]) * scale[n, g]
        value = value if weight is None else value * weight[c]
        return value if bias is None else value + bias[c]

    return te.compute(A.shape, normal, name="group_norm")


@rule(aten.native_group_norm.default, name="group_norm", rounds_as_input=True)
def aten_group_norm(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Value:
    value = group_norm(b, input, group, weight, bias, eps)
    return value, *[Missing(_("it belongs to training"))] * 2


@rule(F.instance_norm, rounds_as_input=True)
def instance_norm(
    b: NodeBuilder,
    input: Value,
    running_mean: Value = None,
    running_var: Value = None,
    weight: Value = None,
    bias: Value = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    if not use_input_stats:
        return batch_norm(b, input, running_mean, running_var, weight, bias, eps=eps)
    return group_norm(b, input, shape_of(input)[1], weight, bias, eps)


@rule(torch.instance_norm, aten.instance_norm.default, name="instance_norm", rounds_as_input=True)
def instance_norm_in_torchs_order(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    bias: Value,
    running_mean: Value,
    running_var: Value,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Value:
    statistics = (running_mean, running_var)
    return instance_norm(b, input, *statistics, weight, bias, use_input_stats, momentum, eps)


@rule(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, name="instance_norm")
def instance_norm_module(b: NodeBuilder, module: Any, input: Value) -> Value:
    if rank_of(input) != {nn.InstanceNorm1d: 3, nn.InstanceNorm2d: 4}.get(type(module), 5):
        raise Refused(_("its input has no batch axis"))
    return instance_norm(
        b,
        input,
        b.optional_constant(module.running_mean),
        b.optional_constant(module.running_var),
        b.optional_constant(module.weight),
        b.optional_constant(module.bias),
        use_input_stats=module.training or not module.track_running_stats,
        eps=module.eps,
    )


def _normalise(
    b: NodeBuilder, input: Value, axes: Sequence[int], affine: tuple[Value, Value], eps: float
) -> Value:
    """Return `input` with mean 0 and variance 1 over `axes`, scaled and shifted."""
    centred = sub(b, input, b.emit(op.mean(input, list(axes), keepdims=True)))
    variance = b.emit(op.mean(b.emit(op.square(centred)), list(axes), keepdims=True))
    value = mul(b, centred, b.emit(op.rsqrt(add(b, variance, eps))))
    return _affine(b, value, affine)


def _affine(b: NodeBuilder, value: Value, affine: tuple[Value, Value]) -> Value:
    weight, bias = affine
    if weight is not None:
        value = mul(b, value, weight)
    return value if bias is None else add(b, value, bias)


def _by_channel(b: NodeBuilder, input: Value, weight: Value, bias: Value) -> tuple[Value, Value]:
    """Return weight and bias so that they broadcast along axis 1 of `input`."""
    extents = [1, -1] + [1] * (rank_of(input) - 2)
    return (
        None if weight is None else b.emit(op.reshape(weight, extents)),
        None if bias is None else b.emit(op.reshape(bias, extents)),
    )


def _filled(b: NodeBuilder, size: int, value: float, dtype: str) -> Value:
    return b.constant(torch.full((size,), value, dtype=getattr(torch, dtype)))


@exact(
    *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout),
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
    *(nn.AlphaDropout, nn.FeatureAlphaDropout),
)
def dropout(
    b: NodeBuilder, input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    if training and p > 0:
        raise Refused(_TRAINING)
    return input


@exact(torch.dropout, aten.dropout.default, name="dropout")
def aten_dropout(b: NodeBuilder, input: Value, p: float, train: bool) -> Value:
    return dropout(b, input, p, train)


@exact(aten.native_dropout.default, name="dropout")
def aten_native_dropout(b: NodeBuilder, input: Value, p: float, train: bool | None) -> Value:
    return dropout(b, input, p, bool(train)), Missing(_("it belongs to training"))


@exact(
    torch._assert,
    aten._assert_scalar.default,
    aten._assert_tensor_metadata.default,
    aten._assert_async.msg,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    name="check",
)
def check(b: NodeBuilder, *args: Any, **kwargs: Any) -> None:
    return None
