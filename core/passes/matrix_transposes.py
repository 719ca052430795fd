"""The step that multiplies by a transposed matrix, or reduces a transposed tensor, in place.

A linear layer multiplies by the transpose of its weights. Folded as a constant, that is a copy of
the weights, which lives on in the modules of all later steps; schedules then lay it out once more.
A product with a vector, or a sum, reads each element once: a transposed copy takes longer than it.
So does a product of single rows with a stack of matrices, as of one token's queries with the keys
of all. TVM's own ``FuseTransposeMatmul`` takes other stacks too, whose transpose costs nothing
where it is fused into what computes them, and it renames bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, te, tirx

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


Transposes = tuple[relax.VarBinding, ...]
"""Bindings of transposes, each of the result of the next one."""


def readers_of_transposes(function: relax.Function) -> Mapping[relax.Var, Transposes]:
    """Return the products and reductions that can do without transposes, and their bindings.

    Those are products with a transposed second factor, products of a transposed first one with a
    vector, products of rows with stacks of transposes, and reductions.
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
                found[variable] = (transpose,)
            elif _is_of_rows(binding.value):
                chain = _chain(transpose, bindings)
                if _order(chain)[-2] == len(_order(chain)) - 1:
                    found[variable] = chain
    return found


def _is_of_rows(product: Any) -> bool:
    """Return whether a product is one of a stack of single rows and as many matrices."""
    shapes = [each.ty.shape for each in product.args]
    if not all(isinstance(each, relax.ShapeExpr) for each in shapes):
        return False
    rows, matrices = (list(each.values) for each in shapes)
    return len(rows) == len(matrices) and tvm_ffi.structural_equal(
        rows[:-1], [*matrices[:-2], tirx.const(1, "int64")], map_free_vars=False
    )


def _chain(transpose: relax.VarBinding, bindings: Mapping[Any, relax.VarBinding]) -> Transposes:
    """Return a transpose, that whose result it transposes, and so on."""
    found = [transpose]
    while True:
        before = bindings.get(found[-1].value.args[0])
        if before is None or not _calls(before.value, "relax.permute_dims"):
            return tuple(found)
        found.append(before)


def _order(transposes: Transposes) -> list[int]:
    """Return the axes of the first transposed tensor in the order of the last result."""
    first, *before = (_axes(each.value) for each in transposes)
    for axes in before:
        first = [axes[each] for each in first]
    return first


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
    transposes = {each.var for chain in found.values() for each in chain}
    blocks = []
    for block in function.body.blocks:
        bindings: list[Any] = []
        for binding in block.bindings:
            chain = found.get(binding.var)
            if chain is None:
                bindings.append(binding)
            elif _calls(binding.value, "relax.matmul"):
                call = builder.normalize(_product(binding.value, chain, builder))
                bindings.append(relax.VarBinding(binding.var, call))
            else:
                bindings += _reduction(binding, chain[0].value, builder)
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    # A transpose of another one was its last reader.
    while unread := transposes - _read(body):
        for place, block in enumerate(blocks):
            left = [each for each in block.bindings if each.var not in unread]
            blocks[place] = type(block)(left)
        body = relax.SeqExpr(blocks, function.body.body)
        transposes -= unread
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def _product(product: Any, transposes: Transposes, builder: relax.BlockBuilder) -> Any:
    """Return a product that reads a matrix, or a stack of them, in place of its transpose."""
    first, second = product.args
    matrix = transposes[-1].value.args[0]
    if first.same_as(transposes[0].var):
        return relax.op.matmul(second, matrix)
    given = first, matrix, _order(transposes), str(product.ty.dtype)
    return builder.call_te(te_product, *given, primfunc_name_hint="matmul")


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


def te_product(A: te.Tensor, B: te.Tensor, order: Sequence[int], dtype: str) -> te.Tensor:
    """Return the product of a vector, a matrix or a stack of these with the transpose of `B`.

    `order`: the axes of `B` in the order of the transpose.
    """
    k = te.reduce_axis((0, B.shape[-1]), name="k")

    def turned(*i: Any) -> Any:
        return B(*(i[order.index(axis)] for axis in range(len(order))))

    return te.compute(
        [*A.shape[:-1], B.shape[order[-1]]],
        lambda *i: te.sum(
            A(*i[:-1], k).astype(dtype) * turned(*i[: len(order) - 2], k, i[-1]).astype(dtype),
            axis=k,
        ),
        name="matmul",
    )
