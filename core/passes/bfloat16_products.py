"""The step that multiplies by weights of bfloat16 without widening them to float32 first.

Products of bfloat16 are lowered to products of float32. Folded as constants, the weights take twice
the memory then, and twice the time to read. Where the processor has an instruction that adds
products of bfloat16 in float32, the product reads both factors as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import ir, relax

MULTIPLY_BFLOAT16 = "MultiplyBfloat16"

_LANES = 16
"""Number of sums of the instruction."""


def multiply_bfloat16(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose products with constants of bfloat16 read these as they are.

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


def narrow_factors(function: relax.Function) -> Mapping[relax.Var, tuple[Any, Any, bool]]:
    """Return the factors in bfloat16 of the products whose second one is a constant.

    By the variables of the products. The third value is whether the second factor is transposed.
    """
    values = {
        each.var: each.value
        for block in function.body.blocks
        for each in block.bindings
        if isinstance(each, relax.VarBinding)
    }

    def narrow(value: Any) -> Any:
        """Return the bfloat16 that a value is the float32 of; ``None`` if it is not."""
        cast: Any = values.get(value) if isinstance(value, relax.Var) else None
        is_narrow = _calls(cast, "relax.astype") and str(cast.args[0].ty.dtype) == "bfloat16"
        return cast.args[0] if is_narrow and str(cast.ty.dtype) == "float32" else None

    found = {}
    for variable, value in values.items():
        if not _calls(value, "relax.matmul"):
            continue
        first, second = value.args
        transpose: Any = values.get(second) if isinstance(second, relax.Var) else None
        is_transposed = _calls(transpose, "relax.permute_dims") and transpose.args[0].ty.ndim == 2
        weights = narrow(transpose.args[0] if is_transposed else second)
        data = narrow(first)
        if data is None or not isinstance(weights, ir.GenericConst) or weights.ty.ndim != 2:
            continue
        summed, sums = (int(each) for each in second.ty.shape)
        if summed % 2 == 0 and sums % _LANES == 0:
            found[variable] = data, weights, is_transposed
    return found


def _calls(value: Any, operator: str) -> bool:
    return isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) == operator


def _changed(
    function: relax.Function,
    factors: Mapping[relax.Var, tuple[Any, Any, bool]],
    builder: relax.BlockBuilder,
) -> relax.Function:
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            if binding.var in factors:
                data, weights, is_transposed = factors[binding.var]
                if is_transposed:
                    transpose = builder.normalize(relax.op.permute_dims(weights))
                    weights = relax.Var("weights", transpose.ty)
                    bindings.append(relax.VarBinding(weights, transpose))
                made = builder.normalize(relax.op.matmul(data, weights, "float32"))
                binding = relax.VarBinding(binding.var, made)
            bindings.append(binding)
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    own = function.params, body, function.ret_ty, function.is_pure, function.attrs
    return relax.analysis.remove_all_unused(relax.Function(*own))
