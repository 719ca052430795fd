"""The keys of the text part of the diff view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from lowerscope.app.widgets.diff.selection import Side
from lowerscope.app.widgets.typefaces import code_line

if TYPE_CHECKING:
    from lowerscope.app.widgets.diff.area import DiffArea

_SIDEWAYS = 40


def press(area: DiffArea, event: QKeyEvent) -> bool:
    """Do what a key is for; return whether it is for anything here."""
    standard, key = QKeySequence.StandardKey, event.key()
    if event.matches(standard.Copy):
        area.copy()
    elif event.matches(standard.SelectAll):
        area.select_all()
    elif event.matches(standard.Find):
        area.find_wanted.emit()
    elif key == Qt.Key.Key_F3:
        back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        (area.previous_wanted if back else area.next_wanted).emit()
    elif key == Qt.Key.Key_Escape:
        area.selection.clear()
        area.viewport().update()
        area.escape_pressed.emit()
    else:
        extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        return bool(area.document.rows) and (_move(area, key, extend) or _act(area, key))
    return True


def _move(area: DiffArea, key: int, extend: bool) -> bool:
    """Go to another row, selecting what is passed where that is wanted, or sideways."""
    page, last = max(1, area.viewport().height() // code_line() - 1), len(area.document.rows) - 1
    rows = {
        Qt.Key.Key_Up: area.current() - 1,
        Qt.Key.Key_Down: area.current() + 1,
        Qt.Key.Key_PageUp: area.current() - page,
        Qt.Key.Key_PageDown: area.current() + page,
        Qt.Key.Key_Home: 0,
        Qt.Key.Key_End: last + extend,
    }
    if key in rows:
        if extend:
            _select_to(area, rows[Qt.Key(key)])
        else:
            area.selection.clear()
            area.go_to(rows[Qt.Key(key)])
        return True
    if extend and key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
        side: Side = "old" if key == Qt.Key.Key_Left else "new"
        area.selection.side = "both" if area.document.unified else side
        area.viewport().update()
        return True
    if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
        bar = area.horizontalScrollBar()
        bar.setValue(bar.value() + (_SIDEWAYS if key == Qt.Key.Key_Right else -_SIDEWAYS))
        return True
    return False


def _select_to(area: DiffArea, place: int) -> None:
    """Select the rows from the current one, or from where that was begun, to another one."""
    selection, here, count = area.selection, area.current(), len(area.document.rows)
    begun = selection.ends_at((here, 0)) or (here == count - 1 and selection.ends_at((count, 0)))
    if not begun:
        side: Side = "old" if selection.side == "old" else "new"
        selection.start("both" if area.document.unified else side, (here, 0))
    elif area.document.unified:
        selection.side = "both"
    selection.extend((max(0, min(place, count)), 0))
    area.go_to(place)


def _act(area: DiffArea, key: int) -> bool:
    if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
        area.toggle(area.current())
    elif key == Qt.Key.Key_N:
        area.next_change()
    elif key == Qt.Key.Key_P:
        area.previous_change()
    else:
        return False
    return True
