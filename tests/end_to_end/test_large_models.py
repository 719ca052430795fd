"""Models that are large in one way each, reduced: whole in ``tests/soak/test_large_models.py``."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.driving import OpenWindow, wait_until
from tests.soak.large_models import write_deep_mlp, write_heavy
from tests.soak.large_walk import Walk, walk_through


def test_a_large_model_is_opened_changed_stepped_scheduled_and_run(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    file = write_heavy(tmp_path, 4, 1800)
    window = open_window()
    with Walk(window).watched() as walk:
        walk_through(walk, Recipe(source=Source(spec=str(file))), steps=3, fuse=True)
    record = window.document.run_record
    assert record is not None
    assert record.verdict == "match"
    # Of the 52 MB of its weights, next to nothing; of names, types and texts, what there is.
    assert sum(each.received + each.sent for each in walk.phases) < 1e6


def test_a_cancelled_model_leaves_what_was_open_and_the_engine(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu")
    document = window.document
    shown, pid = (document.recipe, document.snapshot), window.features.processes.engine.pid
    said: list[tuple[str, float | None]] = []

    def stop_in_the_middle(_change: Change) -> None:
        activity = document.job
        said.append((activity.text, activity.fraction))
        if activity.text == "Lowering" and (activity.fraction or 0) > 0:
            window.status.cancel.click()

    document.changed.connect(stop_in_the_middle)
    source = Source(spec=str(write_deep_mlp(tmp_path, 300)))
    document.open(Recipe(source=source, lowering="te"))
    assert wait_until(lambda: not document.is_changing)
    document.changed.disconnect(stop_in_the_middle)
    assert wait_until(lambda: window.features.processes.engine.state == "ready")
    assert (document.recipe, document.snapshot) == shown
    assert not document.problems
    assert not document.job.text
    assert window.features.processes.engine.pid == pid, (
        "it stops between two nodes, and keeps what it has"
    )
    assert [text for text, _ in said if text in ("Tracing", "Lowering")]
    # What was stopped can be asked for again.
    document.open(Recipe(source=Source(spec=str(write_deep_mlp(tmp_path, 5))), lowering="te"))
    assert wait_until(lambda: not document.is_changing)
    assert document.snapshot is not None
    assert document.snapshot.model.title == "DeepMLP" or document.problems == ()
