"""Orders and scans along an axis."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    FLOATS,
    NUMBERS,
    SIGNED,
    WIDE_FLOATS,
    Tensors,
    axes,
    axis,
    flag,
)
from tests.core.lowering.operator_table.entries import Entry

_NUMBERS = {"x": Tensors(NUMBERS, rank=(1, 4)), "dim": axis(), "dims": axes(), "keep": flag()}
_ORDERED = {
    **_NUMBERS,
    "x": Tensors(("float32", "float64", *SIGNED), rank=(1, 3), low=-90, high=90),
}


ENTRIES = (
    Entry(
        "cumsum",
        {"x": Tensors(ALL, rank=(1, 4)), "dim": axis()},
        "x.cumsum(dim); torch.cumsum(x, dim); torch.cumsum(x, dim=dim, dtype=torch.float64); "
        "aten.cumsum.default(x, dim)",
        operators_stay=True,
    ),
    Entry(
        "cumprod",
        {"x": Tensors((*WIDE_FLOATS, *SIGNED), rank=(1, 3), low=-2, high=2), "dim": axis()},
        "x.cumprod(dim); torch.cumprod(x, dim); torch.cumprod(x, dim=dim, dtype=torch.float64)",
        operators_stay=True,
    ),
    Entry(
        "cummax",
        {"x": Tensors(ALL, rank=(1, 3)), "dim": axis()},
        "torch.cummax(x, dim); x.cummax(dim)[1]; aten.cummax.default(x, dim)",
    ),
    Entry(
        "cummin",
        {"x": Tensors(ALL, rank=(1, 3)), "dim": axis()},
        "torch.cummin(x, dim); x.cummin(dim)[0]; aten.cummin.default(x, dim)",
    ),
    Entry(
        "logcumsumexp",
        {"x": Tensors(FLOATS, rank=(1, 3)), "dim": axis()},
        "torch.logcumsumexp(x, dim); x.logcumsumexp(dim); aten.logcumsumexp.default(x, dim)",
    ),
    Entry(
        "scans of NaN and infinity",
        {"x": Tensors(FLOATS, rank=(1, 3), low=-1, high=4, extents=(2, 6)), "dim": axis()},
        "torch.cummax(torch.sqrt(x), dim); torch.cummin(1 / torch.relu(torch.sqrt(x)), dim); "
        "torch.logcumsumexp(torch.log(x - x), dim); torch.logcumsumexp(torch.sqrt(x), dim)",
    ),
    Entry(
        "topk",
        {
            **_ORDERED,
            "x": Tensors(
                WIDE_FLOATS,
                rank=(1, 3),
                low=-90,
                high=90,
                extents=(2, 5),
                layouts=("contiguous", "transposed", "sliced"),
            ),
        },
        "torch.topk(x, 2, dim); x.topk(1); x.topk(2, dim=dim, largest=False); "
        "torch.topk(x, k=2)[0]; x.topk(2).indices; aten.topk.default(x, 2, dim)",
        operators_stay=True,
    ),
    Entry(
        "argsort",
        {
            **_ORDERED,
            "x": Tensors(
                WIDE_FLOATS,
                rank=(1, 3),
                low=-90,
                high=90,
                layouts=("contiguous", "transposed", "sliced"),
            ),
        },
        "torch.argsort(x, dim); x.argsort(dim=dim, descending=True); "
        "torch.argsort(x, dim, descending=True); torch.argsort(x, dim=dim, stable=True); "
        "aten.argsort.default(x, dim)",
        operators_stay=True,
    ),
    Entry(
        "sort",
        _ORDERED,
        "torch.sort(x, dim)[0]; x.sort(dim=dim, descending=True)[0]; "
        "torch.sort(x, dim=dim, stable=True); aten.sort.default(x, dim)[0]",
        operators_stay=True,
    ),
    Entry(
        "median",
        {
            "x": Tensors(("float32", "float64", *SIGNED), rank=(1, 3), low=-90, high=90),
            "dim": axis(),
            "keep": flag(),
        },
        "x.median(); torch.median(x, dim)[0]; x.median(dim, keepdim=keep)[0]; "
        "x.median(dim).values; aten.median.dim(x, dim, keep)[0]",
        operators_stay=True,
    ),
    Entry(
        "kthvalue",
        {"x": Tensors(("float32",), rank=(1, 3), low=-90, high=90), "dim": axis()},
        "torch.kthvalue(x, 1, dim)[0]; x.kthvalue(1, dim, keepdim=True).values; "
        "aten.kthvalue.default(x, 1, dim)[0]",
        operators_stay=True,
    ),
    Entry(
        "mode",
        {"x": Tensors(("int64",), rank=(1, 2)), "dim": axis()},
        in_torch={"torch.mode(x, dim)[0]": "no relax operator for mode"},
    ),
    Entry(
        "quantile",
        {"x": Tensors(WIDE_FLOATS, rank=(1, 3)), "dim": axis()},
        "torch.quantile(x, 0.4); x.quantile(0.3, dim); torch.quantile(x, 1, -1, keepdim=True)",
        {
            "torch.quantile(x, torch.tensor([0.4, 0.6], dtype=x.dtype))": "its q is a tensor, its interpolation is not linear, or keepdim is given without dim"
        },
        operators_stay=True,
        loose_export=True,
    ),
    Entry(
        "diff",
        {"x": Tensors(NUMBERS, rank=(1, 3), extents=(2, 4)), "dim": axis()},
        "torch.diff(x, dim=dim)",
        loose_export=True,
    ),
    Entry(
        "order of NaN and infinity",
        {"x": Tensors(FLOATS, rank=(1, 3), low=-1, high=4, extents=(2, 6)), "dim": axis()},
        "torch.sort(torch.sqrt(x), dim=dim, stable=True); "
        "torch.sort(1 / torch.relu(torch.sqrt(x)), dim=dim, descending=True, stable=True); "
        "torch.argsort(torch.sqrt(x), dim=dim, stable=True); "
        "torch.topk(torch.sqrt(x), 2, dim)[0]; torch.sqrt(x).topk(2, dim, largest=False).values; "
        "torch.sqrt(x).median(); torch.median(torch.sqrt(x), dim); "
        "torch.log(x - x).median(dim, keepdim=True)[0]",
        operators_stay=True,
    ),
)
