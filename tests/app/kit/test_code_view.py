"""The code view as it is used: by mouse and by keyboard."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.code_lines import SLICE
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.code.marks import Span
from lowerscope.core.model.compact_script import compact_script

# Offscreen there is no window manager to put a menu or a floating pane in front.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

LINE = 18
TOP = 6
NONE = Qt.KeyboardModifier.NoModifier

MakeView = Callable[[str, str], CodeView]


@pytest.fixture
def make(qtbot: QtBot) -> MakeView:
    def build(text: str, language: str = "text") -> CodeView:
        view = CodeView("Script")
        qtbot.addWidget(view)
        view.resize(480, 300)
        view.set_text(text, language)
        with qtbot.waitExposed(view):
            view.show()
        view.editor.setFocus()
        return view

    return build


def lines(count: int) -> str:
    return "\n".join(f"line {i}" for i in range(1, count + 1))


def click(qtbot: QtBot, view: CodeView, line: int, modifiers: Qt.KeyboardModifier = NONE) -> None:
    """Click on a line of a view that is scrolled to its top."""
    at = QPoint(30, TOP + (line - 1) * LINE + LINE // 2)
    qtbot.mouseClick(view.editor.viewport(), Qt.MouseButton.LeftButton, modifiers, at)


def shown_lines(view: CodeView) -> tuple[int, int]:
    """First and last line in view, from 1."""
    numbers = [line + 1 for line, _ in view.editor.visible_lines(view.editor.viewport().rect())]
    return numbers[0], numbers[-1]


def test_click_gives_the_innermost_entity(qtbot: QtBot, make: MakeView) -> None:
    view = make(lines(10), "text")
    view.set_spans([Span("main", 1, 8), Span("lv", 3, 4)])
    with qtbot.waitSignal(view.entity_clicked) as heard:
        click(qtbot, view, 4, Qt.KeyboardModifier.ControlModifier)
    assert heard.args == ["lv", Qt.KeyboardModifier.ControlModifier]
    with qtbot.waitSignal(view.entity_clicked) as heard:
        click(qtbot, view, 6)
    assert heard.args == ["main", NONE]
    with qtbot.assertNotEmitted(view.entity_clicked):
        click(qtbot, view, 10)


def test_selecting_text_by_mouse_is_no_click(qtbot: QtBot, make: MakeView) -> None:
    view = make(lines(10), "text")
    view.set_spans([Span("main", 1, 10)])
    port = view.editor.viewport()
    with qtbot.assertNotEmitted(view.entity_clicked):
        qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=QPoint(8, TOP + 5))
        qtbot.mouseMove(port, QPoint(60, TOP + 5))
        qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=QPoint(60, TOP + 5))
    assert view.editor.textCursor().selectedText()
    qtbot.keyClick(view.editor, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() in "line 1"


def test_hover_says_what_is_under_the_mouse(qtbot: QtBot, make: MakeView) -> None:
    view = make(lines(10), "text")
    view.set_spans([Span("lv", 3, 3)])
    port = view.editor.viewport()
    qtbot.mouseMove(port, QPoint(30, TOP + 5 * LINE))
    with qtbot.waitSignal(view.entity_hovered) as heard:
        qtbot.mouseMove(port, QPoint(30, TOP + 2 * LINE + 9))
    assert heard.args == ["lv"]
    with qtbot.waitSignal(view.entity_hovered) as heard:
        qtbot.mouseMove(port, QPoint(30, TOP + 5 * LINE))
    assert heard.args == [""]


def test_reveal_centres_what_is_far_and_leaves_what_is_seen(qtbot: QtBot, make: MakeView) -> None:
    view = make(lines(300), "text")
    view.set_spans([Span("near", 3, 4), Span("far", 200, 201)])
    assert view.reveal("near")
    assert shown_lines(view)[0] == 1
    assert view.reveal("far")
    first, last = shown_lines(view)
    assert abs((first + last) / 2 - 200) <= 2
    assert not view.reveal("nothing")


def test_same_text_keeps_its_place(qtbot: QtBot, make: MakeView) -> None:
    view = make(lines(300), "text")
    view.set_spans([Span("far", 200, 201)])
    view.reveal("far")
    before = shown_lines(view)
    view.set_text(lines(300), "text")
    assert shown_lines(view) == before
    assert view.reveal("far")
    view.set_text(lines(299), "text")
    assert shown_lines(view)[0] == 1
    assert not view.reveal("far")


@pytest.mark.x
def test_find_walks_and_counts(qtbot: QtBot, make: MakeView) -> None:
    view = make("lv = x\nLV1 = lv\nend", "text")
    qtbot.keyClick(view.editor, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    field = view.find_bar.field
    assert view.find_bar.isVisible()
    assert view.focusWidget() is field
    qtbot.keyClicks(field, "lv")
    assert view.find_bar.figure.text() == "1 of 3"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert view.find_bar.figure.text() == "2 of 3"
    assert view.editor.textCursor().selectedText() == "LV"
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert view.find_bar.figure.text() == "3 of 3"
    view.find_bar.case.click()
    assert view.find_bar.figure.text().endswith("of 2")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert not view.find_bar.isVisible()
    assert view.focusWidget() is view.editor


def test_go_to_line(qtbot: QtBot, make: MakeView) -> None:
    view = make(lines(300), "text")
    qtbot.keyClick(view.editor, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
    assert view.go_to_bar.isVisible()
    assert view.go_to_bar.figure.text() == "of 300"
    qtbot.keyClicks(view.go_to_bar.field, "250")
    qtbot.keyClick(view.go_to_bar.field, Qt.Key.Key_Return)
    assert not view.go_to_bar.isVisible()
    first, last = shown_lines(view)
    assert first <= 250 <= last
    assert view.editor.textCursor().block().text() == "line 250"


def test_long_text_is_filled_in_while_one_looks(qtbot: QtBot, make: MakeView) -> None:
    count = 2 * SLICE + 500
    view = make("other", "text")
    view.set_text(lines(count), "text")
    assert view.editor.blockCount() == SLICE
    view.set_spans([Span("end", count - 3, count - 3)])
    assert view.reveal("end")
    first, last = shown_lines(view)
    assert first <= count - 3 <= last
    assert view.text() == lines(count)
    view.set_text(lines(count + 1), "text")
    qtbot.waitUntil(lambda: view.editor.blockCount() == count + 1)
    assert view.editor.toPlainText() == lines(count + 1)


HIDING = "with R.dataflow():\n    lv: R.Tensor((1, 2)) = R.add(x, x)\n    return lv"


def test_hidden_parts_are_out_of_view_and_in_what_is_copied(
    make: MakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = make("other", "text")
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _widget: shown.append(text))
    view.set_text(HIDING, "tvmscript", compact_script(HIDING))
    editor = view.editor
    assert editor.toPlainText().split("\n")[1] == "    lv = R.add(x, x)"
    assert view.text() == HIDING
    editor.selectAll()
    editor.copy()
    assert QGuiApplication.clipboard().text() == HIDING
    editor.go_to(1, 4, 6)
    editor.copy()
    assert QGuiApplication.clipboard().text() == "lv"
    editor.go_to(1, 4, 13)
    editor.copy()
    assert QGuiApplication.clipboard().text() == "lv: R.Tensor((1, 2)) = R.ad"
    for line in (1, 0):
        place = editor.visible_lines(editor.viewport().rect())[line][1].center().toPoint()
        tip = QHelpEvent(QEvent.Type.ToolTip, place, editor.viewport().mapToGlobal(place))
        QApplication.sendEvent(editor.viewport(), tip)
    assert shown == ["lv: R.Tensor((1, 2)) = R.add(x, x)", ""]
    view.set_text(HIDING, "tvmscript")
    assert editor.toPlainText() == HIDING
