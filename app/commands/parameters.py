"""The commands for the file that the parameters of the open model come from."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from lowerscope.app.actions import Command, Commands
from lowerscope.app.opening import with_source
from lowerscope.core.sources.no_sources import WEIGHTS
from lowerscope.core.sources.spec import MEMORY, is_file

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace


def loading_parameters(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu on lowering."""
    menu, tr = window.tr("&Lowering"), window.tr
    return (
        Command(
            "load-parameters",
            menu,
            tr("Load parameters from a file…"),
            partial(choose_parameters, window),
            separated=True,
        ),
        Command(
            "own-parameters",
            menu,
            tr("The model's own parameters"),
            partial(take_parameters, window, ""),
        ),
    )


def enable_parameters(commands: Commands, workspace: Workspace) -> None:
    """Let those commands be available that there is something for."""
    recipe = workspace.wanted
    spec = "" if recipe is None else recipe.source.spec
    # An exported program has its own, and what is in memory is what it is.
    takes = not spec.endswith(".pt2") and not spec.startswith(MEMORY)
    commands.enable("load-parameters", takes and workspace.snapshot is not None)
    commands.enable("own-parameters", recipe is not None and bool(recipe.source.params))


def choose_parameters(window: MainWindow) -> None:
    """Ask for a file, and put its arrays into the parameters of the model."""
    tr = window.tr
    kinds = " ".join(f"*{suffix}" for suffix in WEIGHTS)
    path, _ = QFileDialog.getOpenFileName(
        window,
        tr("Load parameters"),
        _folder(window.workspace),
        tr("Parameters ({0});;All files (*)").format(kinds),
    )
    if path:
        take_parameters(window, path)


def take_parameters(window: MainWindow, path: str) -> None:
    """Have the parameters come from a file, or from the model itself, as one step of undo."""
    recipe = window.workspace.wanted
    if recipe is not None:
        window.workspace.change(with_source(recipe, params=path))


def _folder(workspace: Workspace) -> str:
    """Return where the dialog starts: beside the file that is in use, or beside the model."""
    source = None if workspace.recipe is None else workspace.recipe.source
    if source is None or not (source.params or is_file(source.spec)):
        return ""
    return str(Path(source.params or source.spec).parent)
