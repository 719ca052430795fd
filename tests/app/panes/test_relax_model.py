"""The node map, the colours of nodes, and rule files, with records as plain values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document, Version
from lowerscope.app.document.stepping import Following
from lowerscope.app.panes.relax.extensions import ExtensionsDialog, with_extension
from lowerscope.app.panes.relax.translation_page import NodeMap
from lowerscope.core.model.module_steps import Moment, TranslationRecord
from lowerscope.core.model.recipe import Extension, Recipe, Source
from lowerscope.core.model.snapshot import (
    ExtensionRecord,
    RuleRecord,
    Snapshot,
    SourceLine,
    Span,
    TextRecord,
)
from tests.app.plain_values import snapshot

NAMES = ("dense", "relu", "head")
RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"))


def records() -> Snapshot:
    """Return records of three nodes with a binding each, and their translation."""
    plain = snapshot(*NAMES)
    nodes = tuple(
        msgspec.structs.replace(
            node,
            strategy="te",
            rule=f"the rule of {node.name}",
            bindings=(f"relax:main/lv{place}",),
            functions=(f"tir:{node.name}",),
        )
        for place, node in enumerate(plain.fx)
    )
    steps = tuple(
        TranslationRecord(
            number=place + 1,
            node=node.id,
            bindings=node.bindings,
            functions=(node.name,),
            value=f"lv{place}",
        )
        for place, node in enumerate(nodes)
    )
    spans = tuple(
        Span(entity=node.bindings[0], first=place, last=place)
        for place, node in enumerate(nodes, start=1)
    )
    links = tuple(
        pair
        for node in nodes
        for pair in (
            (node.id, node.bindings[0]),
            (node.id, node.functions[0]),
            (node.bindings[0], node.functions[0]),
        )
    )
    relax = TextRecord(text="a\nb\nc", language="python", spans=spans)
    return msgspec.structs.replace(plain, fx=nodes, translation=steps, relax=relax, links=links)


@pytest.fixture
def document(qtbot: QtBot) -> Document:
    document = Document()
    document.show(Version(RECIPE), records())
    return document


@pytest.fixture
def node_map(qtbot: QtBot, document: Document) -> NodeMap:
    node_map = NodeMap(document)
    qtbot.addWidget(node_map)
    node_map.resize(900, 300)
    node_map.show()
    return node_map


def keys(node_map: NodeMap) -> list[str]:
    return [row.key for row in node_map.table.rows()]


def cells(node_map: NodeMap, place: int) -> list[str]:
    return [row.cell(place).text for row in node_map.table.rows()]


# The node map


def test_it_is_filled_while_the_translation_is_stepped_through(
    document: Document, node_map: NodeMap
) -> None:
    rules = [f"the rule of {name}" for name in NAMES]
    assert cells(node_map, 4) == rules
    assert cells(node_map, 5) == ["lv0", "lv1", "lv2"]
    for count in range(4):
        document.set(moment=Moment(section="translate", index=count))
        assert cells(node_map, 4) == rules[:count] + ["not yet"] * (3 - count)
        marked = [text for text in cells(node_map, 0) if text.startswith("▸")]
        assert marked == [f"▸ {count}"][: min(count, 1)]
        assert node_map.count.text().startswith(f"{count} of 3")
    document.set(moment=None)
    assert cells(node_map, 0) == ["1", "2", "3"]


def test_a_step_selects_its_node(document: Document) -> None:
    following = Following(document)
    document.set(moment=Moment(section="translate", index=2))
    assert document.selection.chosen == ("fx:relu",)
    assert "tir:relu" in document.selection.linked
    document.set(moment=Moment(section="translate", index=0))
    assert document.selection.chosen == ("fx:relu",)
    following.deleteLater()


def test_a_row_selects_its_node_and_rows_are_sorted_and_filtered(
    qtbot: QtBot, document: Document, node_map: NodeMap
) -> None:
    table, left = node_map.table, Qt.MouseButton.LeftButton
    qtbot.waitUntil(lambda: table.visualRect(table.model().index(1, 1)).isValid())
    place = table.visualRect(table.model().index(1, 1)).center()
    qtbot.mouseClick(table.viewport(), left, pos=place)
    assert document.selection.chosen == ("fx:relu",)
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert document.selection.chosen == ("fx:head",)
    document.select(("fx:dense",))
    assert table.selected_keys() == ["fx:dense"]

    header = table.horizontalHeader()
    title = QPoint(header.sectionViewportPosition(1) + 20, header.height() // 2)
    for falling in (False, True):
        qtbot.mouseClick(header.viewport(), left, pos=title)
        assert keys(node_map) == sorted(keys(node_map), reverse=falling)

    qtbot.keyClicks(node_map.filter, "of relu")
    assert keys(node_map) == ["fx:relu"]
    assert node_map.count.text().startswith("1 of 3")
    node_map.filter.clear()
    assert len(keys(node_map)) == 3


def test_a_double_click_opens_the_translation(
    qtbot: QtBot, document: Document, node_map: NodeMap
) -> None:
    with qtbot.waitSignal(node_map.node_wanted):
        node_map.table.row_activated.emit("fx:head")
    assert document.selection.chosen == ("fx:head",)


# Colours


def test_all_that_a_node_became_has_its_colour(document: Document) -> None:
    colouring = Colouring(document)
    numbers = {name: colouring.number_of(f"fx:{name}") for name in NAMES}
    assert sorted(numbers.values()) == [0, 1, 2]  # type: ignore[type-var]
    for place, name in enumerate(NAMES):
        for entity in (f"relax:main/lv{place}", f"tir:{name}", f"tir:{name}/T_add/i0"):
            node = colouring.node_of(entity)
            assert node is not None
            assert node.name == name
            assert colouring.number_of(entity) == numbers[name]
    assert colouring.number_of("relax:main/other") is None
    # It is switched on and off, and follows other records.
    seen: list[bool] = []
    colouring.changed.connect(lambda: seen.append(colouring.on))
    colouring.renew()
    colouring.toggle()
    colouring.renew()
    colouring.toggle()
    assert seen == [True, True, False]
    document.show(Version(RECIPE), snapshot("other"))
    assert colouring.node_of("fx:dense") is None


# Rule files

RULES, MORE = (
    Extension(path="/tmp/a.py", kind="rules"),
    Extension(path="/tmp/b.py", kind="library"),
)


@pytest.fixture
def dialog(qtbot: QtBot, document: Document) -> ExtensionsDialog:
    rule = RuleRecord(
        name="my_relu",
        line=SourceLine(file="/tmp/a.py", line=6),
        keys=("torch.relu",),
        strategies=("te",),
        nodes=("fx:relu",),
    )
    held = ExtensionRecord(path="/tmp/a.py", rules=(rule,))
    recipe = msgspec.structs.replace(RECIPE, extensions=(RULES, MORE))
    document.show(Version(recipe), msgspec.structs.replace(records(), extensions=(held,)))
    dialog = ExtensionsDialog(document)
    qtbot.addWidget(dialog)
    return dialog


def listed(dialog: ExtensionsDialog) -> list[list[str]]:
    items: list[Any] = [
        dialog.list.topLevelItem(place) for place in range(dialog.list.topLevelItemCount())
    ]
    return [[item.text(column) for column in range(3)] for item in items]


def files(document: Document) -> tuple[Extension, ...]:
    assert document.wanted is not None
    return document.wanted.extensions


def test_files_are_listed_switched_moved_and_removed(
    qtbot: QtBot, document: Document, dialog: ExtensionsDialog
) -> None:
    assert listed(dialog) == [["a.py", "rules", "1 rule · 1 node"], ["b.py", "library", ""]]
    assert not dialog.buttons["remove"].isEnabled()
    dialog.list.setCurrentItem(dialog.list.topLevelItem(1))
    assert not dialog.buttons["down"].isEnabled()
    dialog.buttons["up"].click()
    # The later file wins: the order is a part of the recipe.
    assert files(document) == (MORE, RULES)
    assert dialog.list.currentItem().text(0) == "b.py"
    off = msgspec.structs.replace(RULES, on=False)
    dialog.list.topLevelItem(1).setCheckState(0, Qt.CheckState.Unchecked)
    qtbot.waitUntil(lambda: files(document) == (MORE, off))
    assert listed(dialog)[1][2] == "off"
    dialog.buttons["remove"].click()
    assert files(document) == (off,)
    document.undo()
    assert files(document) == (RULES, MORE)


def test_a_file_that_is_added_again_is_switched_on(document: Document) -> None:
    off = msgspec.structs.replace(RULES, on=False)
    recipe = msgspec.structs.replace(RECIPE, extensions=(off, MORE))
    assert with_extension(recipe, RULES.path, "rules").extensions == (RULES, MORE)
    both = with_extension(recipe, RULES.path, "passes").extensions
    assert both == (off, MORE, Extension(path=RULES.path, kind="passes"))
