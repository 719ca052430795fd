"""The compact form of scripts: what is left of lines, and where it is in the printed text."""

from __future__ import annotations

import time

import pytest

from lowerscope.core.model.compact_script import (
    MOST_CHARACTERS,
    MOST_LINES,
    Edit,
    compact_script,
    edited,
    printed_column,
)

CONSTANT = 'metadata["ir.GenericConst"][0]'

RELAX = f"""# from tvm.script import ir as I
# from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4), dtype="float32")) -> R.Tensor((1, "n"), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            lv: R.Tensor((1, 4), dtype="float32") = R.add(x, {CONSTANT}, out_dtype=None)
            lv1 = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((1, T.int64(4)), dtype="int64"))
            gv: R.Tuple(R.Tensor((1, n + 1), dtype="float32"), R.Tensor((), dtype="bool")) = lv1, lv
            R.output(gv)
        w: R.Tensor(ndim=2) = lv
        return w

# Metadata omitted. Use show_meta=True in script() method to show it."""

TENSORIR = """# from tvm.script import tirx as T

@T.prim_func(private=True)
def add(x: T.Buffer((T.int64(1), T.int64(-4)), "float32"), y: T.handle):
    # with T.sblock("root"):
    for i in range(T.int64(4)):
        y[i] = x[0, i] + T.float32(0.5) + T.Cast("int64", T.int64(2) * n)
        T.evaluate("T.int64(5)")"""


def compacted(text: str, *, types: bool = False) -> list[str]:
    form = compact_script(text, {CONSTANT: "linear0.weight"}, types=types)
    return form.lines(text.split("\n"))[1]


def test_types_of_bindings_become_notes() -> None:
    form = compact_script(RELAX, {CONSTANT: "linear0.weight"})
    assert compacted(RELAX)[3:] == [
        "    def main(x: 1×4) -> 1×n:",
        "        n = T.int64()",
        "        with R.dataflow():",
        "            lv = R.add(x, linear0.weight)",
        "            lv1 = R.call_tir(cls.relu, (lv,))",
        "            gv = lv1, lv",
        "            R.output(gv)",
        "        w = lv",
        "        return w",
    ]
    assert form.notes == {9: "1×4", 10: "1×4 int64", 11: "1×(n + 1), scalar bool"}


def test_types_can_stay_in_their_lines() -> None:
    lines = compacted(RELAX, types=True)
    assert (
        lines[3] == '    def main(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, "n"), "float32"):'
    )
    assert lines[6] == '            lv: R.Tensor((1, 4), "float32") = R.add(x, linear0.weight)'
    assert compact_script(RELAX, types=True).notes == {}


def test_numbers_lose_their_types_outside_of_strings() -> None:
    assert compacted(TENSORIR) == [
        "@T.prim_func(private=True)",
        'def add(x: T.Buffer((1, -4), "float32"), y: T.handle):',
        "    for i in range(4):",
        '        y[i] = x[0, i] + 0.5 + T.Cast("int64", 2 * n)',
        '        T.evaluate("T.int64(5)")',
    ]


def test_floats_have_their_shortest_form() -> None:
    line = (
        'lv = R.f(x, eps=1.0000000000000001e-05, n="0.10000000000000001", v=1.00000000000000012.3)'
    )
    _, (shown,) = compact_script(line).lines([line])
    assert shown == ('lv = R.f(x, eps=1e-05, n="0.10000000000000001", v=1.00000000000000012.3)')
    line = "a = T.float64(0.70710678118654757) + T.uint64(12345678901234567890)"
    assert compact_script(line).lines([line])[1] == [
        "a = 0.7071067811865476 + 12345678901234567890"
    ]


def test_numbers_of_relax_lose_their_types() -> None:
    line = 'lv = R.f(x, R.const(-1.0000000000000001e-05, "float32"), R.const(True, "bool"))'
    assert compacted(line) == ["lv = R.f(x, -1e-05, True)"]


def test_a_constant_without_a_name_is_short() -> None:
    form = compact_script(f"y = R.add(x, {CONSTANT})")
    assert form.line(0, f"y = R.add(x, {CONSTANT})") == "y = R.add(x, const[0])"


def test_columns_are_those_of_the_printed_line() -> None:
    line, edits = "for i in T.int64(12):", [Edit(9, 20, "12")]
    assert edited(line, edits) == "for i in 12:"
    assert [printed_column(edits, each) for each in (4, 9, 10, 11, 12)] == [4, 9, 9, 20, 21]
    assert [printed_column(edits, each, end=True) for each in (9, 10, 11)] == [9, 20, 20]


@pytest.mark.parametrize(
    "line",
    [
        "x: R.foo = f(1, out_ty=" + "R.Tensor((" * 140 + "1" + "))" * 140 + ")",
        "x: R.foo = f(1, out_ty=R.Tuple(" + "R.Tensor((1,)), " * 140 + "))",
        "T.R." + '\\"' * 1_490,
        "T." + "T.int8(1)" * 300,
    ],
    ids=["nested", "tuple", "escapes", "numbers"],
)
def test_no_script_takes_long(line: str) -> None:
    text = "\n".join([line] * (MOST_CHARACTERS // (len(line) + 1)))
    start = time.process_time()
    compact_script(text)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("text", ["\n" * MOST_LINES, f"{RELAX}\n" * (MOST_CHARACTERS // 500)])
def test_a_script_that_is_too_long_stays_as_printed(text: str) -> None:
    form = compact_script(text)
    assert not form.edits
    assert not form.hidden
