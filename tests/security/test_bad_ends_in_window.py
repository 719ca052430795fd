"""Code that ends its process, or raises oddly, in the window: one problem, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from tests.diagonal import SOAK
from tests.end_to_end.driving import OpenWindow, wait_for_problem, wait_for_records, wait_until
from tests.security.test_bad_ends import model

OWN_CHILDREN = True
"""The code may ruin them."""


BAD_ENDS = (
    # Others that raise or return something odd: `test_bad_ends.py`.
    ("os._exit(3)", "", "exited with code 3"),
    # To the window, one that closes its output is a frame that ends: `test_client_garbage.py`.
    *([("pass", "os.closerange(0, 1000)", "")] if SOAK else []),
)


def test_a_bad_end_is_one_problem_and_what_was_open_stays(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu")
    document = window.document
    shown = window.panes.relax.script.code.text()
    for forward, end, said in BAD_ENDS:
        window.open_source(str(model(tmp_path, forward, end)))
        line = wait_for_problem(qtbot, window)
        assert said in line
        assert "\n" not in line
        assert len(line) < 2000
        assert wait_until(
            lambda: window.features.processes.engine.state == "ready" and not document.job.text
        )
        assert document.recipe is not None
        assert document.recipe.source.spec == "sample:matmul_relu"
        assert window.panes.relax.script.code.text() == shown
        # What is asked for next is answered.
        for lowering in ("te", "high-level"):
            window.commands.action(lowering).trigger()
            assert wait_until(lambda: not document.is_changing and not document.problems)
            assert document.recipe.lowering == lowering
    # A thread that never ends holds up nothing.
    end = "threading.Thread(target=forever).start(); atexit.register(forever)"
    window.open_source(str(model(tmp_path, end=end)))
    assert wait_until(lambda: document.recipe.source.spec != "sample:matmul_relu")
    wait_for_records(qtbot, window)
    window.commands.action("run").trigger()
    assert wait_until(lambda: document.run_record is not None)
