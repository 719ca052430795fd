"""Commands for the values of inputs, and files dropped on the window."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, QObject

from lowerscope.app.actions import Command
from lowerscope.app.commands.parameters import take_parameters, takes_parameters
from lowerscope.core.sources.spec import WEIGHTS

if TYPE_CHECKING:
    from lowerscope.app.views.inputs_page import InputsPage
    from lowerscope.app.window import MainWindow


def changing_inputs(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Lowering: they stand below the form for inputs."""
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

    def has_inputs() -> bool:
        return bool(window.features.inputs.records)

    return (
        Command(
            "input-page", menu, tr("Value of the input"), shown, "Ctrl+Shift+I", enabled=has_inputs
        ),
        Command(
            "input-file", menu, tr("Input f&rom a file…"), partial(one, "file"), enabled=has_inputs
        ),
        Command(
            "input-random",
            menu,
            tr("Other random &values for the input"),
            partial(one, "random"),
            enabled=has_inputs,
        ),
        Command(
            "input-folder",
            menu,
            tr("Run a fol&der of inputs…"),
            partial(set_of, "folder"),
            enabled=has_inputs,
        ),
        Command(
            "input-archive",
            menu,
            tr("Run a set of inputs in an .np&z…"),
            partial(set_of, "archive"),
            enabled=has_inputs,
        ),
    )


class Dropping(QObject):
    """Handles files dropped on the window: a model, an input, a set, or parameters.

    Any other file is opened as a model all the same, which reports what it is.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def takes(self, data: QMimeData) -> bool:
        """Return whether a file is being dragged."""
        return bool(_local_file(data))

    def take(self, data: QMimeData) -> bool:
        """Handle a dropped file; return whether it is one."""
        window, path = self._window, _local_file(data)
        model, value = window.opening.dropped_file(data), window.features.inputs.droppable(data)
        if value and not model:
            window.show_page("inputs")
            window.panes.inputs.drop(value)
        elif (
            not model and Path(path).suffix.lower() in WEIGHTS and takes_parameters(window.document)
        ):
            take_parameters(window, path)
        elif path:
            window.open_source(model or path)
        return bool(path)


def _local_file(data: QMimeData) -> str:
    return next((url.toLocalFile() for url in data.urls() if url.isLocalFile()), "")
