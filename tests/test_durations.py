"""Files of tests run in the order of their stored durations."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import durations


def items(**counts: int) -> list[Any]:
    return [
        SimpleNamespace(path=durations.TESTS / f"{name}.py")
        for name, count in counts.items()
        for _ in range(count)
    ]


def test_the_longest_file_runs_first_and_an_unknown_one_by_its_number_of_tests() -> None:
    found = items(short=3, unknown=5, long=1)
    durations.longest_first(found, {"short.py": 2, "long.py": 60, "deleted.py": 90})
    assert [item.path.stem for item in found] == ["long", *["unknown"] * 5, *["short"] * 3]


def test_durations_are_stored_per_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "TESTS", tmp_path)
    monkeypatch.setattr(durations, "STORED", tmp_path / "durations.json")
    assert durations.stored_durations() == {}
    (tmp_path / "durations.json").write_text(json.dumps({"deleted.py": 9, "kept.py": 4}))
    (tmp_path / "kept.py").touch()
    store = durations.DurationStore()
    for node, seconds in (("a/test_b.py::one", 2.5), ("a/test_b.py::two[x::y]", 1.7)):
        report: Any = SimpleNamespace(nodeid=f"{tmp_path.name}/{node}", duration=seconds)
        store.pytest_runtest_logreport(report)
    store.pytest_sessionfinish()
    assert durations.stored_durations() == {"a/test_b.py": 4, "kept.py": 4}
