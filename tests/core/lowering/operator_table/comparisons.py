"""Comparisons, logic, and choosing by it."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    FLOATS,
    NUMBERS,
    SIGNED,
    WIDE_FLOATS,
    Tensors,
    broadcast,
    like,
    one_of,
)
from tests.core.lowering.operator_table.entries import Entry

ENTRIES = (
    *(
        Entry(
            name,
            {
                "x": Tensors(ALL, low=-2, high=2),
                "y": broadcast("x", low=-2, high=2),
                "n": one_of(0, 1, 0.5),
            },
            f"x {sign} y; torch.{name}(x, y); x.{name}(y); x {sign} n; torch.{long}(x, y); "
            f"aten.{name}.Tensor(x, y); aten.{name}.Scalar(x, 1)",
        )
        for name, long, sign in (
            ("eq", "eq", "=="),
            ("ne", "not_equal", "!="),
            ("lt", "less", "<"),
            ("le", "less_equal", "<="),
            ("gt", "greater", ">"),
            ("ge", "greater_equal", ">="),
        )
    ),
    Entry(
        "comparison of mixed dtypes",
        {"x": Tensors(NUMBERS), "y": broadcast("x", ALL)},
        "x < y; x == y; torch.ge(x, y)",
    ),
    Entry(
        "isclose",
        {"x": Tensors(WIDE_FLOATS), "y": like("x")},
        "torch.isclose(x, y)",
        loose_export=True,
    ),
    *(
        Entry(
            name,
            {"x": Tensors(ALL, low=0, high=1), "y": broadcast("x", ALL, low=0, high=1)},
            f"torch.{name}(x, y); x.{name}(y); aten.{name}.default(x, y)",
        )
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    Entry(
        "where",
        {"x": Tensors(ALL), "c": like("x"), "y": broadcast("x", ALL)},
        "torch.where(c > 0, x, y); x.where(c > 0, y); torch.where(c > 0, x, 0); "
        "torch.where(c > 0, 1.5, y); torch.where(c > 0, 1, 0); aten.where.self(c > 0, x, y)",
    ),
    Entry(
        "masked_fill",
        {"x": Tensors(FLOATS), "m": broadcast("x")},
        "x.masked_fill(m > 0, -1e3); torch.masked_fill(x, m > 0, float('-inf')); "
        "x.clone().masked_fill_(m > 0, 2); x.masked_fill(m > 0, torch.tensor(0.5)); "
        "aten.masked_fill.Scalar(x, m > 0, 1.0)",
    ),
    Entry(
        "masked_fill of integers",
        {"x": Tensors((*SIGNED, "bool")), "m": broadcast("x")},
        "x.masked_fill(m > 0, 1)",
    ),
)
