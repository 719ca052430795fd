"""Matrix products, such as ``Linear`` and ``matmul``, and attention."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import topi
from tvm.relax import op

from lowerscope.core.lowering.builder import (
    NodeBuilder,
    te_dense,
    te_grouped_matmul,
    te_matmul,
    to_common_dtype,
)
from lowerscope.core.lowering.rule_table import Refused, exact, rule
from lowerscope.core.lowering.rules.activation import softmax
from lowerscope.core.lowering.rules.arithmetic import add, mul
from lowerscope.core.lowering.rules.shape import permute_to, reshape_to, transpose
from lowerscope.core.lowering.values import (
    Value,
    dtype_of,
    is_float,
    is_size,
    rank_of,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


@rule(F.linear, aten.linear.default, nn.Linear)
def linear(b: NodeBuilder, input: Value, weight: Value, bias: Value = None) -> Value:
    if rank_of(weight) == 1:
        product = matmul(b, input, weight)
        return product if bias is None else add(b, product, bias)
    if rank_of(weight) != 2:
        raise Refused(_("its weight is not a matrix"))
    if not b.te:
        product = b.emit(op.matmul(input, b.emit(op.permute_dims(weight))))
        return product if bias is None else b.emit(op.add(product, bias))
    if rank_of(input) == 2:
        product = b.emit_te(topi.nn.dense, input, weight)
    else:
        product = b.emit_te(te_dense, input, weight, primfunc_name_hint="dense")
    return product if bias is None else b.emit_te(topi.add, product, bias)


@rule(F.bilinear, torch.bilinear, aten.bilinear.default, nn.Bilinear)
def bilinear(
    b: NodeBuilder, input1: Value, input2: Value, weight: Value, bias: Value = None
) -> Value:
    results, first, second = shape_of(weight)
    rows = shape_of(input1)[:-1]
    one = reshape_to(b, input1, [-1, first])
    other = reshape_to(b, input2, [-1, 1, second])
    # A separate matrix for each result, concatenated.
    sides = reshape_to(b, permute_to(b, weight, [1, 0, 2]), [first, results * second])
    products = reshape_to(b, matmul(b, one, sides), [-1, results, second])
    found = b.emit(op.sum(b.emit(op.multiply(products, other)), [2]))
    if bias is not None:
        found = b.emit(op.add(found, bias))
    return reshape_to(b, found, [*rows, results])


@rule(
    *(torch.matmul, torch.mm, torch.bmm, torch.mv, torch.dot, torch.vdot, operator.matmul),
    *("matmul", "mm", "bmm", "mv", "dot", "__matmul__", aten.matmul.default, aten.mm.default),
    # Of a sparse matrix, which is dense here.
    *(torch.sparse.mm, torch.spmm, aten._sparse_mm.default),
    *(aten.bmm.default, aten.mv.default, aten.dot.default, aten.vdot.default),
)
def matmul(b: NodeBuilder, input: Value, other: Value) -> Value:
    if not is_float(dtype_of(input)) and dtype_of(input) == "bool":
        raise Refused(_("its operands are bool"))
    if b.te and rank_of(input) == 2 and rank_of(other) == 2:
        return b.emit_te(te_matmul, input, other)
    return b.emit(op.matmul(input, other))


@exact(torch._int_mm, aten._int_mm.default, name="int_mm")
def int_mm(b: NodeBuilder, input: Value, mat2: Value) -> Value:
    return b.emit(op.matmul(input, mat2, out_dtype="int32"))


@rule(torch.addmm, "addmm", aten.addmm.default, torch.sparse.addmm, aten._sparse_addmm.default)
def addmm(
    b: NodeBuilder, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    product = scaled(b, matmul(b, mat1, mat2), alpha)
    if beta == 0:
        return product
    added = scaled(b, input, beta)
    return b.emit_te(topi.add, added, product) if b.te else b.emit(op.add(added, product))


@rule(torch.baddbmm, "baddbmm", aten.baddbmm.default)
def baddbmm(
    b: NodeBuilder, input: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    return addmm(b, input, batch1, batch2, beta=beta, alpha=alpha)


@rule(torch.addmv, "addmv", aten.addmv.default)
def addmv(
    b: NodeBuilder, input: Value, mat: Value, vec: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    return addmm(b, input, mat, vec, beta=beta, alpha=alpha)


@rule(torch.addbmm, "addbmm", aten.addbmm.default)
def addbmm(
    b: NodeBuilder, input: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    product = scaled(b, b.emit(op.sum(matmul(b, batch1, batch2), [0])), alpha)
    return product if beta == 0 else b.emit(op.add(scaled(b, input, beta), product))


@rule(torch.inner, "inner")
def inner(b: NodeBuilder, input: Value, other: Value) -> Value:
    if rank_of(other) < 2:
        return matmul(b, input, other)
    return b.emit(op.matmul(input, b.emit(op.permute_dims(other))))


@rule(torch.outer, torch.ger, "outer", "ger", aten.outer.default)
def outer(b: NodeBuilder, input: Value, vec2: Value) -> Value:
    first, second = to_common_dtype(b, input, vec2)
    return b.emit(op.outer(first, second))


@rule(torch.einsum, aten.einsum.default)
def einsum(b: NodeBuilder, equation: str, *operands: Any, path: Any = None) -> Value:
    tensors = list(operands[0]) if isinstance(operands[0], (tuple, list)) else list(operands)
    *given, result = _subscripts(equation, tensors)
    # Two at a time, as in torch: at once, each sum would be of all the products.
    while len(given) > 2:
        later = {*"".join(given[2:]), *result}
        made = "".join(each for each in dict.fromkeys("".join(given[:2])) if each in later)
        product = b.emit(op.einsum(tensors[:2], f"{','.join(given[:2])}->{made}"))
        tensors[:2], given[:2] = [product], [made]
    if given:
        equation = f"{','.join(given)}->{result}"
    return b.emit(op.einsum(tensors, equation))


def _subscripts(equation: str, tensors: list[Value]) -> list[str]:
    """Return the letters of the axes of tensors, and of the result; only the last for the others.

    Those of an ellipsis have none, and an axis of size 1 is not any other.
    """
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    given = inputs.split(",")
    sizes: dict[str, Any] = {}
    are_same = all(
        sizes.setdefault(letter, size) == size
        for letters, tensor in zip(given, tensors, strict=False)
        for letter, size in zip(letters, shape_of(tensor), strict=False)
    )
    return [*given, result] if arrow and are_same and "." not in equation else [result]


@rule(
    F.grouped_mm, aten._grouped_mm.default, "transformers::grouped_mm_fallback", name="grouped_mm"
)
def grouped_mm(
    b: NodeBuilder,
    input: Value,
    mat2: Value,
    offs: Value = None,
    bias: Value = None,
    out_dtype: Any = None,
) -> Value:
    """Lower a product of each group of rows with a matrix of its own; groups end at `offs`."""
    if rank_of(input) != 2 or rank_of(mat2) != 3 or offs is None:
        raise Refused(_("its groups do not divide the rows of a matrix"))
    if bias is not None or out_dtype is not None:
        raise Refused(_("it has a bias or a dtype"))
    rows, groups = shape_of(input)[0], shape_of(mat2)[0]
    row = b.emit(op.arange(0, rows, 1, dtype_of(offs)))
    after = op.greater_equal(b.emit(op.expand_dims(row, 1)), b.emit(op.expand_dims(offs, 0)))
    group = b.emit(op.sum(b.emit(op.astype(b.emit(after), dtype_of(offs))), 1))
    last = b.emit(op.minimum(group, scalar(groups - 1, dtype_of(offs))))
    product = b.emit_te(te_grouped_matmul, input, mat2, last, primfunc_name_hint="grouped_matmul")
    inside = b.emit(op.less(b.emit(op.expand_dims(group, 1)), scalar(groups, dtype_of(offs))))
    return b.emit(op.where(inside, product, scalar(0, dtype_of(product))))


def scaled(b: NodeBuilder, value: Value, factor: Any) -> Value:
    """Return `value` times a number; `value` itself for 1."""
    if factor == 1:
        return value
    return b.emit(op.multiply(value, scalar(factor, dtype_of(value))))


@rule(F.scaled_dot_product_attention, aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    b: NodeBuilder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise Refused(_("it applies dropout"))
    if enable_gqa:
        groups = shape_of(query)[-3] // shape_of(key)[-3]
        axis = rank_of(key) - 3
        key, value = (b.emit(op.repeat(each, groups, axis)) for each in (key, value))
    factor = 1 / math.sqrt(shape_of(query)[-1]) if scale is None else scale
    scores = mul(b, matmul(b, query, transpose(b, key, -2, -1)), factor)
    if is_causal:
        rows, columns = shape_of(scores)[-2:]
        attn_mask = _causal_mask(b, rows, columns)
    kept: Value = None
    if attn_mask is not None and dtype_of(attn_mask) == "bool":
        kept = attn_mask
        scores = b.emit(op.where(kept, scores, scalar(-math.inf, dtype_of(scores))))
    elif attn_mask is not None:
        scores = add(b, scores, attn_mask)
        lowest = scalar(-math.inf, dtype_of(scores))
        kept = b.emit(op.logical_not(b.emit(op.equal(scores, lowest))))
    weights = softmax(b, scores, -1)
    if kept is not None:
        # A fully masked row is 0 in torch, where softmax alone gives NaN.
        weights = b.emit(op.where(kept, weights, scalar(0, dtype_of(weights))))
    return matmul(b, weights, value)


def _causal_mask(b: NodeBuilder, rows: Any, columns: Any) -> Value:
    """Return the causal mask: each row attends to the columns up to its own."""
    if not is_size(rows) and not is_size(columns):
        return b.constant(torch.ones(rows, columns, dtype=torch.bool).tril())
    row = b.emit(op.expand_dims(b.emit(op.arange(0, rows, 1, "int64")), 1))
    column = b.emit(op.expand_dims(b.emit(op.arange(0, columns, 1, "int64")), 0))
    return b.emit(op.greater_equal(row, column))
