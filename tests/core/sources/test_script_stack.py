"""TVM's parser finds in the stack what it looks for there."""

from __future__ import annotations

import inspect

import tvm_ffi
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from lowerscope.core.sources import loading


def test_the_frames_are_those_of_inspect() -> None:
    ours, theirs = loading.stack(), inspect.stack()
    assert [each.frame for each in ours] == [each.frame for each in theirs]
    told = [(each.filename, each.function) for each in theirs]
    assert [(each.filename, each.function) for each in ours] == told
    # Both were called in this line.
    assert ours[0].lineno == theirs[0].lineno
    assert [each[4:] for each in ours[:4]] == [each[4:] for each in theirs[:4]]


def test_scripts_see_what_is_around_them() -> None:
    def by(size: int):  # type: ignore[no-untyped-def]
        # Named in annotations alone, which are strings here.
        shape = (size,)

        @T.prim_func(s_tir=True)
        def double(x: T.Buffer(shape, "float32"), y: T.Buffer(shape, "float32")):  # type: ignore
            for i in range(size):
                with T.sblock("double"):
                    v = T.axis.spatial(size, i)
                    y[v] = x[v] * T.float32(2)

        @I.ir_module
        class Doubles:
            @T.prim_func(s_tir=True)
            def double(x: T.Buffer(shape, "float32"), y: T.Buffer(shape, "float32")):  # type: ignore
                for i in range(size):
                    with T.sblock("double"):
                        v = T.axis.spatial(size, i)
                        y[v] = x[v] * T.float32(2)

            @R.function
            def main(x: R.Tensor(shape, "float32")):  # type: ignore
                cls = Doubles
                return R.call_tir(cls.double, (x,), out_ty=R.Tensor((size,), "float32"))

        return double, Doubles

    for size in (3, 4):
        double, module = by(size)
        assert f"x: T.Buffer(({size},), " in double.script()
        assert {each.name_hint for each in module.get_global_vars()} == {"double", "main"}
        assert tvm_ffi.structural_equal(module["double"], double)
