"""The menu of a row of the page Compare, with the commands on a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from lowerscope.app.views.descriptions import find_node, line_text
from lowerscope.app.widgets.plain_text import literal
from lowerscope.core.model.labels import STRATEGY_NAMES
from lowerscope.core.recipe import STRATEGIES
from lowerscope.core.records.steps import Moment

if TYPE_CHECKING:
    from lowerscope.app.views.compare_page import ComparePage

Deeds = dict[QAction, Callable[[], object]]


def open_menu(page: ComparePage, entity: str, position: QPoint) -> None:
    """Open the menu of a node.

    Parameters
    ----------
    position
        Screen position.
    """
    menu = QMenu(page)
    deeds: Deeds = {}
    _fill(page, entity, menu, deeds)
    # A command may replace the rows: run it once the menu is gone.
    chosen = menu.exec(position)
    menu.deleteLater()
    if chosen in deeds:
        deeds[chosen]()


def _fill(page: ComparePage, entity: str, menu: QMenu, deeds: Deeds) -> None:
    document, tr = page.document, page.tr
    snapshot = document.snapshot
    node = None if snapshot is None else find_node(snapshot, entity)
    if snapshot is None or node is None:
        return
    deeds[menu.addAction(tr("Look at its values"))] = page.tensor_wanted.emit
    rule = tr("How it was translated: {0}").format(literal(node.rule)) if node.rule else ""
    deeds[menu.addAction(rule or tr("How it was translated"))] = page.translation_wanted.emit
    if node.rule_line is not None:
        text = tr("Open the rule: {0}").format(literal(line_text(node.rule_line)))
        deeds[menu.addAction(text)] = page.rule_wanted.emit
    step = next((each for each in snapshot.translation if each.node == entity), None)
    if step is not None:
        moment = Moment(clock="translate", index=step.number)
        text = tr("Step {0} of the translation").format(step.number)
        deeds[menu.addAction(text)] = partial(page.stepping.go, moment)
    if node.strategy:
        below = menu.addMenu(tr("Lower as"))
        for strategy in STRATEGIES:
            action = below.addAction(STRATEGY_NAMES[strategy])
            deeds[action] = partial(document.lower_nodes, (entity,), strategy)
        below.addSeparator()
        reset = below.addAction(tr("Reset to default"))
        deeds[reset] = partial(document.lower_nodes, (entity,), None)
    menu.addSeparator()
    deeds[menu.addAction(tr("Show all nodes"))] = page.nodes.show_all
    deeds[menu.addAction(tr("Copy the rows\tCtrl+C"))] = page.nodes.table.copy
