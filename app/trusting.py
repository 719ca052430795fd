"""Files that are code: before one runs for the first time, the window asks.

A file is known by its path and its content. One that ran here because its user said so is not asked
about again: on the command line, in answer to the question, or by saving it while it was open.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.settings import Settings
from lowerscope.app.workspace import Workspace
from lowerscope.core.recipe import Recipe
from lowerscope.core.session_files import Hashes, files_of
from lowerscope.core.sources.samples import PREFIX


class Trusting(QObject):
    """Asks whether a recipe's files may run, and remembers those that may.

    Signals
    -------
    declined
        What was asked about may not run.
    """

    declined = Signal()

    def __init__(self, workspace: Workspace, settings: Settings, window: QWidget) -> None:
        super().__init__(window)
        self._workspace = workspace
        self._settings = settings
        self._window = window
        self._hashes = Hashes()
        self._asked: tuple[Recipe, Callable[[Recipe], object]] | None = None
        workspace.snapshot_changed.connect(self._remember_open)

    def ask(self, recipe: Recipe, go: Callable[[Recipe], object]) -> None:
        """Call `go` with a recipe: at once, or when the user has let its files run, or never."""
        known = self._settings.trusted()
        unknown = [path for path in _code_of(recipe) if known.get(path) != self._hashes.of(path)]
        if not unknown or not self._settings.asks_first():
            go(recipe)
            return
        from lowerscope.app.views.run_code_dialog import RunCodeDialog

        self._asked = recipe, go
        changed = [path for path in unknown if path in known]
        dialog = RunCodeDialog(unknown, changed, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.accepted.connect(self._go)
        dialog.rejected.connect(self._stay)
        dialog.open()

    def _go(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            recipe, go = asked
            # What was shown is what is let run, whether or not it can be opened then.
            self._remember(recipe)
            go(recipe)

    def _stay(self) -> None:
        self._asked = None
        self.declined.emit()

    def _remember_open(self) -> None:
        recipe = self._workspace.recipe
        if recipe is not None:
            self._remember(recipe)

    def _remember(self, recipe: Recipe) -> None:
        hashes = {path: self._hashes.of(path) for path in _code_of(recipe)}
        known = self._settings.trusted()
        if hashes.items() - known.items():
            self._settings.set_trusted(known | hashes)


def _code_of(recipe: Recipe) -> list[str]:
    files = files_of(recipe).items()
    return [
        path
        for name, path in files
        if not name.startswith(PREFIX) and Path(path).suffix.lower() == ".py"
    ]
