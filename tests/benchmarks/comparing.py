"""The table of the page Compare with 10,000 nodes: filling, scrolling, sorting, filtering."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.benchmarks.figures import Figure

NODES = 10_000
SIZE = (900, 500)
FRAMES = 200

FRAME, CLICK = 16.0, 250.0
"""Milliseconds that a frame of scrolling, and what follows a click or a key, may take."""


def measure() -> list[Figure]:
    """Measure the real table on records as a run gives them, in processor time."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.document.document import Document
    from lowerscope.app.kit import theme
    from lowerscope.app.panes.run.nodes_table import NodesTable

    application = QApplication.instance() or QApplication(["benchmark", *theme.STYLE])
    assert isinstance(application, QApplication)
    theme.start(application, "light")
    document = Document()
    runs: Any = SimpleNamespace(newest=None)
    page = NodesTable(document, runs)
    page.resize(*SIZE)
    page.show()
    application.processEvents()

    def timed(act: Callable[[], object]) -> float:
        # Nothing here waits: what else the machine does is no concern of the table.
        start = time.process_time()
        act()
        application.processEvents()
        return (time.process_time() - start) * 1000

    snapshot, record = _records()
    runs.newest = record
    filling = timed(lambda: document.set(snapshot=snapshot, run=record))
    assert len(page.table.rows()) == NODES
    bar = page.table.verticalScrollBar()
    frames = []
    for frame in range(FRAMES):
        to = bar.maximum() * (frame * 7919 % FRAMES) // FRAMES
        frames.append(timed(lambda to=to: bar.setValue(to)))  # type: ignore[misc]
    sorting = timed(lambda: page.table.sortByColumn(3, Qt.SortOrder.DescendingOrder))
    filtering = timed(lambda: page.filter.setText("linear 99"))
    assert 0 < len(page.table.rows()) < NODES
    page.close()
    against = "what it may take"
    return [
        Figure(f"compare: fill {NODES:,} nodes", [filling], [2 * CLICK], against, 1.0),
        Figure("compare: scroll, p95", [sorted(frames)[int(0.95 * FRAMES)]], [FRAME], against, 1.0),
        Figure("compare: sort by error", [sorting], [CLICK], against, 1.0),
        Figure("compare: type into the filter", [filtering], [CLICK], against, 1.0),
    ]


def _records() -> tuple[object, object]:
    from lowerscope.core.model.run_records import CallRun, NodeRun, RunRecord
    from lowerscope.core.model.snapshot import FxNode, ModelRecord, Snapshot, TextRecord

    draw = random.Random(0)
    nodes = tuple(
        FxNode(
            id=f"fx:linear_{number}",
            name=f"linear_{number}",
            opcode="call_module",
            target=f"blocks.{number}.linear",
            args="(x,)",
            kwargs="{}",
            shape=(1, 4),
            dtype="float32",
            type="1×4 float32",
            label="Linear · 4 → 4",
            strategy="te",
            rule="linear: topi.nn.dense, topi.add",
        )
        for number in range(NODES)
    )
    runs = tuple(
        NodeRun(
            id=node.id,
            milliseconds=draw.random(),
            max_abs_error=draw.random() ** 8,
            max_rel_error=draw.random(),
            matches=number % 97 != 0,
            reason="" if number % 97 else "3 of 4 elements differ",
            calls=(number,),
            own_abs_error=draw.random() ** 9,
            own_matches=True,
            torch_ms=draw.random(),
        )
        for number, node in enumerate(nodes)
    )
    record = RunRecord(
        verdict="differ",
        reason="",
        max_abs_error=1.0,
        max_rel_error=1.0,
        rtol=1e-4,
        atol=1e-5,
        torch_ms=1.0,
        tvm_ms=1.0,
        build_ms=1.0,
        functions=1,
        outputs=(),
        nodes=runs,
        calls=tuple(
            CallRun(function="dense", milliseconds=1.0, nodes=(node.id,)) for node in nodes
        ),
    )
    model = ModelRecord(title="Blocks", path="", kind="torch", description="", inputs=())
    text = TextRecord(text="", language="script")
    snapshot = Snapshot(
        model=model, fx=nodes, tracer="fx", fx_graph=None, relax=text, functions=(), links=()
    )
    return snapshot, record
