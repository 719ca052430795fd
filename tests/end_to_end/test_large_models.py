"""Models that are large in one way each: ``LOWERSCOPE_SOAK=9`` makes the heavy one of 0.5 GB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change
from lowerscope.app.engine import child_process
from lowerscope.core.engine.protocol import FrameReader, ToWindow, encode_frame
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, with_pipeline
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Recipe, Source
from tests.diagonal import many
from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_records, wait_until
from tests.end_to_end.scheduling import Bench
from tests.soak.large_models import write_deep_mlp, write_heavy


def test_a_large_model_is_opened_changed_stepped_scheduled_and_run(
    qtbot: QtBot, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write_heavy(tmp_path, many(4), 1800)
    window = open_window()
    document, stepping = window.document, window.features.stepping
    sizes: list[int] = []

    def encoded(message: child_process.ToChild) -> bytes:
        sizes.append(len(frame := encode_frame(message)))
        return frame

    def fed(reader: FrameReader, data: bytes) -> Iterator[ToWindow]:
        sizes.append(len(data))
        return feed(reader, data)

    feed = FrameReader.feed
    monkeypatch.setattr(child_process, "encode_frame", encoded)
    monkeypatch.setattr(FrameReader, "feed", fed)
    recipe = Recipe(source=Source(spec=str(file)))
    document.open(recipe)
    wait_for_records(qtbot, window)
    window.show_panes()
    for lowering in ("te", "library", "high-level"):
        document.change_fields(lowering=lowering)
        wait_for_records(qtbot, window)
    document.change(with_pipeline(recipe, find_pipeline("fuse").steps))
    wait_for_records(qtbot, window)
    for section in ("passes", "translate"):
        for index in (0, len(stepping.lines(section)) - 1):
            stepping.go(Moment(section=section, index=index))
            assert wait_until(lambda: window.panes.relax.script.stepped.is_current)
    stepping.leave()
    bench = Bench(window)
    assert document.snapshot is not None
    bench.open(max(document.snapshot.functions, key=lambda each: "matmul" in each.name).name)
    bench.select(next(each.name for each in bench.record.tree if each.kind == "loop"))
    bench.choose("parallel")
    bench.steps(1)
    run_and_wait(qtbot, window)
    assert document.run_record is not None
    assert document.run_record.verdict == "match"
    # Of the 52 MB of its weights, next to nothing; of names, types and texts, what there is.
    assert sum(sizes) < 1e6


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
    source = Source(spec=str(write_deep_mlp(tmp_path, 100)))
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
