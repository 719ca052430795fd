"""Messages of a child, bounded to what a window can hold and show.

A child runs foreign code, which may send anything. The size of a message is bounded here, before it
is delivered: longer texts are shortened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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

NAMES_CHARACTERS = 2**20
"""Characters of the choices, and of the calls, of a problem; if there are more, none are taken."""

MOST_NAMES = 5_000
NAME_CHARACTERS = 1_000
CODE_CHARACTERS = 100


_Received = Hello | Ready | Reply | Failure | Progress
_FROM_CHILD: msgspec.msgpack.Decoder[_Received] = msgspec.msgpack.Decoder(_Received)

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
                yield _short_failure(message) if isinstance(message, Failure) else message
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


def _short_failure(failure: Failure) -> Failure:
    found = failure.problem
    problem = Problem(
        what=shortened(found.what, LINE_CHARACTERS),
        where=shortened(found.where, LINE_CHARACTERS),
        todo=shortened(found.todo, LINE_CHARACTERS),
        code=found.code[:CODE_CHARACTERS],
        choices=_names(found.choices),
        details=_details(found.details),
        calls=_names(found.calls),
    )
    return Failure(failure.id, in_window(problem), failure.english)


def _details(text: str) -> str:
    left_out = len(text) - DETAILS_HEAD - DETAILS_TAIL
    if left_out <= 0:
        return printable(text)
    head, tail = printable(text[:DETAILS_HEAD]), printable(text[-DETAILS_TAIL:])
    return f"{head}\n… {left_out:,} characters left out …\n{tail}"


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the choices or calls of a problem that can be shown.

    None is shortened: a shortened name would be another one.
    """
    if sum(map(len, names)) > NAMES_CHARACTERS:
        return ()
    return tuple(each for each in names[:MOST_NAMES] if len(each) <= NAME_CHARACTERS)
