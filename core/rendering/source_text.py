"""The user's own file, with the FX nodes that come from its lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.records.snapshot import SourceLine, Span, TextRecord


def source_text(file: str, lines: Iterable[SourceLine]) -> TextRecord:
    """Return the text of a file at the time when the model was traced.

    Spans are ``torch:FILE:LINE``, for each line that an FX node comes from.

    Parameters
    ----------
    lines
        Those that the nodes of the model come from, of any file.

    Raises
    ------
    LowerscopeError
        If no node comes from the file, or it cannot be read.
    """
    lines = list(lines)
    files = list(dict.fromkeys(line.file for line in lines))
    if file not in files:
        raise LowerscopeError(
            f"no FX node comes from {file}",
            where="source",
            todo=f"Choose one of {listed(files)}" if files else "",
            choices=tuple(files),
        )
    # The lines as tracing read them: the file may have changed since.
    text = "".join(linecache.getlines(file)).rstrip("\n")
    if not text:
        raise LowerscopeError(f"{file} cannot be read", where="source")
    numbers = sorted({line.line for line in lines if line.file == file})
    spans = (
        Span(entity=SourceLine(file=file, line=number).id, first=number, last=number)
        for number in numbers
    )
    return TextRecord(text=text, language="python", spans=tuple(spans))
