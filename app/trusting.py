"""Files that are code: before one runs for the first time, the window asks.

A file is known by its path and its content. One that ran here because its user said so is not asked
about again: on the command line, in answer to the question, or by saving it while it was open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.settings import Settings
from lowerscope.app.workspace import Workspace
from lowerscope.core.passes.databases import database_files
from lowerscope.core.recipe import Recipe
from lowerscope.core.session_files import Hashes, files_of
from lowerscope.core.sources.files import neighbours
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
        workspace.snapshot_changed.connect(self._remember_open)

    def ask(self, recipe: Recipe, go: Callable[[Recipe], object]) -> None:
        """Call `go` with a recipe: at once, or when the user has let its files run, or never."""
        known = self._settings.trusted()
        hashes = _hashes(code_of(recipe))
        unknown = [path for path, content in hashes.items() if known.get(path) != content]
        if not unknown or not self._settings.asks_first():
            go(recipe)
            return
        from lowerscope.app.views.run_code_dialog import RunCodeDialog

        changed = [path for path in unknown if path in known]
        dialog = RunCodeDialog(unknown, changed, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        # Each dialog answers for what it shows, should a second one come.
        dialog.accepted.connect(partial(self._go, recipe, hashes | dialog.shown, go))
        dialog.rejected.connect(self.declined)
        dialog.open()

    def _go(self, recipe: Recipe, hashes: dict[str, str], go: Callable[[Recipe], object]) -> None:
        if _hashes(code_of(recipe)) != hashes:
            # Written while it was being read: what would run is not what was shown.
            self.ask(recipe, go)
            return
        # What was shown is what is let run, whether or not it can be opened then.
        self._remember(hashes)
        go(recipe)

    def _remember_open(self) -> None:
        recipe = self._workspace.recipe
        if recipe is not None:
            self._remember({path: self._hashes.of(path) for path in code_of(recipe)})

    def _remember(self, hashes: dict[str, str]) -> None:
        known = self._settings.trusted()
        if hashes.items() - known.items():
            self._settings.set_trusted(known | hashes)


def _hashes(paths: Iterable[str]) -> dict[str, str]:
    """Return the hashes of files, read anew: size and time do not tell that they are the same."""
    hashes = Hashes()
    return {path: hashes.of(path) for path in paths}


def code_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the files that run when a recipe is derived, without samples.

    They are the Python files that it names, those of their folders that these import, and the
    databases that its steps apply.
    """
    named = [
        path
        for name, path in files_of(recipe).items()
        if not name.startswith(PREFIX) and _is_python(path)
    ]
    imported = [str(each) for path in named for each in neighbours(Path(path))]
    found = (*named, *filter(_is_python, imported), *database_files(recipe))
    return tuple(dict.fromkeys(found))


def _is_python(path: str) -> bool:
    return Path(path).suffix.lower() == ".py"
