"""Activations and softmax."""

from tests.core.lowering.operator_table.drawing import FLOATS, SIGNED, Tensors, axis, one_of
from tests.core.lowering.operator_table.entries import Entry

_X = {"x": Tensors(FLOATS)}
_PLAIN = {
    "relu6": "F.relu6(x); nn.ReLU6()(x); aten.relu6.default(x); F.relu6(x.clone(), inplace=True)",
    "selu": "F.selu(x); torch.selu(x); nn.SELU()(x); aten.selu.default(x); F.selu(x.clone(), True)",
    "silu": "F.silu(x); nn.SiLU()(x); aten.silu.default(x); F.silu(x.clone(), inplace=True)",
    "mish": "F.mish(x); nn.Mish()(x); aten.mish.default(x)",
    "softsign": "F.softsign(x); nn.Softsign()(x)",
    "logsigmoid": "F.logsigmoid(x); nn.LogSigmoid()(x)",
    "hardsigmoid": "F.hardsigmoid(x); nn.Hardsigmoid()(x); aten.hardsigmoid.default(x)",
    "hardswish": "F.hardswish(x); nn.Hardswish()(x); aten.hardswish.default(x)",
    "tanhshrink": "F.tanhshrink(x); nn.Tanhshrink()(x)",
}
_OF_NAN = (
    *(f"{name}(torch.sqrt(x))" for name in ("relu", "elu", "celu", "selu", "gelu", "silu", "mish")),
    *(f"{name}(torch.sqrt(x))" for name in ("relu6", "leaky_relu", "softplus", "softsign")),
    *(f"hard{name}(torch.sqrt(x))" for name in ("tanh", "sigmoid", "swish", "shrink")),
    *(f"{name}(torch.sqrt(x))" for name in ("softshrink", "tanhshrink", "logsigmoid")),
    "threshold(torch.sqrt(x), 0.5, -1.0)",
)

ENTRIES = (
    Entry(
        "relu",
        {"x": Tensors((*FLOATS, *SIGNED))},
        "F.relu(x); torch.relu(x); x.relu(); nn.ReLU()(x); x.clone().relu_(); "
        "torch.relu_(x.clone()); F.relu(x.clone(), inplace=True); "
        "nn.ReLU(inplace=True)(x.clone()); aten.relu.default(x)",
    ),
    *(Entry(name, _X, forms) for name, forms in _PLAIN.items()),
    Entry(
        "gelu",
        _X,
        "F.gelu(x); F.gelu(x, approximate='tanh'); nn.GELU()(x); nn.GELU('tanh')(x); "
        "nn.GELU(approximate='tanh')(x); aten.gelu.default(x); "
        "aten.gelu.default(x, approximate='tanh')",
    ),
    Entry(
        "leaky_relu",
        {**_X, "slope": one_of(0.01, 0.2, -0.5)},
        "F.leaky_relu(x); F.leaky_relu(x, slope); F.leaky_relu(x, negative_slope=slope); "
        "F.leaky_relu(x.clone(), slope, inplace=True); nn.LeakyReLU(slope)(x); "
        "aten.leaky_relu.default(x, slope)",
    ),
    Entry(
        "elu",
        {**_X, "alpha": one_of(0.5, 1.0, 1.5)},
        "F.elu(x); F.elu(x, alpha); F.elu(x, alpha=0.5); F.elu(x.clone(), alpha, True); "
        "nn.ELU(alpha)(x); aten.elu.default(x, alpha)",
    ),
    Entry(
        "celu",
        {**_X, "alpha": one_of(0.5, 1.0, 2.0)},
        "F.celu(x); torch.celu(x, alpha); nn.CELU(alpha)(x); aten.celu.default(x, alpha)",
    ),
    Entry(
        "softplus",
        {**_X, "beta": one_of(0.5, 1, 8), "threshold": one_of(3, 20)},
        "F.softplus(x); F.softplus(x, beta, threshold); F.softplus(x, beta=2, threshold=5); "
        "nn.Softplus(beta, threshold)(x); aten.softplus.default(x, beta, threshold)",
    ),
    Entry(
        "hardtanh",
        {**_X, "low": one_of(-2.0, -0.5), "high": one_of(0.5, 1.5)},
        "F.hardtanh(x); F.hardtanh(x, low, high); nn.Hardtanh(low, high)(x); "
        "aten.hardtanh.default(x, low, high)",
    ),
    Entry(
        "hardshrink",
        {**_X, "lambd": one_of(0.5, 1.0)},
        "F.hardshrink(x); torch.hardshrink(x, lambd); nn.Hardshrink(lambd)(x); "
        "aten.hardshrink.default(x, lambd)",
    ),
    Entry(
        "softshrink",
        {**_X, "lambd": one_of(0.5, 1.0)},
        "F.softshrink(x); F.softshrink(x, lambd); nn.Softshrink(lambd)(x); "
        "aten.softshrink.default(x, lambd)",
    ),
    Entry(
        "threshold",
        {**_X, "limit": one_of(-1.0, 0.0, 0.5), "value": one_of(-7.0, 20.0)},
        "F.threshold(x, limit, value); nn.Threshold(limit, value)(x); "
        "F.threshold(x.clone(), limit, value, True); aten.threshold.default(x, limit, value)",
    ),
    Entry(
        "prelu",
        {"x": Tensors(FLOATS, rank=(2, 4), extents=(3, 3)), "w": Tensors("x", (3,))},
        "F.prelu(x, w); torch.prelu(x, w); x.prelu(w[:1]); nn.PReLU()(x); nn.PReLU(init=0.3)(x); "
        "nn.PReLU(3)(x)",
    ),
    Entry(
        "glu",
        {"x": Tensors(FLOATS, rank=(1, 4), extents=(4, 4)), "dim": axis()},
        "F.glu(x); F.glu(x, dim); nn.GLU(dim)(x); nn.GLU(dim=dim)(x); aten.glu.default(x, dim)",
    ),
    Entry(
        "softmax",
        {"x": Tensors(FLOATS, rank=(1, 4)), "dim": axis()},
        "F.softmax(x, dim); torch.softmax(x, dim); x.softmax(dim); x.softmax(dim=dim); "
        "F.softmax(x, dim=dim, dtype=torch.float64); F.softmax(x, dim, dtype=torch.float32); "
        "nn.Softmax(dim)(x); nn.Softmax(dim=dim)(x); aten.softmax.int(x, dim); "
        "aten._softmax.default(x, dim, False)",
    ),
    Entry(
        "softmax of integers",
        {"x": Tensors(SIGNED, rank=(1, 3))},
        "torch.softmax(x, -1, torch.float32)",
    ),
    Entry("Softmax2d", {"x": Tensors(FLOATS, rank=(3, 4))}, "nn.Softmax2d()(x)"),
    Entry(
        "log_softmax",
        {"x": Tensors(FLOATS, rank=(1, 4)), "dim": axis()},
        "F.log_softmax(x, dim); torch.log_softmax(x, dim); x.log_softmax(dim); "
        "F.log_softmax(x, dim=dim, dtype=torch.float64); nn.LogSoftmax(dim)(x); "
        "nn.LogSoftmax(dim=dim)(x); aten.log_softmax.int(x, dim); "
        "aten._log_softmax.default(x, dim, False)",
    ),
    Entry(
        "softmin",
        {"x": Tensors(FLOATS, rank=(1, 4)), "dim": axis()},
        "F.softmin(x, dim); nn.Softmin(dim)(x); nn.Softmin(dim=dim)(x); "
        "F.softmin(x, dim, dtype=torch.float64)",
    ),
    Entry(
        "dropout outside training",
        _X,
        "F.dropout(x, 0.5, False) + 0; nn.Dropout(0.5)(x) + 0; torch.dropout(x, 0.5, False) * 1; "
        "F.dropout(x, p=0.0) + 0; F.alpha_dropout(x, 0.5) + 0; nn.AlphaDropout()(x) + 0; "
        "F.feature_alpha_dropout(x) + 0; aten.dropout.default(x, 0.5, False) + 0",
    ),
    Entry(
        "rrelu outside training",
        _X,
        "F.rrelu(x); nn.RReLU()(x); F.rrelu(x, 0.1, 0.5); torch.rrelu(x)",
        tracers=("fx",),
    ),
    Entry("activations of NaN", {"x": Tensors(FLOATS)}, "; ".join(f"F.{call}" for call in _OF_NAN)),
)
