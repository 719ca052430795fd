"""Tensor expressions in the form used by the course."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx


def te_matmul(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    """Return the product of two matrices."""
    n = A.shape[0]
    m = B.shape[1]
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")


def te_relu(A: te.Tensor) -> te.Tensor:
    """Return the larger of each element and 0, for any rank."""
    # In this order NaN stays NaN, as in torch.
    zero = tirx.const(0, A.dtype)
    return te.compute(A.shape, lambda *i: te.max(zero, A(*i)), name="relu")


def te_dense(A: te.Tensor, W: te.Tensor) -> te.Tensor:
    """Return ``A @ W.T`` for an `A` of any rank, where ``topi.nn.dense`` takes matrices."""
    k = te.reduce_axis((0, W.shape[1]), name="k")

    def product(*i: Any) -> Any:
        return te.sum(A(*i[:-1], k) * W[i[-1], k], axis=k)

    return te.compute((*A.shape[:-1], W.shape[0]), product, name="dense")
