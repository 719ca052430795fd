"""The source of Python functions, with where it stands."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lowerscope.core.records import SourceLine
from lowerscope.core.translation_records import RuleSource, SourceKind


def function_source(
    function: Callable[..., Any], kind: SourceKind, name: str, remark: str = ""
) -> RuleSource:
    """Return the source of a function; without a text and a line where Python has none.

    Parameters
    ----------
    function
        A function, a method, a class, or something that wraps one.
    kind, name, remark
        As in `RuleSource`. What a function that is made by another one was made with is added.
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
        text=textwrap.dedent("".join(lines)).rstrip("\n") + "\n",
    )


def functions_in(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield Lowerscope's own functions that a function was made with, and calls."""
    function = _unwrapped(function)
    if inspect.isfunction(function):
        for value in inspect.getclosurevars(function).nonlocals.values():
            if inspect.isfunction(value) and value.__module__.startswith("lowerscope."):
                yield value


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        # An object that can be called: what runs is its class's.
        function = type(function).__call__
    return inspect.unwrap(function)


def _made_with(function: Any) -> str:
    """Return what a function has from the one that it was made by: ``relax_operator = exp``."""
    if not inspect.isfunction(function):
        return ""
    closed = inspect.getclosurevars(function).nonlocals
    values = [f"{name} = {_in_words(value)}" for name, value in closed.items() if name != "self"]
    return f"made with {', '.join(values)}" if values else ""


def _in_words(value: Any) -> str:
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        module = getattr(value, "__module__", "") or ""
        return f"{module}.{name}" if module.startswith(("tvm", "torch")) else name
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
