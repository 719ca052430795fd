"""TensorIR functions made of tensor expressions: a product, a ReLU of any rank, and both in one."""

import numpy as np
from tvm import te


def te_matmul(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, a.shape[1]), name="k")
    return te.compute(
        (a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul"
    )


def te_relu(a: te.Tensor) -> te.Tensor:
    return te.compute(a.shape, lambda *index: te.max(a(*index), 0.0), name="relu")


A = te.placeholder((128, 128), name="A")
B = te.placeholder((128, 128), name="B")
C = te_matmul(A, B)
D = te_relu(C)

matmul = te.create_prim_func([A, B, C])

row = te.placeholder((10,), name="X")
relu_1d = te.create_prim_func([row, te_relu(row)])

table = te.placeholder((10, 20), name="X")
relu_2d = te.create_prim_func([table, te_relu(table)])

# C is computed on the way, in a buffer of the function's own ...
fused = te.create_prim_func([A, B, D])

# ... or handed out as well, in a buffer of the caller's.
fused_and_matmul = te.create_prim_func([A, B, C, D])


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype("float64") @ b


reference = {
    "matmul": exact,
    "relu_1d": lambda x: np.maximum(x, 0),
    "relu_2d": lambda x: np.maximum(x, 0),
    "fused": lambda a, b: np.maximum(exact(a, b), 0),
    "fused_and_matmul": lambda a, b: (exact(a, b), np.maximum(exact(a, b), 0)),
}
