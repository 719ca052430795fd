"""Layers of networks: convolutions, pooling, norms, products, attention, resampling, losses."""

from tests.core.lowering.operator_table.drawing import (
    F32,
    FLOATS,
    SIGNED,
    WIDE_FLOATS,
    Tensors,
    flag,
    like,
    one_of,
)
from tests.core.lowering.operator_table.entries import Entry

_SEQUENCE = Tensors(FLOATS, (2, 4, 10))
_IMAGE = Tensors(FLOATS, (2, 4, 9, 8))
_VOLUME = Tensors(FLOATS, (1, 2, 4, 5, 4))
_WITHOUT = "no relax operator for"

ENTRIES = (
    Entry(
        "conv1d",
        {
            "x": _SEQUENCE,
            "w": Tensors("x", (6, 2, 3)),
            "s": one_of(1, 2),
            "p": one_of(0, 1, "same"),
            "d": one_of(1, 2),
        },
        (
            "F.conv1d(x, w, padding=2, groups=2)",
            "torch.conv1d(x, w, stride=s, dilation=d, groups=2)",
            "F.conv1d(x[0], w, groups=2)",
            "nn.Conv1d(4, 6, 3, padding=p, dilation=d)(x)",
            "nn.Conv1d(4, 4, 3, s, padding=2, groups=2, bias=False)(x)",
            "nn.Conv1d(4, 4, 3, padding=1, padding_mode='circular')(x)",
            "nn.Conv1d(4, 4, 3, stride=2, dilation=2, groups=2, bias=False)(x)",
        ),
    ),
    Entry(
        "conv2d",
        {
            "x": _IMAGE,
            "w": Tensors("x", (6, 4, 3, 2)),
            "b": Tensors("x", (6,)),
            "s": one_of(1, 2, (2, 1)),
            "p": one_of(0, 1, (1, 2)),
        },
        (
            "F.conv2d(x, w, b, s, p)",
            "torch.conv2d(input=x, weight=w, padding=p)",
            "F.conv2d(x[0], w, b)",
            "nn.Conv2d(4, 6, (3, 2), s, p, (1, 2), groups=2)(x)",
            "nn.Conv2d(4, 4, 3, padding=1, groups=4)(x)",
            "F.conv2d(x, w, b, stride=2, padding=1)",
            "nn.Conv2d(4, 3, 3)(x)",
            "aten.conv2d.default(x, w, b, [1, 1], [1, 1])",
            "aten.convolution.default(x, w, b, [1, 2], [0, 1], [1, 1], False, [0, 0], 1)",
        ),
    ),
    Entry(
        "conv2d with padding by name",
        {
            "x": Tensors(F32, (2, 4, 9, 8)),
            "mode": one_of("reflect", "replicate", "circular", "zeros"),
        },
        (
            "nn.Conv2d(4, 3, (3, 4), padding='same')(x)",
            "nn.Conv2d(4, 3, 3, padding='valid')(x)",
            "nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode=mode)(x)",
        ),
    ),
    Entry(
        "conv3d",
        {"x": _VOLUME, "w": Tensors("x", (2, 2, 2, 3, 2))},
        (
            "F.conv3d(x, w, stride=2, padding=1)",
            "nn.Conv3d(2, 3, 3, padding=1)(x)",
            "nn.Conv3d(2, 3, 3, padding=1, stride=2)(x)",
            "nn.Conv3d(2, 2, 2, groups=2, dilation=2)(x)",
        ),
    ),
    Entry(
        "conv_transpose1d",
        {"x": Tensors(("float32", "float64"), (2, 4, 10)), "w": Tensors("x", (4, 3, 4))},
        (
            "F.conv_transpose1d(x, w, stride=2, padding=1)",
            "nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1, output_padding=1)(x)",
            "nn.ConvTranspose1d(4, 4, 2, groups=2)(x)",
            "nn.ConvTranspose1d(4, 4, 3, dilation=2)(x)",
        ),
    ),
    Entry(
        "conv_transpose2d",
        {"x": Tensors(("float32", "float64"), (2, 4, 5, 6)), "w": Tensors("x", (4, 3, 3, 2))},
        (
            "F.conv_transpose2d(x, w, stride=2)",
            "torch.conv_transpose2d(x, w, padding=1)",
            "nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1)(x)",
            "nn.ConvTranspose2d(4, 6, 2, 2, groups=2, bias=False)(x)",
            "nn.ConvTranspose2d(4, 6, 3, dilation=2)(x)",
            "F.conv_transpose2d(x[0], w)",
            "nn.ConvTranspose2d(4, 6, 3, 2)(x, output_size=[12, 14])",
        ),
    ),
    Entry(
        "conv_transpose3d",
        {"x": Tensors(F32, (1, 2, 3, 3, 3)), "w": Tensors("x", (2, 2, 2, 2, 2))},
        ("F.conv_transpose3d(x, w, stride=2)", "nn.ConvTranspose3d(2, 2, 2, stride=2)(x)"),
        {"nn.ConvTranspose3d(2, 2, 2, dilation=2)(x)": "dilated"},
    ),
    Entry(
        "max_pool1d",
        {"x": _SEQUENCE, "up": flag()},
        (
            "F.max_pool1d(x, 3, 2, 1)",
            "torch.max_pool1d(x, 2)",
            "nn.MaxPool1d(3, ceil_mode=up)(x)",
            "F.max_pool1d(x[0], 2, dilation=2)",
        ),
    ),
    Entry(
        "max_pool2d",
        {"x": _IMAGE, "up": flag()},
        (
            "F.max_pool2d(x, 2)",
            "F.max_pool2d(x, (3, 2), stride=1, padding=1)",
            "torch.max_pool2d(x, 2, ceil_mode=up)",
            "nn.MaxPool2d(3, 2, 1, ceil_mode=up)(x)",
            "nn.MaxPool2d(2, dilation=2)(x)",
            "nn.MaxPool2d(3, stride=3, padding=1, ceil_mode=up)(x)",
            "F.max_pool2d(x[0], 3)",
            "aten.max_pool2d.default(x, [2, 2])",
        ),
        {
            "F.max_pool2d(x, 2, return_indices=True)": "indices",
            "nn.MaxPool2d(2, return_indices=True)(x)": "indices",
        },
    ),
    Entry("max_pool3d", {"x": _VOLUME}, ("F.max_pool3d(x, 2)", "nn.MaxPool3d(2, padding=1)(x)")),
    Entry(
        "avg_pool1d",
        {"x": _SEQUENCE},
        (
            "F.avg_pool1d(x, 3, 2, 1)",
            "nn.AvgPool1d(2)(x)",
            "nn.AvgPool1d(3, ceil_mode=True, count_include_pad=False)(x)",
        ),
    ),
    Entry(
        "avg_pool2d",
        {"x": _IMAGE, "include": flag()},
        (
            "F.avg_pool2d(x, 2)",
            "F.avg_pool2d(x, 3, 2, 1, count_include_pad=include)",
            "nn.AvgPool2d(3, 2, 1, count_include_pad=include)(x)",
            "nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)(x)",
            "F.avg_pool2d(x[0], (3, 2))",
            "F.avg_pool2d(x, 2, divisor_override=3)",
            "aten.avg_pool2d.default(x, [2, 2])",
        ),
        {"F.avg_pool2d(x, 3, 2, ceil_mode=True)": "ceil_mode"},
    ),
    Entry(
        "avg_pool3d",
        {"x": Tensors(("float32", "float64"), (1, 2, 4, 5, 4))},
        ("F.avg_pool3d(x, 2)", "nn.AvgPool3d(2)(x)"),
    ),
    Entry(
        "lp_pool2d",
        {"x": Tensors(F32, (2, 4, 9, 8), low=0.1)},
        (
            "F.lp_pool2d(x, 2, 2)",
            "nn.LPPool2d(3, 2)(x)",
        ),
        loose_export=True,
    ),
    Entry(
        "adaptive_avg_pool1d",
        {"x": _SEQUENCE, "n": one_of(1, 3, 5)},
        ("F.adaptive_avg_pool1d(x, n)", "nn.AdaptiveAvgPool1d(n)(x)"),
    ),
    Entry(
        "adaptive_avg_pool2d",
        {"x": _IMAGE, "n": one_of(1, (4, 3), (None, 5))},
        (
            "F.adaptive_avg_pool2d(x, n)",
            "nn.AdaptiveAvgPool2d(n)(x)",
            "F.adaptive_avg_pool2d(x[0], 2)",
            "aten.adaptive_avg_pool2d.default(x, [1, 1])",
        ),
    ),
    Entry(
        "adaptive_avg_pool3d",
        {"x": _VOLUME},
        ("F.adaptive_avg_pool3d(x, 2)", "nn.AdaptiveAvgPool3d((1, 2, 3))(x)"),
    ),
    Entry(
        "adaptive_max_pool2d",
        {"x": _IMAGE},
        (
            "F.adaptive_max_pool2d(x, (3, 4))",
            "nn.AdaptiveMaxPool2d(1)(x)",
            "nn.AdaptiveMaxPool1d(2)(x[0, :, :8])",
        ),
        {
            "F.adaptive_max_pool2d(x, (4, 3))": "does not divide",
            "F.adaptive_max_pool2d(x, 3, return_indices=True)": "indices",
        },
        loose_export=True,
    ),
    Entry(
        "max_unpool2d",
        {"x": Tensors(F32, (1, 2, 4, 4))},
        in_torch={
            "F.max_unpool2d(F.max_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True)[1], 2)": _WITHOUT
        },
    ),
    Entry(
        "BatchNorm1d",
        {"x": Tensors(FLOATS, (3, 4))},
        (
            "nn.BatchNorm1d(4)(x)",
            "nn.BatchNorm1d(4, affine=False)(x)",
            "nn.BatchNorm1d(4)(x[..., None].expand(3, 4, 5))",
            "nn.BatchNorm1d(4, track_running_stats=False)(x)",
        ),
    ),
    Entry(
        "BatchNorm2d",
        {"x": _IMAGE},
        (
            "nn.BatchNorm2d(4, eps=1e-3)(x)",
            "nn.BatchNorm2d(4, affine=False)(x)",
            "nn.BatchNorm2d(4, track_running_stats=False)(x)",
        ),
    ),
    Entry("BatchNorm3d", {"x": _VOLUME}, ("nn.BatchNorm3d(2)(x)",)),
    Entry(
        "batch_norm",
        {
            "x": _IMAGE,
            "m": Tensors("x", (4,)),
            "v": Tensors("x", (4,), low=0.5),
            "w": Tensors("x", (4,)),
        },
        (
            "F.batch_norm(x, m, v, eps=0.1)",
            "F.batch_norm(x, m, v, w, m)",
            "torch.batch_norm(x, w, m, m, v, False, 0.1, 1e-5, False)",
        ),
    ),
    Entry(
        "batch norm in training mode",
        {"x": Tensors(WIDE_FLOATS, (3, 4, 5, 6))},
        (
            "F.batch_norm(x, None, None, training=True)",
            "trained(nn.BatchNorm2d(4, track_running_stats=False))(x)",
        ),
        {
            "trained(nn.BatchNorm2d(4))(x)": "training mode",
            "F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), training=True)": "training mode",
        },
        tracers=("fx",),
    ),
    Entry(
        "layer_norm",
        {"x": Tensors(FLOATS, (2, 5, 8)), "w": Tensors("x", (8,))},
        (
            "F.layer_norm(x, (8,))",
            "F.layer_norm(x, (8,), w, w, 1e-2)",
            "nn.LayerNorm(8)(x)",
            "nn.LayerNorm((5, 8), eps=1e-2)(x)",
            "nn.LayerNorm(8, elementwise_affine=False)(x)",
            "nn.LayerNorm(8, bias=False)(x)",
            "aten.layer_norm.default(x, [8], w, w)",
            "aten.native_layer_norm.default(x, [8], w, w, 1e-5)[0]",
        ),
        loose_export=True,
    ),
    Entry(
        "layer_norm in double",
        {"x": Tensors(("float64",), (2, 5, 8)), "w": Tensors("x", (8,))},
        ("F.layer_norm(x, (8,), w, w)", "nn.LayerNorm((5, 8), bias=False)(x)"),
    ),
    Entry(
        "rms_norm",
        {"x": Tensors(FLOATS, (2, 5, 8)), "w": Tensors("x", (8,))},
        (
            "F.rms_norm(x, (8,))",
            "F.rms_norm(x, (8,), w, 1e-3)",
            "nn.RMSNorm(8)(x)",
            "nn.RMSNorm((5, 8))(x)",
            "aten.rms_norm.default(x, [8], w)",
        ),
    ),
    Entry(
        "group_norm",
        {"x": _IMAGE, "w": Tensors("x", (4,))},
        (
            "F.group_norm(x, 2)",
            "F.group_norm(x, 2, w, w)",
            "nn.GroupNorm(2, 4)(x)",
            "nn.GroupNorm(4, 4, affine=False)(x)",
            "aten.group_norm.default(x, 2, w, w)",
        ),
    ),
    Entry(
        "instance_norm",
        {"x": _IMAGE},
        (
            "F.instance_norm(x)",
            "nn.InstanceNorm2d(4)(x)",
            "nn.InstanceNorm2d(4, track_running_stats=True)(x)",
            "nn.InstanceNorm2d(4, affine=True, track_running_stats=True)(x)",
            "nn.InstanceNorm1d(4, affine=True)(x.flatten(2))",
        ),
        tolerance=5e-4,
    ),
    Entry(
        "local_response_norm",
        {"x": Tensors(F32, (2, 4, 5, 5))},
        (
            "F.local_response_norm(x, 3)",
            "nn.LocalResponseNorm(2)(x)",
        ),
        loose_export=True,
    ),
    Entry(
        "normalize",
        {"x": Tensors(FLOATS, (2, 5, 4)), "p": one_of(1, 2, 3)},
        ("F.normalize(x)", "F.normalize(x, dim=-1)", "F.normalize(x, p=p, dim=0)"),
    ),
    Entry(
        "linear",
        {"x": Tensors(FLOATS, (2, 3, 5)), "w": Tensors("x", (4, 5)), "b": Tensors("x", (4,))},
        (
            "F.linear(x, w, b)",
            "F.linear(x[0], w)",
            "F.linear(x, w, bias=b)",
            "F.linear(x, weight=w, bias=b)",
            "nn.Linear(5, 3)(x)",
            "nn.Linear(5, 3, bias=False)(x[0])",
            "nn.Linear(5, 3)(x[0, 0])",
            "aten.linear.default(x, w, b)",
        ),
    ),
    Entry(
        "bilinear",
        {"x": Tensors(F32, (2, 3)), "y": Tensors(F32, (2, 4))},
        (
            "nn.Bilinear(3, 4, 2)(x, y)",
            "nn.Bilinear(3, 4, 2, bias=False)(x[None], y[None])",
            "F.bilinear(x, y, torch.ones(2, 3, 4))",
        ),
    ),
    Entry(
        "matmul",
        {"x": Tensors((*FLOATS, *SIGNED), (2, 3, 4)), "y": Tensors("x", (2, 4, 5))},
        (
            "x @ y",
            "torch.matmul(x, y)",
            "x.matmul(y[0])",
            "torch.matmul(x[0], y)",
            "x[0] @ y[0]",
            "x[0, 0] @ y[0]",
            "x @ y[0, :, 0]",
            "aten.matmul.default(x, y)",
        ),
    ),
    Entry(
        "mm",
        {"x": Tensors((*FLOATS, "int64"), (3, 4)), "y": Tensors("x", (4, 5))},
        ("torch.mm(x, y)", "x.mm(y)", "aten.mm.default(x, y)"),
    ),
    Entry(
        "bmm",
        {"x": Tensors((*FLOATS, "int64"), (2, 3, 4)), "y": Tensors("x", (2, 4, 5))},
        ("torch.bmm(x, y)", "x.bmm(y)", "aten.bmm.default(x, y)"),
    ),
    Entry(
        "mv",
        {"x": Tensors((*FLOATS, "int64"), (3, 4)), "y": Tensors("x", (4,))},
        (
            "torch.mv(x, y)",
            "x.mv(y)",
            "torch.dot(x[0], y)",
            "torch.inner(x, y)",
            "torch.vdot(x[0], y)",
        ),
    ),
    Entry(
        "addmm",
        {
            "x": Tensors((*FLOATS, "int64"), (3, 5)),
            "y": Tensors("x", (3, 4)),
            "z": Tensors("x", (4, 5)),
        },
        (
            "torch.addmm(x, y, z)",
            "torch.addmm(x[0], y, z, beta=2, alpha=3)",
            "x.addmm(y, z)",
            "torch.addmm(x, y, z, beta=0)",
            "aten.addmm.default(x, y, z)",
            "torch.addmv(x[:, 0], y, z[:, 0])",
        ),
    ),
    Entry(
        "baddbmm",
        {
            "x": Tensors((*FLOATS, "int64"), (2, 3, 5)),
            "y": Tensors("x", (2, 3, 4)),
            "z": Tensors("x", (2, 4, 5)),
        },
        (
            "torch.baddbmm(x, y, z)",
            "x.baddbmm(y, z, beta=2, alpha=3)",
            "aten.baddbmm.default(x, y, z)",
            "torch.addbmm(x[0], y, z)",
        ),
    ),
    Entry(
        "outer",
        {"x": Tensors((*FLOATS, "int64"), (3,)), "y": Tensors("x", (4,))},
        ("torch.outer(x, y)", "x.outer(y)", "torch.ger(x, y)"),
    ),
    Entry(
        "kron",
        {
            "x": Tensors(("float32", "int64"), (2, 3), layouts=("contiguous",)),
            "y": Tensors("x", (2, 2), layouts=("contiguous",)),
        },
        ("torch.kron(x, y)",),
        loose_export=True,
    ),
    Entry(
        "cross",
        {"x": Tensors(("float32", "int64"), (2, 3)), "y": Tensors("x", (2, 3))},
        (
            "torch.cross(x, y, dim=1)",
            "torch.linalg.cross(x, y)",
        ),
        loose_export=True,
    ),
    Entry(
        "tensordot",
        {"x": Tensors(("float32", "float64"), (2, 3, 4)), "y": Tensors("x", (4, 3, 5))},
        (
            "torch.tensordot(x, y, dims=([1, 2], [1, 0]))",
            "torch.tensordot(x, y.transpose(0, 1), 2)",
        ),
        loose_export=True,
    ),
    Entry(
        "einsum",
        {"x": Tensors((*FLOATS, "int64"), (2, 3, 4)), "y": Tensors("x", (2, 4, 5))},
        (
            "torch.einsum('bij,bjk->bik', x, y)",
            "torch.einsum('...ij,...jk->...ik', x, y)",
            "torch.einsum('ij,kj', x[0], x[1])",
            "torch.einsum('bij->bji', x)",
            "torch.einsum('bij,bjk->ik', [x, y])",
            "torch.einsum('ij->', x[0])",
            "torch.einsum('bii->bi', y[:, :, :4])",
        ),
    ),
    Entry(
        # In half precision torch rounds between the two products, and nothing here does.
        "einsum of three",
        {"x": Tensors((*WIDE_FLOATS, "int64"), (2, 3, 4))},
        ("torch.einsum('bhi,bhj,bh->bij', x, x, x[..., 0])",),
    ),
    Entry(
        "chain_matmul",
        {"x": Tensors(F32, (2, 3)), "y": Tensors(F32, (3, 4))},
        ("torch.linalg.multi_dot([x, y])",),
        loose_export=True,
    ),
    Entry(
        "cdist",
        {"x": Tensors(("float32", "float64"), (2, 3, 4)), "y": Tensors("x", (2, 5, 4))},
        ("torch.cdist(x, y)", "torch.cdist(x[0], y[0], p=1)", "torch.cdist(x, y, p=3.0)"),
    ),
    Entry(
        "pairwise_distance",
        {"x": Tensors(("float32", "float64"), (3, 4)), "y": like("x")},
        (
            "F.pairwise_distance(x, y)",
            "nn.PairwiseDistance(p=1)(x, y)",
            "F.pairwise_distance(x, y, keepdim=True)",
        ),
    ),
    Entry(
        "cosine_similarity",
        {"x": Tensors(("float32", "float64"), (3, 4)), "y": like("x")},
        (
            "F.cosine_similarity(x, y)",
            "torch.cosine_similarity(x, y, dim=0)",
            "nn.CosineSimilarity(dim=-1)(x, y)",
        ),
    ),
    Entry(
        "linalg",
        {"x": Tensors(F32, (3, 3))},
        in_torch={
            "torch.linalg.inv(x + 9 * torch.eye(3))": _WITHOUT,
            "torch.linalg.det(x)": _WITHOUT,
            "torch.linalg.solve(x + 9 * torch.eye(3), x)": _WITHOUT,
            "torch.linalg.cholesky(x @ x.T + torch.eye(3))": _WITHOUT,
            "torch.linalg.svd(x)[1]": _WITHOUT,
        },
    ),
    Entry(
        "scaled_dot_product_attention",
        {"q": Tensors(FLOATS, (2, 2, 5, 4)), "k": like("q"), "v": like("q")},
        (
            "F.scaled_dot_product_attention(q, k, v)",
            "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
            "F.scaled_dot_product_attention(q, k, v, q @ q.mT, scale=0.3)",
            "F.scaled_dot_product_attention(q, k, v, attn_mask=(q @ q.mT) > 0)",
            "F.scaled_dot_product_attention(q[0], k[0], v[0])",
            "F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True)",
            "aten.scaled_dot_product_attention.default(q, k, v)",
        ),
    ),
    Entry(
        "MultiheadAttention",
        {"x": Tensors(("float32", "float64"), (5, 2, 8))},
        (
            "nn.MultiheadAttention(8, 2)(x, x, x)",
            "nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x, need_weights=False)[0]",
        ),
        loose_export=True,
    ),
    Entry(
        "TransformerEncoderLayer",
        {"x": Tensors(F32, (2, 5, 8))},
        ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(x)",),
        loose_export=True,
    ),
    Entry(
        "LSTM",
        {"x": Tensors(("float32", "float64"), (3, 2, 8))},
        (
            "nn.LSTM(8, 4)(x)[0][:, -1]",
            "nn.LSTM(8, 4, 2, bidirectional=True, batch_first=True)(x)",
            "nn.LSTMCell(8, 4)(x[0])",
        ),
        loose_export=True,
    ),
    Entry(
        "GRU",
        {"x": Tensors(("float32", "float64"), (3, 2, 8))},
        (
            "nn.GRU(8, 4, 2, bidirectional=True)(x)",
            "nn.GRUCell(8, 4)(x[0])",
        ),
        loose_export=True,
    ),
    Entry(
        "RNN",
        {"x": Tensors(F32, (3, 2, 8))},
        ("nn.RNN(8, 4)(x)", "nn.RNNCell(8, 4)(x[0])"),
        loose_export=True,
    ),
    Entry(
        "interpolate",
        {
            "x": Tensors(("float32", "float64"), (2, 3, 4, 5)),
            "mode": one_of("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
            "size": one_of((8, 10), (5, 20), (2, 3)),
        },
        (
            "F.interpolate(x, size, mode=mode)",
            "F.interpolate(x, scale_factor=2)",
            "F.interpolate(x, size=size, mode='bilinear', align_corners=True)",
            "nn.Upsample(scale_factor=2, mode='bilinear')(x)",
            "nn.Upsample(size)(x)",
            "nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)(x)",
            "F.interpolate(x, size=(5, 20))",
            "F.interpolate(x, size=(5, 20), mode='nearest-exact')",
            "F.interpolate(x, (12, 13), mode='bilinear', align_corners=True)",
            "nn.UpsamplingBilinear2d(scale_factor=2)(x)",
            "F.interpolate(x, scale_factor=2, mode='bicubic', align_corners=True)",
        ),
        {
            "F.interpolate(x, scale_factor=1.3)": "scale factor",
            "F.interpolate(x, (3, 3), mode='bilinear', antialias=True)": "antialiased",
        },
    ),
    Entry(
        "interpolate of a sequence",
        {"x": Tensors(F32, (2, 3, 6))},
        (
            "F.interpolate(x, 9)",
            "F.interpolate(x, 9, mode='linear')",
            "nn.Upsample(scale_factor=2)(x)",
        ),
    ),
    Entry(
        "interpolate of a volume",
        {"x": Tensors(F32, (1, 2, 3, 4, 3))},
        ("F.interpolate(x, scale_factor=2)", "F.interpolate(x, (3, 9, 5), mode='trilinear')"),
    ),
    Entry(
        "grid_sample",
        {
            "x": Tensors(F32, (2, 3, 5, 6)),
            "g": Tensors(F32, (2, 4, 7, 2), low=-1.3, high=1.3),
            "corners": flag(),
        },
        (
            "F.grid_sample(x, g, align_corners=corners)",
            "F.grid_sample(x, g, mode='nearest', align_corners=False)",
            "F.grid_sample(x, g, padding_mode='border', align_corners=corners)",
            "F.grid_sample(x, g, padding_mode='reflection', align_corners=False)",
        ),
        {"F.grid_sample(x, g, mode='bicubic', align_corners=False)": "bicubic"},
    ),
    Entry(
        "affine_grid",
        {"x": Tensors(F32, (2, 2, 3)), "corners": flag()},
        ("F.affine_grid(x, (2, 3, 4, 5), align_corners=corners)",),
    ),
    Entry(
        "unfold",
        {"x": Tensors(("float32", "float64"), (2, 3, 6, 5))},
        (
            "F.unfold(x, 2)",
            "F.unfold(x, (3, 2), padding=1, stride=2)",
            "nn.Unfold(2, dilation=2)(x)",
        ),
    ),
    Entry(
        "fold",
        {"x": Tensors(("float32", "float64"), (2, 12, 6))},
        in_torch={"F.fold(x, (3, 4), 2)": _WITHOUT, "nn.Fold((3, 4), 2)(x)": _WITHOUT},
    ),
    Entry(
        "cross_entropy",
        {
            "x": Tensors(("float32", "float64"), (3, 5)),
            "t": Tensors(("int64",), (3,), low=0, high=4),
            "how": one_of("mean", "sum", "none"),
        },
        (
            "F.cross_entropy(x, t)",
            "F.cross_entropy(x, t, reduction=how)",
            "nn.CrossEntropyLoss()(x, t)",
            "F.cross_entropy(x, torch.softmax(x, 1))",
            "F.cross_entropy(x, t, weight=x[0].abs(), reduction=how)",
            "F.cross_entropy(x.T[None], torch.tensor([[0, 2, 1]])[:, :3])",
            "F.cross_entropy(x, t, ignore_index=1)",
            "F.cross_entropy(x, t, ignore_index=2, label_smoothing=0.1, reduction=how)",
            "F.cross_entropy(x, torch.softmax(x, 1), label_smoothing=0.2)",
        ),
        {"F.cross_entropy(x, t, weight=x[0].abs(), label_smoothing=0.1)": "smooths its labels"},
    ),
    Entry(
        "nll_loss",
        {
            "x": Tensors(("float32", "float64"), (3, 5)),
            "t": Tensors(("int64",), (3,), low=0, high=4),
            "how": one_of("mean", "sum", "none"),
        },
        ("F.nll_loss(x, t)", "F.nll_loss(x, t, reduction=how)", "nn.NLLLoss()(x, t)"),
    ),
    *(
        Entry(
            name,
            {
                "x": Tensors(("float32", "float64"), rank=(1, 3)),
                "y": like("x"),
                "how": one_of("mean", "sum", "none"),
            },
            (
                f"F.{name}(x, y)",
                f"F.{name}(x, y, reduction=how)",
                f"nn.{module}()(x, y)",
                f"nn.{module}(reduction=how)(x, y)",
            ),
        )
        for name, module in {
            "mse_loss": "MSELoss",
            "l1_loss": "L1Loss",
            "smooth_l1_loss": "SmoothL1Loss",
            "huber_loss": "HuberLoss",
            "soft_margin_loss": "SoftMarginLoss",
        }.items()
    ),
    Entry(
        "binary_cross_entropy",
        {
            "x": Tensors(("float32", "float64"), rank=(1, 3), low=0.1, high=0.9),
            "y": like("x", low=0, high=1),
            "how": one_of("mean", "sum", "none"),
        },
        (
            "F.binary_cross_entropy(x, y)",
            "F.binary_cross_entropy(x, y, reduction=how)",
            "nn.BCELoss()(x, y)",
            "F.binary_cross_entropy_with_logits(x, y)",
            "nn.BCEWithLogitsLoss(reduction=how)(x, y)",
            "F.binary_cross_entropy_with_logits(x, y, pos_weight=x)",
        ),
    ),
    Entry(
        "kl_div",
        {
            "x": Tensors(("float32", "float64"), (3, 4)),
            "y": like("x", low=0.1, high=1),
            "how": one_of("mean", "sum", "none", "batchmean"),
        },
        ("F.kl_div(x, y, reduction=how)", "nn.KLDivLoss(reduction='sum', log_target=True)(x, y)"),
    ),
    Entry(
        "embedding losses",
        {"x": Tensors(F32, (3, 4)), "y": like("x")},
        (
            "F.triplet_margin_loss(x, y, x + 1)",
            "F.cosine_embedding_loss(x, y, torch.tensor([1.0, -1.0, 1.0]))",
            "F.margin_ranking_loss(x, y, torch.sign(x))",
            "F.hinge_embedding_loss(x, torch.sign(y))",
        ),
    ),
    Entry(
        "fft",
        {"x": Tensors(("float32", "float64"), (3, 8))},
        in_torch={
            "torch.fft.rfft(x).abs()": "no relax operator for fft_rfft",
            "torch.fft.fft(x).real": "no relax operator for fft_fft",
            "torch.fft.irfft(torch.fft.rfft(x))": "no relax operator for fft_rfft",
            "torch.view_as_real(torch.fft.fft2(x))": "no relax operator for fft_fft2",
        },
    ),
    Entry(
        "stft",
        {"x": Tensors(F32, (1, 32))},
        in_torch={
            "torch.stft(x, 8, window=torch.hann_window(8), return_complex=True).abs()": "no relax operator for stft"
        },
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
