"""Operators that change the shape, move elements, join and cut tensors."""

from tests.core.lowering.operator_table.drawing import (
    ALL,
    FLOATS,
    NUMBERS,
    Tensors,
    axes,
    axis,
    like,
    one_of,
)
from tests.core.lowering.operator_table.entries import Entry

_X = {"x": Tensors(ALL, (2, 3, 4), layouts=("contiguous",))}
_ANY = {"x": Tensors(ALL, rank=(1, 4)), "dim": axis()}
_TWO = {"x": Tensors(ALL, rank=(1, 3)), "y": like("x"), "dim": axis()}

ENTRIES = (
    Entry(
        "view",
        _X,
        "x.view(6, 4); x.view(-1); x.view((2, 12)); x.view(2, -1, 2); x.view(size=(24,)); "
        "aten.view.default(x, [4, 6])",
    ),
    Entry(
        "view of the bits",
        {"x": Tensors(("float32",), (2, 3), layouts=("contiguous",))},
        "x.view(torch.int32); aten.view.dtype(x, torch.int32).view(torch.float32) + 1; "
        "x.to(torch.float16).view(torch.int16); x.double().view(torch.int64)",
        in_torch={"x.view(torch.int16)": "it reads the bits as another dtype"},
    ),
    Entry(
        "reshape",
        {"x": Tensors(ALL, (2, 3, 4))},
        "x.reshape(4, 6); torch.reshape(x, (-1, 8)); torch.reshape(x, shape=(24,)); "
        "x.reshape((3, 8)); x.reshape(x.shape[0], -1); aten.reshape.default(x, [8, -1])",
    ),
    Entry("view_as", _X, "x.flatten().view_as(x.reshape(4, 6)); x.reshape_as(x.reshape(3, 8))"),
    Entry(
        "flatten",
        {"x": Tensors(ALL, (2, 3, 4))},
        "x.flatten(); torch.flatten(x, 1); x.flatten(0, 1); x.flatten(start_dim=-2); "
        "nn.Flatten()(x); nn.Flatten(0, -2)(x); x.ravel(); torch.ravel(x); "
        "aten.flatten.using_ints(x, 1)",
    ),
    Entry(
        "unflatten",
        {"x": Tensors(ALL, (2, 3, 4))},
        "x.unflatten(2, (2, 2)); torch.unflatten(x, -1, (-1, 2)); nn.Unflatten(2, (2, 2))(x); "
        "aten.unflatten.int(x, 2, [2, 2])",
    ),
    Entry(
        "squeeze",
        {"x": Tensors(ALL, (1, 4, 1, 2))},
        "x.squeeze(); x.squeeze(0); x.squeeze(1) + 0; torch.squeeze(x, -4); x.squeeze((0, 2)); "
        "torch.squeeze(x, dim=2); x.clone().squeeze_(0); aten.squeeze.dim(x, -2); "
        "aten.squeeze.dims(x, [0, 2])",
    ),
    Entry(
        "unsqueeze",
        {"x": Tensors(ALL, rank=(0, 3)), "dim": axis(extra=1)},
        "x.unsqueeze(dim); torch.unsqueeze(x, dim); x.unsqueeze(dim=dim); "
        "aten.unsqueeze.default(x, dim)",
    ),
    Entry(
        "transpose",
        {"x": Tensors(ALL, rank=(2, 4)), "dim": axis()},
        "x.transpose(0, dim) + x.transpose(0, dim); "
        "torch.transpose(x, -1, dim) + torch.transpose(x, -1, dim); x.swapaxes(0, 1); "
        "torch.swapdims(x, 0, 1); x.mT; aten.transpose.int(x, 0, 1)",
    ),
    Entry("t", {"x": Tensors(ALL, rank=(2, 2))}, "x.t(); torch.t(x); x.T; aten.t.default(x); x.mT"),
    Entry(
        "permute",
        _X,
        "x.permute(2, 0, 1); x.permute((1, 0, 2)); torch.permute(x, (0, -1, 1)); "
        "x.permute(dims=(2, 1, 0)); aten.permute.default(x, [1, 2, 0])",
    ),
    Entry("movedim", _X, "x.movedim(0, 2); torch.movedim(x, (0, 1), (1, 2)); x.moveaxis(-1, 0)"),
    Entry(
        "expand",
        {"x": Tensors(ALL, (3, 1))},
        "x.expand(3, 4); x.expand(2, -1, 4); x.expand((3, 2)); x.expand_as(x.repeat(1, 2)); "
        "torch.broadcast_to(x, (2, 3, 4)); x.broadcast_to((3, 3)); aten.expand.default(x, [3, 5])",
    ),
    Entry(
        "repeat",
        {"x": Tensors(ALL, rank=(1, 2))},
        "x.repeat(2, 3); x.repeat((2, 1, 2)); x.repeat(repeats=(1, 2)); "
        "aten.repeat.default(x, [2, 2])",
    ),
    Entry(
        "tile",
        {"x": Tensors(ALL, rank=(1, 3))},
        "x.tile((2,)); torch.tile(x, (2, 3)); x.tile(2, 1)",
    ),
    Entry(
        "repeat_interleave",
        _ANY,
        "x.repeat_interleave(2, dim=dim); x.repeat_interleave(3); "
        "torch.repeat_interleave(x, 2, dim)",
        {
            "torch.repeat_interleave(x.flatten()[:1], torch.tensor([2]), 0)": "its repeats are a tensor"
        },
    ),
    Entry(
        "cat",
        _TWO,
        "torch.cat([x, y], dim); torch.cat((x, y), dim=dim); torch.concat([x, x, y]); "
        "torch.concatenate([x, y], dim=dim); torch.cat(tensors=[x, y], dim=dim); "
        "torch.cat([x, y], axis=dim); aten.cat.default([x, y], dim)",
    ),
    Entry(
        "cat of mixed dtypes",
        {"x": Tensors(NUMBERS, (2, 3)), "y": Tensors(ALL, (2, 3))},
        "torch.cat([x, y]); torch.stack([x, y], -1); torch.cat([x, torch.zeros(0)])",
    ),
    Entry(
        "stack",
        _TWO,
        "torch.stack([x, y]); torch.stack((x, y), dim=dim); torch.stack([x, y], -1); "
        "aten.stack.default([x, y], dim)",
    ),
    Entry(
        "hstack",
        _TWO,
        "torch.hstack([x, y]); torch.vstack([x, y]); torch.dstack([x, y]); "
        "torch.column_stack([x, y])",
    ),
    Entry(
        "flip",
        {**_ANY, "dims": axes()},
        "x.flip(dim); torch.flip(x, dims); x.flip(dims=dims); torch.fliplr(x[None]); "
        "torch.flipud(x); aten.flip.default(x, dims)",
    ),
    Entry(
        "rot90",
        {"x": Tensors(ALL, rank=(2, 3)), "k": one_of(0, 1, 2, 3, -1)},
        "torch.rot90(x, k) + torch.rot90(x, k); x.rot90(k, (1, 0)) + x.rot90(k, (1, 0))",
    ),
    Entry(
        "roll",
        {**_ANY, "n": one_of(1, -2, 5)},
        "torch.roll(x, n) + torch.roll(x, n); x.roll(n, dim) + x.roll(n, dim); "
        "torch.roll(x, shifts=n, dims=dim) + x.roll(1, 0); aten.roll.default(x, [n], [dim]) + x",
    ),
    Entry(
        "tril",
        {"x": Tensors(ALL, rank=(2, 3)), "k": one_of(0, 1, -1)},
        "torch.tril(x); x.tril(k); torch.tril(x, diagonal=k); x.clone().tril_(); "
        "aten.tril.default(x, k)",
    ),
    Entry(
        "triu",
        {"x": Tensors(ALL, rank=(2, 3)), "k": one_of(0, 1, -1)},
        "torch.triu(x); x.triu(k); torch.triu(x, diagonal=k); aten.triu.default(x, k)",
    ),
    Entry(
        "diagonal",
        {"x": Tensors(NUMBERS, (4, 4)), "k": one_of(0, 1, -2)},
        "torch.diagonal(x); x.diagonal(k); torch.diagonal(x, offset=k); aten.diagonal.default(x)",
    ),
    Entry(
        "diag of a vector",
        {"x": Tensors(NUMBERS, (4,)), "k": one_of(0, 1, -2)},
        "torch.diag(x, k); torch.diag_embed(x)",
        tracers=("fx",),
    ),
    Entry(
        "trace",
        {"x": Tensors(("float32", "int64"), (3, 4))},
        "torch.trace(x); x.T.trace(); aten.trace.default(x)",
    ),
    Entry(
        "pixel_shuffle",
        {"x": Tensors(FLOATS, (2, 8, 2, 3))},
        "F.pixel_shuffle(x, 2); torch.pixel_shuffle(x, 2); nn.PixelShuffle(2)(x); "
        "aten.pixel_shuffle.default(x, 2)",
    ),
    Entry(
        "pixel_unshuffle",
        {"x": Tensors(FLOATS, (2, 2, 4, 6))},
        "F.pixel_unshuffle(x, 2); nn.PixelUnshuffle(2)(x); aten.pixel_unshuffle.default(x, 2)",
    ),
    Entry(
        "channel_shuffle",
        {"x": Tensors(FLOATS, (2, 6, 2, 3))},
        "F.channel_shuffle(x, 2); torch.channel_shuffle(x, 3); nn.ChannelShuffle(2)(x)",
    ),
    Entry(
        "unfold of a tensor",
        {"x": Tensors(ALL, (2, 7))},
        "x.unfold(1, 3, 2); x.unfold(dimension=-1, size=4, step=3); "
        "aten.unfold.default(x, 0, 1, 1)",
    ),
    Entry(
        "split",
        {"x": Tensors(ALL, (2, 5, 4)), "dim": axis()},
        "torch.split(x, 2, dim); x.split(2, dim=dim); x.split([1, 3], -1); "
        "torch.split(x, split_size_or_sections=3, dim=1)[0]; x.split_with_sizes([2, 3], 1); "
        "aten.split.Tensor(x, 2, dim)[0]; x.tensor_split(3, 1); torch.tensor_split(x, (1, 3), 1)",
    ),
    Entry(
        "chunk",
        {"x": Tensors(ALL, (2, 5, 4)), "dim": axis(), "n": one_of(1, 2, 3, 4)},
        "torch.chunk(x, 2, dim)[0]; x.chunk(n, dim=dim)[0] + x.chunk(n, dim)[0]; "
        "torch.chunk(x, chunks=3, dim=1); aten.chunk.default(x, 2, dim)[0]",
    ),
    Entry(
        "unbind",
        {"x": Tensors(ALL, (2, 3, 4)), "dim": axis()},
        "x.unbind(dim)[0]; torch.unbind(x, dim)[-1]; x.unbind(); aten.unbind.int(x, dim)[0]",
    ),
    Entry(
        "meshgrid",
        {"x": Tensors(ALL, (3,)), "y": Tensors("x", (2,))},
        "torch.meshgrid(x, y, indexing='ij'); torch.meshgrid([x, y], indexing='xy')",
    ),
    Entry(
        "identity",
        {"x": Tensors(ALL)},
        "x.contiguous() + x; x.clone() + x; x.detach() + x; torch.clone(x) + x; "
        "nn.Identity()(x) + x; x.cpu() + x; aten.clone.default(x) + x; aten.alias.default(x) + x",
    ),
    Entry(
        "pad",
        {"x": Tensors(ALL, (2, 3, 4))},
        "F.pad(x, (1, 2)); F.pad(x, (0, 1, 2, 0), value=3); F.pad(x, [1, 1, 1, 1, 1, 1]); "
        "F.pad(x, (-1, 2)); F.pad(x, (-1, -1, -1, 0)); nn.ConstantPad1d(2, 1)(x); "
        "nn.ZeroPad2d((1, 2, 0, 1))(x); aten.constant_pad_nd.default(x, [1, 1], 2); "
        "aten.pad.default(x, [1, 1])",
    ),
    Entry(
        "pad by reflecting",
        {"x": Tensors(FLOATS, (2, 3, 4, 5)), "mode": one_of("reflect", "replicate", "circular")},
        "F.pad(x, (1, 2, 2, 1), mode=mode); F.pad(x[0], (1, 2), mode=mode); "
        "nn.ReflectionPad2d(2)(x); nn.ReplicationPad2d((1, 3, 0, 1))(x); nn.CircularPad2d(1)(x); "
        "nn.ReflectionPad1d(1)(x[0]); nn.ReplicationPad1d((1, 3))(x[0])",
    ),
)
