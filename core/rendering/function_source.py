"""Source of Python functions, with its location."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lowerscope.core.records.snapshot import SourceLine
from lowerscope.core.records.translation import RuleSource, SourceKind

_RULES = "lowerscope.core.lowering.rules."

MOST = 8
"""Maximum number of functions called by a rule that are shown."""


def function_source(
    function: Callable[..., Any], kind: SourceKind, name: str, remark: str = ""
) -> RuleSource:
    """Return the source of a function; without a text and a line where Python has none.

    Parameters
    ----------
    function
        A function, a method, a class, or something that wraps one.
    kind, name, remark
        As in `RuleSource`. For a closure, its arguments are added.
    """
    function = _unwrapped(function)
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or inspect.getfile(function)
    except (OSError, TypeError):
        remarks = (remark, "it is not written in Python, so there is no source to show")
        return RuleSource(kind=kind, name=name, remark="; ".join(filter(None, remarks)))
    remarks = (remark, _made_with(function))
    return RuleSource(
        kind=kind,
        name=name,
        remark="; ".join(filter(None, remarks)),
        line=SourceLine(file=str(Path(file).absolute()), line=first, text=lines[0].strip()),
        text=textwrap.dedent("".join(lines)).rstrip("\n"),
    )


def functions_in(function: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Return the rules that a rule calls, or was made with, and those that these call."""
    found: dict[Callable[..., Any], None] = {}
    waiting = [_unwrapped(function)]
    while waiting:
        each = waiting.pop(0)
        for value in _named_in(each):
            if value not in found and len(found) < MOST:
                found[value] = None
                waiting.append(value)
    found.pop(_unwrapped(function), None)
    return tuple(found)


def _named_in(function: Any) -> Iterator[Callable[..., Any]]:
    if inspect.isfunction(function):
        names = _closed_in(function)
        for value in (*names.nonlocals.values(), *names.globals.values()):
            if inspect.isfunction(value) and value.__module__.startswith(_RULES):
                yield value


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        # An object that can be called: what runs is its class's.
        function = type(function).__call__
    return inspect.unwrap(function)


def _closed_in(function: Any) -> inspect.ClosureVars:
    try:
        return inspect.getclosurevars(function)
    except ValueError:
        # A name that it reads has no value yet.
        return inspect.ClosureVars({}, {}, {}, set())


def _made_with(function: Any) -> str:
    """Return the arguments of the function that made a closure: ``relax_operator = exp``."""
    if not inspect.isfunction(function):
        return ""
    closed = _closed_in(function).nonlocals
    values = [f"{name} = {_in_words(value)}" for name, value in closed.items() if name != "self"]
    return f"made with {', '.join(values)}" if values else ""


def _in_words(value: Any) -> str:
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        module = getattr(value, "__module__", "") or ""
        return f"{module}.{name}" if module.startswith(("tvm", "torch")) else name
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
