"""Nodes of ONNX models, by the converters of TVM's importer."""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import cache
from typing import Any

from tvm import relax

from lowerscope.core.lowering.builder import NodeBuilder, as_tensor, cast
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.values import HALF, Value, dtype_of, is_tensor
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import OnnxNode


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
