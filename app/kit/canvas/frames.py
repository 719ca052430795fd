"""Painting of frames around the nodes of a graph, and of the stubs of long edges."""

from collections.abc import Collection

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPainterPath, QPen

from lowerscope.app.kit.canvas.index import GraphIndex, chevron, port_rect, region_rect, title_bar
from lowerscope.app.kit.theme import current
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, TextMetrics, ui_font
from lowerscope.core.model.graph import CHEVRON, TITLE_BAR, Port, Region

#: Below this scale only titles are drawn: other text would be unreadable.
TEXT_SCALE = 0.5

_TITLE_PIXELS = 11.0
_RADIUS = 8.0
_LEFT = 12.0
_BASE = 8.0
_CAPITAL = 0.364


def paint_frames(
    painter: QPainter, index: GraphIndex, area: QRectF, zoom: float, marked: Collection[str] = ()
) -> None:
    """Paint the frames that overlap an area; with ``marked``, only these, as under the mouse."""
    for region in index.graph.regions:
        if marked and region.id not in marked:
            continue
        frame = region_rect(region)
        if frame.intersects(area):
            if region.id:
                _paint_module(painter, region, frame, zoom, bool(marked))
            else:
                _paint_block(painter, region, frame, zoom)


def _paint_module(
    painter: QPainter, region: Region, frame: QRectF, zoom: float, marked: bool
) -> None:
    """Paint an expanded module: a bar with a chevron and its title, and a frame."""
    theme = current()
    outline = frame.adjusted(0.5, 0.5, -0.5, -0.5)
    path = QPainterPath()
    path.addRoundedRect(outline, _RADIUS, _RADIUS)
    painter.save()
    painter.setClipRect(title_bar(frame), Qt.ClipOperation.IntersectClip)
    painter.fillPath(path, QColor(theme.hover if marked else theme.ground))
    painter.restore()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    colour = theme.accent if marked else theme.node_line
    painter.setPen(QPen(QColor(colour), max(1.0, 1 / zoom)))
    painter.drawPath(path)
    if zoom < TEXT_SCALE:
        return
    bar = title_bar(frame)
    painter.setPen(QPen(QColor(colour), 1))
    painter.drawLine(bar.bottomLeft() + QPointF(1, -0.5), bar.bottomRight() + QPointF(-1, -0.5))
    paint_chevron(painter, chevron(bar), is_open=True)
    _paint_title(painter, region.title, bar, chevron(bar).left() + CHEVRON + 2)


def paint_pinned_titles(painter: QPainter, index: GraphIndex, area: QRectF, zoom: float) -> None:
    """Paint the titles of frames that begin left of an area at its left edge."""
    for region in index.graph.regions if zoom >= TEXT_SCALE else ():
        bar = title_bar(region_rect(region))
        left = area.left() + _LEFT
        if region.id and bar.intersects(area) and chevron(bar).left() < area.left():
            width = TextMetrics(ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)).horizontalAdvance(
                region.title
            )
            # A title that is partly visible must not shine through.
            ground = QRectF(area.left(), bar.top() + 1, CHEVRON + width + 2 * _LEFT, TITLE_BAR - 3)
            painter.fillRect(ground & bar, QColor(current().ground))
            _paint_title(painter, region.title, bar, left)


def _paint_title(painter: QPainter, words: str, bar: QRectF, left: float) -> None:
    room = bar.right() - left - 6
    if room > 0:
        font = ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)
        title = TextMetrics(font).elidedText(words, Qt.TextElideMode.ElideMiddle, room)
        painter.setFont(font)
        painter.setPen(QColor(current().quiet))
        painter.drawText(QPointF(left, round(bar.center().y() + _TITLE_PIXELS * _CAPITAL)), title)


def _paint_block(painter: QPainter, region: Region, frame: QRectF, zoom: float) -> None:
    """Paint a data-flow block: a dashed frame, with its title at the foot."""
    theme = current()
    pen = QPen(QColor(theme.faint), max(1.0, 1 / zoom))
    pen.setDashPattern([4.0, 3.0])
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(pen)
    painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
    if zoom >= TEXT_SCALE:
        painter.setFont(ui_font(_TITLE_PIXELS))
        painter.setPen(QColor(theme.quiet))
        corner = QPointF(frame.left() + _LEFT, frame.bottom() - _BASE)
        painter.drawText(corner, region.title[:SHOWN_CHARACTERS])


def paint_chevron(painter: QPainter, place: QRectF, is_open: bool) -> None:
    """Paint a chevron: to the right if collapsed, down if expanded."""
    x, y = place.center().x(), place.center().y()
    path = QPainterPath()
    if is_open:
        path.moveTo(x - 4, y - 2)
        path.lineTo(x, y + 2)
        path.lineTo(x + 4, y - 2)
    else:
        path.moveTo(x - 2, y - 4)
        path.lineTo(x + 2, y)
        path.lineTo(x - 2, y + 4)
    pen = QPen(QColor(current().quiet), 1.5)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)


def paint_ports(
    painter: QPainter,
    index: GraphIndex,
    ports: Collection[Port],
    area: QRectF,
    zoom: float,
    marked: bool = False,
) -> None:
    """Paint the ports that overlap an area; marked ones in the accent colour."""
    theme = current()
    font = ui_font(_TITLE_PIXELS)
    metrics = TextMetrics(font)
    painter.setFont(font)
    for port in ports:
        rect = port_rect(port)
        if not rect.intersects(area):
            continue
        painter.setBrush(QColor(theme.accent_ground if marked else theme.panel))
        painter.setPen(QPen(QColor(theme.accent if marked else theme.edge), max(1.0, 0.8 / zoom)))
        half = rect.height() / 2
        if port.box in index.rects:
            painter.drawLine(_stem(rect, index.rects[port.box], port.side == "in"))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), half, half)
        if zoom >= TEXT_SCALE:
            painter.setPen(QColor(theme.accent if marked else theme.quiet))
            room = rect.width() - 2 * min(half, 6.0)
            text = metrics.elidedText(port.label, Qt.TextElideMode.ElideRight, room + 1)
            left = rect.center().x() - metrics.horizontalAdvance(text) / 2
            painter.drawText(
                QPointF(round(left), round(rect.center().y() + _TITLE_PIXELS * _CAPITAL)), text
            )


def _stem(stub: QRectF, node: QRectF, is_above: bool) -> QLineF:
    """Return the line from a stub to its node, or from the node to it."""
    x = round(max(node.left() + 8, min(stub.center().x(), node.right() - 8))) + 0.5
    if is_above:
        return QLineF(x, stub.bottom(), x, node.top())
    return QLineF(x, node.bottom(), x, stub.top())
