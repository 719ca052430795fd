"""Rule and library files in the window: adding files, writing rules, opening a rule's source."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from lowerscope.app.document.document import Document, Trust
from lowerscope.app.document.queries import Queries
from lowerscope.app.engine.file_broker import ask_for_file
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.dialogs import Dialog, file_to_open
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.common.descriptions import find_node, line_text
from lowerscope.core.files.sources import is_file
from lowerscope.core.model.queries import WriteRuleQuery
from lowerscope.core.model.recipe import Extension, ExtensionKind, Recipe
from lowerscope.core.model.snapshot import ExtensionRecord, FxNode, SourceLine
from lowerscope.core.model.texts import _, _n

# --- The list of rule and library files: existing, enabled, and in order ---

KINDS = {"rules": "rules", "library": "library", "passes": "passes"}


NAME_WIDTH = 280


class ExtensionsDialog(Dialog):
    """A modeless list of files: changes apply at once, and can be undone."""

    file_wanted = Signal(str)  # Add a file: ``"rules"``, ``"library"`` or ``"passes"``.
    place_wanted = Signal(object)  # Open a file: a `SourceLine`.

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.setWindowTitle(_("Rules and library files"))
        self.list = QTreeWidget()
        self.list.setAccessibleName(_("Rule and library files"))
        self.list.setRootIsDecorated(False)
        self.list.setHeaderLabels([_("file"), _("kind"), _("contents")])
        header = self.list.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(0, NAME_WIDTH)
        self.empty = EmptyState(
            _("No files yet"),
            _("Add one, or write a rule from a node's menu in the FX graph."),
        )
        hint = Label(
            _(
                "Rules take precedence over the built-in ones; library files register "
                "functions that a module calls by name; files of passes extend the catalogue. "
                "A later file takes precedence over an earlier one."
            ),
            role="quiet",
            wraps=True,
        )
        self.buttons = {
            key: push_button(text, act=act, auto_default=False)
            for key, text, act in (
                ("rules", _("Add rules…"), partial(self.file_wanted.emit, "rules")),
                ("library", _("Add library…"), partial(self.file_wanted.emit, "library")),
                ("passes", _("Add passes…"), partial(self.file_wanted.emit, "passes")),
                ("remove", _("Remove"), self._remove),
                ("up", _("Up"), partial(self._move, -1)),
                ("down", _("Down"), partial(self._move, 1)),
                ("open", _("Open file"), self._open),
            )
        }
        buttons = list(self.buttons.values())
        row = row_of(None, *buttons[:3], STRETCH, *buttons[3:], margins=None, spacing=8)
        parts = (hint, (self.empty, 1), (self.list, 1), row)
        column_of(self, *parts, margins=(16, 16, 16, 12), spacing=12)
        self.resize(720, 300)
        self.list.itemChanged.connect(self._switch)
        self.list.currentItemChanged.connect(self._enable)
        document.on(("recipe", "pending"), self._show_recipe)
        document.on(("snapshot",), self._show_recipe)
        self._show_recipe()
        offer_help(self, "add-operator-rule")

    def _files(self) -> tuple[Extension, ...]:
        recipe = self._document.wanted
        return () if recipe is None else recipe.extensions

    def _show_recipe(self) -> None:
        self.list.setVisible(bool(self._files()))
        self.empty.setVisible(not self._files())
        place = self._place()
        self.list.blockSignals(True)
        self.list.clear()
        snapshot = self._document.snapshot
        held = {each.path: each for each in snapshot.extensions} if snapshot is not None else {}
        for each in self._files():
            holds = _holds(each, held.get(each.path))
            item = QTreeWidgetItem(self.list, [Path(each.path).name, KINDS[each.kind], holds])
            item.setToolTip(0, each.path)
            item.setToolTip(2, _told(held.get(each.path)))
            state = Qt.CheckState.Checked if each.on else Qt.CheckState.Unchecked
            item.setCheckState(0, state)
        self.list.blockSignals(False)
        if place >= 0:
            self._mark(min(place, len(self._files()) - 1))
        self._enable()

    def _place(self) -> int:
        item = self.list.currentItem()
        return -1 if item is None else self.list.indexOfTopLevelItem(item)

    def _mark(self, place: int) -> None:
        item = self.list.topLevelItem(place)
        if item is not None:
            self.list.setCurrentItem(item)

    def _enable(self) -> None:
        place, count = self._place(), len(self._files())
        for key in KINDS:
            self.buttons[key].setEnabled(self._document.wanted is not None)
        for key in ("remove", "open"):
            self.buttons[key].setEnabled(place >= 0)
        self.buttons["up"].setEnabled(place > 0)
        self.buttons["down"].setEnabled(0 <= place < count - 1)

    def _change(self, files: list[Extension]) -> None:
        self._document.change_fields(extensions=tuple(files))

    def _switch(self, item: QTreeWidgetItem) -> None:
        place = self.list.indexOfTopLevelItem(item)
        files = list(self._files())
        on = item.checkState(0) == Qt.CheckState.Checked
        files[place] = msgspec.structs.replace(files[place], on=on)
        # The change rebuilds the list while the item is still emitting its signal.
        QTimer.singleShot(0, self, partial(self._change, files))

    def _remove(self) -> None:
        files = list(self._files())
        del files[self._place()]
        self._change(files)

    def _move(self, step: int, _checked: bool = False) -> None:
        place, files = self._place(), list(self._files())
        files.insert(place + step, files.pop(place))
        self._mark(place + step)
        self._change(files)

    def _open(self) -> None:
        self.place_wanted.emit(SourceLine(file=self._files()[self._place()].path, line=1))


def _holds(file: Extension, record: ExtensionRecord | None) -> str:
    if not file.on:
        return _("off")
    if file.kind == "passes":
        return _("passes of the catalogue")
    if record is None:
        return ""
    parts = []
    if record.rules:
        nodes = len({node for rule in record.rules for node in rule.nodes})
        rules = _n("{count} rule", "{count} rules", len(record.rules))
        seen = _n("{count} node", "{count} nodes", nodes)
        parts.append(f"{rules} · {seen}")
    if record.functions:
        parts.append(_n("1 function", "{count} functions", len(record.functions)))
    return " · ".join(parts) or _("nothing")


def _told(record: ExtensionRecord | None) -> str:
    """Return the contents of a file, a line each."""
    if record is None:
        return ""
    lines = [
        _(
            "{name}, line {line}: {keys} as {strategies}",
            name=rule.name,
            line=rule.line.line,
            keys=_(", ").join(rule.keys),
            strategies=_(", ").join(rule.strategies),
        )
        for rule in record.rules
    ]
    return "\n".join([*lines, *record.functions])


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

    def __init__(self, document: Document, queries: Queries, trust: Trust, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._queries = queries
        self._trust = trust
        self._window = window
        self._folder = ""
        self.dialog: ExtensionsDialog | None = None  # The list's dialog, if it has been shown.

    def show_list(self) -> None:
        """Show the list of rule and library files in a modeless dialog."""
        if self.dialog is None:
            self.dialog = ExtensionsDialog(self._document, self._window)
            self.dialog.file_wanted.connect(self.choose)
            self.dialog.place_wanted.connect(self.open_file)
        self.dialog.show()
        self.dialog.activateWindow()

    def choose(self, kind: ExtensionKind) -> None:
        """Select a file with rules, library functions or passes in a dialog, and add it."""
        titles = {
            "rules": _("Add lowering rules"),
            "library": _("Add a library file"),
            "passes": _("Add a file of passes"),
        }
        kinds = _("Python files (*.py)")
        # The window that asks for it has the focus again afterwards.
        dialog = self.dialog
        parent = dialog if dialog is not None and dialog.isActiveWindow() else self._window
        if path := file_to_open(parent, titles[kind], self._start(), kinds):
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
            self._trust(with_extension(recipe, path, kind), self._change)

    def _change(self, recipe: Recipe) -> None:
        self._document.change(recipe)
        if self.dialog is not None and self.dialog.isVisible():
            # The question whether to run the file is one of the main window.
            self.dialog.activateWindow()

    def write_rule(self, entity: str = "") -> None:
        """Select a file in a dialog, and write a working rule for a node into it.

        Args:
            entity: The node's id; empty for the last selected one.
        """
        node = self.selected() if not entity else self._node(entity)
        if node is None:
            return
        title = _(
            "Write a rule for {name}: a new file, or an existing one to add it to", name=node.name
        )
        start = next((each.path for each in self._rule_files()), self._start() + "my_rules.py")
        path, _filter = QFileDialog.getSaveFileName(
            self._window,
            title,
            start,
            _("Python files (*.py)"),
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if path:
            path = path if path.endswith(".py") else f"{path}.py"
            self._folder = str(Path(path).parent)
            taken = partial(self._take_rule, node.name)
            document = self._document
            assert document.recipe is not None
            query = WriteRuleQuery(document.recipe, node.id, path)
            ask_for_file(self._queries, query, taken, document.report)

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
            _("Opened {line}; its location is on the clipboard.", line=line_text(line))
            if opened
            else _(
                "{line}: no program opens it; its location is on the clipboard.",
                line=line_text(line),
            )
        )
        self._document.notify(text, "info")

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
        text = _("The rule for {node} is at {line}.", node=node, line=line_text(line))
        self._document.notify(text, "info")
        recipe = self._document.wanted
        if recipe is None:
            return
        changed = with_extension(recipe, line.file, "rules")
        # A rule may have been added to a file that contains others.
        if changed == recipe:
            self._trust(changed, self._reload)
        else:
            self._trust(changed, self._document.change)

    def _reload(self, _recipe: Recipe) -> None:
        self._document.reload()
