"""The difference of texts and of modules: against plain difflib, and back to both texts."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.core.model.line_difference import (
    FunctionText,
    changed_words,
    function_differences,
    line_runs,
    matching_lines,
)
from lowerscope.core.model.module_steps import FunctionDifference, Run

LINES = st.lists(
    st.sampled_from(["for i in range(8):", "    x[i] = y[i]", "    x[i] = z[i] + 1", "", "}"])
    | st.text(alphabet="ab =", max_size=4),
    max_size=60,
)


def both_sides(
    old: Sequence[str], new: Sequence[str], runs: Sequence[Run]
) -> tuple[list[str], list[str]]:
    """Put both texts together again from the rows, as they are shown."""
    left: list[str] = []
    right: list[str] = []
    for run in runs:
        for offset in range(run.length):
            if run.status != "added":
                assert run.old + offset == len(left) + 1
                left.append(old[run.old - 1 + offset])
            if run.status != "removed":
                assert run.new + offset == len(right) + 1
                right.append(new[run.new - 1 + offset])
            if run.status == "same":
                assert left[-1] == right[-1]
            if run.status == "changed":
                assert left[-1] != right[-1]
    return left, right


@given(LINES, LINES)
def test_both_texts_can_be_put_together_again_from_the_rows(old: list[str], new: list[str]) -> None:
    assert both_sides(old, new, line_runs(old, new)) == (old, new)


@given(LINES, LINES)
def test_as_many_lines_are_the_same_as_difflib_finds(old: list[str], new: list[str]) -> None:
    theirs = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    # A line that comes once on either side is kept, even where others would have matched then.
    ours = matching_lines(old, new)
    unique = set(old) & set(new)
    if all(old.count(line) > 1 or new.count(line) > 1 for line in unique):
        assert sum(each[2] for each in ours) >= sum(each.size for each in theirs)
    for first, second, length in ours:
        assert old[first : first + length] == new[second : second + length]


@given(LINES, LINES)
def test_runs_are_as_long_as_can_be(old: list[str], new: list[str]) -> None:
    runs = line_runs(old, new)
    assert all(run.length > 0 for run in runs)
    for run, following in itertools.pairwise(runs):
        assert (run.status, following.status) != ("same", "same")
        assert (run.status, following.status) != ("changed", "changed")


@given(st.text(max_size=80), st.text(max_size=80))
def test_what_is_not_marked_is_the_same_in_both_lines(old: str, new: str) -> None:
    olds, news = changed_words(old, new)
    if olds or news:
        assert without(old, olds).split() == without(new, news).split()


def without(line: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Return a line without some of its parts."""
    return " ".join(
        line[start:end]
        for start, end in zip(
            [0, *(end for _, end in ranges)],
            [*(start for start, _ in ranges), len(line)],
            strict=True,
        )
    )


@pytest.mark.parametrize(
    ("old", "new", "removed", "added"),
    [
        ("for i, k in T.grid(8, 784):", "for i, k in T.grid(8, 785):", ["784"], ["785"]),
        ("v = T.axis.spatial(8, i)", "v = T.axis.spatial(8, i0 * 4 + i1)", ["i"], ["i0 * 4 + i1"]),
        ("lv = R.add(x, y)", "lv: R.Tensor = R.add(x, y)", [], [": R.Tensor"]),
        ("pass", "for i in range(8):", [], []),
        ("same", "same", [], []),
    ],
)  # fmt: skip
def test_changed_words(old: str, new: str, removed: list[str], added: list[str]) -> None:
    olds, news = changed_words(old, new)
    assert [old[start:end].strip() for start, end in olds] == removed
    assert [new[start:end].strip() for start, end in news] == added


def test_lines_that_became_others_stand_side_by_side() -> None:
    old = ["def f():", "    x = dense(a, w)", "    y = relu(x)", "    return y"]
    new = ["def f():", "    # fused", "    x = dense_relu(a, w)", "    return x"]
    assert line_runs(old, new) == [
        Run("same", 1, 1, 1),
        Run("added", 2, 2, 1),
        Run("changed", 2, 3, 1),
        Run("removed", 3, 4, 1),
        Run("changed", 4, 4, 1),
    ]


def module(**functions: str) -> dict[str, FunctionText]:
    """Return functions with these texts."""
    return {name: FunctionText("tensorir", text) for name, text in functions.items()}


def test_functions_have_a_status_and_gone_ones_stand_where_they_stood() -> None:
    old = module(main="a\nb\nc", dense="d", relu="r", add="e")
    new = module(main="a\nB\nc", dense="d", fused="f\ng")
    found = {each.name: each for each in function_differences(old, new)}
    assert list(found) == ["main", "dense", "relu", "add", "fused"]
    assert [each.status for each in found.values()] == [
        "changed",
        "same",
        "removed",
        "removed",
        "added",
    ]
    assert figures(found["main"]) == (1, 1, 0)
    assert figures(found["fused"]) == (2, 0, 0)
    assert figures(found["relu"]) == (0, 1, 0)
    assert (found["dense"].old, found["dense"].new) == ("d", "")


def figures(function: FunctionDifference) -> tuple[int, int, int]:
    """Return the numbers of added, removed and changed lines."""
    return function.added, function.removed, function.changed


@given(LINES.filter(bool), LINES.filter(bool))
def test_a_function_is_the_same_exactly_where_difflib_says_so(
    old: list[str], new: list[str]
) -> None:
    (found,) = function_differences(module(f="\n".join(old)), module(f="\n".join(new)))
    changes = list(difflib.unified_diff("\n".join(old).split("\n"), "\n".join(new).split("\n")))
    assert (found.status == "same") == (not changes)


def test_a_long_text_without_a_line_of_its_own_is_compared_at_once() -> None:
    old = ["x += 1", "y += 1", "y += 2"] * 7000
    new = ["y += 1", "x += 1", "y += 2", "y += 2"] * 5000
    assert both_sides(old, new, line_runs(old, new)) == (old, new)


def test_changes_of_a_text_far_longer_than_a_window_of_comparison_are_all_found() -> None:
    old = [f"v{number % 7} = {number % 11}" for number in range(40_000)]
    new = [line for number, line in enumerate(old) if number % 10]
    assert sum(length for _, _, length in matching_lines(old, new)) == len(new)
