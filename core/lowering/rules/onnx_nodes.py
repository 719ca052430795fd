"""Nodes of ONNX models, by the converters of TVM's importer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from tvm import ir, relax, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, as_tensor, cast
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.rules.creation import in_dtype
from lowerscope.core.lowering.rules.onnx_contributed import CONTRIBUTED
from lowerscope.core.lowering.rules.onnx_operators import OWN, WRONG, converted, converters
from lowerscope.core.lowering.values import (
    HALF,
    Value,
    dtype_of,
    is_size,
    is_tensor,
    rank_of,
    simplified,
)
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import OnnxNode


@exact(OnnxNode, name="onnx")
def onnx_node(b: NodeBuilder, module: OnnxNode, *inputs: Value) -> Value:
    from tvm.relax.frontend.onnx import onnx_frontend as importer

    converter = converters().get(module.kind)
    own = {"": OWN, "com.microsoft": CONTRIBUTED}.get(module.domain, {}).get(module.kind)
    if own is None and (converter is None or module.domain not in _SETS.get(module.kind, ("",))):
        raise Refused(_("TVM's importer has no converter for it"))
    if module.kind in _SEQUENCES or any(isinstance(each, (tuple, list)) for each in inputs):
        raise Refused(_("it computes with a sequence of tensors"))
    if module.tensors and not module.domain:
        raise Refused(_("some of its inputs are part of it"))
    node = module.proto
    takes = _shape_itself if module.kind in _ON_SHAPES else as_tensor
    given = importer.onnx_input(
        b.constant(each) if isinstance(each, torch.Tensor) else takes(b, each)
        for each in module.arranged(inputs)
    )
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
    attributes["version"] = module.version
    wrong = WRONG.get(module.kind)
    if wrong is not None and wrong(attributes, given):
        raise Refused(_("TVM's importer computes something else"))
    sizes = _sizes(b, module, inputs)
    value = None
    if sizes is not None:
        value = _OF_SIZES[module.kind](b, *sizes)
    elif own is not None:
        value = own(b, attributes, *given)
    if value is None:
        value = converted(b, module.kind, module.version, given, attributes)
    members = _members(b, value)
    wanted = [index for index, name in enumerate(node.output) if name]
    if len(members) <= wanted[-1]:
        raise Refused(_("TVM's importer does not compute all of its outputs"))
    results = tuple(_rounded(b, b.emit(members[index]), half) for index in wanted)
    return results[0] if len(results) == 1 else results


def _shape_itself(b: NodeBuilder, value: Value) -> Value:
    """Return the shape or size that a variable is bound to: converters ask for its class."""
    if isinstance(value, relax.Var) and not is_tensor(value):
        bound = b.lookup_binding(value)
        if isinstance(bound, relax.ShapeExpr) or is_size(bound):
            return bound
    return value


def _sizes(b: NodeBuilder, module: OnnxNode, inputs: Sequence[Value]) -> list[Any] | None:
    """Return the inputs of an operator on sizes; ``None`` if there are none, or others as well."""
    if module.kind not in _OF_SIZES or module.domain:
        return None
    given = [_shape_itself(b, each) for each in inputs]
    if not any(is_size(each) and str(each.ty.dtype) == "int64" for each in given):
        return None
    found = []
    for each in given:
        if isinstance(each, ir.GenericConst) and rank_of(each) == 0 and dtype_of(each) == "int64":
            each = tirx.IntImm("int64", each.value.numpy().item())
        if not is_size(each) or str(each.ty.dtype) != "int64":
            return None
        found.append(each)
    return found


_OF_SIZES: dict[str, Callable[..., Value]] = {
    "Add": lambda _b, first, second: simplified(first + second),
    "Sub": lambda _b, first, second: simplified(first - second),
    "Mul": lambda _b, first, second: simplified(first * second),
    "Range": lambda b, start, end, step: b.emit(op.arange(start, end, step, "int64")),
}
"""Values of operators on sizes in place of tensors."""


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
        in_dtype(b, value, half)
        if half and is_tensor(value) and dtype_of(value) == "float32"
        else value
    )


_ON_SHAPES = frozenset(
    {
        *("Reshape", "Resize", "ConstantOfShape", "Gather", "Slice", "Shape", "Expand", "Concat"),
        *("Equal", "Where", "Cast", "CastLike", "Squeeze", "Unsqueeze"),
    }
)
"""Operators whose converters take the shapes that others return in place of tensors."""

_SEQUENCES = frozenset(
    {
        *("SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceMap"),
        *("SplitToSequence", "SequenceAt", "SequenceLength", "ConcatFromSequence"),
    }
)
"""Operators of sequences: a Relax module has none whose length changes."""

_SETS = {
    **dict.fromkeys(("FastGelu", "BiasGelu", "EmbedLayerNormalization"), ("com.microsoft",)),
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
