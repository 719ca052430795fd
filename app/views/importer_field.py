"""The field that shows and changes which of TVM's importers translates."""

from __future__ import annotations

import msgspec
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.widgets.field import Field, Part
from lowerscope.core.recipe import TRANSLATORS

TRANSLATOR_NAMES = {
    "lowerscope": "Lowerscope's rules",
    "tvm-fx": "TVM from_fx",
    "tvm-export": "TVM from_exported_program",
}


class ImporterField(Field):
    """A field that is visible while one of TVM's importers is the translator."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Importer"), parent)
        self._document = document
        menu = QMenu(self)
        self._choices = QActionGroup(menu)
        for translator in TRANSLATORS:
            action = QAction(TRANSLATOR_NAMES[translator], self._choices, checkable=True)
            action.setData(translator)
            menu.addAction(action)
        self._choices.triggered.connect(self._choose)
        self.set_menu(menu)
        self.setToolTip(
            self.tr("TVM's own importer translates the graph, not Lowerscope's rules: as it is")
        )
        document.on(("recipe", "pending"), self._show_recipe)
        self._show_recipe()

    def _show_recipe(self) -> None:
        recipe = self._document.wanted
        self.setVisible(recipe is not None and recipe.translator != "lowerscope")
        if recipe is None:
            return
        maker, _, name = TRANSLATOR_NAMES[recipe.translator].partition(" ")
        self.set_parts([Part(maker, "quiet"), Part(name)])
        for action in self._choices.actions():
            action.setChecked(action.data() == recipe.translator)

    def _choose(self, action: QAction) -> None:
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(msgspec.structs.replace(recipe, translator=action.data()))
