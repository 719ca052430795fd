"""Animation from one state of a graph to another."""

from dataclasses import dataclass

from PySide6.QtCore import QEasingCurve, QObject, QPointF, QRectF, QVariantAnimation, Signal
from PySide6.QtGui import QPainter

from lowerscope.app.widgets.canvas.frames import paint_frames
from lowerscope.app.widgets.canvas.index import GraphIndex
from lowerscope.app.widgets.canvas.paint import GraphPainter

DURATION_MS = 180
MOST = 2000
"""Nodes of a graph that is animated at the most; a larger one changes at once."""


@dataclass(frozen=True)
class State:
    """A graph and its painter."""

    index: GraphIndex
    painter: GraphPainter


@dataclass(frozen=True)
class _Path:
    """The path of a node, and its opacity at the start and at the end."""

    name: str
    state: State
    start: QRectF
    end: QRectF
    opacity: tuple[float, float] = (1.0, 1.0)


class Motion(QObject):
    """Animation of the nodes that two states of a graph share, or that leave or enter a group.

    Only the picture is animated: all else is in the new state from the start.

    Signals
    -------
    moved()
        The picture has changed.
    """

    moved = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._states: tuple[State, State] | None = None
        self._paths: list[_Path] = []
        self._shift = QPointF()
        self._animation = QVariantAnimation(self)
        self._animation.setDuration(DURATION_MS)
        self._animation.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self._animation.setStartValue(0.0)
        self._animation.setEndValue(1.0)
        self._animation.valueChanged.connect(self._move)
        self._animation.finished.connect(self.stop)

    def start(self, before: State, after: State, shift: QPointF) -> None:
        """Animate from one state to another.

        Parameters
        ----------
        before, after : State
            The states.
        shift : QPointF
            Offset from a position in the first state to the same position in the viewport.
        """
        self.stop()
        if max(len(before.index.nodes), len(after.index.nodes)) > MOST:
            return
        self._states, self._shift = (before, after), shift
        self._paths = [*_leaving(before, after, shift), *_staying(before, after, shift)]
        self._animation.start()

    def stop(self) -> None:
        """Jump to the end."""
        self._animation.stop()
        self._states, self._paths = None, []
        self.moved.emit()

    def is_running(self) -> bool:
        """Return whether the animation runs, and `paint` paints the picture."""
        return self._states is not None

    def paint(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        """Paint the current frame; the painter's coordinates are the new graph's."""
        assert self._states is not None
        before, after = self._states
        share = float(self._animation.currentValue())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(max(0.0, 1 - 2 * share))
        painter.translate(self._shift)
        self._paint_ground(painter, before, area.translated(-self._shift), zoom)
        painter.translate(-self._shift)
        painter.setOpacity(max(0.0, 2 * share - 1))
        self._paint_ground(painter, after, area, zoom)
        for path in self._paths:
            rect = QRectF(
                path.start.x() + (path.end.x() - path.start.x()) * share,
                path.start.y() + (path.end.y() - path.start.y()) * share,
                path.end.width(),
                path.end.height(),
            )
            if rect.intersects(area):
                first, last = path.opacity
                painter.setOpacity(first + (last - first) * share)
                nodes = path.state.painter.nodes
                nodes.paint_at(painter, path.state.index.nodes[path.name], rect, zoom)
        painter.setOpacity(1.0)

    def _paint_ground(self, painter: QPainter, state: State, area: QRectF, zoom: float) -> None:
        if painter.opacity() > 0:
            paint_frames(painter, state.index, area, zoom)
            state.painter.paint_edges(painter, area, zoom)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _move(self) -> None:
        self.moved.emit()


def _staying(before: State, after: State, shift: QPointF) -> list[_Path]:
    """Return the paths of the nodes that the new state has."""
    paths = []
    for name, end in after.index.rects.items():
        start = before.index.rects.get(name)
        if start is not None:
            paths.append(_Path(name, after, start.translated(shift), end))
        else:
            out_of = _group_of(name, after.index, before.index)
            start = QRectF(end) if out_of is None else _in_middle(end, out_of.translated(shift))
            paths.append(_Path(name, after, start, end, (0.0, 1.0)))
    return paths


def _leaving(before: State, after: State, shift: QPointF) -> list[_Path]:
    """Return the paths of the nodes that the new state does not have."""
    paths = []
    for name, start in before.index.rects.items():
        if name not in after.index.rects:
            into = _group_of(name, before.index, after.index)
            end = start.translated(shift) if into is None else _in_middle(start, into)
            paths.append(_Path(name, before, start.translated(shift), end, (1.0, 0.0)))
    return paths


def _group_of(name: str, inner: GraphIndex, outer: GraphIndex) -> QRectF | None:
    """Return the collapsed group in the other state that contains a node of this one."""
    return next(
        (outer.rects[frame] for frame in inner.frames_around(name) if frame in outer.rects), None
    )


def _in_middle(rect: QRectF, of: QRectF) -> QRectF:
    """Return a rectangle centred in another."""
    moved = QRectF(rect)
    moved.moveCenter(of.center())
    return moved
