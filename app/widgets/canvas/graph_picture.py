"""A graph, or the part of it that is seen, as a picture in a file: SVG, PDF or PNG."""

from pathlib import Path

from PySide6.QtCore import QMarginsF, QRect, QRectF, QSize, QSizeF
from PySide6.QtGui import QColor, QImage, QPageLayout, QPageSize, QPaintDevice, QPainter, QPdfWriter

from lowerscope.app.theme import current
from lowerscope.app.widgets.canvas.paint import GraphPainter

#: Around the drawing, in pixels.
MARGIN = 12.0

#: The fonts of a graph have their sizes at so many pixels an inch.
_DPI = 96

#: A PNG has so many pixels for one of the drawing, and no more than these on a side.
_SCALE = 2.0
_MOST_PIXELS = 16_384


def write_picture(graph: GraphPainter, area: QRectF, path: Path, kind: str, title: str) -> None:
    """Write an area of a graph as it looks in the theme that is on.

    Parameters
    ----------
    graph : GraphPainter
        Paints the graph.
    area : QRectF
        In the graph's own pixels.
    path : Path
        The file; what is there is overwritten.
    kind : str
        ``"svg"``, ``"pdf"`` or ``"png"``.
    title : str
        Of the document.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    whole = area.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
    if kind == "png":
        _write_image(graph, whole, path)
        return
    device = _svg(whole, path, title) if kind == "svg" else _pdf(whole, path, title)
    _paint(graph, whole, device, 1.0)


def _svg(area: QRectF, path: Path, title: str) -> QPaintDevice:
    # Nothing else of the window needs it.
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
    # Of a size as given: Qt would take that of a sheet of paper that is nearly as large.
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
    # At full scale, whatever the scale of the picture: all words, and all curves.
    graph.paint(painter, area, 1.0)
    if not painter.end():
        raise OSError("Qt cannot write it")
