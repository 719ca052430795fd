"""Export of a graph, or of its visible part, as SVG, PDF or PNG."""

from pathlib import Path

from PySide6.QtCore import QMarginsF, QRect, QRectF, QSize, QSizeF
from PySide6.QtGui import QColor, QImage, QPageLayout, QPageSize, QPaintDevice, QPainter, QPdfWriter

from lowerscope.app.theme import current
from lowerscope.app.widgets.canvas.paint import GraphPainter

#: Margin around the drawing, in pixels.
MARGIN = 12.0

#: Pixels per inch that the font sizes of a graph refer to.
_DPI = 96

#: Pixels of a PNG for a pixel of the drawing, and its greatest width and height.
_SCALE = 2.0
_MOST_PIXELS = 16_384


def write_picture(graph: GraphPainter, area: QRectF, path: Path, kind: str, title: str) -> None:
    """Write an area of a graph to a file, in the current theme.

    Parameters
    ----------
    graph : GraphPainter
        The painter of the graph.
    area : QRectF
        In the graph's own pixels.
    path : Path
        The file; an existing one is overwritten.
    kind : str
        ``"svg"``, ``"pdf"`` or ``"png"``.
    title : str
        Title of the document.

    Raises
    ------
    OSError
        If the file cannot be written.
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
