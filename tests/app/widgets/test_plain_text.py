"""Names are shown as they are, whatever they look like."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.widgets.plain_text import plain, plain_tip

EVIL = "<img src='/dev/zero'>: Linear"


def test_what_looks_like_markup_is_no_markup(qtbot: QtBot) -> None:
    """Qt would read the file for ever, in a label as in a tool tip."""
    label = plain(QLabel(EVIL))
    qtbot.addWidget(label)
    label.show()
    assert label.sizeHint().width() > label.fontMetrics().horizontalAdvance(EVIL[:20])
    tip = plain_tip(EVIL)
    assert "&lt;img src" in tip
    assert plain_tip("conv: Conv2d, 3 < 4") == "conv: Conv2d, 3 < 4"
