"""The page Compare: a table of the nodes against torch, tied to the selection."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.compare_page import ComparePage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Extension
from tests.end_to_end.driving import PATIENCE, OpenWindow, choose_from_menu, run_and_wait
from tests.end_to_end.test_node_figures import WRONG, trigger


def compare_page(window: MainWindow) -> ComparePage:
    trigger(window, "compare-nodes")
    page = window.panes.compare
    assert page.isVisible()
    return page


def column(page: ComparePage, title: str) -> list[str]:
    model = page.nodes.table.table_model()
    place = [each.title for each in model.columns].index(title)
    return [row.cell(place).text for row in model.rows()]


def sort_by(qtbot: QtBot, page: ComparePage, title: str) -> None:
    """Click on the title of a column."""
    table = page.nodes.table
    place = [each.title for each in table.table_model().columns].index(title)
    header = table.horizontalHeader()
    at = header.sectionViewportPosition(place) + 10
    point = header.viewport().rect().topLeft()
    point.setX(at)
    point.setY(header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=point)


def choose(page: ComparePage, node: str, text: str) -> None:
    """Open the menu of a row with the mouse, and choose an entry by its first words."""
    table = page.nodes.table
    assert table.reveal(node)
    row = [each.key for each in table.rows()].index(node)
    place = table.visualRect(table.model().index(row, 1)).center()

    choose_from_menu(table, place, text)


@pytest.mark.x
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_nodes_are_sorted_filtered_and_selected_in_all_panes(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    window = open_window("sample:conv_net", extensions=(Extension(path=str(path), kind="rules"),))
    page = window.panes.compare
    trigger(window, "compare-nodes")
    assert window.panes.outcome.empty.accessibleName() == "Not run yet"
    assert not window.commands.action("next-difference").isEnabled()
    run_and_wait(qtbot, window)
    page = compare_page(window)
    names = [node.name for node in window.document.snapshot.fx if node.strategy]
    assert column(page, "node") == names
    verdicts = dict(zip(names, column(page, "status"), strict=True))
    assert verdicts["conv"] == "✓ matches"
    assert verdicts["relu"] == verdicts["relu_1"] == "✕ starts here"
    assert verdicts["pool"] == "inherited"
    differing = [name for name, verdict in verdicts.items() if verdict != "✓ matches"]

    # The largest error first, by a click.
    sort_by(qtbot, page, "error in the run")
    record = window.document.run_record
    assert record is not None
    errors = {each.id: each.max_abs_error for each in record.nodes}
    falling = sorted(names, key=lambda name: -(errors[f"fx:{name}"] or 0.0))
    assert column(page, "node") == falling

    # Quick filters and a line of text.
    page.nodes.sorts.setFocus()
    qtbot.keyClick(page.nodes.sorts, Qt.Key.Key_Right)
    assert sorted(column(page, "node")) == ["relu", "relu_1"]
    assert set(column(page, "status")) == {"✕ starts here"}
    qtbot.keyClick(page.nodes.sorts, Qt.Key.Key_Right)
    assert sorted(column(page, "node")) == sorted(differing)
    page.nodes.filter.setText("RELU 1")
    assert {each.rpartition(" ")[2] for each in column(page, "operator")} == {"ReLU"}
    page.nodes.filter.setText("no such node")
    assert page.nodes.table.empty.accessibleName() == "No such node"
    page.nodes.show_all()

    # Differences one after the other, in the order of the graph and in all panes.
    window.commands.action("first-difference").trigger()
    assert window.document.selection.chosen == ("fx:relu",)
    trigger(window, "next-difference")
    second = differing[1]
    assert window.document.selection.chosen == (f"fx:{second}",)
    assert page.nodes.table.selected_keys() == [f"fx:{second}"]
    window.set_mode("explore")
    assert window.panes.fx.graph.canvas.selection() == {f"fx:{second}"}
    editor = window.panes.relax.script.code.editor
    marked = [text for row, text in enumerate(editor.lines()) if editor.is_selected(row)]
    bindings = window.document.snapshot.nodes[f"fx:{second}"].bindings
    # The first row of each binding has its name.
    assert [each.split()[0] for each in marked if " = " in each] == [
        each.rpartition("/")[2] for each in bindings
    ]
    trigger(window, "previous-difference")
    assert window.document.selection.chosen == ("fx:relu",)
    page = compare_page(window)
    window.activateWindow()
    page.nodes.table.setFocus()
    qtbot.waitUntil(page.nodes.table.hasFocus)
    qtbot.keyClick(page.nodes.table, Qt.Key.Key_N)
    assert window.document.selection.chosen == ("fx:relu_1",)
    trigger(window, "previous-difference")
    trigger(window, "first-difference")

    # And the other way: a row that is come to by the arrow keys, and what is copied.
    table = page.nodes.table
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_Up)
    (selected,) = table.selected_keys()
    assert window.document.selection.chosen == (selected,)
    table.copy()
    assert selected.removeprefix("fx:") in QGuiApplication.clipboard().text()

    # The menu of a row, and what Enter shows.
    choose(page, "fx:relu", "Translation: ")
    assert window.panes.relax.current() == "translation"
    page = compare_page(window)
    choose(page, "fx:conv", "Step ")
    step = window.features.stepping.line
    assert step is not None
    assert step.title == "conv"
    assert window.document.selection.chosen == ("fx:conv",)
    page = compare_page(window)
    assert page.tensor.isVisible()
    values = page.tensor.matrix.views["tvm"].map
    qtbot.waitUntil(lambda: values.piece() is not None, timeout=PATIENCE)
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert window.mode == "explore"
