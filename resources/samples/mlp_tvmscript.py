"""A perceptron written in TVMScript, without torch: a TensorIR function beside a library function.

`linear0` is a loop nest that serves both layers, since its shapes are symbols: m, n and k stand
for numbers that the arguments bring along. `env.relu` is a library function, found by its name
when the module runs; NumPy works on TVM's own memory here, passed on by DLPack. The parameters are
arguments of `main`, so nothing is baked in. What is to come out, `reference` says in NumPy.
"""

import numpy as np
import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@tvm.register_global_func("env.relu", override=True)
def env_relu(x: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
    np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))


@I.ir_module(s_tir=True)
class MLP:
    @T.prim_func(s_tir=True)
    def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n = T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.sblock_alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.sblock("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(
        x: R.Tensor((1, "m"), "float32"),
        w0: R.Tensor(("n", "m"), "float32"),
        b0: R.Tensor(("n",), "float32"),
        w1: R.Tensor(("k", "n"), "float32"),
        b1: R.Tensor(("k",), "float32"),
    ) -> R.Tensor((1, "k"), "float32"):
        n, k = T.int64(), T.int64()
        cls = MLP
        with R.dataflow():
            lv0 = R.call_tir(cls.linear0, (x, w0, b0), R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), R.Tensor((1, n), "float32"))
            out = R.call_tir(cls.linear0, (lv1, w1, b1), R.Tensor((1, k), "float32"))
            R.output(out)
        return out


def example_inputs() -> tuple[np.ndarray, ...]:
    x = np.random.rand(1, 784)
    w0 = np.random.randn(128, 784) / 28
    b0 = np.random.randn(128) / 10
    w1 = np.random.randn(10, 128) / 11
    b1 = np.random.randn(10) / 10
    return tuple(array.astype("float32") for array in (x, w0, b0, w1, b1))


def reference(
    x: np.ndarray, w0: np.ndarray, b0: np.ndarray, w1: np.ndarray, b1: np.ndarray
) -> np.ndarray:
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
