"""Samples are opened and run, and match torch."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.model.time_records import Measuring
from tests.core.large_samples import LARGE
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait


# The others are run from the command line.
@pytest.mark.parametrize(
    ("sample", "lowering"),
    [
        ("conv_net", "te"),
        ("resnet18", "high-level"),
        ("mlp_tvmscript", "high-level"),
    ],
)
def test_samples_open_and_run(
    qtbot: QtBot, open_window: OpenWindow, sample: str, lowering: str
) -> None:
    # Unscheduled, one call of a large one takes a second.
    once = Measuring(warm_up=1, repeats=1 if sample in LARGE else 0)
    window = open_window(f"sample:{sample}", lowering=lowering, measuring=once)
    run_and_wait(qtbot, window)
    record = window.document.run_record
    assert record is not None
    assert record.verdict == "match", record.reason
    assert record.max_abs_error is not None
    assert record.max_abs_error < 1e-4
    side = "NumPy" if sample == "mlp_tvmscript" else "torch"
    said = window.tool_bar.verdict
    qtbot.waitUntil(lambda: f"matches {side}" in said.accessibleName(), timeout=PATIENCE)
