"""The types that a Relax script is shown without."""

from __future__ import annotations

from lowerscope.app.panes.relax.relax_view import annotations_of

SCRIPT = """@R.function
def main(x: R.Tensor((1, 4), dtype="float32")) -> R.Tensor((1, 4), dtype="float32"):
    n = T.int64()
    with R.dataflow():
        lv: R.Tensor((1, 4), dtype="float32") = R.add(x, metadata["ir.GenericConst"][0])
        lv1 = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((1, 4), dtype="float32"))
        gv: R.Tuple(R.Tensor((1, n), dtype="int64"), R.Object) = lv1, lv
        R.output(gv)
    if lv:
        w: R.Tensor(ndim=2) = lv
    return gv
"""


def test_the_types_of_bindings_are_left_out() -> None:
    lines = SCRIPT.split("\n")
    hidden = annotations_of(SCRIPT)
    shown = {number: lines[number][:a] + lines[number][b:] for number, (a, b) in hidden.items()}
    assert shown == {
        4: '        lv = R.add(x, metadata["ir.GenericConst"][0])',
        6: "        gv = lv1, lv",
        9: "        w = lv",
    }
