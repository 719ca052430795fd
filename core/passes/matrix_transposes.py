"""The step that multiplies by a transposed matrix without transposing it first.

A linear layer multiplies by the transpose of its weights. Folded as a constant, that is a copy of
the weights, which lives on in the modules of all later steps; schedules then lay it out once more.
TVM's own ``FuseTransposeMatmul`` takes stacks of matrices too, whose transpose costs nothing where
it is fused into what computes them, and it renames bindings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax, te

FUSE_TRANSPOSE = "FuseMatrixTranspose"


def fuse_transposes(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose products with a transposed matrix read the matrix itself.

    The variable of a product stays, and a transpose that nothing else reads disappears.
    """
    builder = relax.BlockBuilder(module)
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            fused = _fused(function, builder)
            if fused is not None:
                builder.update_func(variable, fused)
    return builder.get()


def transposed_matrices(function: relax.Function) -> Mapping[relax.Var, Any]:
    """Return the matrices whose transposes are the second factors of products, by the products."""
    values = {
        each.var: each.value
        for block in function.body.blocks
        for each in block.bindings
        if isinstance(each, relax.VarBinding)
    }
    found = {}
    for variable, value in values.items():
        factor = value.args[1] if _calls(value, "relax.matmul") else None
        transpose: Any = values.get(factor) if isinstance(factor, relax.Var) else None
        if _calls(transpose, "relax.permute_dims") and _is_matrix(transpose.args[0]):
            axes = transpose.attrs.axes
            if axes is None or [int(each) % 2 for each in axes] == [1, 0]:
                found[variable] = transpose.args[0]
    return found


def _calls(value: Any, operator: str) -> bool:
    return isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) == operator


def _is_matrix(value: Any) -> bool:
    return value.ty.ndim == 2 and isinstance(value.ty.shape, relax.ShapeExpr)


def _fused(function: relax.Function, builder: relax.BlockBuilder) -> relax.Function | None:
    """Return a function with its products fused; ``None`` if there is none to fuse."""
    matrices = transposed_matrices(function)
    if not matrices:
        return None
    transposes: set[relax.Var] = set()
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            if binding.var in matrices:
                factor, transpose = binding.value.args
                transposes.add(transpose)
                dtype, matrix = str(binding.value.ty.dtype), matrices[binding.var]
                call = builder.call_te(
                    te_product, factor, matrix, dtype, primfunc_name_hint="matmul"
                )
                binding = relax.VarBinding(binding.var, builder.normalize(call))
            bindings.append(binding)
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    transposes.difference_update(_read(body))
    for place, block in enumerate(blocks):
        left = [each for each in block.bindings if each.var not in transposes]
        blocks[place] = type(block)(left)
    body = relax.SeqExpr(blocks, function.body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def _read(body: relax.SeqExpr) -> set[relax.Var]:
    """Return the variables that the bindings and the result of a function read."""
    found: set[relax.Var] = set()

    def note(each: Any) -> None:
        if isinstance(each, relax.Var):
            found.add(each)

    values = (getattr(each, "value", None) for block in body.blocks for each in block.bindings)
    for value in (*values, body.body):
        if value is not None:
            relax.analysis.post_order_visit(value, note)
    return found


def te_product(A: te.Tensor, B: te.Tensor, dtype: str) -> te.Tensor:
    """Return the product of a vector, a matrix or a stack of these with the transpose of `B`."""
    k = te.reduce_axis((0, B.shape[1]), name="k")
    return te.compute(
        [*A.shape[:-1], B.shape[0]],
        lambda *i: te.sum(A(*i[:-1], k).astype(dtype) * B(i[-1], k).astype(dtype), axis=k),
        name="matmul",
    )
