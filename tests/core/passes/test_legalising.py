"""LegalizeOps as a step: what TVM's own makes, with one function for calls that are alike."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from lowerscope.core.model.recipe import Step
from lowerscope.core.passes.transforming import transform

LEGALIZE = (Step(name="LegalizeOps"),)


@I.ir_module
class Alike:
    @R.function
    def main(
        x: R.Tensor((4, 4), "float32"),
        y: R.Tensor((4, 4), "float32"),
        z: R.Tensor(("n", 4), "float32"),
    ) -> R.Tensor((4, 4), "float32"):
        n = T.int64()  # noqa: F841
        with R.dataflow():
            # The same, with other tensors, with one tensor twice, and with others in another order.
            a = R.multiply(x, y)
            b = R.multiply(y, x)
            c = R.multiply(a, a)
            d = R.multiply(b, c)
            # Numbers that become part of the function, of two values and two types.
            e = R.multiply(d, R.const(2.0, "float32"))
            f = R.multiply(e, R.const(3.0, "float32"))
            g = R.multiply(f, R.const(2.0, "float32"))
            # Other attributes, other shapes, and sizes that nobody knows.
            h = R.sum(g, axis=[0], keepdims=True)
            i = R.sum(g, axis=[1], keepdims=True)
            j = R.sum(b, axis=[0], keepdims=True)
            k = R.add(R.add(h, j), R.permute_dims(i))
            m = R.sum(z, axis=[0], keepdims=True)
            o = R.sum(R.add(z, z), axis=[0], keepdims=True)
            s = R.split(g, 2, axis=0)
            p = R.concat([s[0], s[1]], axis=0)
            q = R.reshape(R.reshape(p, R.shape([16])), R.shape([4, 4]))
            r = R.reshape(R.reshape(q, R.shape([2, 8])), R.shape([4, 4]))
            out = R.add(R.add(r, k), R.add(m, o))
            R.output(out)
        return out


def legalised(module: tvm.IRModule) -> tvm.IRModule:
    return relax.transform.LegalizeOps()(module)


def test_it_makes_what_tvm_makes() -> None:
    found = transform(Alike, LEGALIZE).module
    tvm.ir.assert_structural_equal(found, legalised(Alike))
    relax.analysis.well_formed(found)
