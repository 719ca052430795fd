"""Painting of a graph: cached paths, and the marks on it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QMarginsF, QPointF, QRect, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QImage,
    QPageLayout,
    QPageSize,
    QPaintDevice,
    QPainter,
    QPainterPath,
    QPdfWriter,
    QPen,
)

from lowerscope.app.kit.canvas.edges import LABEL_PIXELS, EdgePaths
from lowerscope.app.kit.canvas.frames import (
    TEXT_SCALE,
    paint_frames,
    paint_pinned_titles,
    paint_ports,
)
from lowerscope.app.kit.canvas.index import GraphIndex
from lowerscope.app.kit.canvas.nodes import NodePainter
from lowerscope.app.kit.canvas.overlays import CanvasShade, Colouring
from lowerscope.app.kit.theme import current
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, TextMetrics, ui_font
from lowerscope.core.model.graph import Port

# --- Flags on the nodes of a graph: a disc at the corner of each, at any scale ---

#: Radius of the disc, in the graph's coordinates, and its least radius in pixels, to stay visible.
_RADIUS = 6.0
_PIXELS = 3.0


def paint_flags(painter: QPainter, places: Iterable[QRectF], zoom: float) -> None:
    """Paint the flags of the nodes at these places; the painter's coordinates are the graph's."""
    colours = current()
    radius = max(_RADIUS, _PIXELS / zoom)
    painter.setPen(QPen(QColor(colours.panel), radius / 3))
    painter.setBrush(QColor(colours.stop))
    for place in places:
        painter.drawEllipse(QPointF(place.left() + 1, place.top() + 1), radius, radius)


#: Scales below which arrow heads, or curves, are omitted.
ARROW_SCALE = 0.6
CURVE_SCALE = 0.25


@dataclass(frozen=True)
class Marks:
    """Marks on the nodes of a graph."""

    selection: frozenset[str] = frozenset()  # Nodes that are selected, and matches of the search.
    found: frozenset[str] = frozenset()
    hovered: str = ""  # The node or frame under the mouse, and the keyboard's, or ``""``.
    walked: str = ""
    port: Port | None = None  # The port under the mouse.
    flags: frozenset[str] = frozenset()  # Nodes with a disc.


class GraphPainter:
    """Painter of a graph; what does not change between frames is cached.

    Args:
        index: The graph.

    Attributes:
        colouring: The property that the colours of nodes show.
        shades: Values to show, by node.
    """

    def __init__(
        self,
        index: GraphIndex,
        labels: bool = True,
        colouring: Colouring = "strategy",
        shades: Mapping[str, CanvasShade] = MappingProxyType({}),
    ) -> None:
        self.labels = labels  # Whether all edges have labels; those of marked nodes always have.
        self._index = index
        self._edges = EdgePaths(index)
        self.nodes = NodePainter(index, colouring, shades)
        self._label = ui_font(LABEL_PIXELS)
        self._descent = TextMetrics(self._label).descent()
        # Cached path of the edges of marked nodes, until the marks change.
        self._marked: tuple[frozenset[str], list[int], QPainterPath, QPainterPath] | None = None

    def paint(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        """Paint an area without marks; the painter's coordinates are the graph's."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_frames(painter, self._index, area, zoom)
        self.paint_edges(painter, area, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_ports(painter, self._index, self._index.graph.ports, area, zoom)
        self.nodes.paint(painter, self._index.inside(area), zoom)

    def paint_edges(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        """Paint the edges in an area, and their labels."""
        bunches = self._edges.inside(area)
        colour = QColor(current().edge)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, zoom >= CURVE_SCALE)
        # A line of one pixel belongs in the middle of a pixel, not between two.
        painter.translate(0.5, 0.0)
        if zoom < CURVE_SCALE:
            painter.setPen(_line_pen(colour, 1.0, zoom))
            for bunch in bunches:
                painter.drawLines(self._edges.straight(bunch))
        else:
            for bunch in bunches:
                _stroke(painter, self._edges.drawn(bunch), colour, 1.0, zoom)
        painter.translate(-0.5, 0.0)
        if self.labels and zoom >= TEXT_SCALE:
            for bunch in bunches:
                self._paint_labels(painter, self._edges.labels(bunch, area))

    def paint_marks(self, painter: QPainter, area: QRectF, zoom: float, marks: Marks) -> None:
        """Paint the marks over the graph."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        index = self._index
        if marks.hovered in index.frames:
            paint_frames(painter, index, area, zoom, (marks.hovered,))
        paint_pinned_titles(painter, index, area, zoom)
        self._paint_marked_edges(painter, area, zoom, marks)
        lit: list[str] = []
        if marks.port is not None:
            lit = [name for name in (marks.port.box, *marks.port.others) if name in index.nodes]
            ports = (marks.port, *index.ends(marks.port))
            paint_ports(painter, index, ports, area, zoom, marked=True)
        names = {*marks.selection, *marks.found, *lit, marks.hovered, marks.walked}
        seen = self._seen(names & index.nodes.keys(), area)
        self.nodes.paint_marked(painter, seen, zoom, marks, frozenset(lit))
        if marks.walked in index.frames:
            self.nodes.paint_focus(painter, index.frames[marks.walked])
        flagged = self._seen(marks.flags & index.nodes.keys(), area)
        paint_flags(painter, [index.rects[name] for name in flagged], zoom)

    def _paint_marked_edges(
        self, painter: QPainter, area: QRectF, zoom: float, marks: Marks
    ) -> None:
        theme = current()
        if marks.hovered in self._index.nodes and marks.hovered not in marks.selection:
            numbers = self._edges.of_nodes((marks.hovered,))
            _stroke(painter, self._edges.together(numbers), QColor(theme.accent), 1.0, zoom)
            self._paint_marked_labels(painter, numbers, area, zoom)
        if not marks.selection:
            return
        if self._marked is None or self._marked[0] != marks.selection:
            numbers = self._edges.of_nodes(marks.selection)
            self._marked = (marks.selection, numbers, *self._edges.together(numbers))
        _, numbers, lines, arrows = self._marked
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, zoom >= CURVE_SCALE)
        _stroke(painter, (lines, arrows), QColor(theme.accent), 2.0, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_marked_labels(painter, numbers, area, zoom)

    def _paint_marked_labels(
        self, painter: QPainter, numbers: Collection[int], area: QRectF, zoom: float
    ) -> None:
        if zoom >= TEXT_SCALE:
            labels = self._edges.labels_of(numbers)
            self._paint_labels(painter, [each for each in labels if each[1].intersects(area)])

    def _paint_labels(self, painter: QPainter, labels: Iterable[tuple[str, QRectF]]) -> None:
        theme = current()
        painter.setFont(self._label)
        painter.setPen(QColor(theme.quiet))
        ground = QColor(theme.panel)
        for text, place in labels:
            painter.fillRect(place, ground)
            corner = QPointF(place.left() + 2, place.bottom() - self._descent)
            painter.drawText(corner, text[:SHOWN_CHARACTERS])

    def _seen(self, names: Collection[str], area: QRectF) -> list[str]:
        if len(names) > 100:
            return [name for name in self._index.inside(area) if name in names]
        return [name for name in names if self._index.rects[name].intersects(area)]


def _stroke(
    painter: QPainter,
    paths: tuple[QPainterPath, QPainterPath],
    colour: QColor,
    width: float,
    zoom: float,
) -> None:
    lines, arrows = paths
    painter.setPen(_line_pen(colour, width, zoom))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(lines)
    if zoom >= ARROW_SCALE:
        painter.fillPath(arrows, colour)


def _line_pen(colour: QColor, width: float, zoom: float) -> QPen:
    """Return a pen for lines, at least a pixel wide, which is what the rasteriser is fast at."""
    pen = QPen(colour, max(1.0, width * zoom))
    pen.setCosmetic(True)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


# --- Export of a graph, or of its visible part, as SVG, PDF or PNG ---

#: Margin around the drawing, in pixels.
MARGIN = 12.0

#: Pixels per inch that the font sizes of a graph refer to.
_DPI = 96

#: Pixels of a PNG for a pixel of the drawing, and its greatest width and height.
_SCALE = 2.0
_MOST_PIXELS = 16_384


def write_picture(graph: GraphPainter, area: QRectF, path: Path, kind: str, title: str) -> None:
    """Write an area of a graph to a file, in the current theme.

    Args:
        graph: The painter of the graph.
        area: In the graph's own pixels.
        path: The file; an existing one is overwritten.
        kind: ``"svg"``, ``"pdf"`` or ``"png"``.
        title: Title of the document.

    Raises:
        OSError: If the file cannot be written.
    """
    whole = area.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
    if kind == "png":
        _write_image(graph, whole, path)
        return
    device = _svg(whole, path, title) if kind == "svg" else _pdf(whole, path, title)
    _paint(graph, whole, device, 1.0)


def _svg(area: QRectF, path: Path, title: str) -> QPaintDevice:
    # Imported here, since nothing else in the window needs it.
    from PySide6.QtSvg import QSvgGenerator

    size = area.size().toSize()
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setResolution(_DPI)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    return generator


def _pdf(area: QRectF, path: Path, title: str) -> QPaintDevice:
    writer = QPdfWriter(str(path))
    writer.setResolution(_DPI)
    points = QSizeF(area.width(), area.height()) * 72 / _DPI
    # The size as given: Qt would replace it by a paper size that is nearly as large.
    match = QPageSize.SizeMatchPolicy.ExactMatch
    writer.setPageSize(QPageSize(points, QPageSize.Unit.Point, "", match))
    writer.setPageOrientation(QPageLayout.Orientation.Portrait)
    writer.setPageMargins(QMarginsF())
    writer.setTitle(title)
    writer.setCreator("Lowerscope")
    return writer


def _write_image(graph: GraphPainter, area: QRectF, path: Path) -> None:
    longest = max(area.width(), area.height())
    scale = min(_SCALE, _MOST_PIXELS / longest)
    size = QSize(round(area.width() * scale), round(area.height() * scale))
    image = QImage(size, QImage.Format.Format_RGB32)
    if image.isNull():
        raise OSError(f"a picture of {size.width()} × {size.height()} pixels is too large")
    _paint(graph, area, image, scale)
    if not image.save(str(path)):
        raise OSError("Qt cannot write it")


def _paint(graph: GraphPainter, area: QRectF, device: QPaintDevice, scale: float) -> None:
    painter = QPainter()
    if not painter.begin(device):
        raise OSError("Qt cannot write it")
    painter.scale(scale, scale)
    painter.translate(-area.topLeft())
    painter.fillRect(area, QColor(current().panel))
    painter.setClipRect(area)
    # At full scale, whatever the scale of the picture: all text, and all curves.
    graph.paint(painter, area, 1.0)
    if not painter.end():
        raise OSError("Qt cannot write it")
