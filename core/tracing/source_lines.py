"""Lookup of the user's source line from a frame, a traceback or torch's stack text."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sysconfig
from pathlib import Path
from types import CodeType, FrameType, TracebackType

import torch

from lowerscope.core.records.snapshot import SourceLine

_TORCH = str(Path(torch.__file__).parent) + os.sep
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_OWN = str(Path(__file__).parents[1]) + os.sep
_STACK_LINE = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)


def line_of_frame(frame: FrameType | None, boundary: CodeType) -> SourceLine | None:
    """Return the innermost line of the user's among `frame` and its callers.

    The search ends at the frame that runs `boundary`: callers of the tracer are not the model.
    """
    while frame is not None and frame.f_code is not boundary:
        if is_users_file(frame.f_code.co_filename):
            return source_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def line_of_traceback(traceback: TracebackType | None) -> SourceLine | None:
    """Return the innermost line of the user's below the tracer, where an exception came from."""
    found = None
    inside = False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file.startswith(_OWN):
            inside = True
        elif inside and is_users_file(file):
            found = source_line(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def line_of_stack(stack: str | None) -> SourceLine | None:
    """Return the innermost line of the user's in a stack as torch writes it."""
    found = None
    for match in _STACK_LINE.finditer(stack or ""):
        if is_users_file(match["file"]):
            found = source_line(match["file"], int(match["line"]))
    return found


def line_of_code(code: CodeType) -> SourceLine | None:
    """Return the line where a function of the user's is defined."""
    if not is_users_file(code.co_filename):
        return None
    line = code.co_firstlineno
    # A code object starts at its first decorator, above the def.
    while linecache.getline(code.co_filename, line).strip().startswith("@"):
        line += 1
    return source_line(code.co_filename, line)


def forward_line(model: torch.nn.Module) -> SourceLine | None:
    """Return the line where the model's ``forward`` is defined."""
    code = getattr(inspect.unwrap(type(model).forward), "__code__", None)
    return line_of_code(code) if code else None


def is_users_file(file: str) -> bool:
    """Return whether `file` is not torch's, Python's or the tracer's, nor generated code."""
    if file.startswith((_TORCH, _OWN, "<")):
        return False
    return not file.startswith(_STANDARD_LIBRARY) or "site-packages" in file


def source_line(file: str, line: int) -> SourceLine:
    """Return line `line` of `file` with its text."""
    return SourceLine(file=file, line=line, text=linecache.getline(file, line).strip())
