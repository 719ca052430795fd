"""The translation node by node in the window: the node map, the rules, what emit_te did."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.relax.node_map import NodeMap
from lowerscope.app.panes.relax.translation_page import TranslationPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import PATIENCE, OpenWindow

LEFT = Qt.MouseButton.LeftButton


def rows_of(node_map: NodeMap) -> dict[str, list[str]]:
    return {
        row.key: [row.cell(place).text for place in range(len(row.cells))]
        for row in node_map.table.rows()
    }


def place_of(node_map: NodeMap, entity: str) -> QPoint:
    table = node_map.table
    place = [row.key for row in table.rows()].index(entity)
    rect: QRect = table.visualRect(table.model().index(place, 1))
    return rect.center()


def wait_for_title(qtbot: QtBot, page: TranslationPage, title: str, number: int) -> None:
    """Wait until the translation of a node is shown."""

    def shown() -> None:
        assert page.title.text() == title
        assert page.summary.whole().startswith(f"Node {number} of ")

    qtbot.waitUntil(shown, timeout=PATIENCE)


def show_part(qtbot: QtBot, page: TranslationPage, key: str) -> None:
    """Show the rule, or what emit_te did; a wide page shows both."""
    assert page.parts.isVisible()
    qtbot.mouseClick(page.parts, LEFT, pos=page.parts.segment_rect(key).center().toPoint())


def choose_step(qtbot: QtBot, page: TranslationPage, key: str) -> None:
    rect = page.te.steps.segment_rect(key)
    qtbot.mouseClick(page.te.steps, LEFT, pos=rect.center().toPoint())


def test_the_node_map_is_filled_while_the_translation_is_stepped_through(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    window.commands.action("node-map").trigger()
    node_map, timeline = window.panes.node_map, window.panes.timeline
    assert node_map.isVisible()
    assert rows_of(node_map)["fx:linear0"] == [
        "2",
        "linear0",
        "linear0",
        "TE",
        "linear: topi.nn.dense, topi.add",
        "lv1",
        "1×128 float32",
        "dense, add",
    ]
    assert node_map.count.text() == "5 nodes"

    window.commands.action("section-translate").trigger()
    window.features.stepping.go(Moment(section="translate", index=0))
    assert {cells[4] for cells in rows_of(node_map).values()} == {"not yet"}
    qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    qtbot.keyClick(timeline.slider, Qt.Key.Key_Right)
    rows = rows_of(node_map)
    assert rows["fx:linear0"][0] in ("2", "▸ 2")
    done = [key for key, cells in rows.items() if cells[4] != "not yet"]
    moment = window.features.stepping.moment
    assert moment is not None
    assert len(done) == moment.index
    assert node_map.count.text() == f"{moment.index} of 5 translated"
    marked = [key for key, cells in rows.items() if cells[0].startswith("▸")]
    assert marked == [done[-1]]

    def grown() -> None:
        text = window.panes.relax.script.code.text()
        assert "cls.dense" in text
        assert "cls.dense1" not in text
        assert "return gv" in text

    qtbot.waitUntil(grown, timeout=PATIENCE)
    window.commands.action("leave-steps").trigger()
    assert "not yet" not in {cells[4] for cells in rows_of(node_map).values()}


def test_a_row_selects_the_node_everywhere_and_rows_are_sorted_and_filtered(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    window.commands.action("node-map").trigger()
    node_map, table = window.panes.node_map, window.panes.node_map.table
    qtbot.mouseClick(table.viewport(), LEFT, pos=place_of(node_map, "fx:relu"))
    assert window.document.selection.chosen == ("fx:relu",)
    window.panes.fx.set_current("table")
    assert window.panes.fx.table.selected_keys() == ["fx:relu"]
    assert window.panes.relax.context() == "lv2"
    assert window.panes.details.context() == "relu"
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert window.document.selection.chosen == ("fx:linear1",)

    header = table.horizontalHeader()
    title = QPoint(header.sectionViewportPosition(1) + 20, header.height() // 2)
    qtbot.mouseClick(header.viewport(), LEFT, pos=title)
    assert list(rows_of(node_map)) == sorted(rows_of(node_map))
    qtbot.mouseClick(header.viewport(), LEFT, pos=title)
    assert list(rows_of(node_map)) == sorted(rows_of(node_map), reverse=True)

    qtbot.keyClicks(node_map.filter, "topi.nn")
    assert set(rows_of(node_map)) == {"fx:linear0", "fx:linear1"}
    assert node_map.count.text() == "2 of 5 nodes"
    node_map.filter.clear()
    assert len(rows_of(node_map)) == 5


def test_the_translation_of_a_node_has_its_rule_and_the_steps_of_emit_te(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    window.commands.action("node-map").trigger()
    node_map, page = window.panes.node_map, window.panes.translation
    place = place_of(node_map, "fx:linear1")
    qtbot.mouseClick(node_map.table.viewport(), LEFT, pos=place)
    qtbot.mouseDClick(node_map.table.viewport(), LEFT, pos=place)
    assert page.isVisible()
    wait_for_title(qtbot, page, "linear1 · TE", 4)
    assert "def linear(b: NodeBuilder" in page.rule.code.text()
    assert page.rule.place.text().startswith("linear.py:")
    items = [page.rule.choice.itemText(each) for each in range(page.rule.choice.count())]
    assert items[:2] == ["rule: linear", "rule: matmul"]
    assert items[-2:] == ["TE function: topi.nn.dense", "TE function: topi.add"]
    # By the keyboard to the last of them.
    qtbot.keyClick(page.rule.choice, Qt.Key.Key_End)
    assert page.rule.code.text().startswith("def add(lhs, rhs)")

    assert not page.te.isVisible()
    show_part(qtbot, page, "te")
    assert not page.rule.isVisible()
    calls = [page.te.choice.itemText(each) for each in range(page.te.choice.count())]
    assert calls == [
        "lv3 = emit_te(topi.nn.dense, lv2, linear1.weight)",
        "lv4 = emit_te(topi.add, lv3, linear1.bias)",
    ]
    cells = [[cell.text for cell in map(row.cell, range(4))] for row in page.te.table.rows()]
    assert [(row[1], row[3]) for row in cells] == [
        ("1×128", "lv2"),
        ("10×128", "linear1.weight"),
    ]
    choose_step(qtbot, page, "expression")
    assert "te.compute((1, 10), lambda i0, i1: te.sum(" in page.te.code.text()
    choose_step(qtbot, page, "function")
    assert "def dense1(" in page.te.code.text()
    choose_step(qtbot, page, "call")
    assert page.te.code.text().startswith("lv3 = R.call_tir(cls.dense1, (lv2, ")
    qtbot.keyClick(page.te.choice, Qt.Key.Key_Down)
    assert page.te.code.text().startswith("lv4 = R.call_tir(cls.add1, (lv3, ")

    # With room for both, both are there.
    for name, dock in window.panes.docks.items():
        dock.setVisible(name == "outcome")
    qtbot.waitUntil(lambda: page.rule.isVisible() and page.te.isVisible(), timeout=PATIENCE)
    assert not page.parts.isVisible()
    assert page.te.code.text().startswith("lv4 = R.call_tir(cls.add1, (lv3, ")


def test_the_translation_follows_the_steps_and_the_selection(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:conv_net", lowering="te")
    window.commands.action("translation").trigger()
    page, stepping = window.panes.translation, window.features.stepping
    wait_for_title(qtbot, page, "conv · TE", 2)
    stepping.go(Moment(section="translate", index=3))
    wait_for_title(qtbot, page, "relu · TE", 3)
    # All panes mark what the step made.
    assert window.document.selection.chosen == ("fx:relu",)
    tensorir = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def te_relu(" in tensorir.text(), timeout=PATIENCE)
    qtbot.keyClick(window.panes.timeline.slider, Qt.Key.Key_Right)
    wait_for_title(qtbot, page, "pool · TE", 4)
    window.document.select(("fx:linear0",))
    wait_for_title(qtbot, page, "linear0 · TE", 6)


def test_a_node_of_the_library_shows_torch_and_one_of_relax_what_a_pass_makes_of_it(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="library")
    window.commands.action("translation").trigger()
    page = window.panes.translation
    wait_for_title(qtbot, page, "linear0 · Library", 2)
    assert page.rule.code.text().startswith('@tvm.register_global_func("torch.linear")')
    show_part(qtbot, page, "te")
    assert not page.te.steps.isVisible()
    assert page.te.code.empty.isVisible()
    window.commands.action("high-level").trigger()
    wait_for_title(qtbot, page, "linear0 · High-level", 2)
    qtbot.waitUntil(lambda: page.te.choice.count() == 3, timeout=PATIENCE)
    assert page.te.choice.itemText(1) == "lv1 = R.matmul, legalised by LegalizeOps"


def test_the_place_of_a_rule_is_opened(
    qtbot: QtBot, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window: MainWindow = open_window("sample:fashion_mlp")
    window.commands.action("translation").trigger()
    page = window.panes.translation
    wait_for_title(qtbot, page, "linear0 · High-level", 2)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    qtbot.mouseClick(page.rule.place, LEFT)
    assert [Path(each).name for each in opened] == ["linear.py"]
    file, _, line = QGuiApplication.clipboard().text().rpartition(":")
    assert (
        Path(file).read_text().split("\n")[int(line) - 1]
        == "@rule(F.linear, aten.linear.default, nn.Linear)"
    )


def test_a_source_without_torch_says_so(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:mlp_tvmscript")
    window.panes.outcome.set_current("translation")
    assert window.panes.translation.rule.code.empty.isVisible()
    window.panes.outcome.set_current("node-map")
    assert window.panes.node_map.table.empty.isVisible()
    assert not window.commands.action("node-map").isEnabled()
