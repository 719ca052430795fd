"""The commands on what a run is held to, and on how it is timed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command, Commands
from lowerscope.app.views.measuring_dialog import edit_measuring
from lowerscope.app.views.tolerances_dialog import edit_tolerances

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class TimingCommands(QObject):
    """The commands, kept as the state is.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._workspace, self._window = window.workspace, window
        self._commands: Commands | None = None

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu on running."""
        tr, workspace, window = self.tr, self._workspace, self._window
        menu = tr("&Run")
        return (
            Command(
                "measure-again",
                menu,
                tr("&Measure again"),
                workspace.runs.measure_again,
                "Shift+F6",
                separated=True,
            ),
            Command(
                "measuring",
                menu,
                tr("&Threads and repeats…"),
                partial(edit_measuring, workspace, window),
            ),
            Command(
                "torch-compile",
                menu,
                tr("Time torch.&compile as well"),
                workspace.runs.toggle_torch_compile,
                checkable=True,
            ),
            Command(
                "tolerances", menu, tr("T&olerances…"), partial(edit_tolerances, workspace, window)
            ),
        )

    def watch(self, commands: Commands) -> None:
        """Keep the commands as the state is, from now on."""
        self._commands = commands
        self._workspace.run_changed.connect(self._show_state)
        self._workspace.recipe_wanted.connect(self._show_state)
        self._show_state()

    def _show_state(self) -> None:
        assert self._commands is not None
        workspace, recipe = self._workspace, self._workspace.wanted
        ran = workspace.run_record is not None and not workspace.running
        self._commands.enable("measure-again", ran)
        for key in ("measuring", "torch-compile"):
            self._commands.enable(key, recipe is not None and not workspace.running)
        self._commands.enable("tolerances", recipe is not None)
        self._commands.check("torch-compile", recipe is not None and recipe.measuring.torch_compile)
