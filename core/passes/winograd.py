"""The step that computes 3×3 convolutions by Winograd's algorithm F(2×2, 3×3).

The input is cut into tiles of 4×4 values that overlap by two. Each is transformed by sums and
differences, multiplied with transformed weights, and transformed back to 2×2 outputs: 16 products
for each pair of channels, where the sums of products take 36. Sums are over the input channels
alone, a ninth of the terms, and so no less exact.

Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, https://arxiv.org/abs/1509.09308
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import ir, relax, te, tirx

from lowerscope.core.model.texts import _

WINOGRAD = "WinogradConvolution"

_CONVOLUTION = "relax.nn.conv2d"

_FUSED_WITH_ELEMENTS = 4
"""``kOutEWiseFusable`` of TVM: bias, activation and residual are fused into the function."""

_CHANNELS = 16
"""Divisor of the numbers of channels: a vector register has no lanes left over."""

_TILES = 16
"""Number of tiles from which on reading 16/9 as many weights is worth it."""

_WEIGHTS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [-0.5, 0.5, -0.5], [0, 0, 1]])
"""Transformation of the three weights of a row or column into four."""


def winograd(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose 3×3 convolutions are functions of Winograd's algorithm.

    That is done where `unfit` gives no reason against it; the variable of the result stays.
    """
    builder = relax.BlockBuilder(module)
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            changed = _with_winograd(function, builder)
            if changed is not None:
                builder.update_func(variable, changed)
    return builder.get()


def _with_winograd(function: relax.Function, builder: relax.BlockBuilder) -> relax.Function | None:
    found = False
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            value = getattr(binding, "value", None)
            if is_convolution(value) and not unfit(value):
                found = True
                call = builder.normalize(_call(value, builder))
                bindings.append(relax.VarBinding(binding.var, call))
            else:
                bindings.append(binding)
        blocks.append(type(block)(bindings))
    if not found:
        return None
    body = relax.SeqExpr(blocks, function.body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def is_convolution(value: Any) -> bool:
    """Return whether a value is a convolution in two dimensions."""
    return isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) == _CONVOLUTION


def unfit(call: Any) -> str:
    """Return why a convolution is computed directly; empty if Winograd's algorithm fits it."""
    attrs, (data, weight) = call.attrs, call.args
    if not isinstance(weight, ir.GenericConst):
        return _("its weights are not constants")
    shapes = [_numbers(each.ty.shape) for each in (data, weight, call)]
    if not all(shapes):
        return _("its shapes are symbolic")
    if {str(each.ty.dtype) for each in (data, weight, call)} != {"float32"}:
        return _("it is not in float32")
    layouts = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout or "NCHW")
    if layouts != ("NCHW", "OIHW", "NCHW"):
        return _("its layout is not {layout}", layout="NCHW")
    if shapes[1][2:] != (3, 3):
        return _("its kernel is not 3×3")
    if any(int(each) != 1 for each in (*attrs.strides, *attrs.dilation, attrs.groups)):
        return _("it has a stride, a dilation or groups")
    if shapes[1][0] % _CHANNELS or shapes[1][1] % _CHANNELS:
        return _("its channels are not multiples of {count}", count=_CHANNELS)
    batch, _channels, height, width = shapes[2]
    if batch * -(-height // 2) * -(-width // 2) < _TILES:
        return _("its output is small: reading more weights would take longer")
    return ""


def _numbers(shape: Any) -> tuple[int, ...]:
    values = shape.values if isinstance(shape, relax.ShapeExpr) else ()
    known = all(isinstance(each, tirx.IntImm) for each in values)
    return tuple(int(each) for each in values) if known else ()


def _call(call: Any, builder: relax.BlockBuilder) -> Any:
    """Return the call of a function of Winograd's algorithm in place of a convolution."""
    data, weight = call.args
    padding = [int(each) for each in call.attrs.padding]
    function = _function(_numbers(data.ty.shape), _numbers(call.ty.shape), padding)
    transformed = np.einsum(
        "ea,oiab,fb->efio", _WEIGHTS, weight.value.numpy().astype("float64"), _WEIGHTS
    )
    weights = relax.const(np.ascontiguousarray(transformed, "float32"), "float32")
    name = builder.add_func(function, "winograd_conv2d")
    return relax.call_tir(name, [data, weights], call.ty)


def _function(shape: tuple[int, ...], result: tuple[int, ...], padding: list[int]) -> tirx.PrimFunc:
    """Return the function of a convolution: its input, transformed weights, and output."""
    _batch, filters, *outputs = result
    # Extents of Relax have 64 bits.
    batch, channels, height, width, rows, columns, filters, four = (
        tirx.IntImm("int64", each)
        for each in (*shape, *(-(-each // 2) for each in outputs), filters, 4)
    )
    top, left, *_others = padding
    data = te.placeholder((batch, channels, height, width), name="data")
    weights = te.placeholder((four, four, channels, filters), name="weights")
    zero = tirx.const(0.0, "float32")

    def padded(n: Any, y: Any, x: Any, c: Any) -> Any:
        inside = (y >= top, y < height + top, x >= left, x < width + left)
        return tirx.if_then_else(tirx.all(*inside), data[n, c, y - top, x - left], zero)

    tiled = te.compute((batch, 2 * rows + 2, 2 * columns + 2, channels), padded, name="padded")

    def transformed(e: Any, f: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
        return _difference(e, lambda i: _difference(f, lambda j: tiled[n, 2 * y + i, 2 * x + j, c]))

    inputs = te.compute(
        (four, four, batch, rows, columns, channels), transformed, name="transformed"
    )
    summed = te.reduce_axis((0, channels), name="c")
    products = te.compute(
        (four, four, batch, rows, columns, filters),
        lambda e, f, n, y, x, o: te.sum(
            inputs[e, f, n, y, x, summed] * weights[e, f, summed, o], axis=summed
        ),
        name="products",
    )

    def output(n: Any, o: Any, y: Any, x: Any) -> Any:
        return _sum(y % 2, lambda e: _sum(x % 2, lambda f: products[e, f, n, y // 2, x // 2, o]))

    sizes = (batch, filters, *(tirx.IntImm("int64", each) for each in outputs))
    made = te.create_prim_func([data, weights, te.compute(sizes, output, name="conv2d")])
    # The function is private: Relax calls it by its name in the module.
    return made.without_attr("global_symbol").with_attr("op_pattern", _FUSED_WITH_ELEMENTS)


def _difference(e: Any, value: Any) -> Any:
    """Return one of the transformed values 0-2, 1+2, 1-2 and 1-3 of a row or column."""
    return value(tirx.min(e, 1)) + _sign(e == 1) * value(tirx.max(e, 2))


def _sum(a: Any, value: Any) -> Any:
    """Return one of the outputs 1+2+0 and 1-2-3 of a row or column of products."""
    return value(1) + _sign(a == 0) * (value(2) + value(3 * a))


def _sign(positive: Any) -> Any:
    return tirx.Select(positive, tirx.const(1.0, "float32"), tirx.const(-1.0, "float32"))
