"""Figures of benchmarks: times held against others, or against a limit; and how they are taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from PySide6.QtWidgets import QApplication

from lowerscope.app.kit import theme


@dataclass(frozen=True)
class Figure:
    """Times of ours and of what it is held against, in milliseconds, pair by pair."""

    name: str
    ours: Sequence[float]
    theirs: Sequence[float]
    against: str
    goal: float
    note: str = ""

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
            "note": self.note,
        }

    def line(self) -> str:
        """Return the figure as a line."""
        mark = "reached" if self.ratio <= self.goal else "NOT reached"
        ours, theirs = statistics.median(self.ours), statistics.median(self.theirs)
        return (
            f"{self.name}: {ours:.3g} ms against {theirs:.3g} ms ({self.against}),"
            f" ratio {self.ratio:.2f}, goal {self.goal}: {mark}{self.note}"
        )


Benchmark = Callable[[], Iterable[Figure]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Register what measures under a name."""

    def register(measure: Benchmark) -> Benchmark:
        BENCHMARKS[name] = measure
        return measure

    return register


def measured(name: str) -> list[Figure]:
    """Run a benchmark, in a process of its own."""
    import tests.benchmarks.__main__  # noqa: F401 - registers them

    return list(BENCHMARKS[name]())


def milliseconds(
    work: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the time that a call takes; by `time.process_time`, without that of others."""
    start = clock()
    work()
    return (clock() - start) * 1000


def against(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    what: str,
    *,
    pairs: int,
    goal: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Figure:
    """Measure both sides by turns, after one turn that does not count."""
    times = [(milliseconds(ours, clock), milliseconds(theirs, clock)) for _ in range(pairs + 1)]
    mine, others = zip(*times[1:], strict=True)
    return Figure(name, mine, others, what, goal)


def within(name: str, times: Sequence[float], limit: float) -> Figure:
    """Return the figure of times that have a limit, all in milliseconds."""
    return Figure(name, times, [limit] * len(times), "the limit", 1.0)


def p95(times: Sequence[float]) -> float:
    """Return the time that 95 of 100 do not exceed."""
    return sorted(times)[int(0.95 * (len(times) - 1))]


@cache
def application() -> QApplication:
    """Return the application, with the style and the colours of the real one."""
    found = QApplication(["benchmark", *theme.STYLE])
    theme.start(found, "light")
    return found
