"""Shared set-up of widget tests: a canvas that is shown, places on it, and the mouse's wheel."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.core.model.graph import GraphRecord

NONE = Qt.KeyboardModifier.NoModifier


def shown_canvas(qtbot: QtBot, graph: GraphRecord, width: int, height: int) -> GraphCanvas:
    """Return a canvas of a size that is shown, with the focus."""
    canvas = GraphCanvas("FX graph")
    qtbot.addWidget(canvas)
    canvas.resize(width, height)
    canvas.set_graph(graph)
    with qtbot.waitExposed(canvas):
        canvas.show()
    canvas.setFocus()
    return canvas


def middle(canvas: GraphCanvas, name: str) -> QPoint:
    """Return the middle of a node in the viewport."""
    return canvas.node_rect(name).center().toPoint()


def turn_wheel(
    widget: QWidget, at: QPointF, steps: int, modifiers: Qt.KeyboardModifier = NONE
) -> None:
    """Turn the wheel of the mouse over a place."""
    there = QPointF(widget.mapToGlobal(at.toPoint()))
    by, button = QPoint(0, 120 * steps), Qt.MouseButton.NoButton
    phase = Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(at, there, QPoint(), by, button, modifiers, phase, False)
    QApplication.sendEvent(widget, event)
