"""Norms, attention, recurrent layers, losses and Fourier transforms."""

from tests.core.lowering.operator_table.drawing import (
    F32,
    FLOATS,
    WIDE_FLOATS,
    Tensors,
    like,
    one_of,
)
from tests.core.lowering.operator_table.entries import Entry

_IMAGE = Tensors(FLOATS, (2, 4, 9, 8))
_VOLUME = Tensors(FLOATS, (1, 2, 4, 5, 4))

ENTRIES = (
    Entry(
        "BatchNorm1d",
        {"x": Tensors(FLOATS, (3, 4))},
        "nn.BatchNorm1d(4)(x); nn.BatchNorm1d(4, affine=False)(x); "
        "nn.BatchNorm1d(4)(x[..., None].expand(3, 4, 5)); "
        "nn.BatchNorm1d(4, track_running_stats=False)(x)",
    ),
    Entry(
        "BatchNorm2d",
        {"x": _IMAGE},
        "nn.BatchNorm2d(4, eps=1e-3)(x); nn.BatchNorm2d(4, affine=False)(x); "
        "nn.BatchNorm2d(4, track_running_stats=False)(x)",
    ),
    Entry("BatchNorm3d", {"x": _VOLUME}, "nn.BatchNorm3d(2)(x)"),
    Entry(
        "batch_norm",
        {
            "x": _IMAGE,
            "m": Tensors("x", (4,)),
            "v": Tensors("x", (4,), low=0.5),
            "w": Tensors("x", (4,)),
        },
        "F.batch_norm(x, m, v, eps=0.1); F.batch_norm(x, m, v, w, m); "
        "torch.batch_norm(x, w, m, m, v, False, 0.1, 1e-5, False)",
    ),
    Entry(
        "batch norm in training mode",
        {"x": Tensors(WIDE_FLOATS, (3, 4, 5, 6))},
        "F.batch_norm(x, None, None, training=True); "
        "trained(nn.BatchNorm2d(4, track_running_stats=False))(x)",
        {
            "trained(nn.BatchNorm2d(4))(x)": "it is in training mode",
            "F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), training=True)": "it is in training mode",
        },
        tracers=("fx",),
    ),
    Entry(
        "layer_norm",
        {"x": Tensors(FLOATS, (2, 5, 8)), "w": Tensors("x", (8,))},
        "F.layer_norm(x, (8,)); F.layer_norm(x, (8,), w, w, 1e-2); nn.LayerNorm(8)(x); "
        "nn.LayerNorm((5, 8), eps=1e-2)(x); nn.LayerNorm(8, elementwise_affine=False)(x); "
        "nn.LayerNorm(8, bias=False)(x); aten.layer_norm.default(x, [8], w, w); "
        "aten.native_layer_norm.default(x, [8], w, w, 1e-5)[0]",
        loose_export=True,
    ),
    Entry(
        "layer_norm in double",
        {"x": Tensors(("float64",), (2, 5, 8)), "w": Tensors("x", (8,))},
        "F.layer_norm(x, (8,), w, w); nn.LayerNorm((5, 8), bias=False)(x)",
    ),
    Entry(
        # As torch.autocast leaves them.
        "normalisation with wide weights",
        {
            "x": Tensors(("float16", "bfloat16"), (2, 4, 8)),
            "w": Tensors(("float32",), (8,)),
            "c": Tensors(("float32",), (4,), low=0.5),
        },
        "F.layer_norm(x, (8,), w, w); F.group_norm(x, 2, c, c); F.batch_norm(x, c, c, c, c); "
        "F.instance_norm(x, weight=c, bias=c)",
    ),
    Entry(
        "rms_norm",
        {"x": Tensors(FLOATS, (2, 5, 8)), "w": Tensors("x", (8,))},
        "F.rms_norm(x, (8,)); F.rms_norm(x, (8,), w, 1e-3); nn.RMSNorm(8)(x); "
        "nn.RMSNorm((5, 8))(x); aten.rms_norm.default(x, [8], w)",
    ),
    Entry(
        "group_norm",
        {"x": _IMAGE, "w": Tensors("x", (4,))},
        "F.group_norm(x, 2); F.group_norm(x, 2, w, w); nn.GroupNorm(2, 4)(x); "
        "nn.GroupNorm(4, 4, affine=False)(x); aten.group_norm.default(x, 2, w, w)",
    ),
    Entry(
        "instance_norm",
        {"x": _IMAGE},
        "F.instance_norm(x); nn.InstanceNorm2d(4)(x); "
        "nn.InstanceNorm2d(4, track_running_stats=True)(x); "
        "nn.InstanceNorm2d(4, affine=True, track_running_stats=True)(x); "
        "nn.InstanceNorm1d(4, affine=True)(x.flatten(2))",
        tolerance=5e-4,
    ),
    Entry(
        "local_response_norm",
        {"x": Tensors(F32, (2, 4, 5, 5))},
        "F.local_response_norm(x, 3); nn.LocalResponseNorm(2)(x)",
        loose_export=True,
    ),
    Entry(
        "normalize",
        {"x": Tensors(FLOATS, (2, 5, 4)), "p": one_of(1, 2, 3)},
        "F.normalize(x); F.normalize(x, dim=-1); F.normalize(x, p=p, dim=0)",
    ),
    Entry(
        "scaled_dot_product_attention",
        {"q": Tensors(FLOATS, (2, 2, 5, 4)), "k": like("q"), "v": like("q")},
        "F.scaled_dot_product_attention(q, k, v); "
        "F.scaled_dot_product_attention(q, k, v, is_causal=True); "
        "F.scaled_dot_product_attention(q, k, v, q @ q.mT, scale=0.3); "
        "F.scaled_dot_product_attention(q, k, v, attn_mask=(q @ q.mT) > 0); "
        "F.scaled_dot_product_attention(q[0], k[0], v[0]); "
        "F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True); "
        "aten.scaled_dot_product_attention.default(q, k, v)",
    ),
    Entry(
        "MultiheadAttention",
        {"x": Tensors(("float32", "float64"), (5, 2, 8))},
        "nn.MultiheadAttention(8, 2)(x, x, x); "
        "nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x, need_weights=False)[0]",
        loose_export=True,
    ),
    Entry(
        "TransformerEncoderLayer",
        {"x": Tensors(F32, (2, 5, 8))},
        "nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(x)",
        loose_export=True,
    ),
    Entry(
        "LSTM",
        {"x": Tensors(("float32", "float64"), (3, 2, 8))},
        "nn.LSTM(8, 4)(x)[0][:, -1]; nn.LSTM(8, 4, 2, bidirectional=True, batch_first=True)(x); "
        "nn.LSTMCell(8, 4)(x[0])",
        loose_export=True,
    ),
    Entry(
        "GRU",
        {"x": Tensors(("float32", "float64"), (3, 2, 8))},
        "nn.GRU(8, 4, 2, bidirectional=True)(x); nn.GRUCell(8, 4)(x[0])",
        loose_export=True,
    ),
    Entry(
        "RNN",
        {"x": Tensors(F32, (3, 2, 8))},
        "nn.RNN(8, 4)(x); nn.RNNCell(8, 4)(x[0])",
        loose_export=True,
    ),
    Entry(
        "cross_entropy",
        {
            "x": Tensors(("float32", "float64"), (3, 5)),
            "t": Tensors(("int64",), (3,), low=0, high=4),
            "how": one_of("mean", "sum", "none"),
        },
        "F.cross_entropy(x, t); F.cross_entropy(x, t, reduction=how); "
        "nn.CrossEntropyLoss()(x, t); F.cross_entropy(x, torch.softmax(x, 1)); "
        "F.cross_entropy(x, t, weight=x[0].abs(), reduction=how); "
        "F.cross_entropy(x.T[None], torch.tensor([[0, 2, 1]])[:, :3]); "
        "F.cross_entropy(x, t, ignore_index=1); "
        "F.cross_entropy(x, t, ignore_index=2, label_smoothing=0.1, reduction=how); "
        "F.cross_entropy(x, torch.softmax(x, 1), label_smoothing=0.2)",
        {
            "F.cross_entropy(x, t, weight=x[0].abs(), label_smoothing=0.1)": "it smooths its labels, and has weights"
        },
    ),
    Entry(
        "nll_loss",
        {
            "x": Tensors(("float32", "float64"), (3, 5)),
            "t": Tensors(("int64",), (3,), low=0, high=4),
            "how": one_of("mean", "sum", "none"),
        },
        "F.nll_loss(x, t); F.nll_loss(x, t, reduction=how); nn.NLLLoss()(x, t)",
    ),
    *(
        Entry(
            name,
            {
                "x": Tensors(("float32", "float64"), rank=(1, 3)),
                "y": like("x"),
                "how": one_of("mean", "sum", "none"),
            },
            f"F.{name}(x, y); F.{name}(x, y, reduction=how); nn.{module}()(x, y); "
            f"nn.{module}(reduction=how)(x, y)",
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
        "F.binary_cross_entropy(x, y); F.binary_cross_entropy(x, y, reduction=how); "
        "nn.BCELoss()(x, y); F.binary_cross_entropy_with_logits(x, y); "
        "nn.BCEWithLogitsLoss(reduction=how)(x, y); "
        "F.binary_cross_entropy_with_logits(x, y, pos_weight=x)",
    ),
    Entry(
        "kl_div",
        {
            "x": Tensors(("float32", "float64"), (3, 4)),
            "y": like("x", low=0.1, high=1),
            "how": one_of("mean", "sum", "none", "batchmean"),
        },
        "F.kl_div(x, y, reduction=how); nn.KLDivLoss(reduction='sum', log_target=True)(x, y)",
    ),
    Entry(
        "embedding losses",
        {"x": Tensors(F32, (3, 4)), "y": like("x")},
        "F.triplet_margin_loss(x, y, x + 1); "
        "F.cosine_embedding_loss(x, y, torch.tensor([1.0, -1.0, 1.0])); "
        "F.margin_ranking_loss(x, y, torch.sign(x)); F.hinge_embedding_loss(x, torch.sign(y))",
    ),
    Entry(
        "fft",
        {"x": Tensors(("float32", "float64"), (3, 8))},
        "torch.fft.rfft(x).abs(); torch.fft.fft(x).real; torch.fft.irfft(torch.fft.rfft(x)); "
        "torch.view_as_real(torch.fft.fft2(x))",
    ),
    Entry(
        "complex numbers",
        {"x": Tensors(("float32", "float64"), (3, 4, 2))},
        "torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(x + 1)); "
        "torch.view_as_complex(x).abs(); torch.polar(x, x).real",
    ),
    Entry(
        "stft",
        {"x": Tensors(F32, (1, 32))},
        "torch.stft(x, 8, window=torch.hann_window(8), return_complex=True).abs()",
    ),
)
