"""The difference of two texts, and of two modules function by function, as runs of lines."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lowerscope.core.records.difference import FunctionDifference, Run, Status
from lowerscope.core.rendering.line_matching import matching_lines, stretches

Kind = Literal["relax", "tensorir", ""]

_WORD = re.compile(r"\w+")
_ALIKE = 0.5
_MOSTLY = 0.75
"""Share of similar lines in a gap from which on lines are matched by position."""

_SAMPLE = 16

_MOST_PAIRS = 12
"""Pairs for each line of a gap up to which the best matching is searched for."""

_AHEAD = 6
"""New lines that are compared with an old one, in a gap with more."""


@dataclass(frozen=True)
class FunctionText:
    """A function of one side: its kind and its text."""

    kind: Kind
    text: str


def function_differences(
    old: Mapping[str, FunctionText], new: Mapping[str, FunctionText]
) -> tuple[FunctionDifference, ...]:
    """Compare two modules, function by function.

    Parameters
    ----------
    old, new
        The functions of either side by name, in the order in which they are listed.

    Returns
    -------
    tuple of FunctionDifference
        In the order of `new`; a removed function comes after the one that it followed.
    """
    return tuple(_of(name, old.get(name), new.get(name)) for name in _in_order(old, new))


def line_runs(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return all lines of both sides in order: the same, changed, removed and added ones.

    A line counts as changed where it stands between the same lines as one of the other side
    that is like it.
    """
    runs: list[Run] = []
    i = j = 0
    for next_i, next_j, length in [*matching_lines(old, new), (len(old), len(new), 0)]:
        _add_gap(runs, old, new, (i, next_i), (j, next_j))
        if length:
            _append(runs, Run("same", next_i + 1, next_j + 1, length))
        i, j = next_i + length, next_j + length
    return runs


def _in_order(old: Iterable[str], new: Iterable[str]) -> list[str]:
    new = list(new)
    there = set(new)
    gone_after: dict[str, list[str]] = {}
    last = ""
    for name in old:
        if name in there:
            last = name
        else:
            gone_after.setdefault(last, []).append(name)
    names = gone_after.pop("", [])
    for name in new:
        names.append(name)
        names.extend(gone_after.get(name, ()))
    return names


def _of(name: str, old: FunctionText | None, new: FunctionText | None) -> FunctionDifference:
    kind = (new or old or FunctionText("", "")).kind
    before = [] if old is None else old.text.split("\n")
    after = [] if new is None else new.text.split("\n")
    if old is None or new is None:
        status: Status = "added" if old is None else "removed"
        runs = [Run(status, 1, 1, len(before) + len(after))]
    elif old.text == new.text:
        status, runs = "same", [Run("same", 1, 1, len(before))]
    else:
        status, runs = "changed", line_runs(before, after)
    lines: dict[Status, int] = dict.fromkeys(("changed", "added", "removed", "same"), 0)
    for run in runs:
        lines[run.status] += run.length
    return FunctionDifference(
        name=name,
        kind=kind,
        status=status,
        old="" if old is None else old.text,
        new="" if new is None or status == "same" else new.text,
        runs=tuple(runs),
        added=lines["added"],
        removed=lines["removed"],
        changed=lines["changed"],
    )


def _add_gap(
    runs: list[Run],
    old: Sequence[str],
    new: Sequence[str],
    olds: tuple[int, int],
    news: tuple[int, int],
) -> None:
    """Add the lines between two matches: similar ones side by side."""
    i, j = olds[0], news[0]
    for x, y, length in stretches(_alike(old[slice(*olds)], new[slice(*news)])):
        next_i, next_j = olds[0] + x, news[0] + y
        _add_alone(runs, (i, next_i), (j, next_j))
        i, j = next_i + length, next_j + length
        # A search that was cut short may leave equal lines.
        same = map(operator.eq, old[next_i:i], new[next_j:j])
        for equal, group in itertools.groupby(same):
            count = len(list(group))
            _append(runs, Run("same" if equal else "changed", next_i + 1, next_j + 1, count))
            next_i, next_j = next_i + count, next_j + count
    _add_alone(runs, (i, olds[1]), (j, news[1]))


def _add_alone(runs: list[Run], olds: tuple[int, int], news: tuple[int, int]) -> None:
    """Add lines that stand on one side alone."""
    if olds[1] > olds[0]:
        runs.append(Run("removed", olds[0] + 1, news[0] + 1, olds[1] - olds[0]))
    if news[1] > news[0]:
        runs.append(Run("added", olds[1] + 1, news[0] + 1, news[1] - news[0]))


def _append(runs: list[Run], run: Run) -> None:
    """Add lines that stand on both sides, to the run before them where that has their status."""
    last = runs[-1] if runs else None
    if last is not None and last.status == run.status:
        runs[-1] = Run(run.status, last.old, last.new, last.length + run.length)
    else:
        runs.append(run)


def _alike(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of similar lines of a gap, in order; places from 0."""
    if not old or not new:
        return []
    if len(old) == len(new) and (len(old) <= 2 * _SAMPLE or _seems_like(old, new)):
        pairs = [(i, i) for i, line in enumerate(old) if _is_like(line, new[i])]
        if len(pairs) >= _MOSTLY * len(old):
            return pairs
    words_old, words_new = [_words(line) for line in old], [_words(line) for line in new]
    if len(old) * len(new) > _MOST_PAIRS * (len(old) + len(new)):
        return _next_alike(words_old, words_new)
    return _best_pairs(words_old, words_new)


def _seems_like(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether two long lists seem similar line by line, from a sample."""
    step = len(old) // _SAMPLE + 1
    sample = range(0, len(old), step)
    return sum(_is_like(old[i], new[i]) for i in sample) >= _ALIKE * len(sample)


def _best_pairs(
    old: Sequence[frozenset[str]], new: Sequence[frozenset[str]]
) -> list[tuple[int, int]]:
    """Return the pairs with the greatest total similarity."""
    n, m = len(old), len(new)
    # best[i][j]: of the lines from i and from j on.
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    likeness = [[_likeness(one, other) for other in new] for one in old]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            alone = max(best[i + 1][j], best[i][j + 1])
            found = likeness[i][j]
            best[i][j] = max(alone, best[i + 1][j + 1] + found) if found >= _ALIKE else alone
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < n and j < m:
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


def _next_alike(
    old: Sequence[frozenset[str]], new: Sequence[frozenset[str]]
) -> list[tuple[int, int]]:
    """Return for each old line the first of the next new ones that is like it."""
    pairs: list[tuple[int, int]] = []
    start = 0
    for i, words in enumerate(old):
        for j in range(start, min(start + _AHEAD, len(new))):
            if _likeness(words, new[j]) >= _ALIKE:
                pairs.append((i, j))
                start = j + 1
                break
    return pairs


def _is_like(old: str, new: str) -> bool:
    half = max(len(old), len(new)) // 2 + 1
    if old[:half] == new[:half] or old[-half:] == new[-half:]:
        return True
    return _likeness(_words(old), _words(new)) >= _ALIKE


@lru_cache(maxsize=8192)
def _words(line: str) -> frozenset[str]:
    return frozenset(_WORD.findall(line))


def _likeness(old: frozenset[str], new: frozenset[str]) -> float:
    """Return how much of two lines' words they have in common, from 0 to 1."""
    total = len(old) + len(new)
    return 2 * len(old & new) / total if total else 0.0
