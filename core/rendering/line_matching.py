"""Line matching of two texts, in time that grows linearly with the texts.

Lines that are unique on either side are matched first (patience difference), and those between them
by the longest common subsequence, which rapidfuzz finds with a bit-parallel algorithm.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rapidfuzz.distance import Indel

Match = tuple[int, int, int]
"""First line on either side, from 0, and number of lines that are the same from there on."""

_WINDOW = 8_192
"""Lines of either side that are compared at once: time and memory grow with its square."""


def matching_lines(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Return the lines that are the same, in order; each line stands in one match at most.

    The matches are as long as can be: no two of them touch on both sides.
    """
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    return list(stretches(_pairs(a, b)))


def stretches(pairs: Iterable[tuple[int, int]]) -> Iterator[Match]:
    """Yield pairs that follow one another on both sides as one match."""
    first, second, length = -1, -1, 0
    for i, j in pairs:
        if (i, j) == (first + length, second + length):
            length += 1
            continue
        if length:
            yield first, second, length
        first, second, length = i, j, 1
    if length:
        yield first, second, length


def _pairs(a: list[int], b: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the places of equal lines on both sides, in order."""
    i = j = 0
    for anchor_i, anchor_j in _anchors(a, b):
        yield from _common_subsequence(a, b, (i, anchor_i), (j, anchor_j))
        yield anchor_i, anchor_j
        i, j = anchor_i + 1, anchor_j + 1
    yield from _common_subsequence(a, b, (i, len(a)), (j, len(b)))


def _common_subsequence(
    a: list[int], b: list[int], range_a: tuple[int, int], range_b: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a longest common subsequence, found in overlapping windows.

    Of a window, only its first half is final: lines further down may have partners below it.
    """
    (i, end_a), (j, end_b) = range_a, range_b
    while i < end_a and j < end_b:
        lines_a, lines_b = a[i : min(end_a, i + _WINDOW)], b[j : min(end_b, j + _WINDOW)]
        is_last = i + len(lines_a) == end_a and j + len(lines_b) == end_b
        settled = _WINDOW if is_last else _WINDOW // 2
        next_a = next_b = settled
        done_a = done_b = 0
        for part in Indel.opcodes(lines_a, lines_b):
            if part.tag != "equal":
                continue
            if part.src_start >= settled or part.dest_start >= settled:
                next_a, next_b = min(part.src_start, settled), min(part.dest_start, settled)
                break
            done_a, done_b = part.src_end, part.dest_end
            yield from zip(
                range(i + part.src_start, i + done_a),
                range(j + part.dest_start, j + done_b),
                strict=True,
            )
        i, j = i + max(done_a, next_a), j + max(done_b, next_b)


def _anchors(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """Return the places of lines that are unique on either side, the most that are in order."""
    count_a, count_b = Counter(a), Counter(b)
    place = {line: j for j, line in enumerate(b) if count_a[line] == 1 == count_b[line]}
    return _longest_rising([(i, place[line]) for i, line in enumerate(a) if line in place])


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of `pairs`, which rise in the first, that rises in the second."""
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        place = bisect_left(tails, second)
        before.append(at[place - 1] if place else -1)
        if place == len(tails):
            tails.append(second)
            at.append(index)
        else:
            tails[place] = second
            at[place] = index
    result: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        result.append(pairs[index])
        index = before[index]
    result.reverse()
    return result
