"""Operators that decompositions and Python's reversed operators call, and people hardly ever do."""

from tests.core.lowering.operator_table.drawing import Tensors
from tests.core.lowering.operator_table.entries import Entry

_FX = ("fx",)
_MATRIX = {"x": Tensors(("float32", "float64"), (3, 4))}
_ROWS = {"x": Tensors(("float32",), (2, 3, 8)), "w": Tensors(("float32",), (3,))}

ENTRIES = (
    Entry(
        "reversed operators",
        _MATRIX,
        "(x.abs() + 1).__rtruediv__(2.0); x.__rpow__(2.0)",
        tracers=_FX,
    ),
    Entry(
        "made of a size",
        _MATRIX,
        "torch.scalar_tensor(x.shape[0]) + x; torch.hann_window(x.shape[1]) + x; "
        "torch.hamming_window(x.shape[1]) + x; aten.eye.m(x.shape[0], x.shape[1]) + x",
        tracers=_FX,
    ),
    Entry(
        "is_floating_point",
        _MATRIX,
        "x * torch.is_floating_point(x); x * x.is_floating_point()",
        tracers=_FX,
    ),
    Entry(
        "distances and dropout as parts",
        {"x": Tensors(("float32",), (3, 4)), "y": Tensors(("float32",), (2, 4))},
        "aten._cdist_forward.default(x, y, 2.0, None); "
        "aten.native_dropout.default(x, 0.5, False)[0]",
        tracers=_FX,
    ),
    Entry(
        "norms as parts",
        _ROWS,
        "aten._native_batch_norm_legit_no_training.default(x, w, w, w, w.abs() + 0.5, 0.1, 1e-5)[0]; "
        "aten._native_batch_norm_legit.no_stats(x, w, w, True, 0.1, 1e-5)[0]; "
        "aten.native_group_norm.default(x, w, w, 2, 3, 8, 3, 1e-5)[0]",
        tracers=_FX,
    ),
    Entry(
        "max pooling as parts",
        _ROWS,
        "aten.max_pool1d_with_indices.default(x, [2])[0]; F.adaptive_max_pool1d(x, 4); "
        "aten.adaptive_max_pool1d.default(x, [4])[0]",
        in_torch={
            "torch.adaptive_max_pool1d(x, 4)[0]": "no relax operator for adaptive_max_pool1d"
        },
        tracers=_FX,
    ),
    Entry(
        "max pooling of volumes",
        {"x": Tensors(("float32",), (1, 2, 4, 4, 4))},
        "aten.max_pool3d_with_indices.default(x, [2, 2, 2])[0]; nn.AdaptiveMaxPool3d(2)(x); "
        "F.adaptive_max_pool3d(x, 2); aten.adaptive_max_pool3d.default(x, [2, 2, 2])[0]",
        tracers=_FX,
    ),
)
