"""Bad files, open questions, changed files: the model that was open stays open."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_records
from tests.end_to_end.small_nets import EXAMPLES, NET, write


def test_a_model_that_writes_a_file_when_it_is_first_opened_has_a_verdict(
    qtbot: QtBot, open_window: OpenWindow, writable: Path
) -> None:
    # The engine sees it written, the worker sees it read.
    remembers = """
from pathlib import Path
path = Path(__file__).parent / ("first" + "_time")
if not path.exists():
    path.write_text("seen")
path.read_text()
"""
    window = open_window(write(writable / "net.py", NET.format(name="Net") + EXAMPLES + remembers))
    run_and_wait(qtbot, window)
    wait_for_records(qtbot, window)
    assert window.document.run_record is not None
    assert window.tool_bar.verdict.isVisible()
    assert "reopened" not in window.banner.message()
