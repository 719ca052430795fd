"""Order of the files of tests by stored durations, the longest first.

pytest-xdist gives files to two processes, and would begin with those of most tests. A file of three
tests that takes a minute would then run last, with one processor idle beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STORED = TESTS / "durations.json"
"""Seconds per file, relative to `tests`. Files may be missing, and may no longer exist."""


def stored_durations() -> dict[str, int]:
    """Return the seconds per file that were stored; none where nothing was."""
    return json.loads(STORED.read_text()) if STORED.is_file() else {}


def longest_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Sort tests by the duration of their files. An unknown file takes a second a test."""
    counts: dict[Path, int] = {}
    for item in items:
        counts[item.path] = counts.get(item.path, 0) + 1
    durations = {path: seconds.get(_name(path), counts[path]) for path in counts}
    items.sort(key=lambda item: -durations[item.path])


class DurationStore:
    """Plugin that measures the files of a run, and stores their durations at its end."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0].removeprefix(f"{TESTS.name}/")
        self._seconds[file] = self._seconds.get(file, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        known = {name: each for name, each in stored_durations().items() if (TESTS / name).exists()}
        merged = known | {name: round(each) for name, each in self._seconds.items()}
        STORED.write_text(json.dumps(merged, indent=0, sort_keys=True) + "\n")


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else path.as_posix()
