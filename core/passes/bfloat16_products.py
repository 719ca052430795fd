"""The step that multiplies bfloat16 without widening it to float32 first.

Products of bfloat16 are lowered to products of float32. Folded as constants, the weights take twice
the memory then, and twice the time to read. Where the processor has an instruction that adds
products of bfloat16 in float32, the product reads both factors as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import tvm
from tvm import ir, relax, tirx

MULTIPLY_BFLOAT16 = "MultiplyBfloat16"

_LANES = 16
"""Number of sums of the instruction."""

_USES = 8
"""Products of each element from which on its layout is worth changing at each run."""


def multiply_bfloat16(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose products of bfloat16 read it as it is.

    The variable of a product stays, and what nothing else reads disappears. On a processor without
    the instruction, nothing changes.
    """
    if not can_multiply():
        return module
    builder = relax.BlockBuilder(module)
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            factors = narrow_factors(function)
            if factors:
                builder.update_func(variable, _changed(function, factors, builder))
    return builder.get()


def can_multiply() -> bool:
    """Return whether the target of the module has the instruction."""
    target = tvm.target.Target.current(allow_none=True)
    has = tvm.get_global_func("target.target_has_feature")
    return target is not None and bool(has("avx512bf16", target))


def narrow_factors(function: relax.Function) -> Mapping[relax.Var, tuple[Any, Any, Any]]:
    """Return the factors in bfloat16 of the products that the instruction is worth it for.

    By the variables of the products, but for those of constants alone: what is computed from these
    is one as well, as FoldConstant makes it so. The third value is the call that transposes the
    second factor, or ``None``.
    """
    values: dict[Any, Any] = {}
    constants: set[Any] = set()
    for binding in (each for block in function.body.blocks for each in block.bindings):
        if isinstance(binding, relax.VarBinding):
            values[binding.var] = binding.value
            if constants.issuperset(relax.analysis.free_vars(binding.value)):
                constants.add(binding.var)

    def narrow(value: Any) -> Any:
        """Return the bfloat16 that a value is the float32 of; ``None`` if it is not."""
        cast: Any = values.get(value)
        is_narrow = _calls(cast, "relax.astype") and str(cast.args[0].ty.dtype) == "bfloat16"
        return cast.args[0] if is_narrow and str(cast.ty.dtype) == "float32" else None

    def is_constant(value: Any) -> bool:
        return isinstance(value, ir.GenericConst) or value in constants

    found = {}
    for variable, value in values.items():
        if not _calls(value, "relax.matmul"):
            continue
        first, second = value.args
        transpose, matrix = None, second
        if _calls(values.get(second), "relax.permute_dims"):
            transpose = values[second]
            matrix = transpose.args[0]
        data, weights = narrow(first), narrow(matrix)
        if data is None or weights is None:
            continue
        # FoldConstant compiles products of constants for a processor without the instruction.
        if is_constant(data) and is_constant(weights):
            continue
        if _fits(value, is_constant(weights)):
            found[variable] = data, weights, transpose
    return found


def _fits(product: Any, is_constant: bool) -> bool:
    """Return whether the instruction is worth it: its sums are used, and the second factor is.

    `is_constant`: whether the second factor is, so that it is laid out when the model is built.
    """
    shapes = [each.ty.shape for each in (*product.args, product)]
    if not all(isinstance(each, relax.ShapeExpr) for each in shapes):
        return False
    first, second, made = ([_extent(each) for each in shape.values] for shape in shapes)
    if min(len(first), len(second)) < 2 or second[-1] < _LANES or second[-2] < 2:
        return False
    return is_constant or math.prod(made) * second[-2] >= _USES * math.prod(second)


def _extent(value: Any) -> int:
    """Return an extent; one that is worth it for a named one."""
    return int(value) if isinstance(value, tirx.IntImm) else max(_LANES, _USES)


def _calls(value: Any, operator: str) -> bool:
    return isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) == operator


def _changed(
    function: relax.Function,
    factors: Mapping[relax.Var, tuple[Any, Any, Any]],
    builder: relax.BlockBuilder,
) -> relax.Function:
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            if binding.var in factors:
                data, weights, transpose = factors[binding.var]
                if transpose is not None:
                    axes = transpose.attrs.axes
                    turned = builder.normalize(relax.op.permute_dims(weights, axes))
                    weights = relax.Var("weights", turned.ty)
                    bindings.append(relax.VarBinding(weights, turned))
                made = builder.normalize(relax.op.matmul(data, weights, "float32"))
                binding = relax.VarBinding(binding.var, made)
            bindings.append(binding)
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    own = function.params, body, function.ret_ty, function.is_pure, function.attrs
    return relax.analysis.remove_all_unused(relax.Function(*own))
