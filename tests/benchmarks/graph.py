"""Graphs: their layout, and their canvas against the time that a frame may take: panning, zooming
and selecting.

The canvas stands alone, 1600×1000, drawn by the software rasteriser, all in the thread whose
processor time is taken. Its graphs are layered, with nodes and edges as the layout makes them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.core.model.graph import FAMILY_NAMES, Box, Edge, GraphRecord
from tests.benchmarks.figures import Figure, processor_milliseconds
from tests.benchmarks.graph_layout import layout_figures

SIZE = (1600, 1000)
FRAMES = {10_000: 12.0, 50_000: 16.0}
"""Milliseconds that all but one frame in twenty may take, by the number of nodes."""

SELECTION = 1000
SELECTED = 50.0
"""Nodes that a selection touches, and milliseconds that drawing it may take."""

ACROSS = 60
HEIGHT = 91.0
FAMILIES = tuple(FAMILY_NAMES)
_STRIDE_X, _STRIDE_Y = 210.0, HEIGHT + 48


def layered(count: int) -> GraphRecord:
    """Return a graph in layers of `ACROSS` nodes, each of which feeds two below it."""
    nodes, edges = [], []
    for number in range(count):
        row, column = divmod(number, ACROSS)
        x, y = 24 + column * _STRIDE_X, 24 + row * _STRIDE_Y
        strategy = ("te", "high-level", "library", "")[number % 4]
        nodes.append(
            Box(
                f"n{number}",
                f"layer{row}_{column}_conv",
                "call",
                strategy,
                x,
                y,
                180,
                HEIGHT,
                "Conv2d",
                (("weight", "64×64×3×3"), ("stride 2", "")),
                FAMILIES[number % len(FAMILIES)],
            )
        )
        for beside in (0, 1):
            target = number + ACROSS + beside
            if target < count and column + beside < ACROSS:
                x1 = x + beside * _STRIDE_X + 90
                top = y + HEIGHT
                points = ((x + 90, top), (x + 90, top + 8), (x1, top + 40), (x1, y + _STRIDE_Y))
                label = "" if beside else "1×64×56×56"
                label_at = None if beside else (x + 97, top + 24)
                edges.append(Edge(f"n{number}", f"n{target}", label, points, label_at=label_at))
    rows = math.ceil(count / ACROSS)
    return GraphRecord(tuple(nodes), tuple(edges), 48 + ACROSS * _STRIDE_X, 48 + rows * _STRIDE_Y)


def _frames(canvas: GraphCanvas, move: Callable[[], None]) -> Iterator[float]:
    """Yield the time from a move to the frame that shows it, and that of the frame after it.

    The second one draws some of what the first had no time for.
    """
    yield processor_milliseconds(lambda: (move(), canvas.viewport().repaint()))
    yield processor_milliseconds(canvas.viewport().repaint)


def _settle(canvas: GraphCanvas) -> None:
    """Wait until a new scale is drawn as it stays."""
    from PySide6.QtTest import QTest

    QTest.qWait(300)
    canvas.viewport().repaint()


def _panned(canvas: GraphCanvas, zoom: float) -> Iterator[float]:
    """Yield the times of frames while the drawing is dragged: down, across, and back."""
    from PySide6.QtCore import QPointF

    canvas.set_zoom(zoom)
    canvas.centre_on(QPointF(canvas.graph().width / 2, 900 / zoom))
    _settle(canvas)
    for by in ((0, -34), (-40, -20), (0, 60)):
        for _ in range(40):
            yield from _frames(canvas, lambda by=by: canvas._move_by(QPointF(*by)))  # type: ignore[misc]


def _zoomed(canvas: GraphCanvas) -> Iterator[float]:
    """Yield the times of frames while the scale goes from 120 % to 3 % and back."""
    from PySide6.QtCore import QPointF

    canvas.set_zoom(1.2)
    canvas.centre_on(QPointF(canvas.graph().width / 2, canvas.graph().height / 2))
    _settle(canvas)
    for factor in (0.96, 1 / 0.96):
        for _ in range(90):
            yield from _frames(canvas, lambda factor=factor: canvas.zoom_by(factor))  # type: ignore[misc]


def _quantile(times: list[float], share: float = 0.95) -> float:
    return sorted(times)[int(len(times) * share)]


def _moving(canvas: GraphCanvas, count: int, rounds: int = 3) -> list[Figure]:
    limit = FRAMES[count]
    kinds: dict[str, Callable[[], list[float]]] = {
        "pan at 100 %": lambda: list(_panned(canvas, 1.0)),
        "pan at 50 %": lambda: list(_panned(canvas, 0.5)),
        "pan at 20 %": lambda: list(_panned(canvas, 0.2)),
        "zoom": lambda: list(_zoomed(canvas)),
    }
    return [
        Figure(
            f"{name}, p95 of frames, {count:,} nodes",
            [_quantile(measure()) for _ in range(rounds)],
            [limit] * rounds,
            "what it may take",
            1.0,
        )
        for name, measure in kinds.items()
    ]


def _selecting(canvas: GraphCanvas, count: int, rounds: int = 7) -> list[Figure]:
    figures = []
    for zoom in (1.0, 0.5, 0.2):
        canvas.set_selection(())
        canvas.set_zoom(zoom)
        canvas.go_home()
        _settle(canvas)
        times = []
        for first in range(rounds):
            names = [f"n{number}" for number in range(first, first + SELECTION)]
            times.append(next(_frames(canvas, lambda names=names: canvas.set_selection(names))))  # type: ignore[misc]
        figures.append(
            Figure(
                f"selection of {SELECTION:,} of {count:,} nodes at {zoom:.0%}",
                times,
                [SELECTED] * rounds,
                "what it may take",
                1.0,
            )
        )
    canvas.set_selection(())
    return figures


def measure() -> list[Figure]:
    """Measure the drawing of large graphs."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.kit import theme

    app = QApplication.instance() or QApplication(["graph", *theme.STYLE])
    assert isinstance(app, QApplication)
    theme.start(app, "light")
    figures = layout_figures()
    for count in FRAMES:
        canvas = GraphCanvas("graph")
        canvas.resize(*SIZE)
        canvas.show()
        canvas.set_graph(layered(count))
        QApplication.processEvents()
        figures += _moving(canvas, count)
        figures += _selecting(canvas, count)
        canvas.close()
    return figures
