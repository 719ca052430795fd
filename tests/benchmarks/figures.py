"""A figure of a benchmark: two times, measured alternately, and the goal for their ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Shown(Protocol):
    """What a benchmark returns."""

    def as_dict(self) -> dict[str, Any]:
        """Return the figure for JSON."""

    def line(self) -> str:
        """Return the figure as text."""


@dataclass(frozen=True)
class Figure:
    """Times of ours and of what it is held against, in milliseconds, pair by pair."""

    name: str
    ours: list[float]
    theirs: list[float]
    against: str
    goal: float

    @property
    def ratio(self) -> float:
        """The median of the ratios of the pairs."""
        return statistics.median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Return the figure for JSON."""
        return {
            "name": self.name,
            "ours_ms": statistics.median(self.ours),
            "against": self.against,
            "against_ms": statistics.median(self.theirs),
            "ratio": self.ratio,
            "goal": self.goal,
            "reached": self.ratio <= self.goal,
            "pairs": len(self.ours),
        }

    def line(self) -> str:
        """Return the figure as a line."""
        mark = "reached" if self.ratio <= self.goal else "NOT reached"
        return (
            f"{self.name}: {statistics.median(self.ours):.1f} ms against"
            f" {statistics.median(self.theirs):.1f} ms ({self.against}), ratio {self.ratio:.2f},"
            f" goal {self.goal}: {mark}"
        )


def alternately(
    ours: Callable[[], float], theirs: Callable[[], float], pairs: int
) -> tuple[list[float], list[float]]:
    """Measure both sides by turns, so that a busy moment of the machine hits both.

    Parameters
    ----------
    ours, theirs
        Do the work once and return its time in milliseconds.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs):
        times[0].append(ours())
        times[1].append(theirs())
    return times


def milliseconds(work: Callable[[], object]) -> float:
    """Return the time that a call takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def processor_milliseconds(work: Callable[[], object]) -> float:
    """Return the time that a processor is at a call, which other programs do not lengthen."""
    start = time.thread_time()
    work()
    return (time.thread_time() - start) * 1000


def within(name: str, times: Sequence[float], limit: float) -> Figure:
    """Return the figure of times that have a limit, all in milliseconds."""
    return Figure(name, list(times), [limit] * len(times), "the limit", 1.0)
