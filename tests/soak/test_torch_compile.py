"""torch.compile as a third side of a run; ``LOWERSCOPE_SOAK=1`` runs it where a compiler is."""

from __future__ import annotations

import os
import shutil

import pytest
from pytestqt.qtbot import QtBot

from tests.end_to_end.conftest import _look, children, lasting, open_window
from tests.end_to_end.driving import OpenWindow, wait_until

__all__ = ["_look", "children", "lasting", "open_window"]

pytestmark = [
    pytest.mark.skipif("LOWERSCOPE_SOAK" not in os.environ, reason="takes a minute"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler for it"),
]

PATIENCE = 600_000
"""Milliseconds: torch compiles for most of a minute where it has kept nothing."""


def test_a_run_is_timed_beside_torch_compile(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    document = window.document
    window.commands.action("torch-compile").trigger()
    assert wait_until(lambda: not document.is_changing, PATIENCE)
    window.commands.action("run").trigger()
    assert wait_until(lambda: document.run_record is not None and not document.running, PATIENCE)
    record = document.run_record
    assert record is not None
    assert record.times is not None
    names = [each.side for each in record.times.sides]
    assert names == ["TVM", "torch", "torch.compile"]
    bars = window.panes.summary.times.bars.bars()
    assert [each.name for each in bars] == names
    assert all(each.values[0] > 0 for each in bars)
