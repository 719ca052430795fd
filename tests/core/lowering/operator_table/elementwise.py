"""Functions of one tensor, element by element, and conversions."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    BOOL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    Tensors,
    broadcast,
    one_of,
)
from tests.core.lowering.operator_table.entries import Entry

_BY_RANGE = {
    (-4, 4): ("sin", "cos", "tanh", "sigmoid", "atan", "exp", "exp2", "expm1", "sinh", "cosh"),
    (-1.3, 1.3): ("tan",),
    (-3, 3.001): ("erf", "asinh"),
    (-0.95, 0.95): ("acos", "asin", "atanh"),
    (0.1, 6): ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log1p", "lgamma", "digamma"),
    (1.05, 6): ("acosh",),
    (-1, 1.5): ("erfc", "sinc"),
    (-0.99, 0.99): ("erfinv",),
}
_WHOLE = {"sin", "cos", "tanh", "sigmoid", "atan", "exp", "sqrt", "log", "erf", "rsqrt", "exp2"}
"""Functions that are tested on integers too, which torch computes in float32."""


def _function(name: str, low: float, high: float) -> Entry:
    forms = (f"torch.{name}(x)", f"x.{name}()", f"torch.{name}(input=x)", f"aten.{name}.default(x)")
    if name not in _WHOLE:
        forms = (*forms, f"x.clone().{name}_()")
    if name in ("sigmoid", "tanh"):
        forms = (*forms, f"F.{name}(x)", f"nn.{name.title()}()(x)")
    whole = name in _WHOLE
    dtypes = (*FLOATS, "int64", "bool") if whole else FLOATS
    least = low if low <= 0 or not whole else 1
    arguments = {"x": Tensors(dtypes, low=least, high=high)}
    return Entry(name, arguments, "; ".join(forms))


ENTRIES = (
    *(_function(name, *bounds) for bounds, names in _BY_RANGE.items() for name in names),
    Entry(
        "abs",
        {"x": Tensors(NUMBERS)},
        "torch.abs(x); x.abs(); abs(x); x.clone().abs_(); x.absolute(); aten.abs.default(x)",
    ),
    Entry(
        "neg",
        {"x": Tensors(NUMBERS)},
        "-x; torch.neg(x); x.negative(); x.clone().neg_(); aten.neg.default(x)",
    ),
    Entry("positive", {"x": Tensors(NUMBERS)}, "torch.positive(x) + 1; x.positive() + 1"),
    Entry(
        "sign",
        {"x": Tensors(NUMBERS, low=-2, high=2)},
        "torch.sign(x); x.sign(); x.clone().sign_(); torch.sgn(x); aten.sign.default(x)",
    ),
    Entry("square", {"x": Tensors(NUMBERS)}, "torch.square(x); x.square(); x.clone().square_()"),
    Entry("frac", {"x": Tensors(FLOATS)}, "torch.frac(x); x.frac()"),
    Entry(
        "ceil",
        {"x": Tensors(NUMBERS)},
        "torch.ceil(x) + 0; x.ceil() * 1; x.clone().ceil_(); aten.ceil.default(x)",
    ),
    Entry(
        "floor",
        {"x": Tensors(NUMBERS)},
        "torch.floor(x) + 0; x.floor() * 1; x.clone().floor_(); aten.floor.default(x)",
    ),
    Entry(
        "trunc",
        {"x": Tensors(NUMBERS)},
        "torch.trunc(x) + 0; x.trunc() * 1; torch.fix(x); aten.trunc.default(x)",
    ),
    Entry(
        "round",
        {"x": Tensors(FLOATS)},
        "torch.round(x); x.round(); torch.round(torch.floor(x) / 2); aten.round.default(x)",
        {"torch.round(x, decimals=2)": "it rounds to decimals"},
    ),
    Entry(
        "logit",
        {"x": Tensors(FLOATS, low=0.05, high=0.95)},
        "torch.logit(x); x.logit(); torch.logit(x, eps=0.2); aten.logit.default(x, 0.1)",
    ),
    Entry(
        "isnan",
        {"x": Tensors(FLOATS)},
        "torch.isnan(torch.sqrt(x)); torch.log(x).isnan(); aten.isnan.default(x.sqrt())",
    ),
    Entry(
        "isinf",
        {"x": Tensors(FLOATS)},
        "torch.isinf(x / torch.relu(x)); (1 / torch.relu(x)).isinf(); torch.isinf(x)",
    ),
    Entry(
        "isfinite",
        {"x": Tensors(FLOATS)},
        "torch.isfinite(x / torch.relu(x)); (1 / torch.relu(x)).isfinite()",
    ),
    Entry("isnan of integers", {"x": Tensors(INTEGERS)}, "torch.isnan(x); torch.isfinite(x)"),
    Entry(
        "isposinf",
        {"x": Tensors(("float32", "float64"))},
        "torch.isposinf(1 / torch.relu(x)); torch.isneginf(-1 / torch.relu(x))",
    ),
    Entry(
        "nan_to_num",
        {"x": Tensors(("float32", "float64"))},
        "torch.nan_to_num(torch.sqrt(x)); (1 / torch.relu(x)).nan_to_num(0.5, 7.0, -7.0)",
    ),
    Entry(
        "signbit",
        {"x": Tensors(NUMBERS)},
        "torch.signbit(x); (-torch.relu(x)).signbit(); torch.signbit(-torch.sqrt(x))",
    ),
    Entry(
        "gamma and error functions of special values",
        {"x": Tensors(FLOATS)},
        "torch.lgamma(x); torch.lgamma(torch.round(x)); torch.digamma(x); "
        "torch.digamma(torch.round(x)); torch.lgamma(1 / torch.relu(x)); "
        "torch.digamma(torch.sqrt(x)); torch.erfinv(torch.sign(x)); torch.erfinv(x)",
        tolerance=1e-3,
    ),
    Entry(
        "fake_quantize",
        {"x": Tensors(("float32",), (3, 4)), "s": Tensors(("float32",), (4,), low=0.1, high=2)},
        "torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -16, 15); "
        "torch.fake_quantize_per_tensor_affine(x, s[0], torch.tensor(2, dtype=torch.int32), 0, 7); "
        "torch.fake_quantize_per_channel_affine(x, s, torch.arange(4, dtype=torch.int32), 1, 0, 9); "
        "torch.fake_quantize_per_channel_affine(1 / torch.relu(x), s, s.int() + 1, 1, 0, 9)",
    ),
    Entry("deg2rad", {"x": Tensors(FLOATS)}, "torch.deg2rad(x); torch.rad2deg(x)"),
    Entry(
        "clamp",
        {"x": Tensors(NUMBERS), "low": one_of(-2, -1, 0), "high": one_of(1, 2, 3)},
        "torch.clamp(x, low, high); x.clamp(min=low); x.clamp(max=high); "
        "torch.clip(x, low, high); x.clip(low, high); x.clone().clamp_(low, high); "
        "x.clamp_min(low); torch.clamp_max(x, high); x.clone().clamp_min_(low); "
        "aten.clamp.default(x, low, high)",
    ),
    Entry(
        "clamp by tensors",
        {
            "x": Tensors(NUMBERS),
            "low": broadcast("x", low=-3, high=-1),
            "high": broadcast("x", low=1, high=3),
        },
        "torch.clamp(x, low, high); x.clamp(min=low); torch.clamp(x, max=high); "
        "aten.clamp.Tensor(x, low, high)",
    ),
    Entry(
        "clamp integers by fractions",
        {"x": Tensors(SIGNED)},
        "torch.clamp(x, -1.5, 2.5); x.clamp(min=0.5); torch.clamp(x, min=-x.abs(), max=x.sin())",
    ),
    Entry(
        "logical_not",
        {"x": Tensors(ALL, low=0, high=1)},
        "torch.logical_not(x); x.logical_not(); aten.logical_not.default(x)",
    ),
    Entry(
        "bitwise_not",
        {"x": Tensors((*INTEGERS, *BOOL))},
        "torch.bitwise_not(x); ~x; x.bitwise_not(); operator.invert(x)",
    ),
    *(
        Entry(
            method,
            {"x": Tensors(ALL, low=0, high=3)},
            f"x.{method}(); x.to(torch.{dtype}); x.type(torch.{dtype})",
        )
        for method, dtype in {
            "float": "float32",
            "double": "float64",
            "half": "float16",
            "bfloat16": "bfloat16",
            "int": "int32",
            "long": "int64",
            "short": "int16",
            "char": "int8",
            "byte": "uint8",
            "bool": "bool",
        }.items()
    ),
    Entry(
        "to",
        {"x": Tensors(ALL, low=0), "y": Tensors(FLOATS)},
        "x.to(y); x.to('cpu'); x.to(dtype=torch.float64); x.to('cpu', torch.int32); x.type_as(y); "
        "x.to(torch.float32, copy=True); aten.to.dtype(x, torch.float64); "
        "aten._to_copy.default(x, dtype=torch.float64)",
    ),
)
