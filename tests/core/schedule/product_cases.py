"""Products, convolutions and poolings that rules are for, drawn at random."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st
from tvm.relax import op

from tests.core.schedule.rule_case import FLOATS, Case, Emit, Shape, extents, label_of


def _dtypes(draw: Any) -> tuple[str, str]:
    """Draw the dtype of what is multiplied, and that of the sums."""
    dtype = draw(st.sampled_from((*FLOATS, "int8")))
    return dtype, "int32" if dtype == "int8" else dtype


def _accumulating(dtype: str) -> torch.dtype:
    return torch.int32 if dtype == "int8" else getattr(torch, dtype)


@st.composite
def product(draw: Any) -> Case:
    """Draw a product of matrices, batches of them or a vector, with what comes after it."""
    dtype, sums = _dtypes(draw)
    batch = tuple(
        draw(
            st.one_of(
                st.just([]), st.lists(extents(symbolic=True), max_size=2), st.just([]), st.just([])
            )
        )
    )
    m = draw(st.one_of(st.just(1), extents(symbolic=True), st.sampled_from((128, 50))))
    n, k = draw(extents(symbolic=not batch)), draw(st.one_of(extents(), st.just(200)))
    shared = draw(st.booleans()) if batch else True
    transposed = draw(st.booleans())
    bias, relu, residual = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    lead: Shape = () if shared else batch
    left: Shape = (*batch, m, k)
    right: Shape = (*lead, n, k) if transposed else (*lead, k, n)
    inputs: list[tuple[Shape, str]] = [(left, dtype), (right, dtype)]
    if bias:
        inputs.append(((n,), sums))
    if residual:
        inputs.append(((*batch, m, n), sums))

    def emit(emit: Emit, x: Any, w: Any, *more: Any) -> Any:
        if transposed:
            rank = len(right)
            w = emit(op.permute_dims(w, [*range(rank - 2), rank - 1, rank - 2]))
        value = emit(op.matmul(x, w, out_dtype=sums))
        for each in more:
            value = emit(op.add(value, each))
        return emit(op.nn.relu(value)) if relu else value

    def same(x: Any, w: Any, *more: Any) -> torch.Tensor:
        kind = _accumulating(dtype)
        value = torch.matmul(x.to(kind), (w.mT if transposed else w).to(kind))
        for each in more:
            value = value + each
        return torch.relu(value) if relu else value

    label = label_of(
        "matmul", left=left, right=right, transposed=transposed, bias=bias, residual=residual,
        relu=relu, dtype=dtype,
    )  # fmt: skip
    return Case(label, tuple(inputs), emit, same)


@st.composite
def convolution(draw: Any) -> Case:
    """Draw a convolution: direct, 1 by 1, strided, dilated, grouped or depthwise."""
    dtype, sums = _dtypes(draw)
    kind = draw(st.sampled_from(("plain", "plain", "plain", "depthwise", "depthwise", "grouped")))
    groups, channels, filters = 1, draw(extents()), draw(extents())
    if kind == "depthwise":
        groups = channels
        filters = channels * draw(st.sampled_from((1, 1, 1, 2)))
    elif kind == "grouped":
        groups = draw(st.sampled_from((2, 3, 4)))
        channels = groups * draw(st.sampled_from((1, 2, 3, 8)))
        filters = groups * draw(st.sampled_from((1, 2, 5, 8, 16)))
    kernel = draw(st.sampled_from((1, 1, 2, 3, 3, 3, 5)))
    wide = draw(st.sampled_from((kernel, kernel, kernel, 1, 3)))
    stride, dilation = draw(st.sampled_from((1, 1, 1, 2, 3))), draw(st.sampled_from((1, 1, 1, 2)))
    padding = draw(st.sampled_from((kernel // 2, kernel // 2, 0, 1)))
    batch = draw(st.sampled_from((1, 1, 1, 2, 3, "n")))
    least = max(kernel, wide) * dilation
    height, width = draw(st.integers(least, 20)), draw(st.integers(least, 20))
    bias, relu, residual = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    x: Shape = (batch, channels, height, width)
    w: Shape = (filters, channels // groups, kernel, wide)
    inputs: list[tuple[Shape, str]] = [(x, dtype), (w, dtype)]
    if bias:
        inputs.append(((1, filters, 1, 1), sums))
    out = [
        (size + 2 * padding - dilation * (length - 1) - 1) // stride + 1
        for size, length in ((height, kernel), (width, wide))
    ]
    if residual:
        inputs.append(((batch, filters, *out), sums))

    def emit(emit: Emit, x: Any, w: Any, *more: Any) -> Any:
        value = emit(
            op.nn.conv2d(
                x, w, (stride, stride), (padding, padding), (dilation, dilation), groups,
                out_dtype=sums,
            )
        )  # fmt: skip
        for each in more:
            value = emit(op.add(value, each))
        return emit(op.nn.relu(value)) if relu else value

    def same(x: Any, w: Any, *more: Any) -> torch.Tensor:
        exact = torch.float64 if dtype == "int8" else x.dtype
        value = torch.nn.functional.conv2d(
            x.to(exact), w.to(exact), None, stride, padding, dilation, groups
        ).to(_accumulating(dtype))
        for each in more:
            value = value + each
        return torch.relu(value) if relu else value

    label = label_of(
        "conv2d", x=x, w=w, groups=groups, stride=stride, padding=padding, dilation=dilation,
        bias=bias, residual=residual, relu=relu, dtype=dtype,
    )  # fmt: skip
    return Case(label, tuple(inputs), emit, same)


@st.composite
def pooling(draw: Any) -> Case:
    """Draw a pooling: by maximum, by mean, or to a size."""
    kind = draw(st.sampled_from(("max", "max", "avg", "avg", "adaptive")))
    dtype = draw(st.sampled_from((*FLOATS, "int8") if kind == "max" else FLOATS))
    batch, channels = draw(st.sampled_from((1, 1, 2, "n"))), draw(extents())
    height, width = draw(st.integers(3, 33)), draw(st.integers(3, 33))
    shape: Shape = (batch, channels, height, width)
    if kind == "adaptive":
        size = draw(st.sampled_from((1, 1, 2, 3)))
        return Case(
            label_of("adaptive", shape=shape, size=size, dtype=dtype),
            ((shape, dtype),),
            lambda emit, x: emit(op.nn.adaptive_avg_pool2d(x, (size, size))),
            lambda x: torch.nn.functional.adaptive_avg_pool2d(x, size),
        )
    window = draw(st.sampled_from((2, 2, 3, 3)))
    stride = draw(st.sampled_from((1, 2, 2, 3)))
    padding = draw(st.sampled_from((0, 0, 1)))
    counted = draw(st.booleans())
    whole = (window, window), (stride, stride), (padding, padding)

    def emit(emit: Emit, x: Any) -> Any:
        if kind == "max":
            return emit(op.nn.max_pool2d(x, *whole))
        return emit(op.nn.avg_pool2d(x, *whole, count_include_pad=counted))

    def same(x: Any) -> torch.Tensor:
        if kind == "max":
            exact = x.double() if dtype == "int8" else x
            return torch.nn.functional.max_pool2d(exact, window, stride, padding).to(x.dtype)
        return torch.nn.functional.avg_pool2d(x, window, stride, padding, count_include_pad=counted)

    label = label_of(
        f"{kind}_pool", shape=shape, window=window, stride=stride, padding=padding,
        counted=counted, dtype=dtype,
    )  # fmt: skip
    return Case(label, ((shape, dtype),), emit, same)
