"""Messages of a child, bounded to what a window can hold and show.

A child runs foreign code, which may send anything. The size of a message is bounded here, before it
is delivered: longer texts are shortened, and the whole of a shortened problem is cached as
received, to be written to a file.
"""

from __future__ import annotations

import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from unicodedata import category

import msgspec

from lowerscope.app.engine.window_words import in_window
from lowerscope.core.engine.protocol import (
    FRAME_LIMIT,
    Failure,
    FrameReader,
    Hello,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    ToWindow,
)
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import Problem

# --- Sanitised text of a child: printable and short ---

REASON_CHARACTERS = 300
"""Bound on the description of an invalid message, which may quote it."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Terminal escape sequences that set colours, move the cursor or set a title."""

_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]+")
_BREAK = re.compile(r"\r\n?")


def printable(text: str) -> str:
    """Return a text without control characters and bidirectional overrides.

    Lines and tabs stay, as do the letters of all scripts.
    """
    if "\r" in text:
        text = _BREAK.sub("\n", text)
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _UNUSUAL.sub(_replaced, text)


def _replaced(found: re.Match[str]) -> str:
    run = found[0]
    if run.isprintable():
        return run
    return "".join(
        each if each.isprintable() or category(each) == "Zs" else "\ufffd" for each in run
    )


def shortened(text: str, most: int) -> str:
    """Return a printable text of at most `most` characters, ending in a mark if it was cut."""
    return printable(text) if len(text) <= most else f"{printable(text[: most - 1])}…"


MOST_MESSAGES = 1000
"""Messages handled at once; before the next ones, the window handles its events."""

HELD_LIMIT = FRAME_LIMIT + 2**24
"""Bytes of messages that may wait to be handled."""

SMALL_LIMIT = 2**24
"""Bytes of a message that is neither the result of a request nor a problem."""

PROBLEM_LIMIT = 2**26
"""Bytes of a problem."""

PROGRESS_CHARACTERS = 120
LINE_CHARACTERS = 2_000
"""Characters of each line of a problem: what, where, and what to do."""

DETAILS_HEAD, DETAILS_TAIL = 48_000, 16_000
"""Characters at both ends of a problem's details."""

NAMES_BYTES = 2**20
"""Bytes of the choices, and of the calls, of a problem; if there are more, none are taken."""

MOST_NAMES = 5_000
NAME_CHARACTERS = 1_000
CODE_CHARACTERS = 100

WHOLE_LIMIT = PROBLEM_LIMIT
"""Bytes of all problems cached whole."""

MOST_WHOLE = 20


class _RawFailure(msgspec.Struct, frozen=True, tag="failure"):
    id: int
    problem: msgspec.Raw


class _RawProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem whose fields are not decoded yet: that takes long for megabytes of text."""

    what: msgspec.Raw
    where: msgspec.Raw = msgspec.Raw(b"\xa0")
    todo: msgspec.Raw = msgspec.Raw(b"\xa0")
    code: msgspec.Raw = msgspec.Raw(b"\xa0")
    choices: msgspec.Raw = msgspec.Raw(b"\x90")
    details: msgspec.Raw = msgspec.Raw(b"\xa0")
    calls: msgspec.Raw = msgspec.Raw(b"\x90")


_Received = Hello | Ready | Reply | _RawFailure | Progress
_FROM_CHILD: msgspec.msgpack.Decoder[_Received] = msgspec.msgpack.Decoder(_Received)
_PROBLEM = msgspec.msgpack.Decoder(_RawProblem)
_NAMES = msgspec.msgpack.Decoder(tuple[str, ...])

_TEXT_AT = {0xD9: 2, 0xDA: 3, 0xDB: 5}
"""Offset of a text by its first byte, which gives the size of its length, in MessagePack."""

_KIND_AT = slice(1, 13)
"""The position of a message's kind, as msgspec writes it: after the number of fields."""


def _limit_of(start: bytes) -> int:
    kind = start[_KIND_AT]
    if kind.startswith(b"\xa4type\xa5reply"):
        return FRAME_LIMIT
    return PROBLEM_LIMIT if kind.startswith(b"\xa4type\xa7failur") else SMALL_LIMIT


class Incoming:
    """A child's stream, split into messages that a window can hold and show."""

    def __init__(self) -> None:
        self._reader = FrameReader(_FROM_CHILD, _limit_of)
        # Whether there may be received messages that were not returned: see `read`.
        self.has_more = False

    def read(self, data: bytes = b"") -> Iterator[ToWindow]:
        """Append `data`, and return an iterator over at most `MOST_MESSAGES` now complete messages.

        Of consecutive progress messages of one request, the first and the last are returned.

        Raises:
            ProtocolError: While iterating, if the data are no valid messages, or if too many of
                them wait.
        """
        messages = self._reader.feed(data)
        if self._reader.held > HELD_LIMIT:
            raise ProtocolError("more messages than can be handled")
        self.has_more = False
        return self._bounded(messages)

    def _bounded(self, messages: Iterator[_Received]) -> Iterator[ToWindow]:
        later: dict[int, Progress | None] = {}
        for count, message in enumerate(messages, start=1):
            if not isinstance(message, Progress):
                yield from _last_of(later)
                later.clear()
                yield _short_failure(message) if isinstance(message, _RawFailure) else message
            elif message.id in later:
                later[message.id] = message
            else:
                later[message.id] = None
                yield _short_progress(message)
            if count == MOST_MESSAGES:
                self.has_more = True
                break
        yield from _last_of(later)


def _last_of(reports: dict[int, Progress | None]) -> Iterator[Progress]:
    return (_short_progress(each) for each in reports.values() if each is not None)


def _short_progress(progress: Progress) -> Progress:
    text = shortened(progress.text, PROGRESS_CHARACTERS).replace("\n", " ")
    return Progress(progress.id, text, progress.fraction)


def _short_failure(failure: _RawFailure) -> Failure:
    try:
        return Failure(failure.id, in_window(_short_problem(failure.problem)))
    except UNREADABLE as error:
        raise ProtocolError(f"a frame holds no problem: {error}") from error


def _short_problem(raw: msgspec.Raw) -> Problem:
    """Return a problem as a window can show it; if it is shortened, the whole is cached."""
    found = _PROBLEM.decode(raw)
    lines = [_line(each) for each in (found.what, found.where, found.todo)]
    details = _details(found.details)
    names = [_names(each) for each in (found.choices, found.calls)]
    short = Problem(
        what=lines[0][0],
        where=lines[1][0],
        todo=lines[2][0],
        code=_ends(found.code, CODE_CHARACTERS, 0)[0],
        choices=names[0][0],
        details=details[0],
        calls=names[1][0],
    )
    is_cut = any(left_out for _, left_out in (*lines, details, *names))
    return msgspec.structs.replace(short, whole=_hold(raw)) if is_cut else short


def _line(raw: msgspec.Raw) -> tuple[str, int]:
    head, _, left_out = _ends(raw, LINE_CHARACTERS, 0)
    return f"{printable(head)}…" if left_out else printable(head), left_out


def _details(raw: msgspec.Raw) -> tuple[str, int]:
    head, tail, left_out = _ends(raw, DETAILS_HEAD, DETAILS_TAIL)
    if not left_out:
        return printable(head + tail), 0
    return f"{printable(head)}\n… {left_out:,} bytes left out …\n{printable(tail)}", left_out


def _ends(raw: msgspec.Raw, head: int, tail: int) -> tuple[str, str, int]:
    """Return both ends of a text, and how many bytes between are left out.

    Raises:
        msgspec.ValidationError: If it is not a text.
    """
    data = memoryview(raw)
    first = data[0]
    if not (0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDB):
        raise msgspec.ValidationError("expected `str`")
    text = data[_TEXT_AT.get(first, 1) :]
    if len(text) <= head + tail:
        return str(text, "utf-8"), "", 0
    # A character has at most four bytes; one that is cut in two is left out.
    start = str(text[: 4 * head], "utf-8", "ignore")[:head]
    rest = text[len(start.encode()) :]
    end = str(rest[-4 * tail :], "utf-8", "ignore")[-tail:] if tail else ""
    return start, end, len(rest) - len(end.encode())


def _names(raw: msgspec.Raw) -> tuple[tuple[str, ...], int]:
    """Return the choices or calls of a problem, and how many, or bytes of them, are left out.

    None is shortened: a shortened name would be another one.
    """
    if len(memoryview(raw)) > NAMES_BYTES:
        return (), len(memoryview(raw))
    names = _NAMES.decode(raw)
    taken = tuple(each for each in names[:MOST_NAMES] if len(each) <= NAME_CHARACTERS)
    return taken, len(names) - len(taken)


# --- problems cached whole -----------------------------------------------------------------------

_held: OrderedDict[str, msgspec.Raw] = OrderedDict()
_numbers = itertools.count(1)


def _hold(raw: msgspec.Raw) -> str:
    """Cache a problem as received, evicting the oldest ones for lack of space."""
    name = str(next(_numbers))
    _held[name] = raw
    while len(_held) > MOST_WHOLE or (len(_held) > 1 and _held_bytes() > WHOLE_LIMIT):
        _held.popitem(last=False)
    return name


def _held_bytes() -> int:
    return sum(len(memoryview(each)) for each in _held.values())


def whole_of(problem: Problem) -> Callable[[], Iterator[bytes]] | None:
    """Return a function that yields the whole text of a shortened problem, as far as cached."""
    raw = _held.get(problem.whole)
    return None if raw is None else partial(_text, raw)


def _text(raw: msgspec.Raw) -> Iterator[bytes]:
    problem = msgspec.msgpack.decode(raw, type=Problem)
    for part in (problem.line(), problem.details):
        if part:
            yield f"{part}\n".encode()
    for title, names in (("Choices", problem.choices), ("Calls", problem.calls)):
        if names:
            yield f"{title}:\n".encode()
        for each in names:
            yield f"  {each}\n".encode()
