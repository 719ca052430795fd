"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import exact
from lowerscope.core.lowering.values import Value, dtype_of, rank_of, shape_of

aten = torch.ops.aten


@exact(F.pad, aten.pad.default)
def pad(
    b: NodeBuilder,
    input: Value,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Value:
    return pad_by(b, input, pad, mode, value)


def pad_by(
    b: NodeBuilder, input: Value, pad: Sequence[int], mode: str, value: float | None
) -> Value:
    """Pad by the widths `pad`, a pair for each axis from the last to the first."""
    # torch lists the axes from the last to the first, Relax from the first to the last.
    rank = rank_of(input)
    widths = [(0, 0)] * rank
    for index in range(len(pad) // 2):
        widths[rank - 1 - index] = (int(pad[2 * index]), int(pad[2 * index + 1]))
    value_of_pads = 0.0 if value is None or mode != "constant" else float(value)
    cropped = _crop(b, input, widths)
    grown = [max(width, 0) for pair in widths for width in pair]
    if not any(grown):
        return cropped
    if dtype_of(cropped) == "bool":
        # TVM does not pad bools.
        numbers = b.emit(op.nn.pad(cast(b, cropped, "int8"), grown, mode, value_of_pads))
        return b.emit(op.astype(numbers, "bool"))
    return b.emit(op.nn.pad(cropped, grown, mode, value_of_pads))


@exact(aten.constant_pad_nd.default, name="pad")
def constant_pad(b: NodeBuilder, input: Value, pad: Sequence[int], value: float = 0) -> Value:
    return pad_by(b, input, pad, "constant", value)


def _crop(b: NodeBuilder, input: Value, widths: Sequence[tuple[int, int]]) -> Value:
    """Crop by the negative widths."""
    axes = [axis for axis, pair in enumerate(widths) if min(pair) < 0]
    if not axes:
        return input
    shape = shape_of(input)
    begin = [max(-widths[axis][0], 0) for axis in axes]
    end = [shape[axis] - max(-widths[axis][1], 0) for axis in axes]
    return b.emit(op.strided_slice(input, axes, begin, end))


_MODES: dict[str, tuple[type[nn.Module], ...]] = {
    "constant": (nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d),
    "zeros": (nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d),
    "reflect": (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d),
    "replicate": (nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d),
    "circular": (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
}


def _of_module(mode: str) -> Any:
    def lower(b: NodeBuilder, module: Any, input: Value) -> Value:
        value = module.value if mode == "constant" else 0
        return pad_by(b, input, module.padding, "constant" if mode == "zeros" else mode, value)

    return lower


for _mode, _types in _MODES.items():
    exact(*_types, name="pad")(_of_module(_mode))
