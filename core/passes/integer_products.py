"""The step that multiplies quantised tensors by the processor's instruction for bytes.

A quantised layer multiplies the integers of its input, less a zero point, by those of its weights.
Written out in float32, each product takes four bytes, and a multiplication of its own. Here the
integers are multiplied as they are and summed in 32 bits, and the zero point is subtracted from the
sums: times the sum of each filter's weights. The sums are the same integers.

The instruction adds products of four adjacent bytes to a sum, so that convolutions read and write
the channels last. What follows them, element by element, has that layout as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import ir, relax, te, tirx

MULTIPLY_INTEGERS = "MultiplyIntegers"

_FUSED_WITH_ELEMENTS = 4
"""``kOutEWiseFusable`` of TVM: the scaling of the sums is fused into the function."""

_TERMS, _LANES = 4, 16
"""Number of products that the instruction adds to a sum, and number of its sums."""

_LONGEST = 1 << 16
"""Number of products of bytes whose sum is sure to fit into 32 bits."""

_MIDDLE = 128
"""Difference between an unsigned byte and the signed one of the same order."""

_CONVOLUTIONS = {
    "relax.nn.conv1d": ("NCW", "OIW"),
    "relax.nn.conv2d": ("NCHW", "OIHW"),
    "relax.nn.conv3d": ("NCDHW", "OIDHW"),
}

_ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        *("abs", "add", "astype", "ceil", "clip", "divide", "equal", "erf", "exp", "floor"),
        *("greater", "greater_equal", "isnan", "less", "less_equal", "log", "logical_and"),
        *("logical_not", "logical_or", "maximum", "minimum", "multiply", "negative", "nn.gelu"),
        *("nn.leakyrelu", "nn.relu", "nn.silu", "not_equal", "power", "round", "rsqrt"),
        *("sigmoid", "sign", "sqrt", "square", "subtract", "tanh", "trunc", "where"),
    )
)
"""Operators whose result has the layout of their arguments."""

_POOLS: Mapping[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    f"relax.nn.{name}": (getattr(relax.op.nn, name), names)
    for name, names in {
        **dict.fromkeys(
            ("max_pool2d", "avg_pool2d"),
            ("pool_size", "strides", "padding", "dilation", "ceil_mode", "count_include_pad"),
        ),
        "adaptive_avg_pool2d": ("output_size",),
    }.items()
}
"""Operators on windows, with their attributes besides the layout."""


def multiply_integers(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose products of integers with constants are sums in 32 bits.

    The variables stay. On a processor without the instruction, nothing changes.
    """
    if not can_multiply_integers():
        return module
    builder = relax.BlockBuilder(module)
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            changed = _Rewriting(function, builder).changed()
            if changed is not None:
                builder.update_func(variable, changed)
    return builder.get()


def can_multiply_integers() -> bool:
    """Return whether the target of the module has the instruction."""
    target = tvm.target.Target.current(allow_none=True)
    has = tvm.get_global_func("target.target_has_feature")
    return target is not None and bool(has("avx512vnni", target))


def integer_products(function: relax.Function) -> Iterator[str]:
    """Yield the names of the products of a function that the instruction computes."""
    rewriting = _Rewriting(function, relax.BlockBuilder())
    for binding in rewriting.bindings():
        if rewriting.factors(binding.value) is not None:
            yield str(binding.var.name)


@dataclass(frozen=True)
class _Factors:
    """The integers that are multiplied.

    `data`: a tensor of bytes. `zero`: subtracted from each: a number, or a tensor of one integer.
    `weights`: constants of signed bytes.
    """

    data: Any
    zero: Any
    weights: np.ndarray[Any, Any]


class _Rewriting:
    """One function, binding by binding.

    `_last`: by variables, those of the same values with the channels last.
    """

    def __init__(self, function: relax.Function, builder: relax.BlockBuilder) -> None:
        self._function = function
        self._builder = builder
        self._values: dict[Any, Any] = {}
        self._last: dict[Any, Any] = {}
        self._made: list[Any] = []
        self._var: type = relax.DataflowVar
        for binding in self.bindings():
            self._values[binding.var] = binding.value

    def bindings(self) -> Iterator[Any]:
        for block in self._function.body.blocks:
            yield from (each for each in block.bindings if isinstance(each, relax.VarBinding))

    def changed(self) -> relax.Function | None:
        blocks, is_changed = [], False
        for block in self._function.body.blocks:
            is_dataflow = isinstance(block, relax.DataflowBlock)
            self._var = relax.DataflowVar if is_dataflow else relax.Var
            # Variables of a dataflow block are not visible outside.
            self._made, self._last = [], {}
            for binding in block.bindings:
                value = self._value(binding) if isinstance(binding, relax.VarBinding) else None
                is_changed |= value is not None
                if value is not None:
                    value = self._builder.normalize(value)
                    binding = relax.VarBinding(binding.var, value)
                self._made.append(binding)
            blocks.append(type(block)(self._made))
        if not is_changed:
            return None
        own = self._function
        body = relax.SeqExpr(blocks, own.body.body)
        made = relax.Function(own.params, body, own.ret_ty, own.is_pure, own.attrs)
        return relax.analysis.remove_all_unused(made)

    def _emit(self, value: Any, name: str) -> Any:
        """Bind a value to a new variable, and return it."""
        value = self._builder.normalize(value)
        variable = self._var(name, value.ty)
        self._made.append(relax.VarBinding(variable, value))
        return variable

    def _emit_last(self, value: Any, name: str) -> Any:
        """Bind a value with the channels last to a new variable, and return it.

        It has the name of the variable of the same value, by which the two are matched, unless all
        sizes are the same: its type would not tell that the channels are last.
        """
        value = self._builder.normalize(value)
        extents = getattr(value.ty.shape, "values", ())
        sizes = {int(each) for each in extents[1:] if isinstance(each, tirx.IntImm)}
        return self._emit(value, f"{name}_last" if len(sizes) == 1 < len(extents) - 1 else name)

    def _value(self, binding: Any) -> Any:
        """Return the new value of a variable; ``None`` if it keeps its own."""
        value, name = binding.value, str(binding.var.name)
        factors = self.factors(value)
        if factors is not None and _name(value) == "relax.matmul":
            return self._product(factors, name, value)
        last = None
        if factors is not None:
            last = self._convolution(factors, name, value)
        elif self._is_last(value):
            last = self._with_channels_last(value, name)
        if last is None:
            return self._of_one_place(value)
        self._last[binding.var] = last
        rank = len(last.ty.shape)
        return relax.op.permute_dims(last, [0, rank - 1, *range(1, rank - 1)])

    # Products.

    def factors(self, value: Any) -> _Factors | None:
        """Return the factors of a product or convolution of integers; ``None`` for another one."""
        is_product = _name(value) == "relax.matmul"
        if not is_product and _name(value) not in _CONVOLUTIONS:
            return None
        if str(value.ty.dtype) not in ("float32", "float64", "int32"):
            return None
        integers, weights = self._integers(value.args[0]), self._array(value.args[1])
        if integers is None or weights is None or weights.min() < -128 or weights.max() > 127:
            return None
        data, zero = integers
        if not isinstance(data.ty.shape, relax.ShapeExpr):
            return None
        if is_product:
            last = data.ty.shape.values[-1]
            fits = weights.ndim == 2 and _is_number(last, weights.shape[0])
            fits = fits and weights.shape[0] < _LONGEST
        else:
            fits = _is_usual(value) and weights[0].size < _LONGEST
            # What surrounds the input is the byte that stands for 0.
            low, high = (-128, 127) if str(data.ty.dtype) == "int8" else (0, 255)
            is_byte = isinstance(zero, int) and low <= zero <= high
            fits = fits and (is_byte or not any(map(int, value.attrs.padding)))
        return _Factors(data, zero, weights.astype("int8")) if fits else None

    def _integers(self, value: Any) -> tuple[Any, Any] | None:
        """Return the bytes that a value is computed from, and the zero point that they are less."""
        cast: Any = self._values.get(value)
        zero: Any = 0
        if _name(cast) == "relax.subtract":
            zero = self._zero(cast.args[1])
            cast = self._values.get(cast.args[0])
        if zero is None or _name(cast) != "relax.astype":
            return None
        (data,) = cast.args
        return (data, zero) if isinstance(data, relax.Var) and _is_of_bytes(data) else None

    def _zero(self, value: Any) -> Any:
        """Return a zero point: a number, or a tensor of one integer; ``None`` if it is neither."""
        array = self._array(value)
        if array is not None:
            return int(array.item()) if array.size == 1 else None
        source = value
        while _name(self._values.get(source)) in ("relax.reshape", "relax.expand_dims"):
            source = self._values[source].args[0]
        cast: Any = self._values.get(source)
        if _name(cast) != "relax.astype" or not isinstance(value.ty.shape, relax.ShapeExpr):
            return None
        is_one = all(_is_number(each, 1) for each in value.ty.shape.values)
        is_integer = str(cast.args[0].ty.dtype) in ("uint8", "int8", "int32")
        return value if is_one and is_integer else None

    def _array(self, value: Any) -> Any:
        """Return the integers that are computed from constants; ``None`` for other values."""
        if isinstance(value, ir.GenericConst):
            is_integer = str(value.ty.dtype) in ("int8", "uint8", "int32")
            array: Any = value.value.numpy() if is_integer or value.ty.ndim == 0 else None
            is_whole = array is not None and bool((array == np.rint(array)).all())
            return array.astype("int64") if is_whole else None
        call: Any = self._values.get(value)
        if _name(call) in ("relax.astype", "relax.reshape", "relax.expand_dims"):
            array = self._array(call.args[0])
            if array is None or (array.astype(str(call.ty.dtype)) != array).any():
                return None
            return array.reshape([int(each) for each in call.ty.shape.values])
        if _name(call) == "relax.permute_dims":
            array = self._array(call.args[0])
            axes = call.attrs.axes
            return None if array is None else array.transpose(axes and [int(each) for each in axes])
        if _name(call) == "relax.subtract":
            parts = [self._array(each) for each in call.args]
            return None if any(each is None for each in parts) else parts[0] - parts[1]
        return None

    def _product(self, factors: _Factors, name: str, value: Any) -> Any:
        sums = self._sums(factors, factors.data, factors.weights, name, ((), (), ()))
        return relax.op.astype(sums, value.ty.dtype)

    def _convolution(self, factors: _Factors, name: str, value: Any) -> Any:
        attrs, count = value.attrs, len(value.attrs.strides)
        data = self._with_last(factors.data)
        padding = tuple(map(int, attrs.padding))
        options = (padding, tuple(map(int, attrs.strides)), tuple(map(int, attrs.dilation)))
        # Filters come last, and the channels before them, if each filter has all of them.
        weights = factors.weights.transpose(*range(2, count + 2), 1, 0)
        if int(attrs.groups) > 1:
            weights = weights.squeeze(-2)
        sums = self._sums(factors, data, weights, name, options)
        return self._emit_last(relax.op.astype(sums, value.ty.dtype), name)

    def _sums(
        self, factors: _Factors, data: Any, weights: np.ndarray[Any, Any], name: str, options: Any
    ) -> Any:
        """Return the sums of products in 32 bits."""
        zero = factors.zero
        if str(data.ty.dtype) == "int8":
            wide = self._emit(relax.op.astype(data, "int16"), f"{name}_wide")
            wide = self._emit(relax.op.add(wide, relax.const(_MIDDLE, "int16")), f"{name}_moved")
            data = self._emit(relax.op.astype(wide, "uint8"), f"{name}_bytes")
        moved = _MIDDLE if str(factors.data.ty.dtype) == "int8" else 0
        total = weights.reshape(-1, weights.shape[-1]).sum(0, dtype="int32")
        fill = zero + moved if isinstance(zero, int) else moved
        count, filters = len(options[1]), weights.shape[-1]
        if weights.ndim == count + 1:
            array, filters = weights, 0
        else:
            missing = -weights.shape[-2] % _TERMS, -filters % _LANES if count else 0
            array = np.pad(weights, [(0, 0)] * count + [(0, each) for each in missing])
        call = self._builder.call_te(
            te_products,
            data,
            relax.const(np.ascontiguousarray(array), "int8"),
            filters,
            *options,
            fill,
            primfunc_name_hint="integer_products" if filters else "channel_products",
            primfunc_attrs={"op_pattern": _FUSED_WITH_ELEMENTS},
        )
        sums = self._emit(call, f"{name}_sums")
        if isinstance(zero, int):
            less: Any = relax.const(total * (zero + moved), "int32") if zero + moved else None
        else:
            one = self._emit(relax.op.astype(zero, "int32"), f"{name}_zero")
            if moved:
                one = self._emit(relax.op.add(one, relax.const(moved, "int32")), f"{name}_zero")
            less = self._emit(relax.op.multiply(one, relax.const(total, "int32")), f"{name}_less")
        if less is None:
            return sums
        return self._emit(relax.op.subtract(sums, less), f"{name}_shifted")

    # The layout of what follows.

    def _is_last(self, value: Any) -> bool:
        args = value.args if isinstance(value, relax.Call) else ()
        return any(each in self._last for each in (*args, *self._parts(args)))

    def _parts(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return the members of a tuple that is the only argument."""
        if len(args) != 1:
            return ()
        whole = args[0] if isinstance(args[0], relax.Tuple) else self._values.get(args[0])
        return tuple(whole.fields) if isinstance(whole, relax.Tuple) else ()

    def _with_last(self, value: Any) -> Any:
        """Return a variable of the same values with the channels last."""
        if value in self._last:
            return self._last[value]
        rank = len(value.ty.shape)
        moved = relax.op.permute_dims(value, [0, *range(2, rank), 1])
        self._last[value] = self._emit(moved, f"{value.name}_last")
        return self._last[value]

    def _with_channels_last(self, value: Any, name: str) -> Any:
        """Return the result of an operator with the channels last; ``None`` if it has none."""
        operator = _name(value)
        if operator in _ELEMENTWISE:
            rank = value.ty.ndim
            args = [self._argument(each, rank) for each in value.args]
            if any(each is None for each in args):
                return None
            return self._emit_last(relax.Call(value.op, args, value.attrs), name)
        if operator in _POOLS:
            make, names = _POOLS[operator]
            given = {each: getattr(value.attrs, each) for each in names}
            (data,) = value.args
            cast: Any = self._values.get(data)
            is_largest = operator == "relax.nn.max_pool2d" and _name(cast) == "relax.astype"
            if is_largest and cast.args[0] in self._last and _is_of_bytes(cast.args[0]):
                # The largest of some integers is one of them.
                found = make(self._last[cast.args[0]], **given, layout="NHWC")
                found = self._emit(found, f"{name}_bytes")
                return self._emit_last(relax.op.astype(found, value.ty.dtype), name)
            if operator != "relax.nn.max_pool2d" and self._integers(data) is None:
                # Sums of integers alone are the same in any order.
                return None
            return self._emit_last(make(self._last[data], **given, layout="NHWC"), name)
        if operator == "relax.concat":
            parts = self._parts(value.args)
            rank, axis = value.ty.ndim, int(value.attrs.axis)
            axis %= rank
            if not parts or not all(isinstance(each, relax.Var) for each in parts):
                return None
            parts = tuple(map(self._with_last, parts))
            axis = {0: 0, 1: rank - 1}.get(axis, axis - 1)
            return self._emit_last(relax.op.concat(relax.Tuple(parts), axis), name)
        return None

    def _argument(self, value: Any, rank: int) -> Any:
        """Return an argument of an elementwise operator of `rank` axes with the channels last."""
        if value in self._last:
            return self._last[value] if value.ty.ndim == rank else None
        if not isinstance(value, relax.Expr) or not isinstance(value.ty, relax.TensorType):
            return value
        if value.ty.ndim == 0:
            return value
        if isinstance(value, ir.GenericConst):
            array = value.value.numpy()
            array = np.moveaxis(array.reshape((1,) * (rank - array.ndim) + array.shape), 1, -1)
            return relax.const(np.ascontiguousarray(array), str(value.ty.dtype))
        return self._with_last(value) if value.ty.ndim == rank else None

    def _of_one_place(self, value: Any) -> Any:
        """Return the reshaping of channels of a single place, whose layouts are the same."""
        if _name(value) != "relax.reshape" or value.args[0] not in self._last:
            return None
        data = self._last[value.args[0]]
        places = data.ty.shape.values[1:-1]
        if not all(_is_number(each, 1) for each in places):
            return None
        return relax.op.reshape(data, value.args[1])


def _name(value: Any) -> str:
    return str(getattr(value.op, "name", "")) if isinstance(value, relax.Call) else ""


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == number


def _is_of_bytes(value: Any) -> bool:
    return str(value.ty.dtype) in ("uint8", "int8")


def _is_usual(call: Any) -> bool:
    """Return whether a convolution has the usual layout, and known sizes.

    It has one group, or a filter for each channel.
    """
    groups = int(call.attrs.groups)
    attrs, usual = call.attrs, _CONVOLUTIONS[str(call.op.name)]
    own = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout or usual[0])
    sizes = call.args[0].ty.shape
    return (
        own == (*usual, usual[0])
        and isinstance(sizes, relax.ShapeExpr)
        and all(isinstance(each, tirx.IntImm) for each in sizes.values[1:])
        and (groups == 1 or groups == int(sizes.values[1]) == int(call.ty.shape.values[1]))
    )


def te_products(
    data: te.Tensor,
    weights: te.Tensor,
    filters: int,
    padding: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    fill: int,
) -> te.Tensor:
    """Return the sums of products of bytes; the channels are last, and in the weights, filters.

    Those of convolutions, where there are strides. The weights may be padded to more channels, and
    more than `filters`. Without `filters`, each channel has one of its own.

    `fill`: what stands around the input.
    """
    count = len(strides)
    *shape, whole = (int(each) for each in weights.shape)
    kernel, channels = shape[:count], shape[-1] if filters else whole
    read, outer, sizes = _surrounded(data, channels, padding, fill)
    places = zip(sizes, kernel, strides, dilation, strict=True)
    result = [(size - (taps - 1) * apart - 1) // step + 1 for size, taps, step, apart in places]
    axes = [te.reduce_axis((0, tirx.IntImm("int64", each)), name="tap") for each in kernel]
    # A kernel of one value is no axis.
    taps = [axis if size > 1 else 0 for axis, size in zip(axes, kernel, strict=True)]
    summed = [axis for axis, size in zip(axes, kernel, strict=True) if size > 1]
    if filters:
        summed.append(te.reduce_axis((0, tirx.IntImm("int64", channels)), name="channel"))

    def product(*at: Any) -> Any:
        own, place, last = at[: len(outer)], at[len(outer) : -1], at[-1]
        places = zip(place, strides, taps, dilation, strict=True)
        place = tuple(each * step + tap * apart for each, step, tap, apart in places)
        term, filter = (summed[-1], [summed[-1], last]) if filters else (last, [last])
        factors = read[*own, *place, term], weights[*taps, *filter]
        one, other = (each.astype("int32") for each in factors)
        return te.sum(one * other, axis=summed)

    outputs = [tirx.IntImm("int64", each) for each in (*result, whole)]
    sums = te.compute((*outer, *outputs), product, name="products")
    if filters in (0, whole):
        return sums
    outputs[-1] = tirx.IntImm("int64", filters)
    return te.compute((*outer, *outputs), lambda *at: sums[at], name="sums")


def _surrounded(
    data: te.Tensor, channels: int, padding: tuple[int, ...], fill: int
) -> tuple[te.Tensor, list[Any], list[int]]:
    """Return the padded input of a convolution, its outer extents, and its sizes."""
    count = len(padding) // 2
    *rest, own_channels = data.shape
    outer, sizes = rest[: len(rest) - count], [int(each) for each in rest[len(rest) - count :]]
    before = padding[:count]
    places = zip(before, sizes, padding[count:], strict=True)
    around = [*(sum(each) for each in places), channels]
    own = [*sizes, int(own_channels)]
    if around == own:
        return data, outer, sizes

    def padded(*at: Any) -> Any:
        first, place = at[: len(outer)], at[len(outer) :]
        inside, moved = [], []
        for each, less, size, extent in zip(place, (*before, 0), own, around, strict=True):
            inside += [each >= less] if less else []
            inside += [each < size + less] if extent > size + less else []
            moved.append(each - less)
        outside = tirx.const(fill, data.dtype)
        return tirx.if_then_else(tirx.all(*inside), data[*first, *moved], outside)

    extents = [tirx.IntImm("int64", each) for each in around]
    return te.compute((*outer, *extents), padded, name="padded"), outer, around[:-1]
