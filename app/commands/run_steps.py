"""The commands of the clock Run: its steps, the breaks, and the way from one to the next."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command, Commands

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class RunStepCommands(QObject):
    """The commands, kept as the state is.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._workspace = window.workspace
        self._commands: Commands | None = None

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu on running."""
        tr, steps = self.tr, self._workspace.run_steps
        stepping = self._workspace.stepping
        menu = tr("&Run")
        return (
            Command(
                "toggle-break",
                menu,
                tr("Toggle &breakpoint at the selection"),
                steps.toggle_selected,
                "Ctrl+B",
                separated=True,
                key_there="B",
            ),
            Command(
                "next-break",
                menu,
                tr("C&ontinue to the next breakpoint"),
                partial(stepping.to_break, 1),
                "Shift+F8",
            ),
            Command(
                "previous-break",
                menu,
                tr("Bac&k to the previous breakpoint"),
                partial(stepping.to_break, -1),
                "Ctrl+Shift+F8",
            ),
            Command("clear-breaks", menu, tr("Remove all brea&kpoints"), steps.clear),
        )

    def watch(self, commands: Commands) -> None:
        """Keep the commands as the state is, from now on."""
        self._commands = commands
        workspace = self._workspace
        workspace.selection_changed.connect(self._show_state)
        workspace.stepping.list_changed.connect(self._show_state)
        workspace.run_changed.connect(self._show_state)
        workspace.run_steps.breaks_changed.connect(self._show_state)
        self._show_state()

    def _show_state(self) -> None:
        assert self._commands is not None
        workspace, steps = self._workspace, self._workspace.run_steps
        self._commands.enable("toggle-break", bool(workspace.selection.chosen))
        for key in ("next-break", "previous-break"):
            self._commands.enable(key, bool(steps.calls))
        self._commands.enable("clear-breaks", bool(steps.breaks))
