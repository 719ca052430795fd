"""Half TensorIR, half library: the first layer is a function for shapes that are symbols."""

from numpy_mlp import classes, numpy_mlp
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

__all__ = ["MLP", "classes"]

reference = numpy_mlp


@I.ir_module(s_tir=True)
class MLP:
    @T.prim_func(s_tir=True)
    def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
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
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ) -> R.Tensor((1, 10), "float32"):
        with R.dataflow():
            lv0 = R.call_dps_packed("linear", (x, w0, b0), R.Tensor((1, 128), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), R.Tensor((1, 128), "float32"))
            out = R.call_dps_packed("env.linear", (lv1, w1, b1), R.Tensor((1, 10), "float32"))
            R.output(out)
        return out
