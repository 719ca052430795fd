"""Flags on the nodes of a graph: a disc at the corner of each, at any scale."""

from collections.abc import Iterable

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from lowerscope.app.theme import current

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
