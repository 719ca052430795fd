"""The menu of a graph: commands on a box, and on the graph as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from lowerscope.app.widgets.canvas.colours import FIGURES, Colouring
from lowerscope.app.widgets.plain_text import literal
from lowerscope.core.model.entities import name_of
from lowerscope.core.model.labels import STRATEGY_NAMES
from lowerscope.core.recipe import STRATEGIES

if TYPE_CHECKING:
    from lowerscope.app.views.graph_page import GraphPage

Deeds = dict[QAction, Callable[[], object]]


def open_menu(page: GraphPage, name: str, position: QPoint) -> None:
    """Open the menu of a graph.

    Parameters
    ----------
    name
        The box or frame; empty for the background.
    position
        Screen position.
    """
    menu = QMenu(page)
    deeds: Deeds = {}
    if name:
        _add_thing(page, name, menu, deeds)
        menu.addSeparator()
    _add_graph(page, menu, deeds)
    # A command may replace the graph: run it once the menu is gone.
    chosen = menu.exec(position)
    menu.deleteLater()
    if chosen in deeds:
        deeds[chosen]()


def _add_thing(page: GraphPage, name: str, menu: QMenu, deeds: Deeds) -> None:
    canvas, document, tr = page.canvas, page.document, page.tr
    entities = page.entities_of(name)
    deeds[menu.addAction(tr("Select"))] = partial(document.select, entities)
    add = menu.addAction(tr("Add to selection"))
    deeds[add] = partial(document.select, entities, extend=True)
    deeds[menu.addAction(tr("What is known of it\tI"))] = partial(canvas.show_card, name)
    around = canvas.frame_around(name)
    if canvas.is_group(name):
        deeds[menu.addAction(tr("Expand\t+"))] = partial(page.expand, name)
    if canvas.is_frame(name):
        around = name
    if around:
        text = tr("Collapse {0}\t-").format(literal(page.name_of(around)))
        deeds[menu.addAction(text)] = partial(page.collapse, around)
    breaks = page.breaks_of(name)
    if breaks:
        check = menu.addAction(tr("Breakpoint at its calls\tB"))
        check.setCheckable(True)
        check.setChecked(page.run_steps.breaks.issuperset(breaks))
        deeds[check] = partial(page.toggle_break, name)
    if page.graph != "fx":
        return
    below = menu.addMenu(tr("Lower as"))
    meant = page.meant(name)
    for strategy in STRATEGIES:
        action = below.addAction(STRATEGY_NAMES[strategy])
        deeds[action] = partial(document.lower_nodes, meant, strategy)
    below.addSeparator()
    deeds[below.addAction(tr("Reset to default"))] = partial(document.lower_nodes, meant, None)
    if name.startswith("fx:"):
        write = menu.addAction(tr("Write a rule for {0}…").format(literal(name_of(name))))
        deeds[write] = partial(page.rule_wanted.emit, name)


def _add_graph(page: GraphPage, menu: QMenu, deeds: Deeds) -> None:
    canvas, tr = page.canvas, page.tr
    if page.is_collapsible:
        deeds[menu.addAction(tr("Collapse all"))] = page.collapse_all
        deeds[menu.addAction(tr("Expand all"))] = page.expand_all
        deeds[menu.addAction(tr("Level that fits"))] = page.show_fitting_level
        menu.addSeparator()
    deeds[menu.addAction(tr("Fit\tF"))] = canvas.fit
    deeds[menu.addAction(tr("Zoom to selection\tZ"))] = canvas.zoom_to_selection
    deeds[menu.addAction(tr("Actual size\t0"))] = canvas.reset_zoom
    deeds[menu.addAction(tr("Find…\t/"))] = canvas.open_find
    menu.addSeparator()
    for text, shown, switch in (
        (tr("Values beside all edges\tL"), canvas.labels(), canvas.switch_labels),
        (tr("Overview\tM"), canvas.wants_minimap(), canvas.switch_minimap),
    ):
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(shown)
        deeds[action] = switch
    menu.addSeparator()
    deeds[menu.addAction(tr("Save picture…"))] = partial(page.picture_wanted.emit, page, False)
    seen = menu.addAction(tr("Save picture of what is seen…"))
    deeds[seen] = partial(page.picture_wanted.emit, page, True)
    menu.addSeparator()
    colours = menu.addMenu(tr("Colours"))
    colours.setToolTipsVisible(True)
    words: dict[Colouring, str] = {
        "strategy": tr("By strategy\tC"),
        "kind": tr("By kind\tC"),
        "time": tr("By time"),
        "error": tr("By error"),
    }
    for colouring, text in words.items():
        action = colours.addAction(text)
        action.setCheckable(True)
        action.setChecked(canvas.colouring() == colouring)
        if colouring in FIGURES:
            why_not = page.why_not(colouring)
            action.setEnabled(not why_not)
            action.setToolTip(why_not)
        deeds[action] = partial(canvas.set_colouring, colouring)
