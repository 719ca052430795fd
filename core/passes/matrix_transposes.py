"""The step that multiplies by a transposed matrix, or reduces a transposed tensor, in place.

A linear layer multiplies by the transpose of its weights. Folded as a constant, that is a copy of
the weights, which lives on in the modules of all later steps; schedules then lay it out once more.
A product with a vector, or a sum, reads each element once: a transposed copy takes longer than it.
TVM's own ``FuseTransposeMatmul`` takes stacks of matrices too, whose transpose costs nothing where
it is fused into what computes them, and it renames bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tvm
from tvm import relax, te

FUSE_TRANSPOSE = "FuseMatrixTranspose"

_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "relax.sum": relax.op.sum,
    "relax.mean": relax.op.mean,
    "relax.prod": relax.op.prod,
    "relax.max": relax.op.max,
    "relax.min": relax.op.min,
}


def fuse_transposes(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose products and reductions of transposes read what is transposed.

    The variable of their results stays, and a transpose that nothing else reads disappears.
    """
    builder = relax.BlockBuilder(module)
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            fused = _fused(function, builder)
            if fused is not None:
                builder.update_func(variable, fused)
    return builder.get()


def readers_of_transposes(function: relax.Function) -> Mapping[relax.Var, relax.VarBinding]:
    """Return the products and reductions that can do without a transpose, and its binding.

    Those are products with a transposed second factor, products of a transposed first one with a
    vector, and reductions.
    """
    bindings = {
        each.var: each
        for block in function.body.blocks
        for each in block.bindings
        if isinstance(each, relax.VarBinding)
    }
    found = {}
    for variable, binding in bindings.items():
        for argument in _may_be_transposed(binding.value):
            transpose = bindings.get(argument) if isinstance(argument, relax.Var) else None
            if transpose is None or not _calls(transpose.value, "relax.permute_dims"):
                continue
            if not _calls(binding.value, "relax.matmul") or _is_of_matrix(transpose.value):
                found[variable] = transpose
    return found


def _may_be_transposed(value: Any) -> Iterator[Any]:
    """Yield the arguments that may be read transposed."""
    if _calls(value, "relax.matmul"):
        yield value.args[1]
        if value.args[1].ty.ndim == 1:
            yield value.args[0]
    elif isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) in _REDUCTIONS:
        yield value.args[0]


def _calls(value: Any, operator: str) -> bool:
    return isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) == operator


def _is_of_matrix(transpose: Any) -> bool:
    matrix = transpose.args[0]
    is_matrix = matrix.ty.ndim == 2 and isinstance(matrix.ty.shape, relax.ShapeExpr)
    return is_matrix and _axes(transpose) == [1, 0]


def _axes(transpose: Any) -> list[int]:
    rank, axes = int(transpose.args[0].ty.ndim), transpose.attrs.axes
    given = reversed(range(rank)) if axes is None else axes
    return [int(each) % rank for each in given]


def _fused(function: relax.Function, builder: relax.BlockBuilder) -> relax.Function | None:
    """Return a function without the transposes of its products; ``None`` if there is none."""
    found = readers_of_transposes(function)
    if not found:
        return None
    transposes = {each.var for each in found.values()}
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            transpose = found.get(binding.var)
            if transpose is None:
                bindings.append(binding)
            elif _calls(binding.value, "relax.matmul"):
                call = builder.normalize(_product(binding.value, transpose, builder))
                bindings.append(relax.VarBinding(binding.var, call))
            else:
                bindings += _reduction(binding, transpose.value, builder)
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    transposes.difference_update(_read(body))
    for place, block in enumerate(blocks):
        left = [each for each in block.bindings if each.var not in transposes]
        blocks[place] = type(block)(left)
    body = relax.SeqExpr(blocks, function.body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def _product(product: Any, transpose: Any, builder: relax.BlockBuilder) -> Any:
    """Return a product that reads a matrix in place of its transpose."""
    first, second = product.args
    matrix = transpose.value.args[0]
    if first.same_as(transpose.var):
        return relax.op.matmul(second, matrix)
    dtype = str(product.ty.dtype)
    return builder.call_te(te_product, first, matrix, dtype, primfunc_name_hint="matmul")


def _reduction(
    binding: relax.VarBinding, transpose: Any, builder: relax.BlockBuilder
) -> Iterator[relax.VarBinding]:
    """Yield the bindings of a reduction whose result is transposed, not what it reads."""
    reduction: Any = binding.value
    order, reduced = _axes(transpose), reduction.attrs.axis
    places = range(len(order)) if reduced is None else [int(each) for each in reduced]
    axes = sorted(order[each] for each in places)
    kept = [each for each in order if each not in axes]
    reduce = _REDUCTIONS[str(reduction.op.name)]
    steps: list[Callable[[Any], Any]] = [lambda value: reduce(value, axes)]
    if kept != sorted(kept):
        permutation = [sorted(kept).index(each) for each in kept]
        steps.append(lambda value: relax.op.permute_dims(value, permutation))
    if reduction.attrs.keepdims:
        steps.append(lambda value: relax.op.reshape(value, reduction.ty.shape))
    value = transpose.args[0]
    for step in steps:
        made = builder.normalize(step(value))
        is_last = step is steps[-1]
        variable = binding.var if is_last else type(binding.var)(binding.var.name, made.ty)
        yield relax.VarBinding(variable, made)
        value = variable


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
