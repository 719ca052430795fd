"""The translation node by node in the window: the node map, the rules, what emit_te did."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.relax.node_map import NodeMap
from lowerscope.app.panes.relax.translation_page import TranslationPage
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


def test_the_translation_of_a_node(
    qtbot: QtBot, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    window.commands.action("node-map").trigger()
    node_map, page = window.panes.node_map, window.panes.translation
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
    qtbot.waitUntil(lambda: not place_of(node_map, "fx:linear1").isNull())
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

    # The place of the rule is opened.
    qtbot.keyClick(page.rule.choice, Qt.Key.Key_Home)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    show_part(qtbot, page, "rule")
    qtbot.mouseClick(page.rule.place, LEFT)
    assert [Path(each).name for each in opened] == ["linear.py"]
    file, _, line = QGuiApplication.clipboard().text().rpartition(":")
    assert "@rule(F.linear" in Path(file).read_text().split("\n")[int(line) - 1]

    # It follows the steps, and the selection.
    stepping = window.features.stepping
    stepping.go(Moment(section="translate", index=2))
    wait_for_title(qtbot, page, "linear0 · TE", 2)
    assert window.document.selection.chosen == ("fx:linear0",)
    qtbot.keyClick(window.panes.pipeline.slider, Qt.Key.Key_Right)
    wait_for_title(qtbot, page, "relu · TE", 3)
    window.commands.action("leave-steps").trigger()
    window.document.select(("fx:linear0",))
    wait_for_title(qtbot, page, "linear0 · TE", 2)
