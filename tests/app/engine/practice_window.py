"""A window's use of a client, whose child is a real process that practices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
from pytestqt.qtbot import QtBot

from lowerscope.app.engine.child_process import Ending
from lowerscope.app.engine.client import EngineClient
from lowerscope.core.model.problems import Problem
from tests.core.engine import practice_child as practice

PRACTICE_FILE = Path(practice.__file__)

NOTHING = practice.Nothing()


class Window:
    """A window's part in a client: its requests, and the answers that it gets."""

    def __init__(self, bot: QtBot, *command: str) -> None:
        self.bot = bot
        self.client = EngineClient(
            "engine", command=command or (sys.executable, str(PRACTICE_FILE), "engine")
        )
        self.results: dict[int, Any] = {}
        self.problems: dict[int, Problem] = {}
        self.told: dict[int, list[str]] = {}
        self.log = ""
        self.states: list[str] = []
        self.endings: list[Ending] = []
        self.client.log.connect(self._add_log)
        self.client.state_changed.connect(self.states.append)
        self.client.crashed.connect(self.endings.append)

    def _add_log(self, text: str) -> None:
        self.log += text

    def ask(self, method: str, params: msgspec.Struct = NOTHING) -> int:
        request = 0

        def take(result: Any) -> None:
            self.results[request] = result

        def fail(problem: Problem) -> None:
            assert request not in self.problems
            self.problems[request] = problem

        def tell(text: str, fraction: float | None) -> None:
            self.told.setdefault(request, []).append(text)

        request = self.client.request(practice.query(method, params), take, fail, tell)
        assert request not in self.problems  # never before the caller knows the id
        return request

    def until(self, done: Callable[[], bool]) -> None:
        self.bot.waitUntil(done, timeout=60_000)

    def until_state(self, state: str) -> None:
        self.until(lambda: self.client.state == state)

    def until_told(self, request: int) -> None:
        self.until(lambda: request in self.told)

    def result(self, request: int) -> Any:
        self.until(lambda: request in self.results or request in self.problems)
        assert request in self.results, self.problems[request]
        return self.results[request]

    def problem(self, request: int) -> Problem:
        self.until(lambda: request in self.results or request in self.problems)
        assert request not in self.results
        return self.problems[request]

    def family(self) -> list[psutil.Process]:
        """Return the child and all that it has started."""
        leader = psutil.Process(self.client.pid)
        return [leader, *leader.children(recursive=True)]

    def until_gone(self, family: list[psutil.Process]) -> None:
        self.until(lambda: not any(is_alive(each) for each in family))


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
