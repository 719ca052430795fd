"""A heat map: a matrix as colours, with a bar that says in numbers what they mean."""

from math import isfinite

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.focus_ring import came_by_keyboard
from lowerscope.app.widgets.heat_piece import STEPS, HeatPiece, HeatScale, number_text
from lowerscope.app.widgets.heat_view import HeatView
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

ZOOM_STEP = 1.25
FAR = 10
"""Elements that the cursor goes on by with Ctrl."""

_ROOM = 10.0
_BELOW = 22.0
_BAR, _BAR_GAP, _BAR_ROOM = 12.0, 14.0, 96.0
_BAR_HEIGHT = 220.0
_MARKED_FROM = 7.0
"""Pixels of a cell from which on it is marked where it is out of what is allowed."""
_FONT_PIXELS = 11.5

_MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class HeatMap(QWidget):
    """A matrix, of which a piece at a time is given in cells.

    The wheel and ``+``, ``-``, ``0`` zoom, a drag moves, the arrow keys move a cursor.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.

    Signals
    -------
    pointed(int, int)
        The mouse or the cursor is at another element: its row and column.
    view_changed()
        Another part of the matrix is shown: see `shown_range`.
    """

    pointed = Signal(int, int)
    view_changed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._view = HeatView()
        self._piece: HeatPiece | None = None
        self._scale = HeatScale(0.0, 1.0)
        self._image = QImage()
        self._cursor = (0, 0)
        self._hovered: tuple[int, int] | None = None
        self._drag: QPointF | None = None
        self._has_moved = False
        self._ring = False
        self._words = ""
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self._take_colours)

    def set_extent(self, rows: int, columns: int) -> None:
        """Say how large the matrix is; another one is shown as a whole, and nothing of it yet."""
        if self._view.set_extent(rows, columns):
            self._cursor, self._hovered = (0, 0), None
            self.clear()

    def extent(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self._view.rows, self._view.columns

    def set_piece(self, piece: HeatPiece, scale: HeatScale, words: str = "") -> None:
        """Show a piece of the matrix in the colours of a scale, with a line below it."""
        self._piece, self._scale, self._words = piece, scale, words
        width = piece.width + -piece.width % 4
        rows = []
        for i in range(piece.height):
            values = piece.values[i * piece.width : (i + 1) * piece.width]
            rows.append(bytes(map(scale.step, values)).ljust(width, b"\0"))
        picture = QImage(
            b"".join(rows), piece.width, piece.height, width, QImage.Format.Format_Indexed8
        )
        self._image = picture.copy()
        self._take_colours()

    def clear(self) -> None:
        """Show nothing until there is a piece."""
        self._piece, self._image = None, QImage()
        self.update()

    def piece(self) -> HeatPiece | None:
        """What is shown."""
        return self._piece

    def scale(self) -> HeatScale:
        """What the colours mean."""
        return self._scale

    def shown_range(self) -> tuple[int, int, int, int]:
        """The first row and column that are in view, and how many there are of each."""
        return self._view.range()

    def at(self) -> tuple[int, int]:
        """Row and column that the mouse is at, or else the cursor."""
        return self._cursor if self._hovered is None else self._hovered

    def set_cursor(self, row: int, column: int) -> None:
        """Put the cursor on an element, and have it in view."""
        self._hovered = None
        row = min(max(0, row), self._view.rows - 1)
        column = min(max(0, column), self._view.columns - 1)
        self._cursor = (row, column)
        before = self._view.range()
        self._view.reveal(row, column)
        if self._view.range() != before:
            self.view_changed.emit()
        self.pointed.emit(row, column)
        self.update()

    def zoom_by(self, factor: float, around: QPointF | None = None) -> None:
        """Show fewer elements, or more, around a place of the matrix, or else the cursor."""
        row, column = self._cursor
        self._view.zoom(factor, around or QPointF(column + 0.5, row + 0.5))
        self.view_changed.emit()
        self.update()

    def show_all(self) -> None:
        """Show the whole matrix."""
        self._view.show_all()
        self.view_changed.emit()
        self.update()

    def say(self, words: str) -> None:
        """Tell a screen reader what is at the cursor."""
        self.setAccessibleDescription(words)

    def element_rect(self, row: int, column: int) -> QRectF:
        """Where an element stands in the widget."""
        room = self._room()
        width, height = self._view.element_size(room)
        part = self._view.part
        left = room.left() + (column - part.left()) * width
        return QRectF(left, room.top() + (row - part.top()) * height, width, height)

    def element_at(self, place: QPointF) -> tuple[int, int] | None:
        """Return row and column of the element at a place in the widget."""
        if self._view.is_empty or not self._picture().contains(place):
            return None
        at = self._matrix_at(place)
        row, column = min(int(at.y()), self._view.rows - 1), int(at.x())
        return row, min(column, self._view.columns - 1)

    def _matrix_at(self, place: QPointF) -> QPointF:
        room, part = self._room(), self._view.part
        width, height = self._view.element_size(room)
        across = (place.x() - room.left()) / width
        return QPointF(part.left() + across, part.top() + (place.y() - room.top()) / height)

    def _room(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_ROOM, _ROOM, -_BAR_ROOM, -_BELOW)

    def _picture(self) -> QRectF:
        room = self._room()
        width, height = self._view.element_size(room)
        part = self._view.part
        return QRectF(room.left(), room.top(), part.width() * width, part.height() * height)

    def _take_colours(self) -> None:
        if not self._image.isNull():
            colours = self._scale.colours(theme.current())
            self._image.setColorTable([*colours, *[0] * (256 - len(colours))])
        self.update()

    # Painting

    def _paint_marks(self, painter: QPainter, piece: HeatPiece) -> None:
        """Cross out the cells that are out of what is allowed, as soon as there is room for it."""
        width, height = self._view.element_size(self._room())
        across = width * (piece.column_edges[-1] - piece.column_edges[0]) / piece.width
        down = height * (piece.row_edges[-1] - piece.row_edges[0]) / piece.height
        if not piece.marked or min(across, down) < _MARKED_FROM:
            return
        lines = []
        reach = min(across, down) / 5
        for place in (place for place, mark in enumerate(piece.marked) if mark):
            i, j = divmod(place, piece.width)
            first = self.element_rect(piece.row_edges[i], piece.column_edges[j]).topLeft()
            centre = first + QPointF(across / 2, down / 2)
            one, other = QPointF(reach, reach), QPointF(reach, -reach)
            lines += [QLineF(centre - one, centre + one), QLineF(centre - other, centre + other)]
        # On any ground: a dark line in a light one.
        for width_of_pen, colour in ((3.0, theme.current().panel), (1.25, theme.current().text)):
            painter.setPen(QPen(QColor(colour), width_of_pen))
            painter.drawLines(lines)

    def _paint_bar(self, painter: QPainter) -> None:
        colours, metrics = theme.current(), TextMetrics(self._font)
        picture, room = self._picture(), self._room()
        left = picture.right() + _BAR_GAP
        bar = QRectF(left, room.top(), _BAR, min(room.height(), _BAR_HEIGHT))
        shades = self._scale.colours(colours)[1:]
        for step, shade in enumerate(shades):
            top = bar.bottom() - (step + 1) * bar.height() / STEPS
            painter.fillRect(QRectF(left, top, _BAR, bar.height() / STEPS + 1), QColor(shade))
        painter.setPen(QColor(colours.line))
        painter.drawRect(bar)
        painter.setFont(self._font)
        painter.setPen(QColor(colours.quiet))
        high, low = self._scale.high, self._scale.low
        for share in (1.0, 0.5, 0.0):
            middle = bar.bottom() - share * bar.height()
            base = min(
                max(middle + metrics.ascent() / 2 - 1, bar.top() + metrics.ascent() - 2),
                bar.bottom() + 1,
            )
            painter.drawText(
                QPointF(bar.right() + 6, base), number_text(low + (high - low) * share)
            )
        if self._piece is not None and not all(map(isfinite, self._piece.values)):
            base = bar.bottom() + 16
            painter.fillRect(QRectF(left, base - 10, _BAR, 10), QColor(colours.wrong))
            painter.drawText(QPointF(bar.right() + 6, base), self.tr("not finite"))

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(360, 240)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 120)

    def paintEvent(self, event: QPaintEvent) -> None:
        piece = self._piece
        if piece is None or self._view.is_empty:
            return
        colours = theme.current()
        painter = QPainter(self)
        picture = self._picture()
        painter.save()
        painter.setClipRect(picture)
        first = self.element_rect(piece.row_edges[0], piece.column_edges[0]).topLeft()
        end = self.element_rect(piece.row_edges[-1], piece.column_edges[-1]).topLeft()
        painter.drawImage(QRectF(first, end), self._image)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_marks(painter, piece)
        painter.restore()
        painter.setPen(QColor(colours.line))
        painter.drawRect(picture.adjusted(-1, -1, 0, 0))
        cursor = self.element_rect(*self.at())
        cursor = cursor.adjusted(-1, -1, 1, 1) if cursor.width() < 6 else cursor
        for grow, colour in ((1.0, colours.panel), (0.0, colours.accent)):
            painter.setPen(QPen(QColor(colour), 1.5))
            painter.drawRect(cursor.adjusted(-grow, -grow, grow, grow))
        self._paint_bar(painter)
        painter.setPen(QColor(colours.quiet))
        base = self.height() - 7
        words = TextMetrics(self._font).elidedText(
            self._words, Qt.TextElideMode.ElideRight, self.width() - 2 * _ROOM
        )
        painter.drawText(QPointF(_ROOM, base), words)
        if self._ring and self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag, self._has_moved = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        if self._drag is not None and not self._view.is_empty and not self._view.is_whole:
            width, height = self._view.element_size(self._room())
            gone = self._drag - place
            if self._has_moved or gone.manhattanLength() > 3:
                self._has_moved, self._drag = True, place
                self._view.pan(gone.x() / width, gone.y() / height)
                self.view_changed.emit()
                self.update()
            return
        hovered = self.element_at(place)
        if hovered != self._hovered:
            self._hovered = hovered
            self.pointed.emit(*self.at())
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        drag, self._drag = self._drag, None
        at = self.element_at(event.position())
        if drag is not None and not self._has_moved and at is not None:
            self.set_cursor(*at)

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() / 120
        if steps and self.element_at(event.position()) is not None:
            self.zoom_by(ZOOM_STEP**steps, self._matrix_at(event.position()))
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        if self._hovered is not None:
            self._hovered = None
            self.pointed.emit(*self._cursor)
            self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event)
        super().focusInEvent(event)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = _MOVES.get(Qt.Key(event.key()))
        row, column = self._cursor
        if self._view.is_empty:
            super().keyPressEvent(event)
        elif move is not None:
            far = FAR if event.modifiers() & Qt.KeyboardModifier.ControlModifier else 1
            self.set_cursor(row + far * move[0], column + far * move[1])
        elif event.key() == Qt.Key.Key_Home:
            self.set_cursor(row, 0)
        elif event.key() == Qt.Key.Key_End:
            self.set_cursor(row, self._view.columns - 1)
        elif event.text() in ("+", "="):
            self.zoom_by(ZOOM_STEP)
        elif event.text() == "-":
            self.zoom_by(1 / ZOOM_STEP)
        elif event.text() == "0":
            self.show_all()
        else:
            super().keyPressEvent(event)
