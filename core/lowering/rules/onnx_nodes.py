"""Nodes of ONNX models, by the converters of TVM's importer."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, as_tensor, cast
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.values import (
    HALF,
    Value,
    dtype_of,
    is_float,
    is_tensor,
    rank_of,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import OnnxNode

Attributes = dict[str, Any]


@exact(OnnxNode, name="onnx")
def onnx_node(b: NodeBuilder, module: OnnxNode, *inputs: Value) -> Value:
    from tvm.relax.frontend.onnx import onnx_frontend as importer

    converter = _converters().get(module.kind)
    if converter is None or module.domain not in _SETS.get(module.kind, ("",)):
        raise Refused(_("TVM's importer has no converter for it"))
    node = module.proto
    given = importer.onnx_input(inputs)
    if module.kind not in _ON_SHAPES:
        given = importer.onnx_input(as_tensor(b, each) for each in inputs)
    halves = {dtype_of(each) for each in given if is_tensor(each)} & set(HALF)
    half = halves.pop() if halves and module.kind not in _EXACT else ""
    if half:
        # As onnxruntime does on a processor, which has no arithmetic of half precision.
        given = importer.onnx_input(
            cast(b, each, "float32") if is_tensor(each) and dtype_of(each) == half else each
            for each in given
        )
    attributes = importer.ONNXGraphImporter({}, {})._parse_attr(node.attribute)
    attributes["tvm_custom"] = {"name": module.kind, "num_outputs": len(node.output)}
    wrong = _WRONG.get(module.kind)
    if wrong is not None and wrong(attributes, given):
        raise Refused(_("TVM's importer computes something else"))
    own = _OWN.get(module.kind)
    if own is not None:
        return _rounded(b, own(b, attributes, *given), half)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        value = converter.get_converter(module.version)(b, given, attributes, [{}, {}])
    members = _members(b, value)
    wanted = [index for index, name in enumerate(node.output) if name]
    if len(members) <= wanted[-1]:
        raise Refused(_("TVM's importer does not compute all of its outputs"))
    results = tuple(_rounded(b, b.emit(members[index]), half) for index in wanted)
    return results[0] if len(results) == 1 else results


@cache
def _converters() -> dict[str, Any]:
    from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

    found: dict[str, Any] = _get_convert_map()
    return found


def _members(b: NodeBuilder, value: Any) -> list[Any]:
    """Return the outputs of a converter, which returns one, a tuple, or a call of a tuple."""
    if isinstance(value, relax.Tuple):
        return list(value.fields)
    if isinstance(value, (tuple, list)):
        return list(value)
    if not is_tensor(value):
        value = b.normalize(value)
    if isinstance(value.ty, relax.TupleType):
        made = b.emit(value)
        return [relax.TupleGetItem(made, index) for index in range(len(value.ty.fields))]
    return [value]


def _rounded(b: NodeBuilder, value: Value, half: str) -> Value:
    return (
        cast(b, value, half)
        if half and is_tensor(value) and dtype_of(value) == "float32"
        else value
    )


_ON_SHAPES = frozenset(
    {
        *("Reshape", "Resize", "ConstantOfShape", "Gather", "Slice", "Shape", "Expand", "Concat"),
        *("Equal", "Where", "Cast", "CastLike", "Squeeze"),
    }
)
"""Operators whose converters take the shapes that others return in place of tensors."""

_SETS = {
    **dict.fromkeys(
        ("FastGelu", "BiasGelu", "SkipLayerNormalization", "EmbedLayerNormalization"),
        ("com.microsoft",),
    ),
    "Gelu": ("", "com.microsoft"),
}
"""Sets of the operators of each converter; ONNX's own for the others."""

_EXACT = frozenset(
    {
        *("Cast", "CastLike", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Concat"),
        *("Slice", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"),
        *("Split", "Expand", "Tile", "Pad", "Identity", "Where", "Shape", "Relu", "Neg", "Abs"),
        *("ConstantOfShape", "DepthToSpace", "SpaceToDepth", "Max", "Min", "Clip"),
        *("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "IsNaN", "IsInf"),
        *("QuantizeLinear", "DequantizeLinear"),
    }
)
"""Operators that move elements or round once."""


# --- Where TVM's converters are wrong ---


def _is_inf(b: NodeBuilder, attributes: Attributes, x: Value) -> Value:
    found = b.emit(op.isinf(x))
    zero = scalar(0, dtype_of(x))
    for name, side in (("detect_negative", op.greater), ("detect_positive", op.less)):
        if not attributes.get(name, 1):
            found = b.emit(op.logical_and(found, b.emit(side(x, zero))))
    return found


def _pow(b: NodeBuilder, attributes: Attributes, x: Value, y: Value) -> Value:
    wide = dtype_of(x) if is_float(dtype_of(x)) else "float64"
    made = b.emit(op.power(cast(b, x, wide), cast(b, y, wide)))
    return cast(b, made, dtype_of(x))


def _rms_normalization(b: NodeBuilder, attributes: Attributes, x: Value, scale: Value) -> Value:
    rank = rank_of(x)
    axes = list(range(attributes.get("axis", -1) % rank, rank))
    mean = b.emit(op.mean(b.emit(op.square(x)), axes, keepdims=True))
    root = b.emit(op.sqrt(b.emit(op.add(mean, scalar(attributes.get("epsilon", 1e-5), "float32")))))
    return b.emit(op.multiply(b.emit(op.divide(x, root)), scale))


_OWN: dict[str, Callable[..., Value]] = {
    "IsInf": _is_inf,
    "Pow": _pow,
    "RMSNormalization": _rms_normalization,
}
"""Conversions in place of TVM's, which ignore attributes, or make code that cannot be built."""


def _resizes_otherwise(attributes: Attributes, given: Sequence[Value]) -> bool:
    """Return whether TVM's resizing, which knows the sizes alone, differs from ONNX's."""
    if attributes.get("antialias") or attributes.get("exclude_outside"):
        return True
    if attributes.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return True
    # Before version 11 there is no region, and no size.
    scales = given[2] if len(given) > 2 else given[1]
    before = [each for each in shape_of(given[0]) if isinstance(each, int)]
    mode = attributes.get("coordinate_transformation_mode", b"half_pixel")
    sizes = given[3] if len(given) > 3 else None
    if isinstance(sizes, ir.GenericConst):
        after = [float(each) for each in sizes.value.numpy().tolist()]
    elif isinstance(scales, ir.GenericConst) and len(before) == scales.value.numpy().size:
        after = [a * b for a, b in zip(before, scales.value.numpy().tolist(), strict=True)]
    else:
        return mode not in _MODES
    # The scale of sizes that were rounded is another one.
    rounded = any(abs(each - round(each)) > 1e-3 for each in after)
    return rounded or mode not in _MODES or (mode == b"align_corners" and 1 in after[2:])


_MODES = (b"half_pixel", b"asymmetric", b"align_corners", b"pytorch_half_pixel")


def _reduces_otherwise(attributes: Attributes, given: Sequence[Value]) -> bool:
    return dtype_of(given[0]) == "bool" or 0 in shape_of(given[0])


_WRONG: dict[str, Callable[[Attributes, Sequence[Value]], bool]] = {
    "Resize": _resizes_otherwise,
    "ReduceMax": _reduces_otherwise,
    "ReduceMin": _reduces_otherwise,
    "BitShift": lambda attributes, given: dtype_of(given[0]).startswith("int"),
    "Mod": lambda attributes, given: is_float(dtype_of(given[0])) and not attributes.get("fmod"),
    "NonMaxSuppression": lambda attributes, given: True,
    "RoiAlign": lambda attributes, given: attributes.get("mode", b"avg") != b"avg",
}
"""Cases in which TVM's converters compute something else."""
