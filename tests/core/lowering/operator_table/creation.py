"""Operators that make tensors: of numbers, of shapes, and at random."""

from tests.core.lowering.operator_table.drawing import ALL, Tensors
from tests.core.lowering.operator_table.entries import Entry

ENTRIES = (
    Entry(
        "zeros",
        {"x": Tensors(ALL, (2, 3))},
        "torch.zeros(2, 3) + x; torch.zeros(size=(2, 3)) + x; "
        "torch.zeros((2, 3), dtype=torch.int64) + x; torch.zeros_like(x); x.new_zeros(2, 3); "
        "torch.zeros_like(x, dtype=torch.float64); torch.zeros(x.shape); x.clone().zero_(); "
        "torch.zeros(x.shape[0], dtype=x.dtype)",
    ),
    Entry(
        "ones",
        {"x": Tensors(ALL, (2, 3))},
        "torch.ones(2, 3) + x; torch.ones_like(x); x.new_ones((2,)); torch.ones(size=(3,)) * x; "
        "torch.ones(x.size(), dtype=torch.int32)",
    ),
    Entry(
        "full",
        {"x": Tensors(ALL, (2, 3))},
        "torch.full((2, 3), 7) + x; torch.full_like(x, 1); x.new_full((2, 2), 1); "
        "torch.full(x.shape, 2.5); torch.full(x.shape, float('-inf')); torch.full(x.shape, True); "
        "x.clone().fill_(1); torch.full_like(x, 2.5, dtype=torch.float64)",
    ),
    Entry(
        "arange",
        {"x": Tensors(("float32", "int64"), (2, 3))},
        "torch.arange(x.shape[1]) + x; torch.arange(1, x.size(1) + 1) * x; "
        "torch.arange(0, x.shape[1] * 2, 2) + x; torch.arange(0.0, 0.75, 0.25) + x; "
        "torch.arange(end=3, dtype=torch.float32) * x; torch.arange(x.shape[1], 0, -1)",
    ),
    Entry(
        "constants",
        {"x": Tensors(("float32",), (2, 3))},
        "torch.tensor([1.0, 2.0, 3.0]) + x; torch.eye(x.shape[1]) + 0; "
        "torch.linspace(0, 1, x.shape[1]) * x; torch.scalar_tensor(2) * x; "
        "torch.hann_window(3) * x",
    ),
    Entry(
        "shape",
        {"x": Tensors(ALL, (2, 3))},
        "x.reshape(x.shape[1], x.size(0)); x.reshape(x.numel()) * x.dim(); x + x.size()[1]; "
        "x * x.ndim; x.reshape(x.size(-1), -1); x + math.sqrt(x.size(-1))",
    ),
    Entry(
        "fill",
        {"x": Tensors(ALL, (2, 3)), "y": Tensors("x", (1, 3))},
        "x.clone().copy_(y); x.clone().fill_(1); aten.copy.default(x, y); aten.fill.Scalar(x, 1)",
    ),
    *(
        Entry(
            name,
            {"x": Tensors(("float32",), (4, 4), low=0.1, high=1)},
            in_torch=dict.fromkeys(forms, "is random"),
            random=True,
        )
        for name, forms in {
            "rand": (
                "torch.rand(x.shape)",
                "torch.rand_like(x)",
                "torch.rand_like(x, dtype=torch.float64)",
            ),
            "randn": ("torch.randn(x.shape)", "torch.randn_like(x)"),
            "randint": ("torch.randint(0, 5, x.shape)", "torch.randint_like(x, 5)"),
            "randperm": ("torch.randperm(x.shape[0])",),
            "bernoulli": ("torch.bernoulli(x)", "x.bernoulli()", "x.clone().bernoulli_(0.5)"),
            "multinomial": ("torch.multinomial(x, 2)", "x.multinomial(2, replacement=True)"),
            "normal": ("torch.normal(x, 1.0)", "x.clone().normal_()", "x.clone().uniform_()"),
            "poisson": ("torch.poisson(x)",),
            "dropout in training mode": (
                "F.dropout(x)",
                "F.dropout(x, 0.2, training=True)",
                "trained(nn.Dropout(0.5))(x)",
                "F.alpha_dropout(x, 0.5, True)",
                "F.dropout1d(x, 0.5, True)",
            ),
            "gumbel_softmax": ("F.gumbel_softmax(x)", "F.gumbel_softmax(x, hard=True)"),
        }.items()
    ),
)
