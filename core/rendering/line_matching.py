"""Which lines of two texts are the same: in time that grows with the texts, whatever they hold.

``difflib`` looks at all places of a line that comes often, and the scripts of tensor programs are
full of such lines. So lines that come once on either side are matched first (patience
difference), and what lies between by the shortest list of changes (Myers, "An O(ND) Difference
Algorithm and Its Variations", 1986), with a bound on the work.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

Match = tuple[int, int, int]
"""First line on either side, from 0, and number of lines that are the same from there on."""

_FRONTIER = 96
"""Changes after which a search takes the furthest way that it has found."""

_BUDGET = 60_000
"""Steps of all searches of one pair of texts; after that, what is left counts as changed."""


def matching_lines(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Return the lines that are the same, in order; each line stands in one match at most.

    The matches are as long as can be: no two of them touch on both sides.
    """
    # Most of it is the same, and need not be looked at again.
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old[start : len(old) - end]]
    b = [numbers.setdefault(line, len(numbers)) for line in new[start : len(new) - end]]
    result: list[Match] = [(0, 0, start)] if start else []
    inner = ((start + i, start + j, length) for i, j, length in _Matching(a, b).matches())
    for match in itertools.chain(inner, [(len(old) - end, len(new) - end, end)]):
        first, second, length = match
        before = result[-1] if result else (0, 0, 0)
        if (before[0] + before[2], before[1] + before[2]) == (first, second) and result:
            result[-1] = (before[0], before[1], before[2] + length)
        elif length:
            result.append(match)
    return result


class _Matching:
    """The matches of two lists of numbers, which stand for lines."""

    def __init__(self, a: list[int], b: list[int]) -> None:
        self._a = a
        self._b = b
        self._budget = _BUDGET

    def matches(self) -> Iterator[Match]:
        # Parts that are still to be looked at, the next one last.
        waiting = [(0, len(self._a), 0, len(self._b))]
        while waiting:
            a_low, a_high, b_low, b_high = waiting.pop()
            start = self._common_start(a_low, a_high, b_low, b_high)
            if start:
                yield a_low, b_low, start
                a_low, b_low = a_low + start, b_low + start
            end = self._common_end(a_low, a_high, b_low, b_high)
            a_high, b_high = a_high - end, b_high - end
            tail = (a_high, b_high, end)
            if a_low == a_high or b_low == b_high:
                if end:
                    yield tail
                continue
            anchors = self._unique_in_both(a_low, a_high, b_low, b_high)
            if not anchors:
                yield from self._shortest(a_low, a_high, b_low, b_high)
                if end:
                    yield tail
                continue
            if end:
                # Looked at again as a part of its own: it is the same to the last line.
                waiting.append((a_high, a_high + end, b_high, b_high + end))
            parts: list[tuple[int, int, int, int]] = []
            i, j = a_low, b_low
            for k, m, length in stretches(anchors):
                if k > i or m > j:
                    parts.append((i, k, j, m))
                i, j = k + length, m + length
                parts.append((k, i, m, j))
            parts.append((i, a_high, j, b_high))
            waiting.extend(reversed(parts))

    def _common_start(self, a_low: int, a_high: int, b_low: int, b_high: int) -> int:
        a, b = self._a, self._b
        most = min(a_high - a_low, b_high - b_low)
        if a[a_low : a_low + most] == b[b_low : b_low + most]:
            return most
        count = 0
        while a[a_low + count] == b[b_low + count]:
            count += 1
        return count

    def _common_end(self, a_low: int, a_high: int, b_low: int, b_high: int) -> int:
        a, b = self._a, self._b
        most = min(a_high - a_low, b_high - b_low)
        count = 0
        while count < most and a[a_high - 1 - count] == b[b_high - 1 - count]:
            count += 1
        return count

    def _unique_in_both(
        self, a_low: int, a_high: int, b_low: int, b_high: int
    ) -> list[tuple[int, int]]:
        """Return places of lines that come once on either side, the most that are in order."""
        a, b = self._a, self._b
        count_a, count_b = Counter(a[a_low:a_high]), Counter(b[b_low:b_high])
        once = {line for line, count in count_a.items() if count == 1 == count_b.get(line)}
        if not once:
            return []
        place = {b[j]: j for j in range(b_low, b_high) if b[j] in once}
        pairs = [(i, place[a[i]]) for i in range(a_low, a_high) if a[i] in once]
        return _longest_rising(pairs)

    def _shortest(self, a_low: int, a_high: int, b_low: int, b_high: int) -> Iterator[Match]:
        """Yield the matches of a part by the shortest list of changes, as far as time allows."""
        # What one side does not have at all is no choice, and would only make the search long.
        both = set(self._a[a_low:a_high]).intersection(self._b[b_low:b_high])
        if not both:
            return
        places_a = [i for i in range(a_low, a_high) if self._a[i] in both]
        places_b = [j for j in range(b_low, b_high) if self._b[j] in both]
        a, b = [self._a[i] for i in places_a], [self._b[j] for j in places_b]
        start_a = start_b = 0
        while start_a < len(a) and start_b < len(b) and self._budget > 0:
            matches, next_a, next_b = self._search(a[start_a:], b[start_b:])
            for i, j, length in matches:
                for step in range(length):
                    yield places_a[start_a + i + step], places_b[start_b + j + step], 1
            start_a, start_b = start_a + next_a, start_b + next_b

    def _search(self, a: list[int], b: list[int]) -> tuple[list[Match], int, int]:
        """Search greedily for the ends of two lists; return the matches on the way, and how far.

        That is to the ends, or to the furthest places after `_FRONTIER` changes.
        """
        n, m = len(a), len(b)
        # For each diagonal x - y the furthest x, and that after each number of changes.
        furthest = {1: 0}
        history: list[dict[int, int]] = []
        changes = 0
        for changes in range(min(n + m, _FRONTIER) + 1):
            history.append(dict(furthest))
            for diagonal in range(-changes, changes + 1, 2):
                before = _before(furthest, diagonal, changes)
                x = furthest[before] + (before < diagonal)
                y = x - diagonal
                while x < n and y < m and a[x] == b[y]:
                    x, y = x + 1, y + 1
                furthest[diagonal] = x
                if x >= n and y >= m:
                    return _way_back(history, n, m), n, m
            self._budget -= changes + 1
            if self._budget <= 0:
                break
        ends = [(furthest[k], furthest[k] - k) for k in range(-changes, changes + 1, 2)]
        x, y = max(((x, y) for x, y in ends if x <= n and 0 <= y <= m), key=sum, default=(0, 0))
        return (_way_back(history, x, y), x, y) if x + y else ([], n, m)


def _before(furthest: dict[int, int], diagonal: int, changes: int) -> int:
    """Return the diagonal from which the furthest place on another one is reached by a change."""
    if diagonal == -changes:
        return diagonal + 1
    if diagonal == changes or furthest[diagonal - 1] >= furthest[diagonal + 1]:
        return diagonal - 1
    return diagonal + 1


def _way_back(history: list[dict[int, int]], x: int, y: int) -> list[Match]:
    """Return the matches on the way of a greedy search to a place, from what it has noted."""
    matches: list[Match] = []
    for changes in range(len(history) - 1, 0, -1):
        diagonal = x - y
        before = _before(history[changes], diagonal, changes)
        start = history[changes][before]
        run = start + (before < diagonal)
        if x > run:
            matches.append((run, run - diagonal, x - run))
        x, y = start, start - before
    if x:
        matches.append((0, 0, x))
    matches.reverse()
    return matches


def stretches(pairs: list[tuple[int, int]]) -> Iterator[Match]:
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
