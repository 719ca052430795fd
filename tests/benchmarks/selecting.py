"""From a selection to the window that shows it in all panes, on a model of 10,000 nodes.

The real window with the real engine; nodes far apart are selected one after the other, so that
every pane has to go to another place.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from lowerscope.app.shell.window import MainWindow
from tests.benchmarks.figures import Figure, within
from tests.benchmarks.waiting import wait

MODEL = """
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.b = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = torch.relu(self.a(x))
        y = torch.tanh(self.b(y))
        return x + torch.sigmoid(y) * 0.5


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(1430))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def example_inputs():
    return torch.ones(1, 4)


entry = Blocks
"""

SIZE = (1600, 1000)
LIMIT = 50.0
"""Milliseconds that a selection may take."""

SELECTIONS = 40


def _selected(window: MainWindow, entity: str) -> float:
    """Select, and return the time until all that follows at once is painted."""
    from PySide6.QtWidgets import QApplication

    start = time.perf_counter()
    window.document.select((entity,))
    # What is laid out anew posts what is to be painted for it.
    QApplication.processEvents()
    QApplication.processEvents()
    taken = (time.perf_counter() - start) * 1000
    # What the engine answers comes later, and is not waited for: it has its own place in the panes.
    wait(window, lambda: window.features.processes.engine.state == "ready")
    return taken


def measure() -> list[Figure]:
    """Measure selections in the window, 95 of 100 of which are at least as fast as the figure."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from lowerscope.app.shell.start import make_window
    from lowerscope.core.model.recipe import Recipe, Source

    _, window = make_window()
    window.resize(*SIZE)
    window.begin(None)
    document = window.document
    for client in (window.features.processes.engine, window.features.processes.worker):
        # The file is written here: nobody is to be asked whether it may run.
        client.approved = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "blocks.py"
            path.write_text(MODEL, encoding="utf-8")
            document.open(Recipe(source=Source(spec=str(path)), lowering="te"))
            wait(window, lambda: document.snapshot is not None and not document.job.text)
            window.show_panes()
            assert document.snapshot is not None
            nodes = [node.id for node in document.snapshot.fx if node.opcode.startswith("call")]
            assert len(nodes) >= 10_000
            far = len(nodes) // 2
            order = [nodes[place % len(nodes)] for place in range(0, far * SELECTIONS, far - 7)]
            wait(window, lambda: window.features.processes.engine.state == "ready")
            _selected(window, nodes[0])
            times = sorted(_selected(window, entity) for entity in order[:SELECTIONS])
    finally:
        window.close()
    p95 = times[int(0.95 * (len(times) - 1))]
    return [within(f"select in {len(nodes):,} nodes, p95", [p95], LIMIT)]
