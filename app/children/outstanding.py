"""Requests to a child that have no answer yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.children.replies import UnreadableResult, read_result
from lowerscope.core.engine.methods import MethodType
from lowerscope.core.engine.protocol import Progress, Reply, Role
from lowerscope.core.errors import Problem

CANCELLED = Problem(what="Cancelled", code="cancelled")

OnResult = Callable[[Any], None]
OnProblem = Callable[[Problem], None]
OnProgress = Callable[[str, float | None], None]


@dataclass
class Outstanding:
    """A request that has no answer yet; it is `settled` when its problem is about to be told."""

    id: int
    method: str
    params: msgspec.Struct
    on_result: OnResult
    on_problem: OnProblem
    on_progress: OnProgress | None
    sent: bool = False
    cancelled: bool = False
    dropped: bool = False
    settled: bool = False
    at: str = ""


class Unanswered(QObject):
    """The requests to a child that have no answer yet, in the order in which they came.

    Parameters
    ----------
    role
        Which child.
    methods
        What it can be asked for.

    Signals
    -------
    answered()
        One of them has an answer, and is about to hear it.
    """

    answered = Signal()

    def __init__(self, role: Role, methods: Mapping[str, MethodType], parent: QObject) -> None:
        super().__init__(parent)
        self._role = role
        self._methods = methods
        self._last = 0
        self._requests: dict[int, Outstanding] = {}

    def count_from(self, number: int) -> None:
        """Give the next request the id after this one."""
        self._last = number

    def add(
        self,
        method: str,
        params: msgspec.Struct,
        on_result: OnResult,
        on_problem: OnProblem,
        on_progress: OnProgress | None,
    ) -> Outstanding:
        """Return a new request."""
        self._last += 1
        request = Outstanding(self._last, method, params, on_result, on_problem, on_progress)
        self._requests[request.id] = request
        return request

    def get(self, id: int) -> Outstanding | None:
        """Return the request with an id; ``None`` once it has its answer, or is forgotten."""
        return self._requests.get(id)

    def all(self) -> list[Outstanding]:
        """Return all of them."""
        return list(self._requests.values())

    def sent(self) -> list[Outstanding]:
        """Return those that the child has been asked for."""
        return [each for each in self._requests.values() if each.sent]

    def clear(self) -> None:
        """Forget all of them."""
        self._requests.clear()

    def forget(self, request: Outstanding) -> None:
        """Count one as answered."""
        del self._requests[request.id]
        self.answered.emit()

    def tell(self, progress: Progress) -> None:
        """Tell one how far it is, if that is still wanted."""
        request = self._requests.get(progress.id)
        if request is None:
            return
        request.at = progress.text
        if request.on_progress is not None and not (request.cancelled or request.dropped):
            request.on_progress(progress.text, progress.fraction)

    def take(self, reply: Reply) -> None:
        """Answer one with its result, or with a problem if that cannot be read."""
        request = self._requests.get(reply.id)
        if request is None:
            return
        if request.cancelled or request.dropped:
            self.fail(request, CANCELLED)
            return
        answer = f"The {self._role}'s answer to {request.method}"
        try:
            result = read_result(answer, reply.result, self._methods[request.method].result)
        except UnreadableResult as error:
            self.fail(request, error.problem)
            return
        self.forget(request)
        request.on_result(result)

    def fail(self, request: Outstanding, problem: Problem) -> None:
        """Answer one with a problem, unless it has been answered meanwhile."""
        if self._requests.get(request.id) is not request:
            return
        self.forget(request)
        if not request.dropped:
            stopped = problem.code == "cancelled"
            request.on_problem(CANCELLED if request.cancelled and not stopped else problem)

    def fail_soon(self, request: Outstanding, problem: Problem) -> None:
        """Answer one with a problem from the event loop: its callback may do anything."""
        request.settled = True
        request.sent = False
        QTimer.singleShot(0, self, lambda: self.fail(request, problem))


def doing(
    requests: Sequence[Outstanding], methods: Mapping[str, MethodType], *, ready: bool
) -> str:
    """Return what a child is at, in words that follow "while"; empty when it is idle.

    Parameters
    ----------
    requests
        Those that were sent to it.
    """
    if not requests:
        return "" if ready else "starting"
    told = [each for each in requests if each.at]
    first = (told or requests)[0]
    return first.at[0].lower() + first.at[1:] if first.at else methods[first.method].doing
