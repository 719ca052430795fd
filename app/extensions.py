"""Rule and library files in the window: adding files, writing rules, opening a rule's source."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from lowerscope.app.children.handing_over import ask_for_file
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.trusting import Trusting
from lowerscope.app.views.descriptions import find_node, line_text
from lowerscope.app.views.extensions_dialog import ExtensionsDialog
from lowerscope.core.model.queries import WriteRuleQuery
from lowerscope.core.recipe import Extension, ExtensionKind, Recipe
from lowerscope.core.records.snapshot import FxNode, SourceLine
from lowerscope.core.sources.spec import is_file

if TYPE_CHECKING:
    from lowerscope.app.panes import Panes


def with_extension(recipe: Recipe, path: str, kind: ExtensionKind) -> Recipe:
    """Return `recipe` with a file appended, or enabled if it is already listed."""
    listed = [each for each in recipe.extensions if (each.path, each.kind) == (path, kind)]
    if not listed:
        added = (*recipe.extensions, Extension(path=path, kind=kind))
    else:
        added = tuple(
            msgspec.structs.replace(each, on=True) if each in listed else each
            for each in recipe.extensions
        )
    return msgspec.structs.replace(recipe, extensions=added)


class Extensions(QObject):
    """Commands about rule and library files."""

    def __init__(
        self, document: Document, queries: Queries, trusting: Trusting, window: QWidget
    ) -> None:
        super().__init__(window)
        self._document = document
        self._queries = queries
        self._trusting = trusting
        self._window = window
        self._folder = ""
        self._dialog: ExtensionsDialog | None = None

    def watch(self, panes: Panes) -> None:
        """Connect to the signals of the panes."""
        panes.problems.library_wanted.connect(self.choose_library)
        panes.translation.rule.place_wanted.connect(self.open_file)
        panes.details.rule_wanted.connect(self.open_rule)
        panes.fx.graph.rule_wanted.connect(self.write_rule)

    def show_list(self) -> None:
        """Show the list of rule and library files in a modeless dialog."""
        if self._dialog is None:
            self._dialog = ExtensionsDialog(self._document, self._window)
            self._dialog.file_wanted.connect(self.choose)
            self._dialog.place_wanted.connect(self.open_file)
        self._dialog.show()
        self._dialog.activateWindow()

    @property
    def dialog(self) -> ExtensionsDialog | None:
        """The list's dialog, if it has been shown."""
        return self._dialog

    def choose(self, kind: ExtensionKind) -> None:
        """Select a file with rules, library functions or passes in a dialog, and add it."""
        titles = {
            "rules": self.tr("Add lowering rules"),
            "library": self.tr("Add a library file"),
            "passes": self.tr("Add a file of passes"),
        }
        path, _ = QFileDialog.getOpenFileName(
            self._window, titles[kind], self._start(), self.tr("Python files (*.py)")
        )
        if path:
            self._folder = str(Path(path).parent)
            self.add(path, kind)

    def choose_library(self) -> None:
        """Select a file with library functions in a dialog, and add it."""
        self.choose("library")

    def choose_passes(self) -> None:
        """Select a file with passes in a dialog, and add it: they then appear in the catalogue."""
        self.choose("passes")

    def add(self, path: str, kind: ExtensionKind) -> None:
        """Add a file to the recipe."""
        recipe = self._document.wanted
        if recipe is not None:
            changed = with_extension(recipe, path, kind)
            self._trusting.ask(changed, self._document.change)

    def write_rule(self, entity: str = "") -> None:
        """Select a file in a dialog, and write a working rule for a node into it.

        Parameters
        ----------
        entity
            The node's id; empty for the last selected one.
        """
        node = self.selected() if not entity else self._node(entity)
        if node is None:
            return
        title = self.tr("Write a rule for {0}: a new file, or one to add it to").format(node.name)
        start = next((each.path for each in self._rule_files()), self._start() + "my_rules.py")
        path, _ = QFileDialog.getSaveFileName(
            self._window,
            title,
            start,
            self.tr("Python files (*.py)"),
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if path:
            path = path if path.endswith(".py") else f"{path}.py"
            self._folder = str(Path(path).parent)
            taken = partial(self._take_rule, node.name)
            document = self._document
            assert document.recipe is not None
            query = WriteRuleQuery(document.recipe, node.id, path)
            client = self._queries.client(query.child)
            ask_for_file(client, query, taken, document.report)

    def open_rule(self) -> None:
        """Open the file of the rule that lowered the last selected node."""
        node = self.selected()
        if node is not None and node.rule_line is not None:
            self.open_file(node.rule_line)

    def open_file(self, line: SourceLine) -> None:
        """Open a file in the desktop's default program for it; its location can be pasted."""
        QGuiApplication.clipboard().setText(f"{line.file}:{line.line}")
        # The desktop could execute a file that is not text, and the name comes from the engine.
        is_text = line.file.lower().endswith(".py")
        opened = is_text and QDesktopServices.openUrl(QUrl.fromLocalFile(line.file))
        text = (
            self.tr("{0} is opened; the place is on the clipboard.")
            if opened
            else self.tr("{0}: no program opens it; the place is on the clipboard.")
        )
        self._document.notify(text.format(line_text(line)), "info")

    def selected(self) -> FxNode | None:
        """Return the last selected node, or the only one linked to the selection."""
        selection = self._document.selection
        chosen = [each for each in selection.chosen if each.startswith("fx:")]
        linked = selection.of_kind("fx")
        if chosen:
            return self._node(chosen[-1])
        return self._node(linked[0]) if len(linked) == 1 else None

    def _node(self, entity: str) -> FxNode | None:
        snapshot = self._document.snapshot
        return None if snapshot is None else find_node(snapshot, entity)

    def _rule_files(self) -> list[Extension]:
        recipe = self._document.wanted
        return (
            [] if recipe is None else [each for each in recipe.extensions if each.kind == "rules"]
        )

    def _start(self) -> str:
        """Return the initial folder of the dialog: the last one used, or the model's."""
        if self._folder:
            return f"{self._folder}/"
        recipe = self._document.recipe
        if recipe is None or not is_file(recipe.source.spec):
            return ""
        return f"{Path(recipe.source.spec).parent}/"

    def _take_rule(self, node: str, line: SourceLine) -> None:
        text = self.tr("A rule for {0} stands at {1}.").format(node, line_text(line))
        self._document.notify(text, "info")
        recipe = self._document.wanted
        if recipe is None:
            return
        changed = with_extension(recipe, line.file, "rules")
        # A rule may have been added to a file that contains others.
        if changed == recipe:
            self._trusting.ask(changed, self._reload)
        else:
            self._trusting.ask(changed, self._document.change)

    def _reload(self, _recipe: Recipe) -> None:
        self._document.reload()
