"""When the focus is shown: to who walks by keyboard, not to who clicks."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent

_BY_KEYBOARD = {
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
}


def came_by_keyboard(event: QFocusEvent) -> bool:
    """Whether the focus was moved here by a key."""
    return event.reason() in _BY_KEYBOARD
