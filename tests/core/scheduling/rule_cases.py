"""Small models of every kind of function that rules are for, drawn at random, with torch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from hypothesis import strategies as st
from tvm import relax, tirx
from tvm.relax import op

Extent = int | str
"""A number, or the name of a dimension that has any size."""

Shape = tuple[Extent, ...]
Emit = Callable[[Any], Any]

SIZES = {"n": 7, "m": 12}
"""What the named dimensions are where a function runs."""

_MOST_TERMS = {"float16": 1024, "bfloat16": 128}
"""Of more of the same sign, the unscheduled function rounds away what it adds one by one."""

FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
ODD = (1, 2, 3, 5, 7, 13, 17, 31)
EVEN = (4, 8, 16, 24, 32, 48, 64, 96)


@dataclass(frozen=True)
class Case:
    """A model of a few operators.

    Attributes
    ----------
    label
        All that was drawn.
    inputs
        Shape and dtype of each.
    emit
        Given what emits a binding and the inputs, returns the output.
    torch
        The same, in torch; ``None`` where torch has nothing of the kind.
    """

    label: str
    inputs: tuple[tuple[Shape, str], ...]
    emit: Callable[..., Any]
    torch: Callable[..., torch.Tensor] | None

    def module(self) -> Any:
        """Return the model as a Relax module, not legalised."""
        builder = relax.BlockBuilder()
        names = {name: tirx.Var(name, "int64") for name in SIZES}
        variables = []
        for number, (shape, dtype) in enumerate(self.inputs):
            extents = [names[each] if isinstance(each, str) else each for each in shape]
            variables.append(relax.Var(f"x{number}", relax.TensorType(extents, dtype)))
        with builder.function("main", variables):
            with builder.dataflow():
                output = builder.emit_output(self.emit(builder.emit, *variables))
            builder.emit_func_output(output)
        return builder.get()

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs in numbers."""
        return [sized(shape) for shape, _ in self.inputs]


def sized(shape: Shape) -> tuple[int, ...]:
    """Return a shape in numbers."""
    return tuple(SIZES[each] if isinstance(each, str) else each for each in shape)


def extents(symbolic: bool = False) -> st.SearchStrategy[Any]:
    """Return extents, of which few are round."""
    numbers = st.sampled_from((*ODD, *ODD, *EVEN))
    return (
        st.one_of(numbers, numbers, numbers, st.sampled_from(("n", "m"))) if symbolic else numbers
    )


def _text(kind: str, **drawn: object) -> str:
    return f"{kind}({', '.join(f'{name}={value}' for name, value in drawn.items())})"


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

    label = _text("elementwise", shape=shape, other=other, op=binary, then=unary, dtype=dtype)
    return Case(label, ((shape, dtype), (other, dtype)), emit, same)


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

    label = _text(name, shape=shape, axes=axes, keepdims=keepdims, relu=relu, dtype=dtype)
    return Case(label, ((shape, dtype),), emit, same)


@st.composite
def softmax(draw: Any) -> Case:
    """Draw a softmax over any axis."""
    shape = tuple(draw(st.lists(extents(symbolic=True), min_size=1, max_size=4)))
    axis = draw(st.one_of(st.just(len(shape) - 1), st.integers(0, len(shape) - 1)))
    log = draw(st.booleans())
    dtype = draw(st.sampled_from(FLOATS))
    own, torchs = (op.nn.log_softmax, torch.log_softmax) if log else (op.nn.softmax, torch.softmax)
    label = _text("softmax", shape=shape, axis=axis, log=log, dtype=dtype)
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

        label = _text(name, shape=shape, groups=groups, dtype=dtype)
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
            _text(name, lead=lead, last=last, dtype=dtype),
            (((*lead, *last), dtype), (last, dtype)),
            lambda emit, x, g: emit(op.nn.rms_norm(x, g, axes)),
            lambda x, g: torch.nn.functional.rms_norm(x, last, g, 1e-5),
        )
    return Case(
        _text(name, lead=lead, last=last, dtype=dtype),
        (((*lead, *last), dtype), (last, dtype), (last, dtype)),
        lambda emit, x, g, b: emit(op.nn.layer_norm(x, g, b, axes)),
        lambda x, g, b: torch.nn.functional.layer_norm(x, last, g, b),
    )


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

    label = _text(
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

    label = _text(
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
            _text("adaptive", shape=shape, size=size, dtype=dtype),
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

    label = _text(
        f"{kind}_pool", shape=shape, window=window, stride=stride, padding=padding,
        counted=counted, dtype=dtype,
    )  # fmt: skip
    return Case(label, ((shape, dtype),), emit, same)


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
            _text(kind, shape=shape, order=order, dtype=dtype),
            ((shape, dtype),),
            lambda emit, x: emit(op.permute_dims(x, list(order))),
            lambda x: x.permute(*order),
        )
    if kind == "concat":
        more = draw(extents())
        other = tuple(more if place == axis else each for place, each in enumerate(shape))
        return Case(
            _text(kind, shape=shape, other=other, axis=axis, dtype=dtype),
            ((shape, dtype), (other, dtype)),
            lambda emit, x, y: emit(op.concat([x, y], axis)),
            lambda x, y: torch.cat([x, y], axis),
        )
    if kind == "take":
        count = draw(extents())
        # Drawn indices are small: all rows are there.
        shape = (64, *shape[1:])
        return Case(
            _text(kind, shape=shape, count=count, dtype=dtype),
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
            _text(kind, shape=shape, axis=axis, begin=begin, end=end, step=step, dtype=dtype),
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
            _text(kind, shape=shape, widths=widths, dtype=dtype),
            ((shape, dtype),),
            lambda emit, x: emit(op.nn.pad(x, widths, "constant", 0.0)),
            lambda x: torch.nn.functional.pad(x, pairs),
        )
    count = prod(shape)
    rows = draw(st.sampled_from([each for each in (1, 2, 3, 4, 7, 8) if count % each == 0]))
    return Case(
        _text(kind, shape=shape, rows=rows, dtype=dtype),
        ((shape, dtype),),
        lambda emit, x: emit(op.reshape(x, (rows, count // rows))),
        lambda x: x.reshape(rows, -1),
    )


KINDS: dict[str, st.SearchStrategy[Case]] = {
    "elementwise": elementwise(),
    "reduction": reduction(),
    "softmax": softmax(),
    "norm": norm(),
    "product": product(),
    "convolution": convolution(),
    "pooling": pooling(),
    "movement": movement(),
}
"""By the kind of function."""
