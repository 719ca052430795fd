"""The screen reader's view: the tree of names, roles, texts and values of the real window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.code_editor import CodeEditor
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import PATIENCE, OpenWindow

pytestmark = pytest.mark.x

FUSE = next(each.steps for each in PRESETS if each.name == "fuse")
NAME, DESCRIPTION = QAccessible.Text.Name, QAccessible.Text.Description
FUSED = "fused_dense_add_te_relu"


@pytest.fixture(autouse=True)
def _listening() -> Iterator[None]:
    """Let Qt tell what changes, as it does while a screen reader runs."""
    QAccessible.setActive(True)
    yield
    QAccessible.setActive(False)


@pytest.fixture
def window(open_window: OpenWindow) -> MainWindow:
    """Return a window with a fused sample."""
    window = open_window("sample:fashion_mlp", lowering="te", steps=FUSE)
    window.resize(1440, 900)
    window.show_panes()
    return window


def seen(widget: QWidget) -> QAccessibleInterface:
    found = QAccessible.queryAccessibleInterface(widget)
    assert found is not None
    return found


def below(interface: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    """Yield what is shown in something, itself first; of long lists the first rows."""
    if interface.state().invisible:
        return
    yield interface
    for place in range(min(interface.childCount(), 60)):
        child = interface.child(place)
        if child is not None and child.isValid():
            yield from below(child)


def nameless(interface: QAccessibleInterface) -> bool:
    """Say whether something that can have the focus has no name; cells and labels may be empty."""
    roles = QAccessible.Role
    is_text = interface.role() in (roles.Cell, roles.TreeItem, roles.StaticText)
    return interface.state().focusable and not is_text and not interface.text(NAME)


def said(widget: QWidget, line: str) -> str:
    """Put the caret on a line of code, and return what is said of it besides its text."""
    assert isinstance(widget, CodeEditor)
    lines = widget.lines()
    widget.go_to(next(number for number, each in enumerate(lines) if line in each))
    text = seen(widget).textInterface()
    start = text.cursorPosition()
    whole = text.text(0, text.characterCount())
    assert line in whole[start:].split("\n")[0]
    return seen(widget).text(DESCRIPTION)


FOLD = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


def check_names(window: MainWindow) -> None:
    """Check that everything that can have the focus has a name."""
    panes = window.panes
    for pane, pages in (
        (panes.fx, ("graph", "table", "code")),
        (panes.relax, ("graph", "script", "builder")),
        (panes.tensorir, ("script", "numpy", "te", "functions")),
    ):
        for page in pages:
            pane.set_current(page)
            for each in below(seen(pane)):
                assert not nameless(each), f"{each.role()} in {pane.title()}, {page}"
    for each in below(seen(window)):
        if nameless(each):
            around = each.parent()
            raise AssertionError(f"{each.role()} in {around.text(NAME) or around.role()}")


def test_lines_steps_graphs_and_differences_say_what_they_are(
    qtbot: QtBot, window: MainWindow
) -> None:
    relax = window.panes.relax.script.code.editor
    # A text is read from its first line.
    assert len(relax.lines()) > 3
    assert seen(relax).textInterface().cursorPosition() == 0

    editor = window.panes.tensorir.script.code.editor
    qtbot.waitUntil(lambda: bool(editor.lines()) and "def " in "".join(editor.lines()))
    window.document.select(("fx:relu",))
    qtbot.waitUntil(lambda: f"def {FUSED}(" in "".join(editor.lines()), timeout=PATIENCE)
    assert seen(editor).role() == QAccessible.Role.EditableText
    assert seen(editor).state().readOnly
    assert said(editor, f"def {FUSED}(") == ""
    assert said(editor, 'T.sblock("T_add")') == "of linear0"
    assert said(editor, 'T.sblock("relu")') == "of relu · of the selection"
    qtbot.keyClick(editor, Qt.Key.Key_BraceLeft, FOLD)
    assert "folded, " in seen(editor).text(DESCRIPTION)

    # Steps, and their lines.
    window.set_mode("step")
    panes, stepping = window.panes, window.features.stepping
    slider = panes.pipeline.slider
    names = [run.name for run in window.document.snapshot.passes]
    stepping.go(Moment(section="passes", index=names.index("LegalizeOps") + 1))
    window.commands.action("next-step").trigger()
    record = stepping.line
    assert seen(slider).role() == QAccessible.Role.Slider
    assert record.title in seen(slider).text(DESCRIPTION)
    assert seen(slider).valueInterface().currentValue() == slider.value()
    rows = [each.text(NAME) for each in below(seen(panes.pipeline.list))]
    assert any("AnnotateTIROpPattern" in each for each in rows)
    window.set_mode("explore")
    window.features.stepping.go(Moment(section="passes", index=names.index("FuseTIR") + 1))
    editor = panes.relax.script.stepped.script.code.editor
    qtbot.waitUntil(lambda: f"cls.{FUSED}," in "".join(editor.lines()), timeout=PATIENCE)
    assert said(editor, f"cls.{FUSED},").startswith("of linear0, relu")
    window.features.stepping.leave()

    # Graphs, tables and differences.
    canvas = panes.fx.graph.canvas
    assert "5 nodes" in seen(canvas).text(DESCRIPTION)
    window.document.select(("fx:linear0",))
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert seen(canvas).text(DESCRIPTION).startswith("relu, ")
    window.commands.action("difference").trigger()
    page = panes.difference.page
    qtbot.waitUntil(lambda: page.is_current, timeout=PATIENCE)
    assert seen(panes.difference.sentence).text(DESCRIPTION).startswith("The pipeline ")
    side = page.diff.new
    side.setFocus()
    window.commands.action("next-change").trigger()
    qtbot.keyClick(side, Qt.Key.Key_Down)
    assert seen(side).text(DESCRIPTION)
    switch = panes.difference.columns
    switch.setFocus()
    qtbot.keyClick(switch, Qt.Key.Key_Right)
    assert seen(switch).text(NAME).endswith("Unified")
    QApplication.processEvents()
    check_names(window)
