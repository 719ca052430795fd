"""A list of steps in sections: rows of two lines, folded runs, a mark, and dragging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleTableModelChangeEvent,
    QColor,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QStyleOptionViewItem,
    QTreeWidgetItem,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.code.code_editor import paint_chevron
from lowerscope.app.kit.tables.data_table import Index, WholeWords, draw_line
from lowerscope.app.kit.tables.trees import ROW, PaintedTree
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _

HEIGHTS = {"section": 26, "step": 36, "fold": 22}
"""Height of a row of each kind, in pixels."""

ScrollHint = QAbstractItemView.ScrollHint
KEYS = {
    Qt.Key.Key_Space: "play",
    Qt.Key.Key_Slash: "filter",
    Qt.Key.Key_Home: "first",
    Qt.Key.Key_End: "last",
}
"""Commands of keys."""

_PAD = 10.0
_NUMBER = 26.0
"""Right end of the numbers of steps."""

_TITLE = 34.0
_INDENT = 14.0
_BOX = 14.0
_BAR = 42.0
"""Longest bar of a time."""

_TIME = 58.0
_SMALL = 11.5
NARROW = 120
"""Width below which rows show their numbers only."""


@dataclass(frozen=True)
class StepRow:
    """A row of a list of steps."""

    key: str  # Unique among the rows.
    number: str  # Its number, or those of the steps that a fold stands for.
    title: str
    kind: str = "step"  # ``"section"``, ``"step"``, or ``"fold"`` for several steps in one row.
    facts: tuple[tuple[str, str], ...] = ()  # The second line: texts with their roles.
    note: str = ""  # Warning or options, behind the facts.
    time: str = ""  # Text at the right edge.
    share: float = 0.0  # Length of the time's bar, from 0 to 1.
    parent: str = ""  # Key of the parent row; empty for none.
    unfolded: bool = False  # Whether its child rows are shown.
    on: bool | None = None  # Whether it is switched on; ``None`` if it cannot be switched.
    value: int = 0  # A number for the caller's own use.
    place: int = -1  # Its place among the rows that can be moved, from 0; -1 for one that cannot.
    state: str = ""  # ``""``, ``"wrong"`` or ``"quiet"``.
    unsure: bool = False  # Whether the note is a warning.
    is_break: bool = False  # Whether playing stops there.
    pinned: bool = False  # Whether it is one side of the comparison.
    tooltip: str = ""  # More about it.

    @property
    def words(self) -> str:
        """The texts of the second line."""
        return " ".join(text for text, _ in self.facts)


class StepList(PaintedTree):
    """A list of steps that can be folded, switched off, and reordered by dragging.

    ``row_activated`` is emitted for a click and for the arrow keys as well: the current row is the
    step that is shown.
    """

    switched = Signal(str)  # The box of a row was clicked, or Shift+Space was pressed on it.
    key_pressed = Signal(str)  # A key of `KEYS` was pressed; the argument is its command.
    moved = Signal(int, int)  # A row was dragged: its place, and its new place.
    removed = Signal(str)  # Delete was pressed on a row.
    folded = Signal(str, bool)  # A row was folded or unfolded.
    # The context menu of a row was requested, at a position on the screen.
    menu_wanted = Signal(str, QPoint)

    def __init__(self, name: str) -> None:
        self._pinned: Sequence[str] = ()
        self._rows: list[StepRow] = []
        super().__init__(name, ("",))
        self._marked = self._marked_last = ""  # The marked row, and the last that was marked.
        self._pressed: tuple[StepRow, QPoint] | None = None
        self._target = -1
        self._parents: set[str] = set()
        self.setHeaderHidden(True)
        self.header().setStretchLastSection(True)
        self.setIndentation(0)
        self.setRootIsDecorated(False)
        self.setExpandsOnDoubleClick(False)
        self.setUniformRowHeights(False)
        self.setItemDelegate(_StepDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)

    def set_pinned(self, keys: Sequence[str]) -> None:
        """Set the sections whose headers stay at the bottom while their places are below it."""
        self._pinned = keys

    def stuck(self) -> dict[str, QRectF]:
        """Return the keys of the headers that are at the bottom, with their areas."""
        bottom, found = self.viewport().height(), dict[str, QRectF]()
        for key in reversed(self._pinned):
            if key in self._items:
                bottom -= HEIGHTS["section"]
                if self.row_rect(key).top() > bottom:
                    width = self.viewport().width()
                    found[key] = QRectF(0, bottom, width, HEIGHTS["section"])
        return found

    def has_room_below(self, key: str) -> bool:
        """Return whether rows below this one are visible."""
        stuck = (area.top() for area in self.stuck().values())
        bottom = min(stuck, default=self.viewport().height())
        return self.row_rect(key).bottom() + 2 * HEIGHTS["step"] <= bottom

    def _repaint_stuck(self, moved: int = 0) -> None:
        """Repaint the places of the headers at the bottom, and those that they were moved to."""
        area = self.viewport().rect()
        area.setTop(area.bottom() - len(self._pinned) * HEIGHTS["section"])
        if self._pinned:
            self.viewport().update(area)
            self.viewport().update(area.translated(0, moved))

    def reveal(self, key: str) -> None:
        """Scroll a row to the top, as far as there are rows below it."""
        self.scrollTo(self.indexFromItem(self._items[key]), ScrollHint.PositionAtTop)

    def set_rows(self, rows: Sequence[StepRow]) -> None:
        """Set the rows; the selected one stays selected, if it still exists with its title."""
        before, self._rows = self._rows, list(rows)
        if before == self._rows:
            return
        self.blockSignals(True)
        chosen = self.row(self.current_key())
        if [(row.key, row.parent) for row in before] == [(row.key, row.parent) for row in rows]:
            for old, row in zip(before, rows, strict=True):
                if row != old:
                    self._show_row(row)
            # Qt repaints the places of the rows, and not the headers at the bottom.
            self._repaint_stuck()
            # Qt tells a screen reader of rows that were added, and not of those that were folded.
            reset = QAccessibleTableModelChangeEvent.ModelChangeType.ModelReset
            QAccessible.updateAccessibility(QAccessibleTableModelChangeEvent(self, reset))
        else:
            if _places(before) != _places(rows):
                # The dragged row may be gone, or elsewhere.
                self._cancel_drag()
            top = self.verticalScrollBar().value()
            self._clear_items()
            self._parents = {row.parent for row in rows}
            for row in rows:
                self._add_item(row, ())
            for row in rows:
                self._show_row(row)
            if chosen is not None and self._titled(chosen):
                self.select(chosen.key)
            self.verticalScrollBar().setValue(top)
        if chosen is None or not self._titled(chosen):
            # Qt would select the first row on focus, which is no step.
            self.setCurrentIndex(QModelIndex())
        self.blockSignals(False)
        self.empty.setVisible(not rows)

    def _titled(self, before: StepRow) -> bool:
        """Return whether a row is still there with its title."""
        row = self.row(before.key)
        return row is not None and row.title == before.title

    def _show_row(self, row: StepRow) -> None:
        item = self._items[row.key]
        item.setData(0, ROW, row)
        item.setText(0, row.title)
        item.setToolTip(0, row.tooltip)
        off = _("switched off") if row.on is False else ""
        said = (row.number, row.title, row.words, row.note, off, row.time)
        spoken = _(", ").join(each for each in said if each)
        item.setData(0, Qt.ItemDataRole.AccessibleTextRole, spoken)
        item.setExpanded(row.unfolded)

    def rows(self) -> Sequence[StepRow]:
        """Return all rows, in order."""
        return self._rows

    def row(self, key: str) -> StepRow | None:
        """Return the row with this key."""
        item = self._items.get(key)
        return None if item is None else item.data(0, ROW)

    def select(self, key: str) -> None:
        """Select a row, if it exists, and unfold those that it is in."""
        if key not in self._items:
            return
        self.setCurrentItem(self._items[key])
        around = self.row(key)
        while around is not None and (around := self.row(around.parent)) is not None:
            if not around.unfolded:
                self._rows[self._rows.index(around)] = unfolded = replace(around, unfolded=True)
                self._show_row(unfolded)

    def set_marked(self, key: str, *, select: bool = True) -> None:
        """Mark the row of the current step; none for ``""``.

        Args:
            select: Whether to select it as well, unless another row than the last one is selected.
        """
        if key != self._marked:
            # No row is marked between two steps of different sections.
            follows = select and self.current_key() in ("", self._marked_last)
            before, self._marked = self._marked, key
            self._marked_last = key or self._marked_last
            if key in self._items:
                if follows:
                    self.setCurrentItem(self._items[key])
                self.scrollTo(self.indexFromItem(self._items[key]))
            for each in {before, key} & self._items.keys():
                self.viewport().update(self.row_rect(each).toAlignedRect())

    def marked(self) -> str:
        """Return key of the marked row, or ``""``."""
        return self._marked

    def box_rect(self, key: str) -> QRectF:
        """Return the area of a row's check box in the viewport."""
        return box_of(self.row_rect(key))

    def has_rows(self, key: str) -> bool:
        """Return whether a row has others inside of it."""
        return key in self._parents

    def toggle_fold(self, key: str) -> None:
        """Fold or unfold a row."""
        row = self.row(key)
        if row is not None:
            self.folded.emit(key, not row.unfolded)

    def depth_of(self, row: StepRow) -> int:
        """Return how many steps a row is inside of."""
        depth, above = 0, self.row(row.parent)
        while above is not None and above.kind == "step":
            depth, above = depth + 1, self.row(above.parent)
        return depth

    def _want_menu(self, place: QPoint) -> None:
        item = self.itemAt(place)
        if item is not None:
            self.setCurrentItem(item)
            self.menu_wanted.emit(item.data(0, ROW).key, self.viewport().mapToGlobal(place))

    # Dragging

    def _movable(self) -> Iterator[QTreeWidgetItem]:
        return (
            item
            for item in self._items.values()
            if item.data(0, ROW).place >= 0 and self.visualItemRect(item).isValid()
        )

    def _gaps(self) -> list[tuple[int, float]]:
        """Return the places where a row can be dropped, with their heights."""
        gaps: list[tuple[int, float]] = []
        for item in self._movable():
            gaps.append((item.data(0, ROW).place, self.visualItemRect(item).top()))
            last: QTreeWidgetItem | None = item
            while last is not None and last.isExpanded() and last.childCount():
                last = last.child(last.childCount() - 1)
            end = float(self.visualItemRect(last or item).bottom() + 1)
        return [*gaps, (gaps[-1][0] + 1, end)] if gaps else []

    def _drag_to(self, y: float) -> None:
        target = min(self._gaps(), key=lambda gap: abs(gap[1] - y))[0]
        if target != self._target:
            self._target = target
            self.viewport().update()

    def _drop(self) -> None:
        assert self._pressed is not None
        place, target = self._pressed[0].place, self._target
        self._cancel_drag()
        if target >= 0 and target not in (place, place + 1):
            self.moved.emit(place, target if target < place else target - 1)

    def _cancel_drag(self) -> None:
        self._target, self._pressed = -1, None
        self.viewport().unsetCursor()
        self.viewport().update()

    def _is_on_box(self, row: StepRow, place: QPointF) -> bool:
        if row.on is None or self.width() < NARROW:
            return False
        return self.box_rect(row.key).adjusted(-6, -8, 6, 8).contains(place)

    def _is_on_chevron(self, row: StepRow, place: QPointF) -> bool:
        if row.kind != "step" or not self.has_rows(row.key):
            return False
        return chevron_of(self.row_rect(row.key)).contains(place)

    # Painting

    def paint_ground(self, painter: QPainter, area: QRectF, item: QTreeWidgetItem) -> None:
        """Paint the background of a row, and the line below it."""
        colours = theme.current()
        row: StepRow = item.data(0, ROW)
        ground = colours.ground if row.kind == "section" else colours.panel
        if item is self.hovered() or item.isSelected():
            ground = colours.hover
        if row.key == self._marked:
            ground = colours.accent_ground
        painter.fillRect(area, QColor(ground))
        line = QRectF(area.left(), area.bottom() - 1, area.width(), 1)
        painter.fillRect(line, QColor(colours.line))

    # Qt's own

    def mousePressEvent(self, event: QMouseEvent) -> None:
        item = self.itemAt(event.position().toPoint())
        row: StepRow | None = None if item is None else item.data(0, ROW)
        left = event.button() == Qt.MouseButton.LeftButton
        if left and row is not None:
            if self._is_on_box(row, event.position()):
                self.select(row.key)
                self.switched.emit(row.key)
                return
            if row.unfolded and row.key in self.stuck():
                self.reveal(row.key)
                return
            if row.kind != "step" or self._is_on_chevron(row, event.position()):
                self.toggle_fold(row.key)
                return
        super().mousePressEvent(event)
        if left and row is not None:
            self._pressed = (row, event.position().toPoint())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        pressed = self._pressed
        if event.buttons() & Qt.MouseButton.LeftButton and pressed is not None:
            far = (event.position().toPoint() - pressed[1]).manhattanLength()
            is_far = self._target >= 0 or far >= QApplication.startDragDistance()
            if is_far and pressed[0].place >= 0:
                self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
                self._drag_to(event.position().y())
        else:
            super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        pressed = self._pressed
        if pressed is not None:
            if self._target < 0:
                self._cancel_drag()
                self.row_activated.emit(pressed[0].key)
            else:
                self._drop()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        # The second press is one like the first.
        self.mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.row(self.current_key())
        key = event.key()
        shifted = bool(event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier)
        if key == Qt.Key.Key_Escape and self._target >= 0:
            self._cancel_drag()
        elif row is not None and key == Qt.Key.Key_Space and shifted and row.on is not None:
            self.switched.emit(row.key)
        elif key in KEYS and not shifted:
            self.key_pressed.emit(KEYS[Qt.Key(key)])
        elif row is not None and key == Qt.Key.Key_Delete and row.place >= 0:
            self.removed.emit(row.key)
        elif row is not None and key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            if self.has_rows(row.key) or row.kind != "step":
                self.folded.emit(row.key, key == Qt.Key.Key_Right)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            super().keyPressEvent(event)
            now = self.row(self.current_key())
            if now is not None and now is not row and now.kind == "step":
                self.row_activated.emit(now.key)
        else:
            super().keyPressEvent(event)

    def drawBranches(self, painter: QPainter, rect: QRect, index: Index) -> None:
        # Rows are painted whole.
        pass

    def indexAt(self, point: QPoint) -> QModelIndex:
        for key, area in self.stuck().items():
            if area.contains(QPointF(point)):
                return self.indexFromItem(self._items[key])
        return super().indexAt(point)

    def scrollTo(self, index: Index, hint: ScrollHint = ScrollHint.EnsureVisible) -> None:
        super().scrollTo(index, hint)
        stuck = self.stuck()
        if stuck and self.row_of(index).key not in stuck:
            top = min(area.top() for area in stuck.values())
            hidden = round(self.visualRect(index).bottom() + 1 - top)
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() + max(0, hidden))

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        super().scrollContentsBy(dx, dy)
        # Qt moves what is painted, with the headers at the bottom.
        self._repaint_stuck(dy)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.doItemsLayout()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        for key, area in self.stuck().items():
            item = self._items[key]
            self.paint_ground(painter, area, item)
            paint_section(painter, area, item.data(0, ROW))
            painter.fillRect(QRectF(0, area.top() - 1, area.width(), 1), theme.current().line)
        if self._target >= 0:
            y = next(height for place, height in self._gaps() if place == self._target)
            painter.setPen(QPen(QColor(theme.current().accent), 2))
            painter.drawLine(QPointF(8, y), QPointF(self.viewport().width() - 8, y))


def _places(rows: Sequence[StepRow]) -> list[tuple[str, int]]:
    """Return the rows that can be moved, and their places."""
    return [(row.key, row.place) for row in rows if row.place >= 0]


def paint_section(painter: QPainter, area: QRectF, row: StepRow) -> None:
    """Paint the header of a section: its title, and the number of its steps; or its initial."""
    colours, narrow = theme.current(), area.width() < NARROW
    paint_chevron(painter, QPointF(_PAD + 4, area.center().y()), not row.unfolded)
    bold = ui_font(weight=QFont.Weight.DemiBold)
    room = area.adjusted(24, 0, -_PAD, 0)
    title = row.title[:1] if narrow else row.title
    room.setLeft(draw_line(painter, room, title, bold, colours.text) + 12)
    if not narrow:
        draw_line(painter, room, row.words, ui_font(12, tabular=True), colours.quiet, right=True)


def box_of(row: QRectF) -> QRectF:
    """Return the area of the check box in a row."""
    return QRectF(row.left() + _PAD, row.center().y() - _BOX / 2, _BOX, _BOX)


def chevron_of(row: QRectF) -> QRectF:
    """Return the area of the chevron of a step with others inside."""
    return QRectF(row.right() - 20, row.top(), 20, row.height() / 2 + 2)


class _StepDelegate(WholeWords):
    """Delegate that paints a row."""

    def __init__(self, steps: StepList) -> None:
        super().__init__(steps)
        self._steps = steps

    def cut_words(self, option: QStyleOptionViewItem, index: Index) -> str:
        row: StepRow = self._steps.row_of(index)
        room = option.rect.width() - _TITLE - _TIME - _PAD
        return self.cut_line(row.title, "", ui_font(weight=QFont.Weight.DemiBold), room)

    # Qt

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(40, HEIGHTS[self._steps.row_of(index).kind])

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: StepRow = self._steps.row_of(index)
        item = self._steps.itemFromIndex(index)
        # A column has a least width.
        area = QRectF(option.rect.intersected(self._steps.viewport().rect()))
        area.setTop(option.rect.top())
        area.setHeight(option.rect.height())
        self._steps.paint_ground(painter, area, item)
        if row.kind == "section":
            paint_section(painter, area, row)
        elif row.kind == "fold":
            self._paint_fold(painter, area, row)
        else:
            self._paint_step(painter, area, row, hovered=item is self._steps.hovered())

    def _paint_fold(self, painter: QPainter, area: QRectF, row: StepRow) -> None:
        colours = theme.current()
        narrow = area.width() < NARROW
        if not narrow:
            paint_chevron(painter, QPointF(_PAD + 4, area.center().y()), not row.unfolded)
        words = row.number if narrow else f"{row.number}  {row.title}"
        room = area.adjusted(6, 0, 0, 0) if narrow else area.adjusted(24, 0, -_PAD, 0)
        draw_line(painter, room, words, ui_font(12, tabular=True), colours.faint)

    def _paint_step(self, painter: QPainter, area: QRectF, row: StepRow, *, hovered: bool) -> None:
        colours = theme.current()
        marked = row.key == self._steps.marked()
        if marked:
            painter.fillRect(QRectF(0, area.top(), 3, area.height() - 1), QColor(colours.accent))
        if row.is_break:
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.stop))
            painter.drawEllipse(QPointF(6.5, area.top() + 11), 3, 3)
            painter.restore()
        if area.width() < NARROW:
            weight = QFont.Weight.DemiBold if marked else QFont.Weight.Normal
            font, ink = ui_font(weight=weight, tabular=True), self._ink(row, marked=marked)
            draw_line(painter, area.adjusted(0, 0, -16, 0), row.number, font, ink, right=True)
            return
        shift = _INDENT * self._steps.depth_of(row)
        upper = QRectF(area.left() + shift, area.top() + 2, area.width() - shift, 18)
        lower = QRectF(upper.left(), area.top() + 18, upper.width(), 15)
        if row.on is not None and (hovered or not row.on):
            self._paint_box(painter, box_of(area), row.on, over=hovered)
        else:
            number = QRectF(0, upper.top(), _NUMBER + 2 * shift, upper.height())
            ink = colours.accent if marked else colours.quiet
            draw_line(painter, number, row.number, ui_font(_SMALL, tabular=True), ink, right=True)
        room = upper.adjusted(_TITLE + shift, 0, -_PAD, 0)
        right = room.adjusted(0, 0, 0, 0)
        if self._steps.has_rows(row.key):
            paint_chevron(painter, QPointF(area.right() - 10, upper.center().y()), not row.unfolded)
            right.setRight(area.right() - 20)
        weight = QFont.Weight.DemiBold if marked else QFont.Weight.Normal
        times = ui_font(12, tabular=True)
        draw_line(painter, right, row.time, times, colours.quiet, right=True)
        width = TextMetrics(times).horizontalAdvance(row.time) + 8 if row.time else 0
        room.setRight(right.right() - width)
        draw_line(painter, room, row.title, ui_font(weight=weight), self._ink(row, marked=marked))
        self._paint_facts(painter, lower.adjusted(_TITLE + shift, 0, -_PAD - _BAR - 6, 0), row)
        if row.share > 0:
            length = max(2.0, _BAR * row.share)
            bar = QRectF(area.right() - _PAD - length, lower.center().y() - 2, length, 4)
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.accent if marked else colours.node_line))
            painter.drawRoundedRect(bar, 2, 2)
            painter.restore()

    def _paint_facts(self, painter: QPainter, room: QRectF, row: StepRow) -> None:
        colours = theme.current()
        inks = {"right": colours.right, "wrong": colours.wrong, "unsure": colours.unsure}
        parts = list(row.facts)
        if row.pinned:
            parts.insert(0, (_("pinned"), "unsure"))
        if row.note:
            parts.append((row.note, "unsure" if row.unsure else ""))
        font = ui_font(_SMALL, tabular=True)
        for text, role in parts:
            if room.width() < 8:
                return
            ink = inks.get(role, colours.quiet)
            room.setLeft(draw_line(painter, room, text, font, ink) + 5)

    def _paint_box(self, painter: QPainter, box: QRectF, on: bool, *, over: bool) -> None:
        colours = theme.current()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours.accent if on or over else colours.faint), 1))
        painter.setBrush(QColor(colours.accent if on else colours.panel))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        if on:
            pen = QPen(QColor(colours.on_accent), 1.6)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            corner = box.topLeft()
            points = [corner + QPointF(*each) for each in ((3.6, 7.2), (6.0, 9.6), (10.4, 4.6))]
            painter.drawPolyline(points)
        painter.restore()

    def _ink(self, row: StepRow, *, marked: bool) -> str:
        colours = theme.current()
        if row.state:
            return colours.wrong if row.state == "wrong" else colours.quiet
        return colours.accent if marked else colours.text
