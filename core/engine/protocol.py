"""What the window and its children say to each other, and how it is framed.

A frame is four bytes of magic, the length of the payload as four bytes (big-endian), and the
payload: one message in MessagePack. No text starts with the magic's first byte, so that anything
else that lands in the stream is found out at its first byte. This module imports neither torch nor
TVM, so that the window can use it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, TypeVar

import msgspec

from lowerscope.core.encoding import UNREADABLE, to_bytes
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.difference import Side
from lowerscope.core.records.graph import FITS, GraphName
from lowerscope.core.records.snapshot import View
from lowerscope.core.records.steps import Moment
from lowerscope.core.rendering.graph_layout.metrics import TextMetrics

VERSION = 1
"""Of the messages below; the first message of a child carries it."""

MAGIC = b"\x89LSF"
FRAME_LIMIT = 256 * 2**20
"""The longest payload that either side accepts, in bytes."""

_START = 32
"""Bytes of a payload by which a reader can tell how long it may be."""

_COPIED = 2**16
"""Bytes of the longest payload that is copied out of the buffer; a longer one takes it over."""

_HEADER = struct.Struct(">4sI")

Role = Literal["engine", "worker"]
LaneName = Literal["heavy", "light"]


class ProtocolError(Exception):
    """The stream holds something that is no frame, or a frame that is no message."""


# --- messages -----------------------------------------------------------------------------------


class Request(msgspec.Struct, frozen=True, tag="request"):
    """The window asks for `method`; ``params`` is the method's parameter struct, encoded."""

    id: int
    method: str
    params: msgspec.Raw


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """The window no longer wants the answer to request `id`."""

    id: int


class Approved(msgspec.Struct, frozen=True, tag="approved"):
    """The user files that may run from now on, SHA-256 by path; ``None`` for any.

    The client sends it before a request, whenever the table is another one.
    """

    files: dict[str, str] | None


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message of a child, before it imports anything heavy."""

    version: int
    pid: int
    role: str


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The child has imported all that it needs, which took ``milliseconds``."""

    milliseconds: float


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """The result of request `id`, encoded."""

    id: int
    result: msgspec.Raw


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """Request `id` has no result; with the id 0, the child cannot become ready and ends."""

    id: int
    problem: Problem


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """What request `id` is at; ``fraction`` from 0 to 1, or ``None`` where it is not known."""

    id: int
    text: str
    fraction: float | None


ToChild = Request | Cancel | Approved
ToWindow = Hello | Ready | Reply | Failure | Progress

TO_CHILD: msgspec.msgpack.Decoder[ToChild] = msgspec.msgpack.Decoder(ToChild)
TO_WINDOW: msgspec.msgpack.Decoder[ToWindow] = msgspec.msgpack.Decoder(ToWindow)

_Message = TypeVar("_Message")


# --- frames -------------------------------------------------------------------------------------


def to_raw(value: Any) -> msgspec.Raw:
    """Return `value`, encoded, as it stands inside a message.

    Raises
    ------
    ProtocolError
        If it holds what has no encoding, such as a number of more than 64 bits.
    """
    return msgspec.Raw(_encoded(value))


def encode_frame(message: ToChild | ToWindow) -> bytes:
    """Return `message` as one frame.

    Raises
    ------
    ProtocolError
        If it is longer than `FRAME_LIMIT`, or holds what has no encoding.
    """
    payload = _encoded(message)
    if len(payload) > FRAME_LIMIT:
        raise ProtocolError(
            f"a message of {len(payload) / 2**20:.0f} MB is longer than"
            f" the {FRAME_LIMIT / 2**20:.0f} MB that a frame can hold"
        )
    return _HEADER.pack(MAGIC, len(payload)) + payload


def _encoded(value: Any) -> bytes:
    try:
        return to_bytes(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProtocolError(f"a message cannot be encoded: {error}") from error


class FrameReader(Generic[_Message]):
    """Cuts a stream of bytes, however it is split, into messages.

    Parameters
    ----------
    decoder
        `TO_CHILD` or `TO_WINDOW`.
    limit_of
        Returns the longest payload that is accepted in bytes, from the first bytes of one; by
        default all are, up to `FRAME_LIMIT`.
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
        """Bytes that have come and belong to no message that was fetched."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[_Message]:
        """Take `data`, and return an iterator over the messages that are now complete.

        Messages that are not fetched stay for the next call.

        Raises
        ------
        ProtocolError
            While iterating, where the stream is no longer frames. It cannot be read further.
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
        # Copying hundreds of megabytes would hold up a window.
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


# --- parameters of methods ------------------------------------------------------------------------


class SnapshotParams(msgspec.Struct, frozen=True, kw_only=True):
    """What the window shows of ``recipe`` at once; its graph is laid out for these ``metrics``."""

    recipe: Recipe
    metrics: TextMetrics


class TextParams(msgspec.Struct, frozen=True, kw_only=True):
    """A text of function ``name`` after the passes, or of the whole module before them; or, of
    either, at a ``moment`` between.

    ``view`` is ``"script"``, ``"numpy"`` or ``"te"``; or, without a name, ``"builder"`` for the
    program that builds the module, or ``"metadata"`` for its script with metadata. The method
    ``text`` answers at once, from what is kept, or with the code ``"not-kept"``; ``derived_text``
    derives what is missing. What is of the build, by its ``view`` or by its ``moment``, is asked of
    the worker: the engine never compiles.
    """

    recipe: Recipe
    name: str = ""
    view: View = "script"
    moment: Moment | None = None


class CatalogueParams(msgspec.Struct, frozen=True, kw_only=True):
    """The passes that steps of ``recipe`` can name: TVM's, and those of its files."""

    recipe: Recipe


class FunctionsParams(msgspec.Struct, frozen=True, kw_only=True):
    """The functions of the module at a moment.

    ``functions`` and ``derived_functions`` differ as ``text`` and ``derived_text`` do.
    """

    recipe: Recipe
    moment: Moment


class GraphParams(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of ``recipe``, laid out for fonts of ``metrics``.

    ``graph`` is ``"fx"``, or ``"relax"`` for the module before the passes, or at a ``moment``.
    ``expanded`` are the ids of the modules that are looked into; ``None`` for the level that fits a
    picture of ``fits``, width and height in pixels. The method ``graph`` and ``derived_graph``
    differ as ``text`` and ``derived_text`` do.
    """

    recipe: Recipe
    metrics: TextMetrics
    graph: GraphName = "relax"
    moment: Moment | None = None
    expanded: tuple[str, ...] | None = None
    fits: tuple[float, float] = FITS


class DifferenceParams(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two modules, function by function.

    ``difference`` and ``derived_difference`` differ as ``text`` and ``derived_text`` do. Moments of
    the clock ``"build"`` are known to the worker alone.
    """

    old: Side
    new: Side


class GraphDifferenceParams(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of the data flow of a Relax function, laid out for fonts of ``metrics``.

    ``graph_difference`` and ``derived_graph_difference`` differ as ``text`` and ``derived_text``
    do.
    """

    old: Side
    new: Side
    metrics: TextMetrics
    function: str = "main"


class ValuesParams(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the tensor called ``name``, in figures; see `core.comparing.finding_tensors`.

    The method ``values`` answers at once or with the code ``"not-kept"``; ``derived_values``
    derives what is missing.
    """

    recipe: Recipe
    name: str


class TranslationParams(msgspec.Struct, frozen=True, kw_only=True):
    """How ``node`` was translated: its rules with their source, and what ``emit_te`` did.

    ``translation`` and ``derived_translation`` differ as ``text`` and ``derived_text`` do.
    """

    recipe: Recipe
    node: str


class SaveValuesParams(msgspec.Struct, frozen=True, kw_only=True):
    """Write the tensor called ``name`` to ``file``, a ``.npy``; the result is the path."""

    recipe: Recipe
    name: str
    file: str


class RuleParams(msgspec.Struct, frozen=True, kw_only=True):
    """Write a working rule for ``node`` into ``file``, and say where it stands."""

    recipe: Recipe
    node: str
    file: str


class BuildParams(msgspec.Struct, frozen=True, kw_only=True):
    """Build, and say which passes did it."""

    recipe: Recipe
