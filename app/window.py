"""The window: menus, tool bar, banner, and either the welcome page or the panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QIcon
from PySide6.QtWidgets import QInputDialog, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app import theme
from lowerscope.app.actions import Commands
from lowerscope.app.menus import add_commands, fill_menus
from lowerscope.app.opening import Opening, dropped_file, source_text
from lowerscope.app.settings import Settings
from lowerscope.app.views.status_bar import StatusBar
from lowerscope.app.views.tool_bar import ToolBar
from lowerscope.app.views.welcome_page import WelcomePage
from lowerscope.app.widgets.banner import Banner
from lowerscope.app.workspace import Workspace
from lowerscope.core.recipe import Recipe
from lowerscope.resources import ICONS

if TYPE_CHECKING:
    from lowerscope.app.panes import Panes

SIZE = (1440, 900)


class MainWindow(QMainWindow):
    """The window with one document, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Lowerscope")
        self.setWindowIcon(QIcon(str(ICONS / "lowerscope.png")))
        self.setAcceptDrops(True)
        self.settings = Settings()
        theme.set_scheme(self.settings.scheme())
        self.workspace = Workspace(self)
        self.opening = Opening(self.workspace, self)
        self.commands = Commands(self)
        add_commands(self.commands, self)
        fill_menus(self.menuBar(), self.commands)
        self.tool_bar = ToolBar(self.workspace)
        self.banner = Banner()
        self.welcome = WelcomePage()
        self.pages = QStackedWidget()
        self.pages.addWidget(self.welcome)
        self._panes: Panes | None = None
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self.tool_bar, self.banner):
            column.addWidget(widget)
        column.addWidget(self.pages, 1)
        self.setCentralWidget(middle)
        self.setStatusBar(StatusBar(self.workspace))
        self.tool_bar.hide()
        self.resize(*SIZE)
        self.restoreGeometry(self.settings.geometry())
        self._connect()

    def _connect(self) -> None:
        self.welcome.chosen.connect(self.open_source)
        self.welcome.open_wanted.connect(self.choose_file)
        self.tool_bar.inputs_wanted.connect(self.opening.edit_inputs)
        self.tool_bar.target_wanted.connect(self.type_target)
        workspace = self.workspace
        workspace.snapshot_changed.connect(self._show_snapshot)
        workspace.recipe_wanted.connect(self._show_recipe)
        workspace.run_changed.connect(self._show_recipe)
        workspace.activity_changed.connect(self._show_recipe)
        workspace.announced.connect(self.banner.show_message)

    def begin(self, recipe: Recipe | None) -> None:
        """Start the engine and open a recipe, if there is one. Called after the first paint."""
        self.workspace.start()
        self.welcome.show_recent(self.settings.recent())
        self._show_recipe()
        if recipe is not None:
            self.workspace.open(recipe)
            self.show_panes()

    @property
    def panes(self) -> Panes:
        """The panes; made when they are first needed, since the welcome page needs none."""
        if self._panes is None:
            from lowerscope.app.panes import Panes

            self._panes = Panes(self.workspace)
            self._panes.problems.export_wanted.connect(self.opening.trace_by_export)
            self._panes.problems.trust_wanted.connect(self.opening.trust)
            self.pages.addWidget(self._panes)
            layout = self.settings.layout()
            if not layout.isEmpty():
                self._panes.restore(layout)
        return self._panes

    def show_panes(self) -> None:
        """Go over from the welcome page to the panes."""
        self.pages.setCurrentWidget(self.panes)
        self.tool_bar.show()

    # What the user can do: see app/menus.py. What concerns sources is in app/opening.py.

    def open_source(self, spec: str) -> None:
        """Open ``sample:NAME`` or a file."""
        self.opening.open_source(spec)
        self.show_panes()

    def choose_file(self) -> None:
        """Ask for a file and open it."""
        if self.opening.choose_file():
            self.show_panes()

    def change(self, **fields: object) -> None:
        """Change fields of the recipe, as one step of undo."""
        recipe = self.workspace.wanted
        if recipe is not None:
            self.workspace.change(msgspec.structs.replace(recipe, **fields))

    def type_target(self) -> None:
        """Ask for a target and compile for it."""
        recipe = self.workspace.wanted
        if recipe is None:
            return
        text, accepted = QInputDialog.getText(
            self,
            self.tr("Target"),
            self.tr('A TVM target: a name, or JSON such as {"kind": "llvm", "mcpu": "skylake"}'),
            text=recipe.target,
        )
        if accepted and text.strip():
            self.change(target=text.strip())

    def set_scheme(self, scheme: str) -> None:
        """Follow the system's colours, or be light or dark."""
        theme.set_scheme(scheme)
        self.settings.set_scheme(scheme)

    def select_node(self, step: int) -> None:
        """Select the next or the previous FX node."""
        snapshot = self.workspace.snapshot
        nodes = () if snapshot is None else snapshot.fx
        if not nodes:
            return
        marked = self.workspace.selection.of_kind("fx")
        places = [index for index, node in enumerate(nodes) if node.id in marked]
        place = places[-1 if step > 0 else 0] + step if places else 0
        self.workspace.select((nodes[max(0, min(place, len(nodes) - 1))].id,))

    def show_welcome(self) -> None:
        """Show the welcome page; what is open stays open behind it."""
        self.welcome.show_recent(self.settings.recent())
        self.pages.setCurrentWidget(self.welcome)
        self.tool_bar.hide()

    # Signals

    def _show_snapshot(self) -> None:
        recipe, snapshot = self.workspace.recipe, self.workspace.snapshot
        if recipe is not None and snapshot is not None:
            self.setWindowTitle(f"{snapshot.model.title} – Lowerscope")
            self.settings.add_recent(source_text(recipe))

    def _show_recipe(self) -> None:
        workspace, commands = self.workspace, self.commands
        recipe, snapshot = workspace.wanted, workspace.snapshot
        has_torch = snapshot is not None and snapshot.model.kind == "torch"
        for key in ("reload", "inputs", "target-other", "document"):
            commands.enable(key, snapshot is not None)
        for key in ("high-level", "te", "fx", "export", "next-node", "previous-node"):
            commands.enable(key, has_torch)
        commands.enable("run", recipe is not None and not workspace.running)
        commands.enable("stop", bool(workspace.activity.text) or workspace.running)
        commands.enable("undo", workspace.can_undo)
        commands.enable("redo", workspace.can_redo)
        if recipe is not None:
            commands.check(recipe.lowering)
            commands.check(recipe.tracer)
            for target in ("llvm", "native"):
                commands.check(f"target-{target}", recipe.target == target)

    # Qt's own

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_file(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = dropped_file(event.mimeData())
        if path:
            event.acceptProposedAction()
            self.open_source(path)

    def closeEvent(self, event: QCloseEvent) -> None:
        layout = QByteArray() if self._panes is None else self._panes.saveState()
        self.settings.save(self.saveGeometry(), layout)
        self.workspace.stop()
        super().closeEvent(event)
