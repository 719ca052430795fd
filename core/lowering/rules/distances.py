"""Distances and similarities between vectors."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import Value, axis_of, dtype_of, rank_of, scalar
from lowerscope.core.lowering.rule_table import rule
from lowerscope.core.lowering.rules.arithmetic import add, div, maximum, mul, sub
from lowerscope.core.lowering.rules.reduction import sum, vector_norm
from lowerscope.core.lowering.rules.shape import unsqueeze

aten = torch.ops.aten


@rule(torch.cdist, aten.cdist.default)
def cdist(b: NodeBuilder, x1: Value, x2: Value, p: float = 2.0, compute_mode: Any = None) -> Value:
    gap = sub(b, unsqueeze(b, x1, -2), unsqueeze(b, x2, -3))
    return vector_norm(b, gap, p, -1)


@rule(aten._cdist_forward.default, name="cdist")
def aten_cdist(b: NodeBuilder, x1: Value, x2: Value, p: float, compute_mode: Any) -> Value:
    return cdist(b, x1, x2, p)


@rule(F.pairwise_distance, torch.pairwise_distance, aten.pairwise_distance.default)
def pairwise_distance(
    b: NodeBuilder,
    x1: Value,
    x2: Value,
    p: float = 2.0,
    eps: float = 1e-6,
    keepdim: bool = False,
) -> Value:
    return vector_norm(b, add(b, sub(b, x1, x2), eps), p, -1, keepdim)


@rule(nn.PairwiseDistance)
def pairwise_distance_module(
    b: NodeBuilder, module: nn.PairwiseDistance, x1: Value, x2: Value
) -> Value:
    return pairwise_distance(b, x1, x2, module.norm, module.eps, module.keepdim)


@rule(
    F.cosine_similarity,
    torch.cosine_similarity,
    aten.cosine_similarity.default,
    nn.CosineSimilarity,
)
def cosine_similarity(
    b: NodeBuilder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8
) -> Value:
    norms = [maximum(b, vector_norm(b, each, 2, dim, keepdim=True), eps) for each in (x1, x2)]
    first, second = (div(b, each, norm) for each, norm in zip((x1, x2), norms, strict=True))
    return sum(b, mul(b, first, second), dim)


@rule(F.normalize)
def normalize(
    b: NodeBuilder, input: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12
) -> Value:
    axis = axis_of(dim, rank_of(input))
    if p != 2:
        return div(b, input, maximum(b, vector_norm(b, input, p, axis, keepdim=True), eps))
    norm = b.emit(op.sqrt(b.emit(op.sum(b.emit(op.square(input)), axis, keepdims=True))))
    return div(b, input, maximum(b, norm, scalar(eps, dtype_of(input))))
