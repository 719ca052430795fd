"""The features' models without processes, for the tests of the window's parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from tests.app.plain_values import Bench, Client


@pytest.fixture
def bench(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Return all models, with a test in the place of the engine, the worker and the tuner."""
    for module in ("engine.children", "panes.tuning.model"):
        monkeypatch.setattr(f"lowerscope.app.{module}.EngineClient", Client)
    bench = Bench()
    yield bench
    bench.features.deleteLater()
