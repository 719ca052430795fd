"""Convolutions, pooling and resampling."""

from tests.core.lowering.operator_table.drawing import F32, FLOATS, Tensors, flag, one_of
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
        "F.conv1d(x, w, padding=2, groups=2); torch.conv1d(x, w, stride=s, dilation=d, groups=2); "
        "F.conv1d(x[0], w, groups=2); nn.Conv1d(4, 6, 3, padding=p, dilation=d)(x); "
        "nn.Conv1d(4, 4, 3, s, padding=2, groups=2, bias=False)(x); "
        "nn.Conv1d(4, 4, 3, padding=1, padding_mode='circular')(x); "
        "nn.Conv1d(4, 4, 3, stride=2, dilation=2, groups=2, bias=False)(x)",
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
        "F.conv2d(x, w, b, s, p); torch.conv2d(input=x, weight=w, padding=p); "
        "F.conv2d(x[0], w, b); nn.Conv2d(4, 6, (3, 2), s, p, (1, 2), groups=2)(x); "
        "nn.Conv2d(4, 4, 3, padding=1, groups=4)(x); F.conv2d(x, w, b, stride=2, padding=1); "
        "nn.Conv2d(4, 3, 3)(x); aten.conv2d.default(x, w, b, [1, 1], [1, 1]); "
        "aten.convolution.default(x, w, b, [1, 2], [0, 1], [1, 1], False, [0, 0], 1)",
    ),
    Entry(
        "conv2d with padding by name",
        {
            "x": Tensors(F32, (2, 4, 9, 8)),
            "mode": one_of("reflect", "replicate", "circular", "zeros"),
        },
        "nn.Conv2d(4, 3, (3, 4), padding='same')(x); nn.Conv2d(4, 3, 3, padding='valid')(x); "
        "nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode=mode)(x)",
    ),
    Entry(
        "conv3d",
        {"x": _VOLUME, "w": Tensors("x", (2, 2, 2, 3, 2))},
        "F.conv3d(x, w, stride=2, padding=1); nn.Conv3d(2, 3, 3, padding=1)(x); "
        "nn.Conv3d(2, 3, 3, padding=1, stride=2)(x); nn.Conv3d(2, 2, 2, groups=2, dilation=2)(x)",
    ),
    Entry(
        "conv_transpose1d",
        {"x": Tensors(("float32", "float64"), (2, 4, 10)), "w": Tensors("x", (4, 3, 4))},
        "F.conv_transpose1d(x, w, stride=2, padding=1); "
        "nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1, output_padding=1)(x); "
        "nn.ConvTranspose1d(4, 4, 2, groups=2)(x); nn.ConvTranspose1d(4, 4, 3, dilation=2)(x)",
    ),
    Entry(
        "conv_transpose2d",
        {"x": Tensors(("float32", "float64"), (2, 4, 5, 6)), "w": Tensors("x", (4, 3, 3, 2))},
        "F.conv_transpose2d(x, w, stride=2); torch.conv_transpose2d(x, w, padding=1); "
        "nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1)(x); "
        "nn.ConvTranspose2d(4, 6, 2, 2, groups=2, bias=False)(x); "
        "nn.ConvTranspose2d(4, 6, 3, dilation=2)(x); F.conv_transpose2d(x[0], w); "
        "nn.ConvTranspose2d(4, 6, 3, 2)(x, output_size=[12, 14])",
    ),
    Entry(
        "conv_transpose3d",
        {"x": Tensors(F32, (1, 2, 3, 3, 3)), "w": Tensors("x", (2, 2, 2, 2, 2))},
        "F.conv_transpose3d(x, w, stride=2); nn.ConvTranspose3d(2, 2, 2, stride=2)(x)",
        {
            "nn.ConvTranspose3d(2, 2, 2, dilation=2)(x)": "it is a dilated transposed convolution in three dimensions"
        },
    ),
    Entry(
        "max_pool1d",
        {"x": _SEQUENCE, "up": flag()},
        "F.max_pool1d(x, 3, 2, 1); torch.max_pool1d(x, 2); nn.MaxPool1d(3, ceil_mode=up)(x); "
        "F.max_pool1d(x[0], 2, dilation=2)",
    ),
    Entry(
        "max_pool2d",
        {"x": _IMAGE, "up": flag()},
        "F.max_pool2d(x, 2); F.max_pool2d(x, (3, 2), stride=1, padding=1); "
        "torch.max_pool2d(x, 2, ceil_mode=up); nn.MaxPool2d(3, 2, 1, ceil_mode=up)(x); "
        "nn.MaxPool2d(2, dilation=2)(x); nn.MaxPool2d(3, stride=3, padding=1, ceil_mode=up)(x); "
        "F.max_pool2d(x[0], 3); aten.max_pool2d.default(x, [2, 2])",
        {
            "F.max_pool2d(x, 2, return_indices=True)": "TVM has no indices of a pooling",
            "nn.MaxPool2d(2, return_indices=True)(x)": "TVM has no indices of a pooling",
        },
    ),
    Entry("max_pool3d", {"x": _VOLUME}, "F.max_pool3d(x, 2); nn.MaxPool3d(2, padding=1)(x)"),
    Entry(
        "avg_pool1d",
        {"x": _SEQUENCE},
        "F.avg_pool1d(x, 3, 2, 1); nn.AvgPool1d(2)(x); "
        "nn.AvgPool1d(3, ceil_mode=True, count_include_pad=False)(x)",
    ),
    Entry(
        "avg_pool2d",
        {"x": _IMAGE, "include": flag()},
        "F.avg_pool2d(x, 2); F.avg_pool2d(x, 3, 2, 1, count_include_pad=include); "
        "nn.AvgPool2d(3, 2, 1, count_include_pad=include)(x); "
        "nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)(x); F.avg_pool2d(x[0], (3, 2)); "
        "F.avg_pool2d(x, 2, divisor_override=3); aten.avg_pool2d.default(x, [2, 2])",
        {
            "F.avg_pool2d(x, 3, 2, ceil_mode=True)": "with ceil_mode TVM divides the last windows by another count than torch"
        },
    ),
    Entry(
        "avg_pool3d",
        {"x": Tensors(("float32", "float64"), (1, 2, 4, 5, 4))},
        "F.avg_pool3d(x, 2); nn.AvgPool3d(2)(x)",
    ),
    Entry(
        "lp_pool2d",
        {"x": Tensors(F32, (2, 4, 9, 8), low=0.1)},
        "F.lp_pool2d(x, 2, 2); nn.LPPool2d(3, 2)(x)",
        loose_export=True,
    ),
    Entry(
        "adaptive_avg_pool1d",
        {"x": _SEQUENCE, "n": one_of(1, 3, 5)},
        "F.adaptive_avg_pool1d(x, n); nn.AdaptiveAvgPool1d(n)(x)",
    ),
    Entry(
        "adaptive_avg_pool2d",
        {"x": _IMAGE, "n": one_of(1, (4, 3), (None, 5))},
        "F.adaptive_avg_pool2d(x, n); nn.AdaptiveAvgPool2d(n)(x); F.adaptive_avg_pool2d(x[0], 2); "
        "aten.adaptive_avg_pool2d.default(x, [1, 1])",
    ),
    Entry(
        "adaptive_avg_pool3d",
        {"x": _VOLUME},
        "F.adaptive_avg_pool3d(x, 2); nn.AdaptiveAvgPool3d((1, 2, 3))(x)",
    ),
    Entry(
        "adaptive_max_pool2d",
        {"x": _IMAGE},
        "F.adaptive_max_pool2d(x, (3, 4)); nn.AdaptiveMaxPool2d(1)(x); "
        "nn.AdaptiveMaxPool1d(2)(x[0, :, :8])",
        {
            "F.adaptive_max_pool2d(x, (4, 3))": "its output size does not divide the input's",
            "F.adaptive_max_pool2d(x, 3, return_indices=True)": "TVM has no indices of a pooling",
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
        "interpolate",
        {
            "x": Tensors(("float32", "float64"), (2, 3, 4, 5)),
            "mode": one_of("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
            "size": one_of((8, 10), (5, 20), (2, 3)),
        },
        "F.interpolate(x, size, mode=mode); F.interpolate(x, scale_factor=2); "
        "F.interpolate(x, size=size, mode='bilinear', align_corners=True); "
        "nn.Upsample(scale_factor=2, mode='bilinear')(x); nn.Upsample(size)(x); "
        "nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)(x); "
        "F.interpolate(x, size=(5, 20)); F.interpolate(x, size=(5, 20), mode='nearest-exact'); "
        "F.interpolate(x, (12, 13), mode='bilinear', align_corners=True); "
        "nn.UpsamplingBilinear2d(scale_factor=2)(x); "
        "F.interpolate(x, scale_factor=2, mode='bicubic', align_corners=True); "
        "F.interpolate(x, (3, 3), mode='bilinear', antialias=True); "
        "F.interpolate(x, (6, 2), mode='bicubic', antialias=True)",
        {
            "F.interpolate(x, scale_factor=1.3)": "its scale factor gives no whole size, and TVM steps by the sizes",
        },
    ),
    Entry(
        "interpolate of a sequence",
        {"x": Tensors(F32, (2, 3, 6))},
        "F.interpolate(x, 9); F.interpolate(x, 9, mode='linear'); nn.Upsample(scale_factor=2)(x)",
    ),
    Entry(
        "interpolate of a volume",
        {"x": Tensors(F32, (1, 2, 3, 4, 3))},
        "F.interpolate(x, scale_factor=2); F.interpolate(x, (3, 9, 5), mode='trilinear')",
    ),
    Entry(
        "grid_sample",
        {
            "x": Tensors(F32, (2, 3, 5, 6)),
            "g": Tensors(F32, (2, 4, 7, 2), low=-1.3, high=1.3),
            "corners": flag(),
        },
        "F.grid_sample(x, g, align_corners=corners); "
        "F.grid_sample(x, g, mode='nearest', align_corners=False); "
        "F.grid_sample(x, g, padding_mode='border', align_corners=corners); "
        "F.grid_sample(x, g, padding_mode='reflection', align_corners=False)",
        {"F.grid_sample(x, g, mode='bicubic', align_corners=False)": "its mode is bicubic"},
    ),
    Entry(
        "affine_grid",
        {"x": Tensors(F32, (2, 2, 3)), "corners": flag()},
        "F.affine_grid(x, (2, 3, 4, 5), align_corners=corners)",
    ),
    Entry(
        "unfold",
        {"x": Tensors(("float32", "float64"), (2, 3, 6, 5))},
        "F.unfold(x, 2); F.unfold(x, (3, 2), padding=1, stride=2); nn.Unfold(2, dilation=2)(x)",
    ),
    Entry(
        "fold",
        {"x": Tensors(("float32", "float64"), (2, 12, 6))},
        "F.fold(x, (3, 4), 2); nn.Fold((3, 4), 2)(x); F.fold(x[0], (3, 4), 2); "
        "F.fold(x, (3, 3), (3, 2), dilation=2, padding=(2, 1), stride=(1, 2))",
    ),
)
