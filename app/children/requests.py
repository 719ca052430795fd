"""Questions that are under way to the engine or the worker, by numbers of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lowerscope.app.engine_client import EngineClient
from lowerscope.core.engine.methods import METHODS, derived
from lowerscope.core.errors import Problem

REPLACED_MS = 3000
"""A child that is still at work on what nobody wants any more is killed after so long."""

UNSEEN_MS = 20_000
"""A worker that is still at work on what nobody looks at any more is killed after so long."""

OnProblem = Callable[[Problem], None]
OnProgress = Callable[[str, float | None], None]


class Requests:
    """Asks children, first for what they have kept, then for what they have to derive.

    A method ``text`` that answers from what a child has kept goes with a method ``derived_text``
    that derives what is missing, where there is one.
    """

    def __init__(self) -> None:
        self._last = 0
        self._under_way: dict[int, tuple[EngineClient, int]] = {}

    def ask(
        self,
        client: EngineClient,
        method: str,
        params: msgspec.Struct,
        on_record: Callable[[Any], None],
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Ask for a record; the number that is returned is for `drop`."""

        def take_record(record: Any) -> None:
            self._under_way.pop(number, None)
            on_record(record)

        def take_problem(problem: Problem) -> None:
            deriving = derived(method)
            can_derive = problem.code == "not-kept" and deriving in METHODS
            if can_derive and number in self._under_way:
                request = client.request(deriving, params, take_record, take_problem, on_progress)
                self._under_way[number] = (client, request)
            else:
                self._under_way.pop(number, None)
                on_problem(problem)

        self._last += 1
        number = self._last
        request = client.request(method, params, take_record, take_problem)
        self._under_way[number] = (client, request)
        return number

    def drop(self, number: int) -> None:
        """Forget about what is no longer looked at."""
        client, request = self._under_way.pop(number, (None, 0))
        if client is not None:
            if client.role == "worker":
                client.abandon(request, UNSEEN_MS)
            else:
                client.drop(request)

    def cancel_all(self, client: EngineClient) -> None:
        """Stop all that `client` is asked for; the problem has the code ``"cancelled"``."""
        for asked, request in tuple(self._under_way.values()):
            if asked is client:
                client.cancel(request)

    def replace_all(self, client: EngineClient) -> None:
        """Forget all that `client` is asked for: another recipe is shown."""
        for number, (asked, request) in tuple(self._under_way.items()):
            if asked is client:
                del self._under_way[number]
                client.abandon(request, REPLACED_MS)
