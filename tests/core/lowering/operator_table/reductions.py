"""Reductions."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    FLOATS,
    INTEGERS,
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
_FLOATS = {**_NUMBERS, "x": Tensors(FLOATS, rank=(1, 4))}
_SEVERAL = {**_FLOATS, "x": Tensors(FLOATS, rank=(1, 4), extents=(2, 4))}
_TRUTH = {**_NUMBERS, "x": Tensors(ALL, rank=(1, 4), low=-1, high=1)}


def _extremum(name: str) -> Entry:
    return Entry(
        name,
        _NUMBERS,
        f"torch.{name}(x); x.{name}(); torch.{name}(x, dim)[0]; "
        f"x.{name}(dim=dim, keepdim=keep)[0]; x.{name}(dim).values; aten.{name}.default(x); "
        f"aten.{name}.dim(x, dim, keep)[0]",
    )


ENTRIES = (
    Entry(
        "sum",
        {**_NUMBERS, "x": Tensors(ALL, rank=(1, 4))},
        "x.sum(); torch.sum(x, dim); x.sum(dims, keepdim=keep); x.sum(axis=dim, keepdims=keep); "
        "torch.sum(x, dim=dim, keepdim=keep, dtype=torch.float64); x.sum(dtype=torch.int32); "
        "aten.sum.default(x); aten.sum.dim_IntList(x, dims, keep)",
    ),
    Entry("sum of a scalar", {"x": Tensors(ALL, ())}, "x.sum(); x.sum(0); x.sum(-1)"),
    Entry(
        "nansum",
        {"x": Tensors(WIDE_FLOATS, rank=(1, 3))},
        "torch.nansum(torch.sqrt(x)); torch.sqrt(x).nansum(-1)",
    ),
    Entry(
        "mean",
        _FLOATS,
        "x.mean(); torch.mean(x, dim); x.mean(dims, keepdim=keep); x.mean(dim=dim, keepdim=keep); "
        "x.mean(axis=dim); x.mean(axis=dim, keepdims=True); x.mean(dim, dtype=torch.float64); "
        "aten.mean.default(x); aten.mean.dim(x, dims, keep)",
    ),
    Entry(
        "mean of integers",
        {"x": Tensors(INTEGERS, rank=(1, 3))},
        "x.mean(dtype=torch.float32); x.float().mean(0)",
    ),
    Entry(
        "prod",
        {
            "x": Tensors((*FLOATS, *SIGNED), rank=(1, 3), low=-2, high=2),
            "dim": axis(),
            "keep": flag(),
        },
        "x.prod(); torch.prod(x, dim); x.prod(dim, keepdim=keep); x.prod(dtype=torch.float64); "
        "aten.prod.dim_int(x, dim, keep)",
    ),
    Entry(
        "var",
        _SEVERAL,
        "x.var(); torch.var(x, dim); x.var(dims, keepdim=keep); x.var(dim, unbiased=False); "
        "torch.var(x, dim=dim, unbiased=False); torch.var(x, dim, correction=0, keepdim=keep); "
        "x.var(unbiased=False); aten.var.correction(x, dims, correction=1, keepdim=keep)",
    ),
    Entry(
        "std",
        _SEVERAL,
        "x.std(); torch.std(x, dim); x.std(dims, keepdim=keep); torch.std(x, dim, correction=0); "
        "x.std(False); aten.std.correction(x, dims)",
    ),
    Entry(
        "var_mean",
        _SEVERAL,
        "torch.var_mean(x, dim); torch.var_mean(x, dim, correction=0, keepdim=keep); "
        "torch.var_mean(x); torch.std_mean(x, dim)",
    ),
    Entry(
        "var of one element",
        {"x": Tensors(("float32",), (1,))},
        in_torch={"x.var()": "it has too few elements for its correction"},
    ),
    Entry(
        "amax",
        _NUMBERS,
        "x.amax(); torch.amax(x, dim); x.amax(dims, keepdim=keep); "
        "aten.amax.default(x, dims, keep)",
    ),
    Entry(
        "amin",
        _NUMBERS,
        "x.amin(); torch.amin(x, dim); x.amin(dims, keepdim=keep); "
        "aten.amin.default(x, dims, keep)",
    ),
    Entry("aminmax", _NUMBERS, "torch.aminmax(x); x.aminmax(dim=dim, keepdim=keep)"),
    _extremum("max"),
    _extremum("min"),
    Entry(
        "max with indices",
        {
            "x": Tensors(("float32", "float64", "int64"), rank=(1, 3), low=-9999, high=9999),
            "dim": axis(),
            "keep": flag(),
        },
        "torch.max(x, dim); x.min(dim, keepdim=keep); x.max(dim).indices",
    ),
    *(
        Entry(
            name,
            {
                "x": Tensors(
                    ("float32", "float64", "int64", "int32"), rank=(1, 4), low=-9999, high=9999
                ),
                "dim": axis(),
                "keep": flag(),
            },
            f"torch.{name}(x); x.{name}(dim); x.{name}(dim=dim, keepdim=keep); "
            f"torch.{name}(x, dim, keep); aten.{name}.default(x, dim, keep); x.{name}(keepdim=True)",
        )
        for name in ("argmax", "argmin")
    ),
    Entry(
        "argmax of equal elements",
        {"x": Tensors(("float32", "int64"), rank=(1, 3), low=0, high=1), "dim": axis()},
        "torch.floor(x).argmax(dim); x.floor().argmin(); x.floor().max(dim)",
    ),
    Entry(
        "all",
        _TRUTH,
        "x.all(); torch.all(x, dim); x.all(dim, keepdim=keep); torch.all(x, dims); "
        "aten.all.dim(x, dim, keep)",
    ),
    Entry(
        "any",
        _TRUTH,
        "x.any(); torch.any(x, dim); x.any(dim, keepdim=keep); torch.any(x, dims); "
        "aten.any.default(x)",
    ),
    Entry(
        "count_nonzero",
        _TRUTH,
        "torch.count_nonzero(x); x.count_nonzero(dim); torch.count_nonzero(x, dims)",
    ),
    Entry(
        "logsumexp",
        _FLOATS,
        "torch.logsumexp(x, dim); x.logsumexp(dims, keepdim=keep); "
        "torch.logsumexp(x.masked_fill(x > -9, float('-inf')), dim); "
        "aten.logsumexp.default(x, dims, keep)",
    ),
    Entry(
        "norm",
        _FLOATS,
        "x.norm(); torch.norm(x, dim=dim); x.norm(p=1, dim=dim, keepdim=keep); x.norm(3, dim); "
        "torch.norm(x, p=2, dim=dims)",
    ),
    Entry(
        "linalg.vector_norm",
        _FLOATS,
        "torch.linalg.vector_norm(x, dim=dim); torch.linalg.vector_norm(x, math.inf); "
        "torch.linalg.vector_norm(x, 0, dim); torch.linalg.norm(x, dim=dim); "
        "aten.linalg_vector_norm.default(x, 2, dims, keep)",
    ),
    Entry(
        "linalg.matrix_norm",
        {"x": Tensors(WIDE_FLOATS, rank=(2, 3))},
        "torch.linalg.matrix_norm(x); torch.norm(x, 'fro', dim=(-2, -1))",
        {"torch.linalg.matrix_norm(x, 'nuc')": "it is the nuc norm of a matrix"},
    ),
    Entry(
        "histc",
        {"x": Tensors(("float32",), (9,))},
        "torch.histc(x, 4, -4, 4); x.histc(bins=3, min=-1, max=0.5); aten.histc.default(x, 5, -2, 2)",
        {"torch.histc(x, 4)": "its range depends on the data"},
    ),
    Entry(
        "extrema of NaN and infinity",
        {"x": Tensors(FLOATS, (1, 4, 6), low=-1, high=4), "dim": axis(), "keep": flag()},
        "torch.sqrt(x).amax(dim, keepdim=keep); torch.sqrt(x).min(); "
        "torch.max(torch.sqrt(x), dim)[0]; torch.sqrt(x).argmax(dim, keepdim=keep); "
        "torch.sqrt(x).argmin(); F.max_pool1d(torch.sqrt(x), 3, 2, 1); "
        "F.max_pool2d(torch.sqrt(x), (2, 3)); torch.log(x - x).amax(dim); "
        "torch.log(x - x).argmax(dim); F.max_pool1d(torch.log(x - x), 2); "
        "torch.linalg.vector_norm(torch.sqrt(x), math.inf)",
    ),
)
