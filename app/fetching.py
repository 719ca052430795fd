"""What is fetched from the engine when it is looked at: texts, and graphs that are not at once
shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lowerscope.app.engine_client import EngineClient
from lowerscope.core.errors import Problem


class Fetches:
    """Requests of records that a page wants while it is looked at.

    Parameters
    ----------
    engine
        Who is asked. A method ``text`` that answers from what the engine has kept goes with a
        method ``derived_text`` that derives what is missing.
    """

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine
        # The request that is under way, by the number of the fetch.
        self._requests: dict[int, int] = {}

    def ask(
        self,
        method: str,
        params: msgspec.Struct,
        on_record: Callable[[Any], None],
        on_problem: Callable[[Problem], None],
    ) -> int:
        """Ask for a record; return a number for `drop`."""

        def take_record(record: Any) -> None:
            self._requests.pop(number, None)
            on_record(record)

        def take_problem(problem: Problem) -> None:
            if problem.code == "not-kept" and number in self._requests:
                # The engine is a new one: what leads to the record has to be derived again.
                self._requests[number] = self._engine.request(
                    f"derived_{method}", params, take_record, take_problem
                )
            else:
                self._requests.pop(number, None)
                on_problem(problem)

        number = self._engine.request(method, params, take_record, take_problem)
        self._requests[number] = number
        return number

    def drop(self, number: int) -> None:
        """Forget about a record that is no longer looked at."""
        request = self._requests.pop(number, None)
        if request is not None:
            self._engine.drop(request)
