"""Lines that a step moved from one function into another one, such as into a group of FuseOps.

Bindings are followed by their matches, and TensorIR functions by the calls of these: a function
that replaced others holds their lines. Nothing is guessed from names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import tvm

from lowerscope.core.ir.relax import bound_in, called_name, callee_of, relax_functions
from lowerscope.core.ir.script import function_text
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.line_difference import line_runs
from lowerscope.core.model.module_steps import FunctionDifference, Run
from lowerscope.core.passes.bindings import Matches

Place = tuple[str, int]
"""A function and a line of it, from 1."""

Moves = Mapping[Place, Place]
"""From lines of the new side to the lines of the old side that they were."""


def with_moved_lines(
    before: tvm.IRModule,
    after: tvm.IRModule,
    functions: Sequence[FunctionDifference],
    matches: Callable[[], Matches],
) -> tuple[FunctionDifference, ...]:
    """Mark the lines that stand in another function on the other side.

    `matches`: returns the descendants in `after` of the bindings of `before`.
    """
    added = any(each.status == "added" or _is_other_kind(each) for each in functions)
    if not added or all(each.status == "added" for each in functions):
        return tuple(functions)
    moves = dict(_moves(before, after, functions, matches()))
    if not moves:
        return tuple(functions)
    went: dict[Place, Place] = {}
    for new, old in moves.items():
        went.setdefault(old, new)
    return tuple(_marked(each, moves, went) for each in functions)


def sources_of(before: tvm.IRModule, after: tvm.IRModule, matches: Matches) -> dict[str, list[str]]:
    """Return for each new TensorIR function the names of those that it is called for, in order."""
    olds, news = prim_funcs_of(before), prim_funcs_of(after)
    if news.keys() <= olds.keys():
        return {}
    called, calls = _callees(before), _callees(after)
    sources: dict[str, list[str]] = {}
    for entity, found in matches.items():
        old = called.get(entity, "")
        if old not in olds:
            continue
        for new in dict.fromkeys(calls.get(each, "") for each in found):
            if new in news and new not in olds and old not in sources.setdefault(new, []):
                sources[new].append(old)
    return sources


def _is_other_kind(function: FunctionDifference) -> bool:
    """Return whether a Relax function became a TensorIR function of the same name."""
    return function.status == "changed" and not any(run.status == "same" for run in function.runs)


def _callees(module: tvm.IRModule) -> dict[str, str]:
    """Return the name of the function that each binding calls."""
    found: dict[str, str] = {}
    for name, function in relax_functions(module):
        for bound in bound_in(name, function):
            if called := called_name(bound.value):
                found[bound.id] = called
    return found


def _moves(
    before: tvm.IRModule,
    after: tvm.IRModule,
    functions: Sequence[FunctionDifference],
    matches: Matches,
) -> Iterator[tuple[Place, Place]]:
    by_name = {each.name: each for each in functions}
    gone = {each.name: _lines(each, "old", ("removed", "changed")) for each in functions}
    come = {each.name: _lines(each, "new", ("added",)) for each in functions}
    yield from _of_bindings(before, after, matches, gone, come)
    for name, sources in sources_of(before, after, matches).items():
        if come.get(name):
            yield from _of_kernel(by_name, name, sources, gone)


def _lines(function: FunctionDifference, side: str, statuses: tuple[str, ...]) -> set[int]:
    return {
        line
        for run in function.runs
        if run.status in statuses
        for line in range(getattr(run, side), getattr(run, side) + run.length)
    }


def _of_bindings(
    before: tvm.IRModule,
    after: tvm.IRModule,
    matches: Matches,
    gone: Mapping[str, set[int]],
    come: Mapping[str, set[int]],
) -> Iterator[tuple[Place, Place]]:
    """Yield the lines of bindings that call the same, in a function of another name."""
    olds, news = _LinesOfBindings(before), _LinesOfBindings(after)
    seen: set[Place] = set()
    for entity, found in matches.items():
        name = _function_of(entity)
        for other in found:
            into = _function_of(other)
            if into == name or not gone.get(name) or not come.get(into):
                continue
            old, new = olds.line(name, entity), news.line(into, other)
            is_free = old in gone[name] and new in come[into] and (into, new) not in seen
            if is_free and olds.callee(name, entity) == news.callee(into, other):
                seen.add((into, new))
                yield (into, new), (name, old)


class _LinesOfBindings:
    """Lines and callees of the bindings of a module, by function."""

    def __init__(self, module: tvm.IRModule) -> None:
        self._module = module
        self._known: dict[str, tuple[Mapping[str, int], Mapping[str, Any]]] = {}

    def line(self, function: str, entity: str) -> int:
        """Return the line of a binding in the script of its function alone; 0 for none."""
        return self._of(function)[0].get(entity, 0)

    def callee(self, function: str, entity: str) -> str:
        """Return the operator or function that a binding calls."""
        value = self._of(function)[1].get(entity)
        callee = callee_of(value)
        return str(getattr(value, "op", "") if callee is None else callee)

    def _of(self, function: str) -> tuple[Mapping[str, int], Mapping[str, Any]]:
        if function not in self._known:
            record = function_text(self._module, function)
            start = next(span.first for span in record.spans if span.entity == f"relax:{function}")
            lines = {span.entity: span.first - start + 1 for span in record.spans}
            bounds = bound_in(function, self._module[function])
            values = {each.id: each.value for each in bounds}
            self._known[function] = lines, values
        return self._known[function]


def _function_of(entity: str) -> str:
    return entity.removeprefix("relax:").partition("/")[0]


_HEADS = ("@", "def ", "T.func_attr", "# with T.sblock")
"""Beginnings of the lines that every TensorIR function has."""


def _of_kernel(
    by_name: Mapping[str, FunctionDifference],
    name: str,
    sources: Sequence[str],
    gone: Mapping[str, set[int]],
) -> Iterator[tuple[Place, Place]]:
    """Yield the lines of a TensorIR function that stood in others before, or are like these."""
    places: list[Place] = []
    texts: list[str] = []
    for source in sources:
        lines = by_name[source].old.split("\n") if source in by_name else []
        for number, line in enumerate(lines, start=1):
            if number in gone[source] and not line.strip().startswith(_HEADS):
                places.append((source, number))
                texts.append(line)
    new = by_name[name].new.split("\n")
    body = [
        number for number, line in enumerate(new, start=1) if not line.strip().startswith(_HEADS)
    ]
    for run in line_runs(texts, [new[number - 1] for number in body]):
        if run.status in ("same", "changed"):
            for offset in range(run.length):
                yield (name, body[run.new - 1 + offset]), places[run.old - 1 + offset]


def _marked(
    function: FunctionDifference, moves: Moves, went: Mapping[Place, Place]
) -> FunctionDifference:
    runs = tuple(each for run in function.runs for each in _split(function.name, run, moves, went))
    count = Counter[str]()
    for run in runs:
        # A line in the place of one that went elsewhere is a new one.
        replaces = run.status == "changed" and run.other
        count["added" if replaces else run.status] += run.length
    olds = _lines(function, "old", ("removed", "changed"))
    return msgspec.structs.replace(
        function,
        runs=runs,
        added=count["added"],
        removed=count["removed"],
        changed=count["changed"],
        moved_in=count["moved-in"],
        moved_out=sum((function.name, line) in went for line in olds),
    )


def _split(name: str, run: Run, moves: Moves, went: Mapping[Place, Place]) -> list[Run]:
    """Return a run in parts: lines that moved, and those between them."""
    if run.status == "same":
        return [run]
    parts: list[Run] = []
    for offset in range(run.length):
        if run.status == "changed":
            # It has a counterpart where it was, and went into another function as well.
            new = went.get((name, run.old + offset))
            other = "" if new is None else new[0]
            place = Run("changed", run.old + offset, run.new + offset, 1, other)
        elif run.status == "added":
            old = moves.get((name, run.new + offset))
            place = Run("added", run.old, run.new + offset, 1)
            if old is not None:
                place = Run("moved-in", old[1], run.new + offset, 1, old[0])
        else:
            new = went.get((name, run.old + offset))
            place = Run("removed", run.old + offset, run.new, 1)
            if new is not None:
                place = Run("moved-out", run.old + offset, new[1], 1, new[0])
        last = parts[-1] if parts else None
        if last is not None and _continues(last, place):
            parts[-1] = Run(last.status, last.old, last.new, last.length + 1, last.other)
        else:
            parts.append(place)
    return parts


def _continues(run: Run, following: Run) -> bool:
    """Return whether a line continues a run."""
    if (run.status, run.other) != (following.status, following.other):
        return False
    old = run.old if run.status == "added" else run.old + run.length
    new = run.new if run.status == "removed" else run.new + run.length
    return (old, new) == (following.old, following.new)
