"""The field that says which of TVM's importers translates, and takes another choice."""

from __future__ import annotations

import msgspec
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.views.formats import TRANSLATOR_NAMES
from lowerscope.app.widgets.field import Field, Part
from lowerscope.app.workspace import Workspace
from lowerscope.core.recipe import TRANSLATORS


class ImporterField(Field):
    """A field that is there while an importer of TVM's is chosen as the translator."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Importer"), parent)
        self._workspace = workspace
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
        workspace.recipe_wanted.connect(self._show_recipe)
        self._show_recipe()

    def _show_recipe(self) -> None:
        recipe = self._workspace.wanted
        self.setVisible(recipe is not None and recipe.translator != "lowerscope")
        if recipe is None:
            return
        maker, _, name = TRANSLATOR_NAMES[recipe.translator].partition(" ")
        self.set_parts([Part(maker, "quiet"), Part(name)])
        for action in self._choices.actions():
            action.setChecked(action.data() == recipe.translator)

    def _choose(self, action: QAction) -> None:
        recipe = self._workspace.wanted
        if recipe is not None:
            self._workspace.change(msgspec.structs.replace(recipe, translator=action.data()))
