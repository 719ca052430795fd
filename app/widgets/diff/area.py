"""The text part of the diff view: rows of two columns, or of one; only what is in view is drawn."""

from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.diff.document import DiffDocument
from lowerscope.app.widgets.diff.keys import press
from lowerscope.app.widgets.diff.paint import DiffPainter, Place
from lowerscope.app.widgets.diff.rows import CHANGES, DiffPart, Row, partners
from lowerscope.app.widgets.diff.selection import DiffSelection, Side, Spot
from lowerscope.app.widgets.diff.strip import DiffStrip
from lowerscope.app.widgets.typefaces import code_line

Words = Callable[[str, str], tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]]
"""The columns of what changed in an old and a new line."""


class DiffArea(QAbstractScrollArea):
    """The rows.

    Parameters
    ----------
    words : callable
        Says what changed inside of a line.

    Attributes
    ----------
    document : DiffDocument
        The rows, in view or not.
    selection : DiffSelection
        What is selected.

    Signals
    -------
    find_wanted(), next_wanted(), previous_wanted(), escape_pressed()
        Ctrl+F, F3, Shift+F3 and Escape.
    menu_wanted(QPoint)
        The context menu is asked for, at a place on the screen.
    moved()
        The current row is another one.
    """

    find_wanted = Signal()
    next_wanted = Signal()
    previous_wanted = Signal()
    escape_pressed = Signal()
    menu_wanted = Signal(object)
    moved = Signal()

    def __init__(self, words: Words, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._current = 0
        self._pressed: Spot | None = None
        self.document = DiffDocument()
        self.selection = DiffSelection()
        self._painter = DiffPainter(words)
        self.strip = DiffStrip(self)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.setViewportMargins(0, 0, DiffStrip.WIDTH, 0)
        self.strip.chosen.connect(self._scroll_to_share)
        self.verticalScrollBar().valueChanged.connect(self._show_place)
        theme.notifier().changed.connect(self._use_theme)

    # What is shown

    def set_parts(self, parts: Sequence[DiffPart], language: str) -> None:
        """Show another difference, from its top."""
        self.document.set_parts(parts)
        self._painter.set_parts(parts, language)
        self._current = 0
        self._show_rows()
        self.verticalScrollBar().setValue(0)
        self.horizontalScrollBar().setValue(0)

    def set_unified(self, unified: bool) -> None:
        """Show one column, or two; what is at the top stays."""
        if unified == self.document.unified:
            return
        top = self.document.at(self.verticalScrollBar().value())
        here = self.document.rows[top] if self.document.rows else None
        self.document.set_unified(unified)
        self._show_rows()
        if here is not None:
            self._current = self.document.like(here)
            self.verticalScrollBar().setValue(self.document.tops[self._current])

    def current(self) -> int:
        """Place of the row that the keyboard is at."""
        return self._current

    def set_matches(self, matches: dict[tuple[int, str, int], list[tuple[int, int]]]) -> None:
        """Mark columns that were found, by part, side (``"old"`` or ``"new"``) and line."""
        self._painter.matches = matches
        self.viewport().update()

    # Going through it

    def next_change(self) -> bool:
        """Go to the next change below the current row; False behind the last one."""
        later = [place for place in self.document.changes if place > self._current]
        if later:
            self._go_to_change(later[0])
        return bool(later)

    def previous_change(self) -> bool:
        """Go to the change before; False before the first one."""
        earlier = [place for place in self.document.changes if place < self._current]
        if earlier:
            self._go_to_change(earlier[-1])
        return bool(earlier)

    def _go_to_change(self, place: int) -> None:
        """Go to a change, and scroll to the side as far as its first words want it."""
        self.go_to(place)
        row = self.document.rows[place]
        pair = partners(self.document.parts, row)
        sides = ((), ()) if pair is None else self._painter.words_of(*pair)
        columns = [start for ranges in sides for start, _ in ranges[:1]]
        for text in () if columns else self.document.texts_of(row):
            if text is not None:
                columns.append(len(text) - len(text.lstrip()))
        x = self._painter.text_width(min(columns, default=0))
        bar, room = self.horizontalScrollBar(), self._column_width()
        if not bar.value() <= x <= bar.value() + room * 0.7:
            bar.setValue(round(x - room / 4))

    def go_to(self, place: int) -> None:
        """Make a row the current one, and show it with what is around it."""
        tops = self.document.tops
        self._current = max(0, min(place, len(self.document.rows) - 1))
        bar, height = self.verticalScrollBar(), self.viewport().height()
        top, bottom = tops[self._current], tops[self._current + 1]
        margin = min(3 * code_line(), max(0, (height - code_line()) // 2))
        if top - margin < bar.value():
            bar.setValue(top - margin if bar.value() - top < height else top - height // 3)
        elif bottom + margin > bar.value() + height:
            near = bottom - bar.value() - height < height // 3
            bar.setValue(bottom + margin - height if near else top - height // 3)
        self.viewport().update()
        self.moved.emit()

    def show_line(self, part: int, side: str, line: int) -> None:
        """Go to a line, out of its fold if it is in one."""
        place = self.document.show_line(part, side, line)
        self._show_rows()
        self.go_to(place)

    def show_part(self, title: str) -> None:
        """Bring the part with this title to the top."""
        place = self.document.title(title)
        if place >= 0:
            self._current = place
            self.verticalScrollBar().setValue(self.document.tops[place])
            self.viewport().update()
            self.moved.emit()

    def toggle(self, place: int) -> None:
        """Unfold equal lines; or show a part's lines, or its title alone."""
        if self.document.toggle(place):
            self._show_rows()
            self._current = min(place, len(self.document.rows) - 1)
            self.moved.emit()

    def unfold_all(self) -> None:
        """Show every line."""
        self._fold(self.document.unfold_all)

    def fold_all(self) -> None:
        """Fold all equal lines."""
        self._fold(self.document.fold_all)

    def _fold(self, change: Callable[[], None]) -> None:
        here = self.document.rows[self._current] if self.document.rows else None
        change()
        self._show_rows()
        if here is not None:
            self.go_to(self.document.like(here))

    # Copying

    def select_all(self) -> None:
        """Select all lines of a side: the one that was clicked last, or the new one."""
        self.selection.select_all(self.document.unified, len(self.document.rows))
        self.viewport().update()

    def selected_text(self) -> str:
        """What is selected, line by line."""
        lines = []
        for place, start, end in self.selection.parts():
            if place >= len(self.document.rows):
                break
            text = self.selection.text_of(self.document.texts_of(self.document.rows[place]))
            if text is not None:
                lines.append(text[start:end])
        return "\n".join(lines)

    def copy(self) -> None:
        """Put what is selected on the clipboard; without that, the current line."""
        text = self.selected_text()
        if not text and self.document.rows:
            old, new = self.document.texts_of(self.document.rows[self._current])
            text = new or old or ""
        if text:
            QGuiApplication.clipboard().setText(text)

    # Where things are

    def _show_rows(self) -> None:
        self.selection.clear()
        self.strip.set_rows(self.document.rows, self.document.tops)
        self._current = max(0, min(self._current, len(self.document.rows) - 1))
        self._fit_bars()
        self.viewport().update()

    def _fit_bars(self) -> None:
        height, width = self.viewport().height(), self._column_width()
        vertical, horizontal = self.verticalScrollBar(), self.horizontalScrollBar()
        vertical.setRange(0, max(0, self.document.tops[-1] + code_line() - height))
        vertical.setPageStep(max(1, height - code_line()))
        vertical.setSingleStep(code_line())
        text = self._painter.text_width(self.document.longest)
        horizontal.setRange(0, max(0, round(text - width + 24)) if self.document.rows else 0)
        horizontal.setPageStep(max(1, round(width)))
        horizontal.setSingleStep(40)
        self._show_place()

    def _column_width(self) -> float:
        """The room of a column beside its line numbers."""
        width = float(self.viewport().width())
        gutter = self._painter.gutter(self.document.unified)
        return width - gutter if self.document.unified else (width - 1) / 2 - gutter

    def _row_at(self, y: float) -> int:
        return self.document.at(y + self.verticalScrollBar().value())

    def visible(self, area: QRect) -> Iterator[tuple[int, Row, float, float]]:
        """Place, row, top and height of what touches an area of the viewport."""
        offset, tops = self.verticalScrollBar().value(), self.document.tops
        for place in range(self._row_at(area.top()), len(self.document.rows)):
            top = tops[place] - offset
            if top > area.bottom():
                return
            yield (
                place,
                self.document.rows[place],
                top,
                self.document.tops[place + 1] - self.document.tops[place],
            )

    def _side_at(self, x: float) -> Side:
        if self.document.unified:
            return "both"
        return "old" if x < self.viewport().width() / 2 else "new"

    def _spot(self, place: QPointF, side: Side) -> Spot:
        """The row and the column at a place, for a side."""
        row = self._row_at(place.y())
        text = self._text_of_side(row, side)
        left = 0.0 if side != "new" else (self.viewport().width() + 1) / 2
        x = place.x() - left - self._painter.gutter(self.document.unified)
        x += self.horizontalScrollBar().value()
        return row, self._painter.lines.column(text, x) if text else 0

    def _text_of_side(self, place: int, side: Side) -> str:
        old, new = self.document.texts_of(self.document.rows[place])
        return (old if side == "old" else new if side == "new" else new or old) or ""

    # Slots

    def _use_theme(self) -> None:
        self._painter.lines.forget()
        self.document.place_rows()
        self.strip.set_rows(self.document.rows, self.document.tops)
        self._fit_bars()
        self.viewport().update()

    def _show_place(self) -> None:
        self.strip.set_view(self.verticalScrollBar().value(), self.viewport().height())

    def _scroll_to_share(self, share: float) -> None:
        height = self.viewport().height()
        self.verticalScrollBar().setValue(round(share * self.document.tops[-1] - height / 2))

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        place = Place(
            width=self.viewport().width(),
            shift=self.horizontalScrollBar().value(),
            unified=self.document.unified,
        )
        self._painter.paint_ground(painter, event.rect(), place)
        for number, row, top, height in self.visible(event.rect()):
            rect = QRectF(0, top, place.width, height)
            if row.kind == "title":
                self._painter.paint_title(painter, row, rect, self.document.is_closed(row.part))
            elif row.kind == "fold":
                self._painter.paint_fold(painter, row, rect)
            else:
                pair = partners(self.document.parts, row) if row.kind in CHANGES else None
                chosen = self.selection.columns(number)
                self._painter.paint_line(painter, row, rect, place, pair, chosen)
            if number == self._current and self.hasFocus():
                self._painter.paint_current(painter, rect)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        area = self.viewport().geometry()
        self.strip.setGeometry(area.right() + 1, area.top(), DiffStrip.WIDTH, area.height())
        self._fit_bars()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or not self.document.rows:
            return
        place = self._row_at(event.position().y())
        if self.document.rows[place].kind in ("title", "fold"):
            self.selection.clear()
            self.toggle(place)
            return
        side = self._side_at(event.position().x())
        self._pressed = self._spot(event.position(), side)
        self._current = place
        self.selection.start(side, self._pressed)
        self.viewport().update()
        self.moved.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.document.rows:
            return
        if self._pressed is not None:
            self.selection.extend(self._spot(event.position(), self.selection.side))
            y, height = event.position().y(), self.viewport().height()
            if y < 0 or y > height:
                step = code_line() if y > height else -code_line()
                self.verticalScrollBar().setValue(self.verticalScrollBar().value() + step)
            self.viewport().update()
            return
        row = self.document.rows[self._row_at(event.position().y())]
        hand = row.kind in ("title", "fold")
        shape = Qt.CursorShape.PointingHandCursor if hand else Qt.CursorShape.IBeamCursor
        self.viewport().setCursor(shape)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._pressed = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self.document.rows:
            return
        side = self._side_at(event.position().x())
        row, column = self._spot(event.position(), side)
        self.selection.select_word(side, row, self._text_of_side(row, side), column)
        self.viewport().update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_wanted.emit(event.globalPos())

    def event(self, event: QEvent) -> bool:
        override = event.type() == QEvent.Type.ShortcutOverride
        if (
            override
            and isinstance(event, QKeyEvent)
            and event.matches(QKeySequence.StandardKey.Find)
        ):
            # Here, and not in the text that was worked with before.
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not press(self, event):
            super().keyPressEvent(event)
