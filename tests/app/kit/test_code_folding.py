"""Folding in the code view, by mouse and by keyboard, and which lines there then are."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.code.code_lines import (
    SLICE,
    CodeDocument,
    Rows,
    difference,
    regions_of,
    union,
    within,
)
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.code.marks import Span

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

LINE, TOP = 18, 6
KEYS = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier

SCRIPT = """\
@T.prim_func
def f(a: T.handle):
    # with T.sblock("root"):
    for i in range(4):
        with T.sblock("b"):
            T.reads(A[i])
            A[i] = 0

    B[0] = 1

@T.prim_func
def g(
    a: T.handle,
):
    pass
# the end"""

LLVM = """\
; ModuleID = 'TVMMod'
define i32 @f(ptr %a) {
entry:
  br label %for_body_k

for_body_k:                 ; preds = %entry
  ret i32 0
}

define void @g() {
entry:
  ret void
}"""

ASM = """\
\t.globl\tf
f:
\tpushq\t%rbx
.LBB0_1:
\taddl\t$1, %eax
.Ltmp1:
\tjne\t.LBB0_1
.LBB0_2:
\tretq
.Lfunc_end0:
\t.size\tf, .Lfunc_end0-f
\t.globl\tg
g:
\tretq"""

BYTECODE = """\
@main:
  call  dense  in: %0, c[6], %2 dst: %void
  ret   %2

@dense packed_func;
"""

Ranges = list[tuple[int, int]]
a_range = st.tuples(st.integers(1, 30), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))


def in_them(ranges: Ranges) -> set[int]:
    return {line for first, end in ranges for line in range(first, end)}


@given(st.lists(a_range), st.lists(a_range))
def test_ranges_are_sets_of_lines(some: Ranges, others: Ranges) -> None:
    one, other = union(some), union(others)
    assert in_them(one) == in_them(some)
    assert in_them(list(difference(one, other))) == in_them(some) - in_them(others)
    assert in_them(within(one, 5, 20)) == in_them(some) & set(range(5, 20))
    assert all(a[1] < b[0] for a, b in pairwise(one))


@given(st.lists(a_range))
def test_rows_are_the_lines_that_are_left(hidden: Ranges) -> None:
    rows = Rows(50, union(hidden))
    left = [line for line in range(50) if line not in in_them(hidden)]
    assert rows.count == len(left)
    assert [rows.line_of(row) for row in range(rows.count)] == left
    assert all(rows.row_of(line) == row for row, line in enumerate(left))
    for line in in_them(hidden):
        assert not rows.shows(line)
        assert left[rows.row_of(line)] == max(each for each in left if each < line)


@pytest.mark.parametrize(
    ("text", "language", "expected", "functions"),
    [
        (SCRIPT, "tvmscript", [(2, 9), (4, 7), (5, 7), (12, 15)], [2, 12]),
        (LLVM, "llvm", [(2, 8), (3, 4), (6, 7), (10, 13), (11, 12)], [2, 10]),
        (ASM, "asm", [(2, 9), (4, 7), (8, 9), (13, 14)], [2, 13]),
        (BYTECODE, "bytecode", [(1, 3)], [1]),
        (SCRIPT, "text", [], []),
    ],
)
def test_regions_of_a_language(
    text: str, language: str, expected: Ranges, functions: list[int]
) -> None:
    lines = text.split("\n")
    regions = regions_of(lines, language)
    found = [(n + 1, regions.end(n) + 1) for n in range(len(lines)) if regions.begins(n)]
    assert found == expected
    assert [line + 1 for line in regions.functions()] == functions
    for number in range(1, len(lines) + 1):
        around = [span for span in expected if span[0] <= number <= span[1]]
        smallest = min(around, key=lambda span: span[1] - span[0], default=(0, 0))
        assert regions.around(number - 1) + 1 == smallest[0], number


@pytest.fixture
def view(qtbot: QtBot) -> CodeView:
    view = CodeView("Script")
    qtbot.addWidget(view)
    view.resize(480, 400)
    view.set_text(SCRIPT, "tvmscript")
    with qtbot.waitExposed(view):
        view.show()
    view.editor.setFocus()
    return view


def numbers(view: CodeView) -> list[int]:
    """The numbers of the lines in view."""
    port = view.editor.viewport()
    return [line + 1 for line, _ in view.editor.visible_lines(port.rect())]


def test_folding_by_keyboard(qtbot: QtBot, view: CodeView) -> None:
    view.go_to_line(6)
    qtbot.keyClick(view.editor, Qt.Key.Key_BraceLeft, KEYS)
    assert numbers(view) == [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16]
    assert view.editor.caret()[0] == 4
    qtbot.keyClick(view.editor, Qt.Key.Key_BraceLeft, KEYS)
    assert numbers(view)[:5] == [1, 2, 3, 4, 8]
    qtbot.keyClick(view.editor, Qt.Key.Key_BraceLeft, KEYS)
    assert numbers(view) == [1, 2, 10, 11, 12, 13, 14, 15, 16]
    # A screen reader says what the eye sees behind the caret's line.
    assert view.editor.accessibleDescription() == "folded, 7 more"
    qtbot.keyClick(view.editor, Qt.Key.Key_BraceRight, KEYS)
    # What was folded inside is so still.
    assert numbers(view)[:6] == [1, 2, 3, 4, 8, 9]
    assert view.text() == SCRIPT


def test_folding_by_mouse(qtbot: QtBot, view: CodeView) -> None:
    gutter = view.editor._gutter
    at = QPoint(12, TOP + 3 * LINE + 9)
    view.set_spans([Span("loop", 4, 7)])
    with qtbot.assertNotEmitted(view.entity_clicked):
        qtbot.mouseClick(gutter, Qt.MouseButton.LeftButton, pos=at)
    assert numbers(view)[:5] == [1, 2, 3, 4, 8]
    picture = view.editor.grab().toImage()
    width = view.editor._gutter.width()
    row = range(TOP + 3 * LINE, TOP + 4 * LINE)
    mark = {picture.pixelColor(width + 200, y).name() for y in row}
    assert theme.current().line in mark
    # A click on what stands behind the line unfolds it again.
    port = view.editor.viewport()
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, pos=QPoint(200, TOP + 3 * LINE + 9))
    assert numbers(view)[:6] == [1, 2, 3, 4, 5, 6]
    with qtbot.waitSignal(view.entity_clicked):
        qtbot.mouseClick(gutter, Qt.MouseButton.LeftButton, pos=QPoint(30, at.y()))


def test_what_is_folded_is_found_copied_and_gone_to(qtbot: QtBot, view: CodeView) -> None:
    view.editor.fold_all()
    view.editor.selectAll()
    view.editor.copy()
    assert QGuiApplication.clipboard().text() == SCRIPT
    view.open_find()
    view.find_bar.field.setText("T.reads")
    assert view.find_bar.figure.text() == "1 of 1"
    assert view.editor.textCursor().selectedText() == "T.reads"
    assert numbers(view) == [*range(1, 13), 16]
    view.go_to_line(15)
    assert numbers(view) == list(range(1, 17))


def test_a_screen_reader_reads_what_is_shown(qtbot: QtBot, view: CodeView) -> None:
    view.editor.fold_all()
    interface = QAccessible.queryAccessibleInterface(view.editor)
    assert interface.text(QAccessible.Text.Name) == "Script"
    assert interface.text(QAccessible.Text.Description) == "2 folded"
    text = interface.textInterface()
    shown = "\n".join(SCRIPT.split("\n")[n - 1] for n in (1, 2, 10, 11, 12, 16))
    assert text.text(0, text.characterCount()) == shown
    qtbot.keyClick(view.editor, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(view.editor, Qt.Key.Key_Down)
    qtbot.keyClick(view.editor, Qt.Key.Key_Down)
    assert text.cursorPosition() == len("\n".join(SCRIPT.split("\n")[:2])) + 1
    assert view.editor.caret()[0] == 9


def test_a_long_text_is_folded_and_unfolded_in_slices(qtbot: QtBot, view: CodeView) -> None:
    count = 5 * SLICE
    body = "\n".join(f"    x{n} = {n}" for n in range(count))
    text = f"def f():\n{body}\ndef g():\n{body}"
    view.set_text(text, "python")
    view.go_to_line(count + 10)
    assert view.editor.textCursor().block().text() == "    x7 = 7"
    qtbot.waitUntil(lambda: view.editor.settled)
    assert view.editor.toPlainText() == text
    assert view.editor.caret()[0] == count + 9
    view.editor.fold_all()
    qtbot.waitUntil(lambda: view.editor.settled)
    assert numbers(view) == [1, count + 2]
    view.go_to_line(count + 1)
    assert count + 1 in numbers(view)
    cursor = view.editor.textCursor()
    cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock)
    assert cursor.block().text() == f"    x{count - 1} = {count - 1}"
    view.editor.unfold_all()
    qtbot.waitUntil(lambda: view.editor.settled)
    assert view.editor.toPlainText() == text
    view.open_find()
    view.find_bar.field.setText("x7 ")
    qtbot.waitUntil(lambda: view.find_bar.figure.text() == "2 of 2")


def test_rows_are_known_while_the_document_changes(qapp: QApplication) -> None:
    """Lines are coloured by their numbers as soon as they are there."""
    lines = [str(number) for number in range(3 * SLICE)]
    document = QTextDocument()
    document.documentLayout()  # Changes are told from then on.
    shown, told = CodeDocument(document), []

    def compare(*_change: int) -> None:
        block = document.firstBlock()
        while block.isValid():
            line = shown.lines[shown.rows.line_of(block.blockNumber())]
            assert block.text() in (line, "")  # A document is emptied first.
            block = block.next()
        told.append(document.blockCount())

    document.contentsChange.connect(compare)
    shown.set_lines(lines, [(2, 900)])
    shown.set_lines([f"a {line}" for line in lines], [(5, 10)])
    shown.step()
    shown.put_in_near(3 * SLICE - 1)
    shown.set_folded([(700, 800)])
    assert told[-1] < max(told)


def test_another_state_of_a_text_keeps_its_folds(qtbot: QtBot, view: CodeView) -> None:
    view.go_to_line(6)
    qtbot.keyClick(view.editor, Qt.Key.Key_BraceLeft, KEYS)
    hidden = set(range(1, len(SCRIPT.split("\n")) + 1)) - set(numbers(view))
    assert hidden
    view.set_text("# a line more\n" + SCRIPT, "tvmscript", keep_folds=True)
    assert not {number + 1 for number in hidden} & set(numbers(view))
    assert view.editor.is_folded(min(hidden) - 1)
    view.set_text(SCRIPT.replace("def", "def "), "tvmscript")
    assert not view.editor.is_folded(min(hidden) - 2)
