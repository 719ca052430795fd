"""Lines that are shown of a text, and their places in it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.app.kit.code.code_view import compile_pattern, find_all
from lowerscope.app.kit.code.marks import LineSet, Match, Span, Spans
from lowerscope.app.kit.code.shown_lines import ShownLines, wrap
from lowerscope.core.model.compact_script import compact_script

SCRIPT = """# from tvm.script import tirx as T

@T.prim_func(private=True, s_tir=True)
def add(x: T.Buffer((T.int64(1), T.int64(4)), "float32"), y: T.Buffer((T.int64(4),), "float32")):
    # with T.sblock("root"):
    for i in T.grid(T.int64(4)):
        y[i] = x[T.int64(0), i] + T.float32(1.0)
"""


def shown(columns: int) -> ShownLines:
    return ShownLines(SCRIPT, compact_script(SCRIPT), columns)


def parts(line: str, columns: int) -> list[str]:
    return [" " * indent + line[start:end] for start, end, indent in wrap(line, columns)]


def test_a_signature_has_a_line_for_each_parameter() -> None:
    lines = shown(48)
    assert lines.lines[1:4] == [
        "def add(",
        '        x: T.Buffer((1, 4), "float32"),',
        '        y: T.Buffer((4,), "float32")):',
    ]
    assert [lines.number(each) for each in range(6)] == [1, 2, 0, 0, 3, 4]
    assert lines.numbered(3) == 4
    assert [lines.line_of(each) for each in range(6)] == [2, 3, 3, 3, 5, 6]
    assert (lines.first_of(3), lines.last_of(3)) == (1, 3)
    # A hidden line has no line of its own.
    assert lines.first_of(4) > lines.last_of(4)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "    lv = R.call_tir(cls.dense, (x, linear0.weight))",
            ["    lv = R.call_tir(cls.dense,", "        (x, linear0.weight))"],
        ),
        (
            "    out[i, j] = out[i, j] + x[i, k] * w[k, j]",
            ["    out[i, j] = out[i, j]", "        + x[i, k] * w[k, j]"],
        ),
        (
            "    def main(x: R.Tensor((1, 4))) -> R.Tensor((1, 2)):",
            ["    def main(", "            x: R.Tensor((1, 4))", "    ) -> R.Tensor((1, 2)):"],
        ),
        ("x" * 50, ["x" * 50]),
        (
            "    lv = R.add(encoder.layers_of_the_model.0.attention.weight, x)",
            ["    lv = R.add(", "encoder.layers_of_the_model.0.", "        attention.weight, x)"],
        ),
        (
            "def main() -> R.Tensor((1, 2), dtype=None):",
            ["def main(", ") -> R.Tensor((1, 2), dtype=None):"],
        ),
    ],
)
def test_lines_are_broken_where_they_are_read_apart(line: str, expected: list[str]) -> None:
    assert parts(line, 34) == expected


@pytest.mark.parametrize("columns", [0, 24, 40, 60, 200])
def test_whatever_the_width_the_printed_text_is_copied(columns: int) -> None:
    lines = shown(columns)
    end = len(lines.lines) - 1
    assert lines.whole((0, 0), (end, len(lines.lines[-1]))) == SCRIPT
    if columns:
        assert max(map(len, lines.lines)) <= columns
    # From the loop's header to the end of the last line.
    loop = next(at for at, line in enumerate(lines.lines) if line.startswith("    for"))
    copied = lines.whole((loop, 4), (end, len(lines.lines[-1])))
    assert copied == SCRIPT[SCRIPT.index("for i") :]


def test_an_index_stays_with_its_name() -> None:
    line = "        lv = R.call_tir(cls.conv2d, (x, const[0]: 64×3×7×7))"
    expected = ["        lv = R.call_tir(cls.conv2d,", "            (x, const[0]: 64×3×7×7))"]
    assert parts(line, 38) == expected
    # The note has no room beside it.
    found = wrap(line, 38, 14)
    shown = [line[start:end].strip() for start, end, _indent in found]
    assert shown == [*map(str.strip, expected), ""]


def test_a_note_moves_no_text_out_of_its_indent() -> None:
    name = "a_rather_long_name_of_a_parameter"
    script = f"        lv: R.Tensor((1, 512, 7, 7)) = R.add(first, {name})"
    for columns in range(48, 60):
        lines = ShownLines(script, compact_script(script), columns)
        shown = [line for line in lines.lines if line.strip()]
        assert [len(line) - len(line.lstrip()) for line in shown] == [8, *[12] * (len(shown) - 1)]
        last = len(lines.lines) - 1
        assert [lines.note(each) for each in range(last + 1)] == [*[""] * last, "1×512×7×7"]
        assert len(lines.lines[last].rstrip() + "  " + lines.note(last)) <= columns
        assert lines.whole((0, 0), (last, len(lines.lines[last]))) == script


def test_headings_are_neither_numbered_nor_copied() -> None:
    lines = ShownLines("dense\na\nb\nadd\nc", headings=(0, 3))
    assert [lines.number(each) for each in range(5)] == [0, 1, 2, 0, 1]
    assert lines.whole((0, 0), (4, 1)) == "a\nb\nc"


@pytest.mark.parametrize(
    "line",
    [
        "(" * 2_990,
        "def f(" + "a, " * 990 + "):",
        "x = " + '\\"' * 1_490,
        "x = " + "'\"\\" * 990,
        "",
    ],
    ids=["brackets", "parameters", "escapes", "quotes", "empty"],
)
def test_a_long_text_is_wrapped_as_far_as_the_time_goes(line: str) -> None:
    text = "\n".join([line] * (4_000_000 // (len(line) + 1)))
    start = time.process_time()
    lines = ShownLines(text, compact_script(text), 40)
    # Of the slowest, a second and a half; all of its lines would take twenty.
    assert time.process_time() - start < 10
    assert lines.text == text
    assert lines.numbered(10**9) == len(lines.lines) - 1 or lines.continues(len(lines.lines) - 1)


def test_lines_beyond_those_that_are_wrapped_are_as_wide_as_they_are() -> None:
    line = f"x = f({'argument, ' * 99})"
    lines = ShownLines("\n".join([line] * 1_000), columns=40)
    assert max(map(len, lines.lines[:100])) <= 40
    assert lines.lines[-1] == line
    assert lines.number(len(lines.lines) - 1) == lines.count == 1_000


@pytest.mark.parametrize("columns", range(38, 60))
def test_no_part_is_wider_than_the_pane(columns: int) -> None:
    line = '            lv86 = R.nn.adaptive_avg_pool2d(lv85, output_size=[1, 1], layout="NCHW")'
    assert max(map(len, parts(line, columns))) <= columns


# Spans, sets of lines, and finding


def test_innermost_is_the_smallest_span() -> None:
    spans = Spans([Span("main", 1, 9), Span("lv", 3, 4), Span("lv.call", 4, 4)])
    assert [spans.innermost(line) for line in (1, 3, 4, 10)] == ["main", "lv", "lv.call", ""]


def test_spans_of_entities_come_in_the_texts_order() -> None:
    spans = Spans([Span("b", 7, 8), Span("a", 1, 2), Span("b", 3, 3)])
    assert [span.first for span in spans.of({"b"})] == [3, 7]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8))))
def test_line_set_has_what_its_ranges_have(pairs: list[tuple[int, int]]) -> None:
    ranges = [(first, first + more) for first, more in pairs]
    lines = LineSet(ranges)
    expected = {line for first, last in ranges for line in range(first, last + 1)}
    assert {line for line in range(60) if line in lines} == expected
    assert bool(lines) == bool(ranges)


def test_finding_counts_columns_as_qt_does() -> None:
    pattern = compile_pattern("x", match_case=True, is_regex=False)
    # 𝔸 is one character and two UTF-16 units.
    assert find_all(pattern, ["𝔸x", "X x"], 10) == [Match(0, 2, 3), Match(1, 2, 3)]


def test_finding_without_case_as_pattern_and_up_to_a_limit() -> None:
    pattern = compile_pattern(r"lv\d", match_case=False, is_regex=True)
    assert len(find_all(pattern, ["LV1 lv2", "lv"], 10)) == 2
    assert len(find_all(pattern, ["lv1 " * 50], 7)) == 7
    literal = compile_pattern("a.c", match_case=False, is_regex=False)
    assert find_all(literal, ["abc"], 10) == []
    with pytest.raises(re.error):
        compile_pattern("(", match_case=False, is_regex=True)
