"""Messages between the window and its child processes, and their framing.

A frame is four bytes of magic, the length of the payload as four bytes (big-endian), and the
payload: one message in MessagePack. No text starts with the magic's first byte, so that anything
else in the stream is detected at its first byte. This module imports neither torch nor TVM, so that
the window can use it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from lowerscope.core.model.encoding import UNREADABLE, to_bytes
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import Text

VERSION = 2
"""Version of the messages below; the first message of a child carries it."""

MAGIC = b"\x89LSF"
FRAME_LIMIT = 256 * 2**20
"""Maximum payload that either side accepts, in bytes."""

_START = 32
"""Bytes of a payload from which a reader derives its limit."""

_COPIED = 2**16
"""Maximum payload that is copied out of the buffer, in bytes; a longer one takes the buffer
over."""

_HEADER = struct.Struct(">4sI")


class ProtocolError(Exception):
    """The stream holds something that is not a frame, or a frame that is not a message."""


# --- messages -----------------------------------------------------------------------------------


class Request(msgspec.Struct, frozen=True, tag="request"):
    """A query by the name of its class, encoded."""

    id: int
    name: str
    query: msgspec.Raw


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Cancellation of request `id` by the window."""

    id: int


class Approved(msgspec.Struct, frozen=True, tag="approved"):
    """The user files that may run from now on, SHA-256 by path; ``None`` for any.

    The client sends it before a request, whenever the table has changed.
    """

    files: dict[str, str] | None


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message of a child, before it imports anything heavy."""

    version: int
    pid: int
    role: str


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Message that the child has imported all that it needs, which took ``milliseconds``."""

    milliseconds: float


MOST_TEXTS = 20_000
"""Texts of a message that are sent with their English."""

_ENGLISH = Annotated[dict[str, str], msgspec.Meta(max_length=MOST_TEXTS)]


class Reply(msgspec.Struct, frozen=True, tag="reply", omit_defaults=True):
    """The result of request `id`, encoded; and the English of its texts, if it is not in English.

    Reports and other files are in English, whatever the language of the window.
    """

    id: int
    result: msgspec.Raw
    english: _ENGLISH = {}


class Failure(msgspec.Struct, frozen=True, tag="failure", omit_defaults=True):
    """Request `id` has no result; with the id 0, the child cannot become ready and ends."""

    id: int
    problem: Problem
    english: _ENGLISH = {}  # as of `Reply`


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Progress of request `id`; ``fraction`` from 0 to 1, or ``None`` where it is not known."""

    id: int
    text: str
    fraction: float | None


ToChild = Request | Cancel | Approved
ToWindow = Hello | Ready | Reply | Failure | Progress

TO_CHILD: msgspec.msgpack.Decoder[ToChild] = msgspec.msgpack.Decoder(ToChild)
TO_WINDOW: msgspec.msgpack.Decoder[ToWindow] = msgspec.msgpack.Decoder(ToWindow)

_Message = TypeVar("_Message")


# --- frames -------------------------------------------------------------------------------------


def reply_to(id: int, result: Any) -> Reply:
    """Return the reply to a request; raises as `to_raw` does."""
    texts: dict[str, str] = {}
    raw = msgspec.Raw(_encoded(result, texts))
    return Reply(id, raw, dict(islice(texts.items(), MOST_TEXTS)))


def failure_of(id: int, problem: Problem) -> Failure:
    """Return the message that a request failed."""
    texts = (problem.what, problem.where, problem.todo, problem.details)
    english = {str(each): each.english for each in texts if isinstance(each, Text)}
    return Failure(id, problem, english)


def to_raw(value: Any) -> msgspec.Raw:
    """Return `value`, encoded, as it stands inside a message.

    Raises a `ProtocolError` if it holds a value that has no encoding, such as a number of more than
    64 bits.
    """
    return msgspec.Raw(_encoded(value))


def encode_frame(message: ToChild | ToWindow) -> bytes:
    """Return `message` as one frame.

    Raises a `ProtocolError` if it is longer than `FRAME_LIMIT`, or holds a value that has no
    encoding.
    """
    payload = _encoded(message)
    if len(payload) > FRAME_LIMIT:
        raise ProtocolError(
            f"a message of {bytes_text(len(payload))} is longer than"
            f" the {bytes_text(FRAME_LIMIT)} that a frame can hold"
        )
    return _HEADER.pack(MAGIC, len(payload)) + payload


def _encoded(value: Any, english: dict[str, str] | None = None) -> bytes:
    try:
        return to_bytes(value, english)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProtocolError(f"a message cannot be encoded: {error}") from error


class FrameReader(Generic[_Message]):
    """Splits a stream of bytes into messages.

    Args:
        decoder: `TO_CHILD` or `TO_WINDOW`.
        limit_of: Returns the longest payload that is accepted in bytes, from the first bytes of
            one; by default all are, up to `FRAME_LIMIT`.
    """

    def __init__(
        self,
        decoder: msgspec.msgpack.Decoder[_Message],
        limit_of: Callable[[bytes], int] | None = None,
    ) -> None:
        self._decoder = decoder
        self._limit_of = limit_of
        self._buffer = bytearray()

    @property
    def held(self) -> int:
        """Bytes in the buffer that belong to no fetched message."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[_Message]:
        """Take `data`, and return an iterator over the messages that are now complete.

        Messages that are not fetched stay for the next call.

        Raises:
            ProtocolError: While iterating, where the stream is no longer frames. It cannot be read
                further.
        """
        self._buffer += data
        return self._messages()

    def _messages(self) -> Iterator[_Message]:
        while (length := self._payload_length()) is not None:
            if len(self._buffer) < _HEADER.size + length:
                return
            payload = self._take(_HEADER.size + length)
            try:
                message = self._decoder.decode(payload)
            except UNREADABLE as error:
                raise ProtocolError(f"a frame holds no message: {error}") from error
            yield message

    def _take(self, end: int) -> bytes | memoryview:
        """Return the payload of the first frame, which ends at `end`, and remove the frame."""
        if end <= _COPIED:
            payload = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[:end]
            return payload
        # Copying hundreds of megabytes would block a window.
        frame, self._buffer = self._buffer, self._buffer[end:]
        return memoryview(frame)[_HEADER.size : end]

    def _payload_length(self) -> int | None:
        """Return the length of the frame at the start of the buffer, ``None`` if not yet known."""
        start = bytes(self._buffer[: _HEADER.size + _START])
        if start[: len(MAGIC)] != MAGIC[: len(start)]:
            raise ProtocolError(f"expected a frame, found {start[:24]!r}")
        if len(start) < _HEADER.size:
            return None
        length: int = _HEADER.unpack(start[: _HEADER.size])[1]
        if length > FRAME_LIMIT:
            raise ProtocolError(f"a frame says that it is {length} bytes long")
        if self._limit_of is None:
            return length
        if len(start) < _HEADER.size + min(length, _START):
            return None
        if length > (limit := self._limit_of(start[_HEADER.size :])):
            raise ProtocolError(f"a message of {length} bytes is longer than its {limit}")
        return length
