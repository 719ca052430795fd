"""Small models of every kind of function that rules are for, drawn at random, with torch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from hypothesis import strategies as st
from tvm.relax import op

from tests.core.schedule.product_cases import convolution, pooling, product
from tests.core.schedule.rule_case import FLOATS, SIZES, Case, Emit, Shape, extents, label_of

_MOST_TERMS = {"float16": 1024, "bfloat16": 128}
"""Of more of the same sign, the unscheduled function rounds away what it adds one by one."""

_UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (op.nn.relu, torch.relu),
    "exp": (op.exp, torch.exp),
    "sigmoid": (op.sigmoid, torch.sigmoid),
    "tanh": (op.tanh, torch.tanh),
    "gelu": (op.nn.gelu, torch.nn.functional.gelu),
    "silu": (op.nn.silu, torch.nn.functional.silu),
}
_BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (op.add, torch.add),
    "multiply": (op.multiply, torch.mul),
    "maximum": (op.maximum, torch.maximum),
    "subtract": (op.subtract, torch.sub),
}


@st.composite
def elementwise(draw: Any) -> Case:
    """Draw an operator on two tensors, one of them broadcast, and activations after it."""
    shape = tuple(draw(st.lists(extents(symbolic=True), min_size=1, max_size=4)))
    other = tuple(1 if draw(st.integers(0, 3)) == 0 else each for each in shape)
    other = other[draw(st.integers(0, len(shape) - 1)) :]
    binary = draw(st.sampled_from(sorted(_BINARY)))
    unary = draw(st.lists(st.sampled_from(sorted(_UNARY)), max_size=2))
    dtype = draw(st.sampled_from((*FLOATS, *(("int32", "int8") if not unary else ()))))

    def emit(emit: Emit, x: Any, y: Any) -> Any:
        value = emit(_BINARY[binary][0](x, y))
        for name in unary:
            value = emit(_UNARY[name][0](value))
        return value

    def same(x: Any, y: Any) -> torch.Tensor:
        value = _BINARY[binary][1](x, y)
        for name in unary:
            value = _UNARY[name][1](value)
        return value

    label = label_of("elementwise", shape=shape, other=other, op=binary, then=unary, dtype=dtype)
    return Case(label, ((shape, dtype), (other, dtype)), emit, same)


@st.composite
def mixed(draw: Any) -> Case:
    """Draw two tensors of different dtypes: activations in that of each, and a cast to a third."""
    shape = tuple(draw(st.lists(extents(symbolic=True), min_size=1, max_size=3)))
    one, other, last = (draw(st.sampled_from(sorted(set(FLOATS)))) for _ in range(3))
    first, then = (draw(st.sampled_from(sorted(_UNARY))) for _ in range(2))

    def emit(emit: Emit, x: Any, y: Any) -> Any:
        left = emit(op.astype(emit(_UNARY[first][0](x)), last))
        right = emit(op.astype(emit(_UNARY[then][0](y)), last))
        return emit(op.nn.silu(emit(op.multiply(left, right))))

    def same(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        to = getattr(torch, last)
        value = _UNARY[first][1](x).to(to) * _UNARY[then][1](y).to(to)
        return torch.nn.functional.silu(value)

    label = label_of("mixed", shape=shape, one=one, other=other, last=last, ops=[first, then])
    return Case(label, ((shape, one), (shape, other)), emit, same)


@st.composite
def reduction(draw: Any) -> Case:
    """Draw a reduction over some axes."""
    shape = tuple(draw(st.lists(extents(symbolic=True), min_size=1, max_size=4)))
    name = draw(st.sampled_from(("sum", "mean", "max", "min", "prod", "variance", "argmax")))
    axes = sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    keepdims = draw(st.booleans())
    relu = draw(st.booleans()) and name != "argmax"
    dtype = draw(st.sampled_from(FLOATS))
    if name == "argmax":
        axes = axes[:1]
        # TVM builds no search among bfloat16, scheduled or not.
        dtype = "float32" if dtype == "bfloat16" else dtype
    terms = prod(SIZES.get(each, each) for each in (shape[axis] for axis in axes))
    if terms > _MOST_TERMS.get(dtype, terms):
        dtype = "float32"
    over: Any = axes[0] if name == "argmax" else axes
    own = getattr(op, name)

    def emit(emit: Emit, x: Any) -> Any:
        value = emit(own(op.nn.relu(x) if relu else x, axis=over, keepdims=keepdims))
        return emit(op.negative(value)) if relu else value

    def same(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x) if relu else x
        if name == "argmax":
            return torch.argmax(x, axes[0], keepdim=keepdims)
        if name == "prod":
            for axis in reversed(axes):
                x = torch.prod(x, axis, keepdim=keepdims)
            value = x
        elif name == "variance":
            value = torch.var(x, axes, correction=0, keepdim=keepdims)
        else:
            methods = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
            value = methods[name](x, axes, keepdim=keepdims)
        return -value if relu else value

    label = label_of(name, shape=shape, axes=axes, keepdims=keepdims, relu=relu, dtype=dtype)
    return Case(label, ((shape, dtype),), emit, same)


@st.composite
def softmax(draw: Any) -> Case:
    """Draw a softmax over any axis."""
    shape = tuple(draw(st.lists(extents(symbolic=True), min_size=1, max_size=4)))
    axis = draw(st.one_of(st.just(len(shape) - 1), st.integers(0, len(shape) - 1)))
    log = draw(st.booleans())
    dtype = draw(st.sampled_from(FLOATS))
    own, torchs = (op.nn.log_softmax, torch.log_softmax) if log else (op.nn.softmax, torch.softmax)
    label = label_of("softmax", shape=shape, axis=axis, log=log, dtype=dtype)
    return Case(
        label, ((shape, dtype),), lambda emit, x: emit(own(x, axis)), lambda x: torchs(x, axis)
    )


@st.composite
def norm(draw: Any) -> Case:
    """Draw a layer norm, an RMS norm or a group norm."""
    name = draw(st.sampled_from(("layer_norm", "layer_norm", "rms_norm", "group_norm")))
    # TVM has these for no others.
    dtype = draw(st.sampled_from(("float32", "float16")))
    if name == "group_norm":
        groups, each = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((1, 2, 5, 8)))
        channels = groups * each
        # torch refuses groups of a single value.
        height = draw(st.sampled_from((2, 3, 5, 7, 13, 16)))
        shape: Shape = (draw(st.sampled_from((1, 2))), channels, height, draw(extents()))
        weights: Shape = (channels,)

        def emit(emit: Emit, x: Any, g: Any, b: Any) -> Any:
            return emit(op.nn.group_norm(x, g, b, groups, 1, [2, 3]))

        label = label_of(name, shape=shape, groups=groups, dtype=dtype)
        return Case(
            label,
            ((shape, dtype), (weights, dtype), (weights, dtype)),
            emit,
            lambda x, g, b: torch.nn.functional.group_norm(x, groups, g, b),
        )
    lead = tuple(draw(st.lists(extents(symbolic=True), min_size=1, max_size=2)))
    last = tuple(draw(st.lists(extents(), min_size=1, max_size=2)))
    axes = [axis - len(last) for axis in range(len(last))]
    if name == "rms_norm":
        return Case(
            label_of(name, lead=lead, last=last, dtype=dtype),
            (((*lead, *last), dtype), (last, dtype)),
            lambda emit, x, g: emit(op.nn.rms_norm(x, g, axes)),
            lambda x, g: torch.nn.functional.rms_norm(x, last, g, 1e-5),
        )
    return Case(
        label_of(name, lead=lead, last=last, dtype=dtype),
        (((*lead, *last), dtype), (last, dtype), (last, dtype)),
        lambda emit, x, g, b: emit(op.nn.layer_norm(x, g, b, axes)),
        lambda x, g, b: torch.nn.functional.layer_norm(x, last, g, b),
    )


@st.composite
def movement(draw: Any) -> Case:
    """Draw what moves data: transposes, parts, sums of parts, rows of a table."""
    kind = draw(
        st.sampled_from(("transpose", "transpose", "concat", "pad", "take", "slice", "reshape"))
    )
    dtype = draw(st.sampled_from((*FLOATS, "int8")))
    symbolic = kind in ("transpose", "concat", "take")
    shape = tuple(draw(st.lists(extents(symbolic=symbolic), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    if kind == "transpose":
        order = draw(st.permutations(range(len(shape))))
        return Case(
            label_of(kind, shape=shape, order=order, dtype=dtype),
            ((shape, dtype),),
            lambda emit, x: emit(op.permute_dims(x, list(order))),
            lambda x: x.permute(*order),
        )
    if kind == "concat":
        more = draw(extents())
        other = tuple(more if place == axis else each for place, each in enumerate(shape))
        return Case(
            label_of(kind, shape=shape, other=other, axis=axis, dtype=dtype),
            ((shape, dtype), (other, dtype)),
            lambda emit, x, y: emit(op.concat([x, y], axis)),
            lambda x, y: torch.cat([x, y], axis),
        )
    if kind == "take":
        count = draw(extents())
        # Drawn indices are small: all rows are there.
        shape = (64, *shape[1:])
        return Case(
            label_of(kind, shape=shape, count=count, dtype=dtype),
            ((shape, dtype), ((count,), "int64")),
            lambda emit, x, i: emit(op.take(x, i, axis=0)),
            lambda x, i: x[i],
        )
    if kind == "slice":
        begin = draw(st.integers(0, shape[axis] - 1))
        end = draw(st.integers(begin + 1, shape[axis]))
        step = draw(st.sampled_from((1, 1, 2, 3)))

        def part(emit: Emit, x: Any) -> Any:
            return emit(op.strided_slice(x, [axis], [begin], [end], [step]))

        return Case(
            label_of(kind, shape=shape, axis=axis, begin=begin, end=end, step=step, dtype=dtype),
            ((shape, dtype),),
            part,
            lambda x: x[(slice(None),) * axis + (slice(begin, end, step),)],
        )
    if kind == "pad":
        widths = draw(st.lists(st.integers(0, 3), min_size=2 * len(shape), max_size=2 * len(shape)))
        pairs: Sequence[int] = [
            each for place in reversed(range(len(shape))) for each in widths[2 * place :][:2]
        ]
        return Case(
            label_of(kind, shape=shape, widths=widths, dtype=dtype),
            ((shape, dtype),),
            lambda emit, x: emit(op.nn.pad(x, widths, "constant", 0.0)),
            lambda x: torch.nn.functional.pad(x, pairs),
        )
    count = prod(shape)
    rows = draw(st.sampled_from([each for each in (1, 2, 3, 4, 7, 8) if count % each == 0]))
    return Case(
        label_of(kind, shape=shape, rows=rows, dtype=dtype),
        ((shape, dtype),),
        lambda emit, x: emit(op.reshape(x, (rows, count // rows))),
        lambda x: x.reshape(rows, -1),
    )


KINDS: dict[str, st.SearchStrategy[Case]] = {
    "elementwise": elementwise(),
    "mixed": mixed(),
    "reduction": reduction(),
    "softmax": softmax(),
    "norm": norm(),
    "product": product(),
    "convolution": convolution(),
    "pooling": pooling(),
    "movement": movement(),
}
"""By the kind of function."""
