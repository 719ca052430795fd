"""Panes: tabs, context, and the buttons of the header."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.pane import HEADER_HEIGHT, Pane

# Offscreen there is no window manager to put a menu or a floating pane in front.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

LEFT = Qt.MouseButton.LeftButton
WORDS = ["Script", "Loops", "NumPy", "TE", "LLVM", "Assembly"]


@pytest.fixture
def pane(qtbot: QtBot) -> Pane:
    widget = Pane("TensorIR")
    qtbot.addWidget(widget)
    for word in WORDS:
        widget.add_page(word.lower(), word, QLabel(word))
    widget.resize(700, 300)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def test_a_tab_shows_its_page(qtbot: QtBot, pane: Pane) -> None:
    assert pane.current() == "script"
    tab = pane.header.tabs.tab("numpy")
    with qtbot.waitSignal(pane.page_changed) as heard:
        qtbot.mouseClick(tab, LEFT)
    assert heard.args == ["numpy"]
    assert pane.page("numpy").isVisible()
    assert tab.isChecked()
    assert not pane.header.tabs.tab("script").isChecked()


def test_keyboard_moves_between_tabs(qtbot: QtBot, pane: Pane) -> None:
    qtbot.keyClick(pane.header.tabs.tab("script"), Qt.Key.Key_Right)
    assert pane.current() == "loops"


def test_tabs_without_room_are_in_a_menu_and_the_chosen_one_is_not(
    qtbot: QtBot, pane: Pane
) -> None:
    pane.set_current("assembly")
    assert pane.header.tabs.hidden_tabs() == []
    pane.resize(260, 300)
    hidden = pane.header.tabs.hidden_tabs()
    assert hidden
    assert "assembly" not in hidden
    right = max(tab.geometry().right() for tab in map(pane.header.tabs.tab, pane.pages()))
    assert right <= pane.width()
    pane.resize(700, 300)
    assert pane.header.tabs.hidden_tabs() == []


def test_its_header_has_34_pixels_and_asks_for_room_by_mouse(qtbot: QtBot) -> None:
    pane = Pane("FX")
    qtbot.addWidget(pane)
    pane.add_page("graph", "Graph", QLabel("graph"))
    pane.resize(500, 300)
    with qtbot.waitExposed(pane):
        pane.show()
    assert pane.header.height() == HEADER_HEIGHT
    maximise, window = pane.header._buttons.findChildren(IconButton)
    # The pointer may be where the pane was shown.
    QApplication.sendEvent(pane.header, QEvent(QEvent.Type.Leave))
    assert not maximise.isVisible()
    at = QPointF(5, 5)
    QApplication.sendEvent(pane.header, QEnterEvent(at, at, at))
    assert maximise.isVisible()
    with qtbot.waitSignal(pane.header.maximise_wanted, timeout=100):
        maximise.click()
    with qtbot.waitSignal(pane.header.window_wanted, timeout=100):
        window.click()
    with qtbot.waitSignal(pane.header.maximise_wanted, timeout=100):
        qtbot.mouseDClick(pane.header, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
