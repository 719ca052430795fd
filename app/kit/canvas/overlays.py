"""Controls beside a graph: the zoom control, the legend of colours, and the minimap."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QLinearGradient, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QFrame, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.canvas.colouring import Colours
from lowerscope.app.kit.canvas.graph_geometry import GraphIndex
from lowerscope.app.kit.canvas.viewport import ZOOM_STEP
from lowerscope.app.kit.glossary import open_term, term_of, told_label
from lowerscope.app.kit.layouts import row_of
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _

_LEGEND_PIXELS = 11.0
LEGEND_LINE, LEGEND_LINES = 18, 2
"""Height of a line of the legend, and the greatest number of lines."""

_MARK, _BETWEEN = 14.0, 12.0


class ZoomControl(QFrame):
    """Zoom control: minus, the scale, plus, and fit."""

    zoomed = Signal(float)  # The factor by which to change the scale.
    reset = Signal()  # To 100 %, and the whole graph in view.
    fitted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("floating", True)
        row = row_of(self, margins=2)
        minus = self._button("minus", _("Zoom out (-)"))
        minus.clicked.connect(self._zoom_out)
        self.scale = QToolButton()
        self.scale.setFont(ui_font(_LEGEND_PIXELS, tabular=True))
        self.scale.setToolTip(_("Back to 100 % (0)"))
        self.scale.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.scale.setFixedWidth(46)
        self.scale.clicked.connect(self.reset)
        plus = self._button("plus", _("Zoom in (+)"))
        plus.clicked.connect(self._zoom_in)
        fit = self._button("fit", _("Fit the whole graph (F)"))
        fit.clicked.connect(self.fitted)
        for button in (minus, self.scale, plus, fit):
            row.addWidget(button)
        self.show_zoom(1.0)

    def show_zoom(self, zoom: float) -> None:
        """Show the scale."""
        self.scale.setText(f"{zoom * 100:.{0 if zoom >= 0.0095 else 1}f} %")

    def _zoom_in(self) -> None:
        self.zoomed.emit(ZOOM_STEP)

    def _zoom_out(self) -> None:
        self.zoomed.emit(1 / ZOOM_STEP)

    def _button(self, name: str, tooltip: str) -> QToolButton:
        return IconButton(name, tooltip, size=(24, 22), focus=Qt.FocusPolicy.NoFocus)


class Legend(QWidget):
    """A coloured mark and a label for each family, strategy or range, in at most two lines.

    Those that do not fit are counted at the end, and named in the tool tip.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._entries: tuple[tuple[str, str], ...] = ()
        self._colours = Colours()
        self._font = ui_font(_LEGEND_PIXELS)
        self._metrics = TextMetrics(self._font)
        theme.notifier().changed.connect(self.update)

    def set_entries(self, entries: Sequence[tuple[str, str]], colours: Colours) -> None:
        """Show these pairs of a key and a label."""
        self._entries, self._colours = tuple(entries), colours
        self.setAccessibleName(", ".join(self.words()))
        self.setToolTip("\n".join(told_label(word) for word in self.words()))
        self.setVisible(bool(entries))
        self.update()

    def words(self) -> list[str]:
        """Return the labels."""
        return [word for _, word in self._entries]

    def lines(self, width: float) -> int:
        """Return the number of lines that the labels take in a width."""
        return 1 + max((line for line, *_rest in self._places(width)), default=-1)

    def _places(self, width: float) -> list[tuple[int, float, str, str]]:
        """Return the line of each entry, its left end, its key, and its label as it fits.

        The last one may be the count of those that do not fit, without a key.
        """
        advance, places = self._metrics.horizontalAdvance, []
        line, x = 0, 0.0
        for key, word in self._entries:
            needed = _MARK + advance(word)
            if x and x + needed > width:
                line, x = line + 1, 0.0
            right = Qt.TextElideMode.ElideRight
            fitted = self._metrics.elidedText(word, right, width - x - _MARK + 1)
            places.append((line, x, key, fitted))
            x += needed + _BETWEEN
        shown = sum(each[0] < LEGEND_LINES for each in places)
        while shown < len(places):
            line, x, _key, word = places[shown - 1]
            more = f"+{len(places) - shown}"
            x += _MARK + advance(word) + _BETWEEN
            if shown == 1 or x + advance(more) <= width:
                return [*places[:shown], (line, x, "", more)]
            shown -= 1
        return places

    # Qt

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        for line, x, _key, word in self._places(self.width()):
            wide = _MARK + self._metrics.horizontalAdvance(word)
            term = term_of(word)
            if term and QRectF(x, line * LEGEND_LINE, wide, LEGEND_LINE).contains(at):
                open_term(self, term)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._font)
        for line, x, key, word in self._places(self.width()):
            middle = LEGEND_LINE * (line + 0.5)
            mark = QRectF(x, middle - 4.5, 9, 9)
            painter.setPen(Qt.PenStyle.NoPen)
            if not key:
                painter.setBrush(Qt.BrushStyle.NoBrush)
            elif key == "ramp":
                shades = QLinearGradient(mark.bottomLeft(), mark.topLeft())
                for level in (0.0, 1.0):
                    shades.setColorAt(level, QColor(self._colours.ramp(colours, level)))
                painter.setBrush(shades)
            else:
                painter.setBrush(QColor(self._colours.legend_colour(colours, key)))
            painter.drawRoundedRect(mark, 2, 2)
            painter.setPen(QColor(colours.quiet))
            if not key:
                x -= _MARK
            painter.drawText(QPointF(x + _MARK, middle + _LEGEND_PIXELS * 0.364), word)


_WIDEST, _HIGHEST = 168.0, 150.0
_NARROWEST, _LOWEST = 36.0, 24.0
# Shares of the width and height of the canvas.
_SHARE_ACROSS, _SHARE_DOWN = 0.2, 0.3
_MARGIN = 4.0
# The visible part is never drawn smaller than this.
_LEAST_SEEN = 6.0


class Minimap(QWidget):
    """A small picture of a graph with a frame around the visible part, which can be dragged."""

    moved = Signal(QPointF)  # The point of the graph that is to be centred.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._index: GraphIndex | None = None
        self._colours = Colours()
        self._seen = QRectF()
        self._grip: QPointF | None = None
        self._picture = QPixmap()
        # The canvas behind it need not be repainted when it changes.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(_("Overview of the graph"))
        self.setToolTip(_("Drag to move (M shows and hides this)"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self._redraw)
        self.hide()

    def show_graph(self, index: GraphIndex, colours: Colours) -> None:
        """Show another graph, or the same one in other colours."""
        self._index, self._colours = index, colours
        self._redraw()

    def show_seen(self, seen: QRectF) -> None:
        """Show which part of the graph is visible."""
        if seen != self._seen:
            self._seen = seen
            self.update()

    def seen_rect(self) -> QRectF:
        """Return the area of the frame around the visible part."""
        scale, corner = self._scale()
        rect = QRectF(corner + self._seen.topLeft() * scale, self._seen.size() * scale)
        grow_x = max(0.0, _LEAST_SEEN - rect.width()) / 2
        grow_y = max(0.0, _LEAST_SEEN - rect.height()) / 2
        rect.adjust(-grow_x, -grow_y, grow_x, grow_y)
        return rect & QRectF(self.rect()).adjusted(1, 1, -1, -1)

    def _scale(self) -> tuple[float, QPointF]:
        """Return the scale of the graph, and the position of its origin."""
        bounds = QRectF() if self._index is None else self._index.bounds()
        if bounds.isEmpty():
            return 1.0, QPointF()
        room = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        scale = min(room.width() / bounds.width(), room.height() / bounds.height())
        return scale, room.center() - bounds.center() * scale

    def _redraw(self) -> None:
        self._picture = QPixmap()
        self.update()

    def _draw(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        colours = theme.current()
        picture.fill(QColor(colours.panel))
        if self._index is None:
            return picture
        scale, corner = self._scale()
        painter = QPainter(picture)
        painter.setPen(Qt.PenStyle.NoPen)
        places: dict[str, list[QRectF]] = {}
        for name, rect in self._index.rects.items():
            place = QRectF(corner + rect.topLeft() * scale, rect.size() * scale)
            place.setWidth(max(1.5, place.width()))
            place.setHeight(max(1.0, place.height()))
            colour = self._colours.mark(colours, self._index.nodes[name])
            places.setdefault(colour, []).append(place)
        for colour, rects in places.items():
            painter.setBrush(QColor(colour))
            painter.drawRects(rects)
        painter.end()
        return picture

    # Qt

    def sizeHint(self) -> QSize:
        bounds = QRectF() if self._index is None else self._index.bounds()
        if bounds.isEmpty():
            return QSize(0, 0)
        over = self.parentWidget()
        room = QSize() if over is None else over.size()
        widest = min(_WIDEST, room.width() * _SHARE_ACROSS)
        highest = min(_HIGHEST, room.height() * _SHARE_DOWN)
        scale = min(widest / bounds.width(), highest / bounds.height())
        return QSize(
            round(max(_NARROWEST, bounds.width() * scale) + 2 * _MARGIN),
            round(max(_LOWEST, bounds.height() * scale) + 2 * _MARGIN),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture.size() != self.size() * self.devicePixelRatioF():
            self._picture = self._draw()
        colours = theme.current()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.line), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        seen = QColor(colours.text)
        seen.setAlphaF(0.07)
        painter.setBrush(seen)
        painter.setPen(QPen(QColor(colours.quiet), 1))
        painter.drawRect(self.seen_rect().toAlignedRect().adjusted(0, 0, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        rect = self.seen_rect()
        place = event.position()
        # A press outside of the frame moves it there first.
        self._grip = place - rect.center() if rect.contains(place) else QPointF()
        if not rect.contains(place):
            self._go(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None:
            self._go(event.position() - self._grip)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def _go(self, place: QPointF) -> None:
        scale, corner = self._scale()
        self.moved.emit((place - corner) / scale)
