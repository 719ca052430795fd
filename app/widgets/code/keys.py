"""The keys of the code view, besides those with which a caret is moved."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

_NONE = Qt.KeyboardModifier.NoModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_CONTROL = Qt.KeyboardModifier.ControlModifier

KEYS = {
    (Qt.Key.Key_F, _CONTROL): "find",
    (Qt.Key.Key_G, _CONTROL): "line",
    (Qt.Key.Key_F2, _NONE): "card",
    (Qt.Key.Key_F3, _NONE): "next",
    (Qt.Key.Key_F3, _SHIFT): "previous",
    (Qt.Key.Key_Escape, _NONE): "close",
    # With Shift, the bracket's key gives a brace on most keyboards.
    (Qt.Key.Key_BracketLeft, _CONTROL | _SHIFT): "fold",
    (Qt.Key.Key_BraceLeft, _CONTROL | _SHIFT): "fold",
    (Qt.Key.Key_BracketRight, _CONTROL | _SHIFT): "unfold",
    (Qt.Key.Key_BraceRight, _CONTROL | _SHIFT): "unfold",
}
"""What each key is for."""

_MOVING = (
    QKeySequence.StandardKey.MoveToStartOfDocument,
    QKeySequence.StandardKey.MoveToEndOfDocument,
    QKeySequence.StandardKey.SelectStartOfDocument,
    QKeySequence.StandardKey.SelectEndOfDocument,
)


def key_of(event: QKeyEvent) -> str:
    """What a key is for, or ``""``."""
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return KEYS.get((Qt.Key(event.key()), modifiers), "")


def is_ours(event: QKeyEvent) -> bool:
    """Whether a key is the text's while it has the focus, whatever the window's menus say."""
    if any(event.matches(key) for key in _MOVING):
        return True
    return key_of(event) not in ("", "close", "previous", "next")
