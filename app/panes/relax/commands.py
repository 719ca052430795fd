"""Commands on FX nodes: selecting the next one, and lowering the selected ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from lowerscope.app.document.document import Document
from lowerscope.app.kit.bar_controls import Field, Part
from lowerscope.app.kit.commands import Command, add_choices
from lowerscope.core.model.recipe import TRANSLATORS
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.core.model.recipe import Strategy


class NodeCommands(QObject):
    """Commands on nodes."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document

    def walking(self) -> tuple[Command, ...]:
        """Return the commands that step through the nodes."""
        has_torch = self._document.has_torch
        return tuple(
            Command(f"{key}-node", title, partial(self._select, step), keys, enabled=has_torch)
            for key, title, step, keys in (
                ("next", _("&Next node"), 1, "Alt+Down"),
                ("previous", _("&Previous node"), -1, "Alt+Up"),
            )
        )

    def lowering(self) -> tuple[Command, ...]:
        """Return the commands that lower the selection."""

        def selected() -> bool:
            document = self._document
            return document.has_torch() and bool(document.selection.of_kind("fx"))

        ways: tuple[tuple[Strategy | None, str, str, str], ...] = (
            ("high-level", _("Lower sele&ction as high-level"), "Alt+1", "1"),
            ("te", _("Lower selection as TE"), "Alt+2", "2"),
            ("library", _("Lower selection as library"), "Alt+3", "3"),
            (None, _("Lower selection by default"), "Alt+0", ""),
        )
        return tuple(
            Command(
                f"selection-{strategy or 'reset'}",
                title,
                partial(self._lower, strategy),
                keys,
                enabled=selected,
                explore_keys=letter,
            )
            for strategy, title, keys, letter in ways
        )

    def _lower(self, strategy: Strategy | None) -> None:
        """Set the strategy of the selected nodes, or restore the default."""
        self._document.lower_nodes(self._document.selection.of_kind("fx"), strategy)

    def _select(self, step: int) -> None:
        """Select the next or the previous node."""
        snapshot = self._document.snapshot
        nodes = () if snapshot is None else snapshot.fx
        if not nodes:
            return
        marked = self._document.selection.of_kind("fx")
        places = [index for index, node in enumerate(nodes) if node.id in marked]
        place = places[-1 if step > 0 else 0] + step if places else 0
        self._document.select((nodes[max(0, min(place, len(nodes) - 1))].id,))


# Commands that select the translator of the graph: Lowerscope's rules or TVM's importers.


def importing(document: Document) -> tuple[Command, ...]:
    """Return the choices of a translator."""
    titles = {
        "lowerscope": _("Translate with Lowerscope's r&ules"),
        "tvm-fx": _("Translate with TVM's importer fro&m_fx"),
        "tvm-export": _("Translate with TVM's importer from_exported_&program"),
    }

    def chosen(translator: str) -> bool:
        return document.wanted is not None and document.wanted.translator == translator

    return tuple(
        Command(
            translator,
            titles[translator],
            partial(document.change_fields, translator=translator),
            enabled=document.has_torch,
            checked=partial(chosen, translator),
            group="translator",
        )
        for translator in TRANSLATORS
    )


# --- The field that shows and changes which of TVM's importers translates ---

TRANSLATOR_NAMES = {
    "lowerscope": _("Lowerscope's rules"),
    "tvm-fx": "TVM from_fx",
    "tvm-export": "TVM from_exported_program",
}


class ImporterField(Field):
    """A field that is visible while one of TVM's importers is the translator."""

    def __init__(self, document: Document) -> None:
        super().__init__(_("Importer"))
        self._document = document
        menu = QMenu(self)
        self._choices = add_choices(menu, TRANSLATOR_NAMES, self._choose)
        self.set_menu(menu)
        self.setToolTip(
            _("Translated by TVM's own importer, without Lowerscope's rules; shown unchanged")
        )
        document.on(("recipe", "pending"), self._show_recipe)
        self._show_recipe()

    def _show_recipe(self) -> None:
        recipe = self._document.wanted
        self.setVisible(recipe is not None and recipe.translator != "lowerscope")
        if recipe is None:
            return
        maker, _sep, name = TRANSLATOR_NAMES[recipe.translator].partition(" ")
        self.set_lines([Part(maker, "quiet")], [Part(name)])
        for action in self._choices.actions():
            action.setChecked(action.data() == recipe.translator)

    def _choose(self, action: QAction) -> None:
        self._document.change_fields(translator=action.data())
