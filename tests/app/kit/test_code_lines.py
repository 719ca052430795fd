"""Spans, sets of lines, and finding."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.app.kit.code.code_view import compile_pattern, find_all
from lowerscope.app.kit.code.marks import LineSet, Match, Span, Spans


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
