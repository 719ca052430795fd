"""The commands for the values of inputs, and files that are dropped on the window."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, QObject

from lowerscope.app.actions import Command, Commands
from lowerscope.app.commands.parameters import take_parameters
from lowerscope.core.sources.no_sources import WEIGHTS

if TYPE_CHECKING:
    from lowerscope.app.views.inputs_page import InputsPage
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace

_KEYS = ("input-page", "input-file", "input-random", "input-folder", "input-archive")


def changing_inputs(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu on lowering: they stand below the form for inputs."""
    menu, tr = window.tr("&Lowering"), window.tr

    def shown() -> InputsPage:
        window.show_page("inputs")
        return window.panes.inputs

    def one(what: str) -> None:
        page = shown()
        page.show_one()
        button = {"file": page.one.file, "random": page.one.random}[what]
        button.click()

    def set_of(what: str) -> None:
        page = shown()
        page.show_set()
        {"folder": page.sets.choose_folder, "archive": page.sets.choose_file}[what]()

    return (
        Command("input-page", menu, tr("&Value of the input"), shown, "Ctrl+Shift+I"),
        Command("input-file", menu, tr("Input from a &file…"), partial(one, "file")),
        Command(
            "input-random", menu, tr("Other &random values for the input"), partial(one, "random")
        ),
        Command("input-folder", menu, tr("Run a f&older of inputs…"), partial(set_of, "folder")),
        Command(
            "input-archive",
            menu,
            tr("Run a set of inputs in an .&npz…"),
            partial(set_of, "archive"),
        ),
    )


def enable_inputs(commands: Commands, workspace: Workspace) -> None:
    """Let those commands be available that there is something for."""
    for key in _KEYS:
        commands.enable(key, bool(workspace.inputs.records))


class Dropping(QObject):
    """Takes files that are dropped on the window: a model, an input, a set, or parameters.

    What is none of these is opened as a model all the same, which says what it is.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def takes(self, data: QMimeData) -> bool:
        """Return whether a file is being dropped."""
        return bool(_local_file(data))

    def take(self, data: QMimeData) -> bool:
        """Do what there is to be done with a file that is dropped; return whether it is one."""
        window, path = self._window, _local_file(data)
        model, value = window.opening.dropped_file(data), window.workspace.inputs.droppable(data)
        has_parameters = window.commands.action("load-parameters").isEnabled()
        if value and not model:
            window.show_page("inputs")
            window.panes.inputs.drop(value)
        elif has_parameters and not model and Path(path).suffix.lower() in WEIGHTS:
            take_parameters(window, path)
        elif path:
            window.open_source(model or path)
        return bool(path)


def _local_file(data: QMimeData) -> str:
    return next((url.toLocalFile() for url in data.urls() if url.isLocalFile()), "")
