"""A module made step by step with a block builder: two TE functions, one after the other."""

import numpy as np
import tvm
from te_functions import te_matmul, te_relu
from tvm import relax


def matmul_relu() -> tvm.IRModule:
    x = relax.Var("x", relax.TensorType((8, 16), "float32"))
    w = relax.Var("w", relax.TensorType((16, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", params=[x, w]):
        with bb.dataflow():
            product = bb.emit_te(te_matmul, x, w)
            positive = bb.emit_te(te_relu, product)
            result = bb.emit_output(positive)
        bb.emit_func_output(result)
    return bb.get()


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.maximum(x @ w, 0)


entry = "matmul_relu"
