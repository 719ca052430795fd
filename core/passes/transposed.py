"""The step that makes plain convolutions of transposed ones.

TVM's own form puts zeros between the elements of the input and sums over them: at a stride of 2 in
two dimensions, three of four products are with zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import ir, relax

from lowerscope.core.model.texts import _

SPLIT_TRANSPOSED = "SplitTransposedConvolution"

_PLAIN: dict[str, tuple[int, Callable[..., Any]]] = {
    "relax.nn.conv1d_transpose": (1, relax.op.nn.conv1d),
    "relax.nn.conv2d_transpose": (2, relax.op.nn.conv2d),
    "relax.nn.conv3d_transpose": (3, relax.op.nn.conv3d),
}

_LAYOUTS = {1: ("NCW", "IOW"), 2: ("NCHW", "IOHW"), 3: ("NCDHW", "IODHW")}

Emit = Callable[[Any], relax.Var]


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of a transposed convolution.

    `taps`: number of input elements that contribute to an output element.
    `phases`: the stride: output elements at this distance are one convolution.
    `steps`: number of output elements of each convolution.
    `first`, `last`: Range of the output in the interleaved results.
    """

    taps: int
    phases: int
    before: int
    after: int
    steps: int
    first: int
    last: int


def split_transposed(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose transposed convolutions are one plain convolution each.

    Every stride-th element of the output is a convolution of the input with some of the weights.
    All of these are computed as channels of one, and woven together then. That is done where the
    weights are constants, the shapes are numbers and there is no dilation; the variable of the
    result stays.
    """
    result = None
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            new = _split_function(function)
            if new is not None:
                result = module.clone() if result is None else result
                result.update_func(variable, new)
    return module if result is None else result


def _split_function(function: relax.Function) -> relax.Function | None:
    builder = relax.BlockBuilder()
    found = False
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            axes = _axes(getattr(binding, "value", None))
            if isinstance(axes, str) or not axes:
                bindings.append(binding)
                continue
            found = True
            emit = _emitting(builder, binding.var, bindings)
            woven = builder.normalize(_woven(binding.value, axes, emit))
            bindings.append(relax.VarBinding(binding.var, woven))
        blocks.append(type(block)(bindings))
    if not found:
        return None
    body = relax.SeqExpr(blocks, function.body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def _emitting(builder: relax.BlockBuilder, old: relax.Var, to: list[Any]) -> Emit:
    """Return a function that binds a value and returns the variable, of the kind of `old`."""
    numbers = itertools.count()

    def emit(value: Any) -> relax.Var:
        normal = builder.normalize(value)
        variable = type(old)(f"{old.name}_phases{next(numbers) or ''}", normal.ty)
        to.append(relax.VarBinding(variable, normal))
        return variable

    return emit


def unsplit(value: Any) -> str:
    """Return why a transposed convolution cannot be split; empty if it can, or is none."""
    axes = _axes(value)
    return axes if isinstance(axes, str) else ""


def _axes(call: Any) -> tuple[_Axis, ...] | str:
    """Return the spatial axes of a transposed convolution, or why it cannot be split.

    They are none for other values.
    """
    name = str(getattr(call.op, "name", "")) if isinstance(call, relax.Call) else ""
    if name not in _PLAIN:
        return ()
    dimensions, _plain = _PLAIN[name]
    attrs, (data, weight) = call.attrs, call.args
    strides = [int(each) for each in attrs.strides]
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    if not isinstance(weight, ir.GenericConst):
        return _("its weights are not constants")
    same_layout = str(attrs.out_layout or attrs.data_layout) == str(attrs.data_layout)
    if layouts != _LAYOUTS[dimensions] or not same_layout:
        return _("its layout is not {layout}", layout=_LAYOUTS[dimensions][0])
    shapes = [_numbers(each) for each in (data.ty.shape, weight.ty.shape, call.ty.shape)]
    if str(data.ty.dtype) != str(call.ty.dtype):
        return _("its result has another dtype than its input")
    if any(int(each) != 1 for each in attrs.dilation):
        return _("it has a dilation")
    if not all(shapes):
        return _("its shapes are symbolic")
    padding = [int(each) for each in attrs.padding][:dimensions]
    extents, kernel, outputs = (each[2:] for each in shapes)
    axes = tuple(map(_axis, extents, kernel, strides, padding, outputs))
    if any(each.before < 0 or each.after < 0 for each in axes):
        return _("its padding is larger than its kernel allows")
    return axes


def _axis(extent: int, kernel: int, stride: int, padding: int, output: int) -> _Axis:
    if extent == 1:
        # A single element is never added to another one: each weight has an output of its own.
        stride = max(kernel, padding + output)
    taps = -(-kernel // stride)
    first = padding // stride
    steps = (padding + output - 1) // stride - first + 1
    before = taps - 1 - first
    after = steps - extent - before + taps - 1
    start = padding - first * stride
    return _Axis(taps, stride, before, after, steps, start, start + output)


def _numbers(shape: Any) -> tuple[int, ...]:
    values = shape.values if isinstance(shape, relax.ShapeExpr) else ()
    known = all(isinstance(each, tvm.tirx.IntImm) for each in values)
    return tuple(int(each) for each in values) if known else ()


def _woven(call: Any, axes: Sequence[_Axis], emit: Emit) -> Any:
    """Return the value of a transposed convolution by a plain one."""
    dimensions, convolution = _PLAIN[str(call.op.name)]
    data, weight = call.args
    groups = int(call.attrs.groups)
    parts = np.split(weight.value.numpy(), groups)
    convolved = convolution(
        data,
        relax.const(
            np.concatenate([_weights(each, axes) for each in parts]), str(weight.value.dtype)
        ),
        padding=[*(each.before for each in axes), *(each.after for each in axes)],
        groups=groups,
    )
    if all(each.phases == 1 for each in axes):
        return convolved
    phases = emit(convolved)
    batch, channels, *_ = _numbers(call.ty.shape)
    apart = [each.phases for each in axes]
    steps = [each.steps for each in axes]
    split = emit(relax.op.reshape(phases, (batch, channels, *apart, *steps)))
    order = [place for axis in range(dimensions) for place in (2 + dimensions + axis, 2 + axis)]
    beside = emit(relax.op.permute_dims(split, [0, 1, *order]))
    whole = [each.phases * each.steps for each in axes]
    woven = relax.op.reshape(beside, (batch, channels, *whole))
    cut = [axis for axis, each in enumerate(axes) if (each.first, each.last) != (0, whole[axis])]
    if not cut:
        return woven
    return relax.op.strided_slice(
        emit(woven),
        [2 + axis for axis in cut],
        [axes[axis].first for axis in cut],
        [axes[axis].last for axis in cut],
    )


def _weights(weight: np.ndarray[Any, Any], axes: Sequence[_Axis]) -> np.ndarray[Any, Any]:
    """Return the weights of all phases, as filters of one convolution."""
    count = len(axes)
    room = [each.taps * each.phases for each in axes]
    missing = [(0, size - own) for size, own in zip(room, weight.shape[2:], strict=True)]
    padded = np.pad(weight, [(0, 0), (0, 0), *missing])
    split = padded.reshape(
        *weight.shape[:2], *(size for each in axes for size in (each.taps, each.phases))
    )
    taps = [2 + 2 * axis for axis in range(count)]
    phases = [3 + 2 * axis for axis in range(count)]
    flipped = tuple(-1 - each for each in range(count))
    ordered = np.flip(split.transpose(1, *phases, 0, *taps), axis=flipped)
    return np.ascontiguousarray(ordered.reshape(-1, weight.shape[0], *(each.taps for each in axes)))
