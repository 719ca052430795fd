"""The difference of two texts, and of two modules function by function, as runs of lines."""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rapidfuzz.distance import Indel

from lowerscope.core.model.module_steps import DifferenceRecord, FunctionDifference, Run, Status
from lowerscope.core.model.texts import english

Match = tuple[int, int, int]
"""First line on either side, from 0, and number of lines that are the same from there on."""

_WINDOW = 8_192
"""Lines of either side that are compared at once: time and memory grow with its square."""


def matching_lines(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Return the lines that are the same, in order; each line stands in one match at most.

    Lines that are unique on either side are matched first (patience difference), and those between
    them by the longest common subsequence, which rapidfuzz finds with a bit-parallel algorithm.

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

    Returns:
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
            append_run(runs, Run("same", next_i + 1, next_j + 1, length))
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
    elif old.kind != new.kind:
        # Nothing that two languages have in common is more than punctuation.
        status = "changed"
        runs = [Run("removed", 1, 1, len(before)), Run("added", len(before) + 1, 1, len(after))]
    else:
        status, runs = "changed", line_runs(before, after)
    lines: dict[str, int] = dict.fromkeys(("changed", "added", "removed", "same"), 0)
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
            append_run(runs, Run("same" if equal else "changed", next_i + 1, next_j + 1, count))
            next_i, next_j = next_i + count, next_j + count
    _add_alone(runs, (i, olds[1]), (j, news[1]))


def _add_alone(runs: list[Run], olds: tuple[int, int], news: tuple[int, int]) -> None:
    """Add lines that stand on one side alone."""
    if olds[1] > olds[0]:
        runs.append(Run("removed", olds[0] + 1, news[0] + 1, olds[1] - olds[0]))
    if news[1] > news[0]:
        runs.append(Run("added", olds[1] + 1, news[0] + 1, news[1] - news[0]))


def append_run(runs: list[Run], run: Run) -> None:
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


Range = tuple[int, int]
"""First column, and the one after the last, from 0."""

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_TOKENS = 400
_ALIKE_WORDS = 0.35


def changed_words(old: str, new: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Return the parts of `old` that are not in `new`, and the other way round.

    Where the lines have little in common, nothing is marked: the whole line has changed then.
    """
    start = _common_length(old, new)
    if not old[start:] and not new[start:]:
        return (), ()
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(a) > _MOST_TOKENS or len(b) > _MOST_TOKENS:
        return _without_ends(old, new)
    blocks = [*_matching_words(a, b), (len(a), len(b), 0)]
    kept = sum(len("".join(a[i : i + size]).strip()) for i, _, size in blocks)
    if 2 * kept < _ALIKE_WORDS * (len(old.strip()) + len(new.strip())):
        return (), ()
    ends_a, ends_b = _ends(a), _ends(b)
    olds: list[Range] = []
    news: list[Range] = []
    i = j = 0
    for next_i, next_j, size in blocks:
        _add(olds, ends_a[i], ends_a[next_i], old)
        _add(news, ends_b[j], ends_b[next_j], new)
        i, j = next_i + size, next_j + size
    return tuple(olds), tuple(news)


def _matching_words(a: list[str], b: list[str]) -> list[Match]:
    """Return the common words in runs; punctuation between changed words has changed with them."""
    return [
        (part.src_start, part.dest_start, part.src_end - part.src_start)
        for part in Indel.opcodes(a, b)
        if part.tag == "equal"
        and (
            part.src_start == part.dest_start == 0
            or (part.src_end, part.dest_end) == (len(a), len(b))
            or any(_WORD.match(word) for word in a[part.src_start : part.src_end])
        )
    ]


def _add(ranges: list[Range], start: int, end: int, line: str) -> None:
    """Add a range, as one with that before it where only blanks stand between."""
    if start == end:
        return
    words = line[start:end].strip()
    if words:
        start = line.index(words, start)
        end = start + len(words)
    if ranges and not line[ranges[-1][1] : start].strip():
        ranges[-1] = (ranges[-1][0], end)
    else:
        ranges.append((start, end))


def _ends(tokens: list[str]) -> list[int]:
    """Return the start of each token, and the end of the last one."""
    places = [0]
    for token in tokens:
        places.append(places[-1] + len(token))
    return places


def _without_ends(old: str, new: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Mark what lies between the same start and the same end: for lines of thousands of words."""
    start = _common_length(old, new)
    end = _common_length(old[start:][::-1], new[start:][::-1])
    olds = ((start, len(old) - end),) if start < len(old) - end else ()
    news = ((start, len(new) - end),) if start < len(new) - end else ()
    return olds, news


def _common_length(a: str, b: str) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


CONTEXT = 3
"""Equal lines before and after a change."""


def unified_text(record: DifferenceRecord) -> str:
    """Return the functions that differ; a header names each side.

    It is in English, and can be applied by ``patch`` to files with the functions' scripts.
    """
    old, new, sentence = record.english
    lines = [f"# old: {old}", f"# new: {new}"]
    if sentence:
        lines.append(f"# {sentence}")
    differing = [each for each in record.functions if each.status != "same"]
    for function in differing:
        lines += ["", *_function(function)]
    same = len(record.functions) - len(differing)
    if not differing:
        lines.append("# nothing differs")
    elif same:
        lines += ["", f"# {same} function{'s are' if same > 1 else ' is'} the same"]
    return "\n".join(lines)


def _function(function: FunctionDifference) -> Iterator[str]:
    gone, come = function.status == "removed", function.status == "added"
    yield from (f"# {function.name}: {english(each.line())}" for each in function.constants)
    if function.constants and all(run.status == "same" for run in function.runs):
        return
    yield f"--- {'/dev/null' if come else function.name}"
    yield f"+++ {'/dev/null' if gone else function.name}"
    rows = _rows(function)
    changes = [place for place, row in enumerate(rows) if row[0] != " "]
    start = 0
    while start < len(changes):
        end = start
        while end + 1 < len(changes) and changes[end + 1] - changes[end] <= 2 * CONTEXT:
            end += 1
        first = max(0, changes[start] - CONTEXT)
        hunk = rows[first : changes[end] + CONTEXT + 1]
        before = rows[:first]
        yield f"@@ -{_range(before, hunk, '-')} +{_range(before, hunk, '+')} @@"
        yield from (sign + text for sign, text in hunk)
        start = end + 1


def _rows(function: FunctionDifference) -> list[tuple[str, str]]:
    old = function.old.split("\n")
    new = function.new.split("\n")
    rows: list[tuple[str, str]] = []
    # All removed lines between two equal lines come before all added ones.
    come: list[tuple[str, str]] = []
    for run in function.runs:
        olds = old[run.old - 1 : run.old - 1 + run.length]
        news = new[run.new - 1 : run.new - 1 + run.length]
        if run.status == "same":
            rows += [*come, *((" ", line) for line in olds)]
            come = []
        if run.status in ("changed", "removed", "moved-out"):
            rows += [("-", line) for line in olds]
        if run.status in ("changed", "added", "moved-in"):
            come += [("+", line) for line in news]
    return rows + come


def _range(before: list[tuple[str, str]], hunk: list[tuple[str, str]], sign: str) -> str:
    """Return the first line of a hunk on one side, and its number of lines there."""
    count = sum(each in (" ", sign) for each, _ in hunk)
    first = sum(each in (" ", sign) for each, _ in before) + (1 if count else 0)
    return f"{first},{count}"
