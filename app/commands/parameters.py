"""Commands for the file that the open model's parameters are loaded from."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from lowerscope.app.actions import Command
from lowerscope.app.opening import with_source
from lowerscope.core.sources.spec import MEMORY, WEIGHTS, is_file

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.window import MainWindow


def loading_parameters(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Lowering."""
    menu, tr = window.tr("&Lowering"), window.tr
    return (
        Command(
            "load-parameters",
            menu,
            tr("&Load parameters from a file…"),
            partial(choose_parameters, window),
            enabled=partial(takes_parameters, window.document),
            separated=True,
        ),
        Command(
            "own-parameters",
            menu,
            tr("The model'&s own parameters"),
            partial(take_parameters, window, ""),
            enabled=lambda: (
                (recipe := window.document.wanted) is not None and bool(recipe.source.params)
            ),
        ),
    )


def takes_parameters(document: Document) -> bool:
    """Return whether the open model's parameters can be loaded from a file."""
    recipe = document.wanted
    spec = "" if recipe is None else recipe.source.spec
    # An exported program has its own parameters, and a model in memory keeps its own.
    takes = not spec.endswith(".pt2") and not spec.startswith(MEMORY)
    return takes and document.snapshot is not None


def choose_parameters(window: MainWindow) -> None:
    """Select a file in a dialog, and load the model's parameters from it."""
    tr = window.tr
    kinds = " ".join(f"*{suffix}" for suffix in WEIGHTS)
    path, _ = QFileDialog.getOpenFileName(
        window,
        tr("Load parameters"),
        _folder(window.document),
        tr("Parameters ({0});;All files (*)").format(kinds),
    )
    if path:
        take_parameters(window, path)


def take_parameters(window: MainWindow, path: str) -> None:
    """Load the parameters from a file, or from the model itself, as one undo step."""
    recipe = window.document.wanted
    if recipe is not None:
        window.document.change(with_source(recipe, params=path))


def _folder(document: Document) -> str:
    """Return the initial folder of the dialog: that of the current file, or of the model."""
    source = None if document.recipe is None else document.recipe.source
    if source is None or not (source.params or is_file(source.spec)):
        return ""
    return str(Path(source.params or source.spec).parent)
