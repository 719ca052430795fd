"""Pending requests to a child."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.queries import OnProblem, OnProgress
from lowerscope.app.engine.replies import UnreadableResult, read_result
from lowerscope.core.engine.protocol import Progress, Reply
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, Role, answer_type
from lowerscope.core.model.texts import _

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
        answer = _("The {role}'s answer to {name}", role=self._role, name=kind.__name__)
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
