"""A difference as text, as ``diff -u`` writes it: functions one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.records.difference import DifferenceRecord, FunctionDifference

CONTEXT = 3
"""Equal lines before and after a change."""


def unified_text(record: DifferenceRecord) -> str:
    """Return the functions that differ; a header names each side.

    The text can be applied by ``patch`` to files with the functions' scripts.
    """
    lines = [f"# old: {record.old_label}", f"# new: {record.new_label}"]
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
    yield from (f"# {function.name}: {each.line()}" for each in function.constants)
    if function.constants and not function.added + function.removed + function.changed:
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
        if run.status in ("changed", "removed"):
            rows += [("-", line) for line in olds]
        if run.status in ("changed", "added"):
            come += [("+", line) for line in news]
    return rows + come


def _range(before: list[tuple[str, str]], hunk: list[tuple[str, str]], sign: str) -> str:
    """Return the first line of a hunk on one side, and its number of lines there."""
    count = sum(each in (" ", sign) for each, _ in hunk)
    first = sum(each in (" ", sign) for each, _ in before) + (1 if count else 0)
    return f"{first},{count}"
