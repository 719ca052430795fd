"""Arithmetic between two values, with torch's promotion of dtypes."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    WIDE_FLOATS,
    Tensors,
    broadcast,
    like,
    one_of,
)
from tests.core.lowering.operator_table.entries import Entry

_PAIR = {"x": Tensors(NUMBERS), "y": broadcast("x"), "n": one_of(2, -3, 0.5)}
_MIXED = {"x": Tensors(NUMBERS), "y": broadcast("x", ALL), "n": one_of(2, -3, 0.5)}
_FLOAT_PAIR = {"x": Tensors(FLOATS), "y": broadcast("x", low=0.5)}
_DIVISION = {
    "x": Tensors(NUMBERS, low=-9, high=9),
    "y": broadcast("x", low=1, high=4),
    "n": one_of(3, -4),
}


ENTRIES = (
    Entry(
        "add",
        _PAIR,
        "x + y; torch.add(x, y, alpha=2); x.add(y, alpha=3); n + x; x.clone().add_(y); "
        "operator.iadd(x.clone(), y); torch.add(input=x, other=y); "
        "aten.add.Tensor(x, y, alpha=2); aten.add.Scalar(x, n); x.__radd__(2)",
    ),
    Entry("add of mixed dtypes", _MIXED, "x + y; y + x; x.add(y)"),
    Entry(
        "add of bools",
        {"x": Tensors(("bool",)), "y": broadcast("x")},
        "x + y; torch.add(x, y); x + 2",
    ),
    Entry(
        "sub",
        _PAIR,
        "x - y; torch.sub(x, y, alpha=2); x.subtract(y); n - x; x.clone().sub_(y, alpha=2); "
        "operator.isub(x.clone(), y); aten.sub.Tensor(x, y); aten.sub.Scalar(x, 2)",
    ),
    Entry(
        "rsub",
        _PAIR,
        "torch.rsub(x, y); torch.rsub(x, 3); aten.rsub.Scalar(x, 3); torch.rsub(x, y, alpha=2)",
    ),
    Entry(
        "mul",
        _PAIR,
        "x * y; torch.mul(x, y); x.multiply(y); n * x; x.clone().mul_(y); aten.mul.Tensor(x, y); "
        "aten.mul.Scalar(x, 2)",
    ),
    Entry("mul of mixed dtypes", _MIXED, "x * y; torch.mul(y, x)"),
    Entry(
        "div",
        _DIVISION,
        "x / y; torch.div(x, y); x.true_divide(y); x / n; 2 / y; aten.div.Tensor(x, y); "
        "torch.divide(x, y, rounding_mode='trunc'); torch.div(x, y, rounding_mode='floor'); "
        "x.div(n, rounding_mode='floor'); x.div(n, rounding_mode='trunc'); "
        "aten.div.Tensor_mode(x, y, rounding_mode='floor')",
    ),
    Entry(
        "div in place",
        {"x": Tensors(FLOATS), "y": broadcast("x", low=0.5)},
        "x.clone().div_(y); operator.itruediv(x.clone(), y); x.clone().div_(2)",
    ),
    Entry(
        "floor_divide",
        _DIVISION,
        "x // y; torch.floor_divide(x, y); x.floor_divide(n); x.clone().floor_divide_(y); 7 // y; "
        "aten.floor_divide.default(x, y)",
    ),
    Entry(
        "remainder",
        _DIVISION,
        "x % y; torch.remainder(x, y); x.remainder(n); x % n; x.clone().remainder_(y); 7 % y; "
        "aten.remainder.Tensor(x, y); aten.remainder.Scalar(x, n)",
    ),
    Entry(
        "fmod",
        _DIVISION,
        "torch.fmod(x, y); x.fmod(n); torch.fmod(x, n); x.clone().fmod_(y); "
        "aten.fmod.Tensor(x, y); aten.fmod.Scalar(x, n)",
    ),
    Entry(
        "pow",
        {
            "x": Tensors(FLOATS, low=0.3, high=2),
            "y": broadcast("x", low=-1, high=2),
            "n": one_of(-2, 0.5, 2, 3, 0, 1.7),
        },
        "x**n; torch.pow(x, n); x.pow(y); x**y; 2**x; torch.pow(2.0, x); x.clone().pow_(2); "
        "aten.pow.Tensor_Scalar(x, n); aten.pow.Tensor_Tensor(x, y); aten.pow.Scalar(2, x)",
    ),
    Entry(
        "pow of negative numbers",
        {"x": Tensors(FLOATS, low=-2, high=2), "n": one_of(2, 3, 4, 5)},
        "x**n; torch.pow(x, n)",
    ),
    Entry(
        "pow of integers",
        {"x": Tensors(SIGNED, low=-3, high=3), "n": one_of(0, 1, 2, 3, 4)},
        "x**n; torch.pow(x, n); x.pow(n); x**0.5; 2.0**x",
        {"x ** (x * x)": "it is a power of integers whose exponent is a tensor or negative"},
    ),
    Entry(
        "float_power",
        {"x": Tensors(("float32", "int64"), low=1, high=3)},
        "torch.float_power(x, 2); x.float_power(x)",
    ),
    Entry(
        "maximum",
        _PAIR,
        "torch.maximum(x, y); x.maximum(y); torch.max(x, y); x.max(y); torch.max(x, other=y); "
        "aten.maximum.default(x, y); torch.fmax(x, y)",
    ),
    Entry(
        "minimum",
        _PAIR,
        "torch.minimum(x, y); x.minimum(y); torch.min(x, y); x.min(y); "
        "aten.minimum.default(x, y); torch.fmin(x, y)",
    ),
    Entry(
        "maximum with NaN",
        {"x": Tensors(WIDE_FLOATS, rank=(1, 2)), "y": like("x")},
        "torch.maximum(torch.sqrt(x), y); torch.maximum(y, torch.sqrt(x)); "
        "torch.minimum(torch.sqrt(x), y); torch.clamp(torch.sqrt(x), -1, 1); "
        "torch.sqrt(x).clamp(min=0); F.hardtanh(torch.sqrt(x)); F.relu6(torch.sqrt(x))",
    ),
    Entry(
        "zero and infinity as numbers",
        {"x": Tensors(FLOATS, rank=(0, 2))},
        "torch.sqrt(x) * 0; -0.0 * torch.sqrt(x); x / 0; x / 0 * 0; x / -0.0; 0 / (x * 0); "
        "x // 0; x % 0.0; torch.fmod(x, 0); torch.div(x, 0, rounding_mode='trunc'); "
        "x.clone().mul_(0); x.clone().div_(0); torch.add(x, torch.sqrt(x), alpha=0); "
        "torch.sqrt(x) - torch.sqrt(x); (x * math.inf) * 0; x / 0 - math.inf; "
        "F.leaky_relu(torch.sqrt(x), 0.0); torch.where(x > 0, x, torch.sqrt(x) * 0); "
        "aten.mul.Scalar(torch.sqrt(x), 0); aten.div.Scalar(x, 0)",
    ),
    Entry(
        "integers divided by zero",
        {"x": Tensors(SIGNED, rank=(0, 2))},
        "x / 0; x / 0.0; x * 0; x * 0.0; 0 / x",
    ),
    Entry(
        "atan2",
        {"x": Tensors((*FLOATS, "int64")), "y": broadcast("x", low=1)},
        "torch.atan2(x, y); x.atan2(y); torch.arctan2(x, y); aten.atan2.default(x, y)",
    ),
    Entry("hypot", _FLOAT_PAIR, "torch.hypot(x, y); x.hypot(y)"),
    Entry(
        "logaddexp",
        _FLOAT_PAIR,
        "torch.logaddexp(x, y); x.logaddexp(y); torch.logaddexp2(x, y); "
        "aten.logaddexp.default(x, y)",
    ),
    Entry(
        "xlogy",
        {"x": Tensors(WIDE_FLOATS, low=0), "y": broadcast("x", low=0.5)},
        "torch.xlogy(x, y)",
        loose_export=True,
    ),
    Entry(
        "copysign",
        _FLOAT_PAIR,
        "torch.copysign(x, y); x.copysign(-torch.relu(y)); torch.copysign(x, -2.0); "
        "aten.copysign.Tensor(x, y)",
    ),
    Entry("ldexp", _FLOAT_PAIR, "torch.ldexp(x, torch.round(y)); x.ldexp(y)"),
    Entry(
        "addcmul",
        {"x": Tensors(FLOATS), "y": like("x"), "z": broadcast("x")},
        "torch.addcmul(x, y, z, value=0.5); x.addcmul(y, z); x.clone().addcmul_(y, z, value=2); "
        "aten.addcmul.default(x, y, z)",
    ),
    Entry(
        "addcdiv",
        {"x": Tensors(FLOATS), "y": like("x"), "z": broadcast("x", low=1)},
        "torch.addcdiv(x, y, z, value=0.5); x.addcdiv(y, z); x.clone().addcdiv_(y, z, value=2); "
        "aten.addcdiv.default(x, y, z)",
    ),
    Entry(
        "lerp",
        {"x": Tensors(FLOATS), "y": like("x"), "w": like("x", low=0, high=1)},
        "torch.lerp(x, y, 0.3); x.lerp(y, w); x.clone().lerp_(y, 0.8); "
        "aten.lerp.Scalar(x, y, 0.25); aten.lerp.Tensor(x, y, w)",
    ),
    Entry(
        "broadcast_tensors",
        {"x": Tensors(ALL), "y": broadcast("x")},
        "torch.broadcast_tensors(x, y)[1] + 0",
        loose_export=True,
    ),
    Entry(
        "bitwise_and",
        {"x": Tensors((*INTEGERS, "bool"), low=0, high=7), "y": broadcast("x", low=0, high=7)},
        "x & y; torch.bitwise_and(x, y); x.bitwise_and(y); x.clone().bitwise_and_(y); "
        "operator.iand(x.clone(), y); aten.bitwise_and.Tensor(x, y)",
    ),
    Entry(
        "bitwise_or",
        {"x": Tensors((*INTEGERS, "bool"), low=0, high=7), "y": broadcast("x", low=0, high=7)},
        "x | y; torch.bitwise_or(x, y); x.bitwise_or(y); operator.ior(x.clone(), y); "
        "aten.bitwise_or.Tensor(x, y)",
    ),
    Entry(
        "bitwise_xor",
        {"x": Tensors((*INTEGERS, "bool"), low=0, high=7), "y": broadcast("x", low=0, high=7)},
        "x ^ y; torch.bitwise_xor(x, y); x.bitwise_xor(y); operator.ixor(x.clone(), y); "
        "aten.bitwise_xor.Tensor(x, y)",
    ),
    Entry(
        "bitwise operators with numbers",
        {"x": Tensors(INTEGERS, low=0, high=7)},
        "x & 3; x | 4; x ^ 5; 3 & x",
    ),
    Entry(
        "left_shift",
        {"x": Tensors(SIGNED, low=-7, high=7), "n": like("x", low=0, high=3)},
        "x << 2; torch.bitwise_left_shift(x, n); x << n; x.bitwise_left_shift(n); "
        "aten.bitwise_left_shift.Tensor(x, n)",
    ),
    Entry(
        "right_shift",
        {"x": Tensors(SIGNED, low=-60, high=60), "n": like("x", low=0, high=3)},
        "x >> 2; torch.bitwise_right_shift(x, n); x >> n; x.bitwise_right_shift(n); "
        "aten.bitwise_right_shift.Tensor(x, n)",
    ),
)
