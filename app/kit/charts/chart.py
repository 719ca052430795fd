"""Base classes of charts: values navigated by keys, and a plot that can be zoomed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsRectItem,
    QGraphicsSimpleTextItem,
    QSizePolicy,
    QToolTip,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import RINGED
from lowerscope.app.kit.typefaces import TextMetrics, ui_font

_FONT_PIXELS = 11.0
_MOVES = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}


class Value(NamedTuple):
    """A value of a chart: its start, its position, and its text."""

    start: float
    x: float
    y: float
    text: str


class Chart(QWidget):
    """A chart of values, one of which is the current one.

    The arrow keys, Home, End and a click move the current value. The accessible description has its
    text and a summary of the chart; the tool tip has the text of the value under the mouse.

    A subclass calls `_show` with its values, and draws them in `_draw_plot` and `_draw_current`:
    when they, the theme, the size or the range change. Points are in the coordinates of the plot,
    positions in the widget. pyqtgraph is imported when there is something to draw.
    """

    pointed = Signal(int)  # Another value became the current one.

    SIZE, SMALLEST = QSize(400, 200), QSize(200, 100)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._plot: Any = None
        self._is_stale = True  # Something that the plot depends on has changed.
        self._values: Sequence[Value] = ()
        self._summary = self._empty = ""
        self._here = -1
        # Items that `plot.clear` leaves: texts beside the plot, and marks of the current value.
        self._texts: list[QGraphicsItem] = []
        self._marks: list[QGraphicsItem] = []
        self._added = self._texts
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self._metrics = TextMetrics(self._font)
        self.setAccessibleName(name)
        self.setProperty(RINGED, True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self._redraw)

    def set_empty(self, text: str) -> None:
        """Set the text that is shown, and spoken, while there are no values."""
        self._empty = text
        self._describe()
        self.update()

    def here(self) -> int:
        """Return the index of the current value, or -1."""
        return self._here

    def words(self) -> str:
        """Return the summary of the chart, or the text of an empty one."""
        return self._summary if self._count() else self._empty

    def place_of(self, number: int) -> QPointF:
        """Return the position of a value, which has to be visible, in the widget."""
        return self._to_widget(*self._place(number))

    def _draw_plot(self, pg: Any) -> None:
        """Call `_axis` and `_set_range`, then add the items."""
        raise NotImplementedError

    def _draw_current(self, pg: Any) -> None:
        """Mark the current value, with `_mark` and `_write`."""
        raise NotImplementedError

    # Values

    def _show(self, values: Sequence[Value], summary: str) -> None:
        """Show other values; `summary` is what a screen reader speaks of all of them."""
        self._values, self._summary = values, summary
        self._here = min(self._here, len(values) - 1)
        self._describe()
        self._redraw()

    def _count(self) -> int:
        return len(self._values)

    def _value_text(self, number: int) -> str:
        return self._values[number].text

    def _place(self, number: int) -> tuple[float, float]:
        return self._values[number].x, self._values[number].y

    def _number_at(self, place: QPointF) -> int:
        """Return the index of the last value that starts left of a position in the plot, or -1."""
        inside = self._area().left() <= place.x() < self._area().right()
        x = self._to_plot(place).x()
        return bisect_right(self._values, x, key=lambda each: each.start) - 1 if inside else -1

    def _tip(self, place: QPointF) -> str:
        number = self._number_at(place)
        return self._value_text(number) if number >= 0 else self.words()

    def _go(self, number: int) -> None:
        """Make a value the current one, and emit `pointed`."""
        if self._count():
            self._here = min(max(0, number), self._count() - 1)
            self._describe()
            self._draw_mark()
            self.pointed.emit(self._here)

    def _describe(self) -> None:
        current = [self._value_text(self._here)] if self._here >= 0 else []
        text = ". ".join((*current, self.words()))
        if text != self.accessibleDescription():
            self.setAccessibleDescription(text)

    # Drawing

    def _redraw(self) -> None:
        self._is_stale = True
        self._draw()

    def _draw(self) -> None:
        drawn = self._count() > 0 and self.isVisible()
        if self._plot is not None:
            self._plot.setVisible(drawn)
        self.update()
        if drawn:
            if self._is_stale:
                self._fill_plot()
            self._draw_mark()

    def _fill_plot(self) -> None:
        import pyqtgraph as pg

        self._is_stale = False
        self._plot = self._plot or self._make_plot(pg)
        self._plot.resize(self.size())
        self._plot.clear()
        self._clear(self._texts)
        self._draw_plot(pg)

    def _make_plot(self, pg: Any) -> Any:
        pg.setConfigOptions(antialias=True)
        plot = pg.PlotWidget(self, background=None)
        plot.setProperty("clear", True)
        # This widget handles the mouse and the keys.
        plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.hideButtons()
        plot.disableAutoRange()
        plot.hideAxis("left")
        plot.hideAxis("bottom")
        plot.lower()
        plot.show()
        return plot

    def _draw_mark(self) -> None:
        if not self._is_drawn():
            return
        self._clear(self._marks)
        if self._here >= 0:
            import pyqtgraph as pg

            self._added = self._marks
            self._draw_current(pg)
            self._added = self._texts

    def _is_drawn(self) -> bool:
        return self._plot is not None and self._plot.isVisible()

    def _clear(self, items: list[QGraphicsItem]) -> None:
        for item in items:
            item.scene().removeItem(item)
        items.clear()

    def _axis(
        self,
        side: str,
        size: float,
        text_of: Callable[[float], str],
        ticks: Sequence[float] | None = None,
        *,
        grid: bool = False,
    ) -> None:
        """Show an axis, `size` pixels wide or high; without `ticks`, pyqtgraph chooses them."""
        colours, axis = theme.current(), self._plot.getAxis(side)
        self._plot.showAxis(side)
        axis.setTickFont(self._font)
        axis.setPen(colours.line)
        axis.setTextPen(colours.quiet)
        axis.setStyle(tickLength=0 if grid else 4, tickTextOffset=4, maxTickLevel=0)
        axis.setGrid(255 if grid else False)
        axis.setZValue(-200)  # Its grid is behind the plot.
        (axis.setWidth if side in ("left", "right") else axis.setHeight)(size)
        axis.tickStrings = lambda values, _scale, _spacing: list(map(text_of, values))
        axis.setTicks(None if ticks is None else [[(each, text_of(each)) for each in ticks]])

    def _set_range(
        self, area: QRectF, margins: tuple[float, float, float, float], *, down: bool = False
    ) -> None:
        """Show an area of the plot's coordinates, inside margins; `down` inverts y.

        The margins, at the left, above, at the right and below, are around the axes.
        """
        layout, view = self._plot.plotItem.layout, self._plot.getViewBox()
        layout.setContentsMargins(*margins)
        layout.activate()
        view.invertY(down)
        view.setRange(area, padding=0)
        view.updateMatrix()

    def _to_widget(self, x: float, y: float) -> QPointF:
        return QPointF(self._plot.getViewBox().mapViewToScene(QPointF(x, y)))

    def _to_plot(self, place: QPointF) -> QPointF:
        return QPointF(self._plot.getViewBox().mapSceneToView(place))

    def _area(self) -> QRectF:
        """Return the area of the plot in the widget, without axes and margins; never empty."""
        view = self._plot.getViewBox()
        area = QRectF(view.mapRectToScene(view.boundingRect()))
        area.setSize(area.size().expandedTo(QSizeF(1, 1)))
        return area

    def _pen(self, colour: str, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
        """Return a pen of a width in the widget's pixels: the plot counts those of the screen."""
        pen = QPen(QColor(colour), width * self.devicePixelRatioF(), style)
        pen.setCosmetic(True)
        return pen

    def _mark(self, item: QGraphicsItem) -> None:
        """Add an item to the plot until another value is the current one."""
        # `ViewBox.addItem` would keep a reference.
        item.setParentItem(self._plot.getViewBox().childGroup)
        self._added.append(item)

    def _write(
        self,
        text: str,
        place: QPointF,
        colour: str,
        align: tuple[float, float] = (0.0, 0.5),
        *,
        room: float = 1e6,
        angle: float = 0.0,
        ground: str = "",
    ) -> QPolygonF:
        """Write a line of text at a position in the widget; return the area that it takes.

        `align` is the share of the text that is left of the position, and above it; text wider than
        `room` is elided.
        """
        shown = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        item = QGraphicsSimpleTextItem(shown, self._plot.plotItem)
        item.setFont(self._font)
        item.setBrush(QColor(colour))
        box = item.boundingRect()
        origin = QPointF(box.width() * align[0], box.height() * align[1])
        item.setTransformOriginPoint(origin)
        item.setRotation(angle)
        item.setPos(place - origin)
        item.setZValue(10)
        self._added.append(item)
        if ground:
            self._fill(QRectF(item.pos(), box.size()).adjusted(-2, 0, 2, 0), ground)
        return item.mapToParent(box)

    def _fill(self, area: QRectF, colour: str) -> None:
        """Fill a part of the widget, below the texts."""
        item = QGraphicsRectItem(area, self._plot.plotItem)
        item.setPen(Qt.PenStyle.NoPen)
        item.setBrush(QColor(colour))
        item.setZValue(9)
        self._added.append(item)

    # Qt

    def sizeHint(self) -> QSize:
        return self.SIZE

    def minimumSizeHint(self) -> QSize:
        return self.SMALLEST

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            tip = self._tip(QPointF(event.pos())) if self._is_drawn() else self._empty
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> object:
        # A menu or a tool tip that is opened by key appears at the current value.
        if query == Qt.InputMethodQuery.ImCursorRectangle and self._here >= 0 and self._is_drawn():
            return QRectF(self.place_of(self._here), QSizeF(1, 1)).toRect()
        return super().inputMethodQuery(query)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._is_drawn():
            number = self._number_at(event.position())
            if number >= 0:
                self._go(number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step, last = _MOVES.get(Qt.Key(event.key())), self._count() - 1
        if step is not None:
            self._go(last if self._here < 0 and step < 0 else self._here + step)
        elif event.key() == Qt.Key.Key_Home:
            self._go(0)
        elif event.key() == Qt.Key.Key_End:
            self._go(last)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._count():
            painter = QPainter(self)
            painter.setFont(self._font)
            painter.setPen(QColor(theme.current().quiet))
            centred = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 8, -16, -8), int(centred), self._empty)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._redraw()

    def showEvent(self, event: QShowEvent) -> None:
        self._draw()


class ZoomChart(Chart):
    """A chart that can be zoomed and panned.

    The wheel zooms around the mouse, ``+`` and ``-`` around the current value, ``0`` and a double
    click show all, a drag pans.
    """

    view_changed = Signal()  # Another part is visible.

    ZOOM_STEP = 1.25
    _DRAG_FROM = 3

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._whole = self._part = QRectF()
        self._least = QSizeF()
        self._pressed: QPointF | None = None
        self._dragged = False

    def _set_whole(self, whole: QRectF, least: QSizeF) -> None:
        """Show all of an area; `least` is the part that is visible at the largest zoom."""
        self._whole, self._part, self._least = whole, whole, least.boundedTo(whole.size())

    def zoom_by(self, factor: float, around: QPointF | None = None) -> None:
        """Zoom in, or out by a factor below 1, around a point of the plot or the current value."""
        part = self._part
        if not part.isEmpty():
            centre = QPointF(*self._place(self._here)) if self._here >= 0 else part.center()
            x, y = (around or centre).toTuple()
            size = (part.size() / factor).boundedTo(self._whole.size()).expandedTo(self._least)
            left = x - (x - part.left()) / part.width() * size.width()
            top = y - (y - part.top()) / part.height() * size.height()
            self._show_part(QRectF(QPointF(left, top), size))

    def show_all(self) -> None:
        self._show_part(self._whole)

    def _reveal(self, area: QRectF) -> None:
        """Pan until an area is in view, or the start of one that is larger."""
        part = self._part
        left = max(min(part.left(), area.left()), area.right() - part.width())
        top = max(min(part.top(), area.top()), area.bottom() - part.height())
        start = QPointF(min(left, area.left()), min(top, area.top()))
        self._show_part(QRectF(start, part.size()))

    def _show_part(self, part: QRectF) -> None:
        whole = self._whole
        left = min(max(whole.left(), part.left()), whole.right() - part.width())
        top = min(max(whole.top(), part.top()), whole.bottom() - part.height())
        part = QRectF(QPointF(left, top), part.size())
        if part != self._part:
            self._part = part
            self._redraw()
            self.view_changed.emit()

    # Qt

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = (event.angleDelta().y() or event.angleDelta().x()) / 120
        if steps and self._is_drawn():
            self.zoom_by(self.ZOOM_STEP**steps, self._to_plot(event.position()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None and self._is_drawn():
            gone = self._pressed - event.position()
            if self._dragged or gone.manhattanLength() > self._DRAG_FROM:
                self._dragged, self._pressed = True, event.position()
                step = self._to_plot(gone) - self._to_plot(QPointF(0, 0))
                self._show_part(self._part.translated(step))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed = self._pressed, None
        if pressed is not None and not self._dragged:
            super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.text():
            case "+" | "=":
                self.zoom_by(self.ZOOM_STEP)
            case "-":
                self.zoom_by(1 / self.ZOOM_STEP)
            case "0":
                self.show_all()
            case _:
                super().keyPressEvent(event)
