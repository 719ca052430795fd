"""Reading and writing parts of a tensor."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    FLOATS,
    NUMBERS,
    WIDE_FLOATS,
    Tensors,
    axis,
    indices,
    one_of,
    place,
)
from tests.core.lowering.operator_table.entries import Drawn, Entry

_X = {"x": Tensors(ALL, (3, 5, 4))}
_ONE = {"x": Tensors(ALL, rank=(1, 4)), "dim": axis(), "i": place()}


def _gathered(drawn: Drawn) -> tuple[int, ...]:
    return tuple(drawn["x"].shape)


ENTRIES = (
    Entry(
        "x[i]",
        {**_X, "i": one_of(0, 2, -1, -3), "j": one_of(0, 4, -1, -5)},
        "x[i]; x[:, j]; x[i, j]; x[..., -1]; x[:, -2, 1]; x[i, ..., 2]; x[0, ..., 1]; x[0, ...]; "
        "x[..., 0, :]; x[2, 4, 3]; x[:, 3]; x.__getitem__(i)",
    ),
    Entry(
        "x[:, 7]",
        {"x": Tensors(("float32", "int64"), (2, 9)), "i": one_of(7, -2)},
        "x[:, 7]; x[:, i]; x[1:, i]",
    ),
    Entry(
        "x[a:b]",
        {**_X, "a": one_of(0, 1, -2, None), "b": one_of(3, -1, 100, None), "c": one_of(1, 2, 3)},
        "x[a:b] + x[a:b]; x[:, a:b]; x[:, a:b:c]; x[..., ::c, 1:]; x[:2, 1:, 2:]; x[::2, 1::c]; "
        "x[:, 3:3]; x[:] + x; x[:, 1:4, -1]; x[:, :, 2]; x[:, 2:100]; x[:, -4:-1:c]; "
        "aten.slice.Tensor(x, 1, a, b, c)",
    ),
    Entry(
        "x[None]",
        _X,
        "x[None]; x[:, None]; x[..., None]; x[:, None, 1]; x[None, ..., 0, None]; x[..., 1:3]; "
        "x[0, 1:]; x[1:, 2]; x[-1, :, None, 1:2]",
    ),
    Entry(
        "x[tensor]",
        {
            **_X,
            "i": indices(along=0, shape=(2, 3), negative=True),
            "j": indices(along=2, shape=(3,), negative=True),
        },
        "x[i]; x[..., j]; x[:, j]; x[i, :, j]; x[i, j]; x[i, 1:3]; x[0, j]; x[:, :, j]; "
        "x[:, [1, 2]]; x[[0, 2, 1]]; x[j % 3, :, j]; x[j % 3, j]; x[i[:, :, None], j]; x[i, 0]; "
        "x[:, j, 0]; x[i, j, j]; aten.index.Tensor(x, [i]); aten.index.Tensor(x, [None, j])",
    ),
    Entry(
        "x[mask]",
        {"x": Tensors(("float32", "int64"), (4, 4))},
        in_torch={
            "x[x > 0]": "it is indexed by a mask, so its shape depends on the data",
            "x[x[:, 0] > 0]": "it is indexed by a mask, so its shape depends on the data",
        },
    ),
    Entry(
        "select",
        _ONE,
        "x.select(dim, i); torch.select(x, dim, i); x.select(dim=dim, index=i); "
        "aten.select.int(x, dim, i)",
    ),
    Entry(
        "narrow",
        {"x": Tensors(ALL, rank=(1, 4), extents=(3, 4)), "dim": axis()},
        "x.narrow(dim, 1, 2); torch.narrow(x, dim, -2, 2); "
        "torch.narrow(x, dim=dim, start=0, length=1)",
    ),
    Entry(
        "index_select",
        {"x": Tensors(ALL, rank=(1, 3)), "dim": axis(), "i": indices()},
        "x.index_select(dim, i); torch.index_select(x, dim, i); "
        "torch.index_select(x, dim=dim, index=i.int()); aten.index_select.default(x, dim, i)",
    ),
    Entry(
        "take",
        {"x": Tensors(ALL, (3, 4)), "i": Tensors(("int64",), (2, 3), low=-12, high=11)},
        "torch.take(x, i); x.take(i)",
    ),
    Entry(
        "gather",
        {"x": Tensors(ALL, rank=(1, 3)), "dim": axis(), "i": indices(shape=_gathered)},
        "torch.gather(x, dim, i); x.gather(dim, i); x.gather(dim=dim, index=i); "
        "aten.gather.default(x, dim, i)",
    ),
    Entry(
        "take_along_dim",
        {"x": Tensors(NUMBERS, rank=(1, 3)), "dim": axis(), "i": indices(shape=_gathered)},
        "torch.take_along_dim(x, i, dim); x.take_along_dim(i, dim=dim)",
    ),
    Entry(
        "embedding",
        {
            "w": Tensors(FLOATS, (7, 4)),
            "i": Tensors(("int64", "int32"), rank=(0, 3), low=0, high=6),
        },
        "F.embedding(i, w); F.embedding(i, w, padding_idx=0); nn.Embedding(7, 3)(i); "
        "nn.Embedding(7, 3, padding_idx=1)(i); torch.embedding(w, i); aten.embedding.default(w, i)",
    ),
    Entry(
        "embedding_bag",
        {"w": Tensors(("float32",), (7, 4)), "i": Tensors(("int64",), (2, 3), low=0, high=6)},
        "F.embedding_bag(i, w); F.embedding_bag(i, w, mode='sum', per_sample_weights=i.float()); "
        "nn.EmbeddingBag(7, 3)(i); nn.EmbeddingBag(7, 3, mode='max')(i); "
        "F.embedding_bag(i[0], w, torch.tensor([0, 2])); "
        "F.embedding_bag(i, w, padding_idx=1, mode='max'); "
        "F.embedding_bag(i[1], w, torch.tensor([0, 0, 1]), mode='max'); "
        "F.embedding_bag(i[0], w, torch.tensor([0, 1, 1, 3]), include_last_offset=True, "
        "padding_idx=-2); nn.EmbeddingBag(7, 3, mode='sum')(i[0], torch.tensor([0, 1]), i[1] / 2)",
        loose_export=True,
    ),
    Entry(
        "one_hot",
        {"i": Tensors(("int64",), rank=(0, 3), low=0, high=4)},
        "F.one_hot(i, 5); F.one_hot(i, num_classes=7)",
        {"F.one_hot(i)": "without num_classes its shape depends on the data"},
        tracers=("fx",),
    ),
    Entry(
        "scatter",
        {
            "x": Tensors(ALL, (3, 4)),
            "dim": axis(),
            "i": Tensors(("int64",), (1, 1), low=0, high=2),
            "s": Tensors("x", (1, 1)),
        },
        "torch.scatter(x, dim, i, s); x.scatter(dim, i, s); x.scatter(dim, i, 1); "
        "x.clone().scatter_(dim, i, s); x.scatter(dim=dim, index=i, value=1); "
        "aten.scatter.src(x, dim, i, s); aten.scatter.value(x, dim, i, 1)",
    ),
    Entry(
        "scatter_add",
        {
            "x": Tensors(NUMBERS, (3, 4)),
            "dim": axis(),
            "i": Tensors(("int64",), (2, 3), low=0, high=2),
            "s": Tensors("x", (2, 3)),
        },
        "torch.scatter_add(x, dim, i, s); x.scatter_add(dim, i, s); "
        "x.clone().scatter_add_(dim, i, s); torch.scatter_add(x, dim, i, s.repeat(2, 2)); "
        "aten.scatter_add.default(x, dim, i, s)",
    ),
    Entry(
        "scatter_reduce",
        {
            "x": Tensors(("float32", "float64"), (3, 4)),
            "dim": axis(),
            "i": Tensors(("int64",), (2, 3), low=0, high=2),
            "s": Tensors("x", (2, 3)),
        },
        "torch.scatter_reduce(x, dim, i, s, 'sum'); x.scatter_reduce(dim, i, s, reduce='prod'); "
        "x.scatter_reduce(dim, i, s, reduce='amax'); x.scatter_reduce(dim, i, s, reduce='amin'); "
        "x.scatter_reduce(dim, i, s, reduce='mean'); "
        "x.scatter_reduce(dim, i, s, reduce='mean', include_self=False); "
        "x.scatter_reduce(dim, i, s, reduce='amax', include_self=False); "
        "torch.scatter_reduce(x, dim, i, s, 'prod', include_self=False); "
        "torch.index_reduce(x, dim, i[0], x.index_select(dim, i[0]), 'mean')",
    ),
    Entry(
        "index_add",
        {
            "x": Tensors(NUMBERS, (3, 4)),
            "i": Tensors(("int64",), (2,), low=0, high=2),
            "s": Tensors("x", (2, 4)),
        },
        "torch.index_add(x, 0, i, s); x.index_add(-2, i, s, alpha=2); "
        "x.clone().index_add_(0, i, s)",
    ),
    Entry(
        "index_copy",
        {"x": Tensors(ALL, (3, 4)), "s": Tensors("x", (2, 4))},
        "torch.index_copy(x, 0, torch.tensor([2, 0]), s); "
        "x.index_copy(-2, torch.tensor([1, 2]), s)",
    ),
    Entry(
        "index_fill",
        {"x": Tensors(ALL, (3, 4)), "i": Tensors(("int64",), (2,), low=0, high=2)},
        "torch.index_fill(x, 0, i, 1); x.index_fill(1, i, 1)",
    ),
    Entry(
        "index_put",
        {
            "x": Tensors(NUMBERS, (3, 4)),
            "i": Tensors(("int64",), (2,), low=-3, high=2),
            "j": Tensors(("int64",), (2,), low=0, high=3),
        },
        "torch.index_put(x, (i,), torch.tensor(1, dtype=x.dtype), accumulate=True); "
        "x.index_put((torch.tensor([0, 2]), j), x[0, :2]); "
        "aten.index_put.default(x, [torch.tensor([1, 0])], x[1:]); "
        "x.index_put((x > 1,), torch.tensor(2, dtype=x.dtype)); "
        "x.index_put((x[:, 0] > 1,), x[1]); aten.index_put.default(x, [None, x[0] > 1], x[0, :1]); "
        "x.index_put((torch.tensor([True, False, True]),), x[1:]); "
        "x.index_put((torch.eye(3, 4) > 0,), x[0, 1:]); x.index_put((x > 9,), x[0, :0]); "
        "aten.index_put.default(x[None], [None, i, j], x[:1, :2]); "
        "aten.index_put.default(x[None], [i * 0, None, j], x[:1, :3], True); "
        "aten.index_put.default(x, [None, j.view(2, 1)], x[0, 0]); "
        "aten.index_put.default(x[None], [i * 0, i], x[0])",
        {
            "aten.index_put.default(x, [None, torch.eye(4)[0] + torch.eye(4)[1] > 0], x[:, :2])": "its mask is of inner axes, and selects as many values as it has"
        },
        operators_stay=True,
    ),
    Entry(
        "masked_scatter",
        {"x": Tensors(ALL, (3, 4)), "m": Tensors(("bool",), (4,))},
        "torch.masked_scatter(x, m, x.flip(1)); x.masked_scatter(x > 0, x.flatten()); "
        "x.clone().masked_scatter_(x > 9, x)",
        operators_stay=True,
    ),
    Entry(
        "select_scatter",
        {"x": Tensors(ALL, (3, 5, 4)), "i": one_of(0, 2, -1)},
        "torch.select_scatter(x, x[:, 0], 1, i); x.select_scatter(x[0], 0, i); "
        "aten.select_scatter.default(x, x[..., 0], -1, i)",
    ),
    Entry(
        "diagonal_scatter",
        {"x": Tensors(ALL, (4, 4)), "k": one_of(0, 1, -2)},
        "torch.diagonal_scatter(x, x.flip(0).diagonal(k), k); "
        "x[:3].diagonal_scatter(x[0, :3]); "
        "aten.diagonal_scatter.default(x[:, None], x[None, 0, :3], 1, 2, 0)",
    ),
    Entry(
        "slice_scatter",
        {"x": Tensors(ALL, (3, 5, 4))},
        "torch.slice_scatter(x, x[:, :2], 1, 2, 4); x.slice_scatter(x[:, :2], 1, 0, 4, 2); "
        "torch.slice_scatter(x, x[..., 1:], -1, -3)",
    ),
    Entry(
        "x[i] = y",
        {"x": Tensors(("float32", "int64"), (3, 4)), "i": one_of(0, -1)},
        "assign(x.clone(), i, 1); assign(x.clone(), (slice(None), i), 2); "
        "assign(x.clone(), (slice(1, None), slice(0, 4, 2)), x[:2, :2])",
        tracers=("export",),
    ),
    Entry(
        "isin",
        {"x": Tensors(("int64",), (3, 4)), "y": Tensors(("int64",), (5,))},
        "torch.isin(x, y); torch.isin(elements=x, test_elements=y); torch.isin(x, y, invert=True)",
    ),
    Entry(
        "bucketize",
        {"x": Tensors(("float32",), rank=(1, 2))},
        "torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])); "
        "torch.bucketize(x, torch.tensor([-1.0, 0.0]), right=True)",
    ),
    Entry(
        "searchsorted",
        {"x": Tensors(WIDE_FLOATS, (3, 4))},
        "torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5], dtype=x.dtype), x); "
        "torch.searchsorted(x.abs().cumsum(1), x, right=True); "
        "torch.searchsorted(x[0].abs().cumsum(0), torch.sqrt(x), out_int32=True)",
        operators_stay=True,
    ),
    Entry(
        "nonzero",
        {"x": Tensors(("float32", "int64"), (3, 4))},
        in_torch={
            "torch.nonzero(torch.relu(x))": "no relax operator for nonzero",
            "torch.argwhere(x > 0)": "no relax operator for argwhere",
        },
    ),
    Entry(
        "unique",
        {"x": Tensors(("int64",), (6,))},
        in_torch={"torch.unique(x)": "no relax operator for unique"},
    ),
    Entry(
        "masked_select",
        {"x": Tensors(("float32",), (6,))},
        in_torch={"torch.masked_select(x, x > 0)": "no relax operator for masked_select"},
    ),
)
