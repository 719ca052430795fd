"""Pending requests to a child, and their results, bounded to what a window can hold and show."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.queries import OnProblem, OnProgress
from lowerscope.app.engine.child_process import ROLES
from lowerscope.app.engine.messages import REASON_CHARACTERS, shortened
from lowerscope.core.engine.protocol import Progress, Reply
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.graph import Box, Edge, GraphRecord, Port, Region
from lowerscope.core.model.module_steps import FunctionDifference
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, Role, answer_type
from lowerscope.core.model.schedule_records import ScheduleRecord, StepError
from lowerscope.core.model.snapshot import RuleSource, TextRecord
from lowerscope.core.model.texts import _

# --- Results of requests, bounded to what a window can hold and show ---
#
# A child runs foreign code, which may answer with anything that fits into a frame. An answer is
# decoded only if its bytes and elements are limited, with no long text where a name is expected:
# the window decodes and shows it in its own thread.

RESULT_LIMIT = 32_000_000
"""Bound on the bytes of a result. The largest model, of 1,000 layers and 4,000 nodes, has 7 MB."""

MOST_ELEMENTS = 1_000_000
"""Bound on the values, field names and containers of a result. The largest model has 750,000."""

MOST_ENTRIES = 50_000
"""Bound on the entries of a mapping, which take longer to decode than any other element."""

NAME_CHARACTERS = 2**16
"""Bound on the characters of a text that is none of the `_TEXTS`."""

TEXT_CHARACTERS = 2**23
"""Bound on the characters of the `_TEXTS`. All IR of the largest model has 600,000."""

MOST_RECORDS = 20_000
"""Bound on a list of records, each possibly a row or a box. The largest model has 6,000."""

MOST_ITEMS = 100_000
"""Bound on other lists with texts. The list of links of the largest model has 35,000."""

_TEXTS = frozenset(
    (
        (FunctionDifference, "old"),
        (FunctionDifference, "new"),
        (RuleSource, "text"),
        (ScheduleRecord, "code"),
        (StepError, "text"),
        (TextRecord, "text"),
    )
)
"""Fields that hold texts of many lines."""

_DRAWN = frozenset((Box, Edge, GraphRecord, Port, Region))
_FARTHEST = 2.0**22
"""Bound on the pixels from the corner of a graph. The largest is 400,000 high."""

_PIXELS = Annotated[float, msgspec.Meta(ge=-_FARTHEST, le=_FARTHEST)]
_POINTS = tuple[tuple[float, float], ...]
_TUPLE: Any = tuple
_DICT: Any = dict
_NAME = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS)]
_TEXT = Annotated[str, msgspec.Meta(max_length=TEXT_CHARACTERS)]
_ITEMS = msgspec.Meta(max_length=MOST_ITEMS)
_RECORDS = msgspec.Meta(max_length=MOST_RECORDS)
_ENTRIES = msgspec.Meta(max_length=MOST_ENTRIES)
_BOUND = re.compile(r"^Expected `\w+` (of length )?[<>]=")
"""The messages of msgspec for a value beyond its bound."""


class UnreadableResult(Exception):
    """Raised for a result that a window cannot use, with the `problem` for the user."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


def read_result(answer: str, raw: msgspec.Raw, result: Any) -> Any:
    """Return a result of the type `result`.

    Args:
        answer: The answer in words that begin a sentence: ``"The engine's answer to text"``.

    Raises:
        UnreadableResult: If it is too large, or not of the type.
    """
    data = memoryview(raw)
    if len(data) > RESULT_LIMIT:
        raise _too_large(
            answer, _("more than {result_limit}", result_limit=bytes_text(RESULT_LIMIT))
        )
    if len(data) > MOST_ELEMENTS and not _has_few_elements(bytes(data)):
        raise _too_large(
            answer, _("more than {most_elements:,} elements", most_elements=MOST_ELEMENTS)
        )
    try:
        if len(data) > NAME_CHARACTERS:
            msgspec.msgpack.decode(data, type=_bounds(result))
        return msgspec.msgpack.decode(data, type=result)
    except UNREADABLE as error:
        reason = shortened(str(error), REASON_CHARACTERS)
        if _BOUND.match(reason):
            raise _too_large(answer, reason) from error
        what = _("{answer} cannot be read: {reason}", answer=answer, reason=reason)
        raise UnreadableResult(Problem(what=what, code="internal")) from error


def _too_large(answer: str, limit: str) -> UnreadableResult:
    return UnreadableResult(
        Problem(
            what=_(
                "{answer} is larger than the window can show: {limit}", answer=answer, limit=limit
            ),
            todo=_("Open a smaller model or a part of it, or use the command line"),
            code="too-large",
        )
    )


# --- elements -------------------------------------------------------------------------------------

_LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Size of the length of a binary, an extension or a text, by its first byte, in MessagePack."""

_EXTENSIONS = (0xC7, 0xC8, 0xC9)


def _fixed_sizes() -> tuple[int, ...]:
    """Return the bytes from one element to the next by its first byte; 0 if it has a length field.

    A container's elements follow its head, so that its size is that of the head alone.
    """
    sizes = [1] * 256
    sizes[0xA0:0xC0] = range(1, 33)
    sizes[0xCA:0xD9] = [5, 9, 2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18]
    sizes[0xDC:0xE0] = [3, 5, 3, 5]
    for first in _LENGTH_BYTES:
        sizes[first] = 0
    return tuple(sizes)


_SIZES = _fixed_sizes()


def _has_few_elements(data: bytes) -> bool:
    """Return whether a value in MessagePack has at most `MOST_ELEMENTS`."""
    sizes, at = _SIZES, 0
    try:
        for _turn in range(MOST_ELEMENTS + 1):
            at += sizes[data[at]] or _size_with_length(data, at)
    except IndexError:
        return True
    return False


def _size_with_length(data: bytes, at: int) -> int:
    width = _LENGTH_BYTES[data[at]]
    length = int.from_bytes(data[at + 1 : at + 1 + width], "big")
    return 1 + width + length + (data[at] in _EXTENSIONS)


# --- names ----------------------------------------------------------------------------------------


def _bounds(result: Any) -> Any:
    """Return a type that checks the bounds of the texts and mappings in values of `result`."""
    return _TEXT if result is str else _bounded(result)


@functools.cache
def _bounded(kind: Any) -> Any:
    """Return a type with bounds; the same type if it has no texts and no mappings."""
    parts = get_args(kind)
    match get_origin(kind):
        case None if kind is str:
            return _NAME
        case None if _is_record(kind):
            return _bounded_struct(kind)
        case origin if origin is tuple:
            bounded = _TUPLE[tuple(map(_bounded, parts))]
            if bounded == kind or ... not in parts:
                return bounded
            return Annotated[bounded, _RECORDS if _is_record(parts[0]) else _ITEMS]
        case origin if origin is dict:
            return Annotated[_DICT[tuple(map(_bounded, parts))], _ENTRIES]
        case origin if origin in (Union, UnionType):
            return Union[*map(_bounded, parts)]
    return kind


def _is_record(kind: Any) -> bool:
    return isinstance(kind, msgspec.StructMeta)


def _bounded_struct(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a struct of the fields of `kind` that have bounds; the others are not decoded."""
    fields = []
    for each in msgspec.structs.fields(kind):
        bounded = _TEXT if (kind, each.name) in _TEXTS else _bounded(each.type)
        if kind in _DRAWN and each.type in (float, _POINTS):
            bounded = _PIXELS if each.type is float else tuple[tuple[_PIXELS, _PIXELS], ...]
        if kind.__struct_config__.array_like or bounded != each.type:
            fields.append((each.encode_name, bounded, None))
    config = kind.__struct_config__
    tag, tag_field = config.tag, config.tag_field
    return msgspec.defstruct(
        kind.__name__, fields, tag=tag, tag_field=tag_field, array_like=config.array_like
    )


CANCELLED = Problem(what=_("Cancelled"), code="cancelled")

OnResult = Callable[[Any], None]


@dataclass
class Outstanding:
    """A pending request; it is `settled` when its problem is about to be delivered."""

    id: int
    query: Query[Any]
    on_result: OnResult
    on_problem: OnProblem
    on_progress: OnProgress | None
    sent: bool = False
    cancelled: bool = False
    dropped: bool = False
    settled: bool = False
    at: str = ""


class Unanswered(QObject):
    """The pending requests to a child, in the order of their creation.

    Args:
        role: Role of the child.
    """

    answered = Signal()  # One of them has an answer, which is about to be delivered.

    def __init__(self, role: Role, parent: QObject) -> None:
        super().__init__(parent)
        self._role = role
        self._last = 0
        self.received_bytes = 0  # Encoded size of the current or last answer delivered.
        self._requests: dict[int, Outstanding] = {}

    def count_from(self, number: int) -> None:
        """Set the id after which the next request is numbered."""
        self._last = number

    def add(
        self,
        query: Query[Any],
        on_result: OnResult,
        on_problem: OnProblem,
        on_progress: OnProgress | None,
    ) -> Outstanding:
        """Add a request and return it."""
        self._last += 1
        request = Outstanding(self._last, query, on_result, on_problem, on_progress)
        self._requests[request.id] = request
        return request

    def get(self, id: int) -> Outstanding | None:
        """Return the request with an id; ``None`` once it is answered or dropped."""
        return self._requests.get(id)

    def all(self) -> list[Outstanding]:
        """Return all pending requests."""
        return list(self._requests.values())

    def sent(self) -> list[Outstanding]:
        """Return the requests that were sent to the child."""
        return [each for each in self._requests.values() if each.sent]

    def clear(self) -> None:
        """Drop all requests."""
        self._requests.clear()

    def forget(self, request: Outstanding) -> None:
        """Mark a request as answered."""
        del self._requests[request.id]
        self.answered.emit()

    def tell(self, progress: Progress) -> None:
        """Deliver the progress of a request, if it is still pending."""
        request = self._requests.get(progress.id)
        if request is None:
            return
        request.at = progress.text
        if request.on_progress is not None and not (request.cancelled or request.dropped):
            request.on_progress(progress.text, progress.fraction)

    def take(self, reply: Reply) -> None:
        """Answer a request with its result, or with a problem if that cannot be decoded."""
        request = self._requests.get(reply.id)
        if request is None:
            return
        if request.cancelled or request.dropped:
            self.fail(request, CANCELLED)
            return
        kind = type(request.query)
        answer = _("The {role}'s answer to {name}", role=ROLES[self._role], name=kind.__name__)
        self.received_bytes = len(memoryview(reply.result))
        try:
            result = read_result(answer, reply.result, answer_type(kind))
        except UnreadableResult as error:
            self.fail(request, error.problem)
            return
        self.forget(request)
        request.on_result(result)

    def fail(self, request: Outstanding, problem: Problem) -> None:
        """Answer a request with a problem, unless it has been answered meanwhile."""
        if self._requests.get(request.id) is not request:
            return
        self.forget(request)
        if not request.dropped:
            stopped = problem.code == "cancelled"
            request.on_problem(CANCELLED if request.cancelled and not stopped else problem)

    def fail_soon(self, request: Outstanding, problem: Problem) -> None:
        """Answer a request with a problem from the event loop: its callback may do anything."""
        request.settled = True
        request.sent = False
        QTimer.singleShot(0, self, lambda: self.fail(request, problem))


def doing(requests: Sequence[Outstanding], *, ready: bool) -> str:
    """Return a child's current work, in words that follow "while"; empty if it is idle.

    Args:
        requests: The requests that were sent to it.
    """
    if not requests:
        return "" if ready else "starting"
    told = [each for each in requests if each.at]
    first = (told or requests)[0]
    return first.at[0].lower() + first.at[1:] if first.at else first.query.doing
