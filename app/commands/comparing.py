"""The commands that compare: steps, lowerings and pipelines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command, Commands
from lowerscope.core.passes.presets import PRESETS
from lowerscope.core.recipe import STRATEGIES
from lowerscope.core.strategy_names import STRATEGY_NAMES

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace


class CompareCommands(QObject):
    """What can be compared.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu on comparing."""
        pins, tr = self._window.workspace.pins, self._window.tr
        menu = tr("&Compare")
        return (
            Command("difference", menu, tr("&Difference"), self._show_difference, "F4"),
            Command("next-change", menu, tr("&Next change"), partial(self._next_change, 1), "F7"),
            Command(
                "previous-change",
                menu,
                tr("P&revious change"),
                partial(self._next_change, -1),
                "Shift+F7",
            ),
            Command(
                "pin-step",
                menu,
                tr("&Pin this step"),
                pins.pin_here,
                "Ctrl+Shift+D",
                separated=True,
            ),
            Command(
                "compare-pinned",
                menu,
                tr("&Compare with the pinned step"),
                pins.compare_here,
                "Ctrl+Shift+B",
            ),
            Command("swap-sides", menu, tr("&Swap the sides"), pins.swap),
            Command("unpin", menu, tr("&Unpin"), pins.clear),
            Command(
                "compare-before",
                menu,
                tr("Compare with what &Undo goes back to"),
                self._compare_before,
                separated=True,
            ),
            *(
                Command(
                    f"compare-{lowering}",
                    menu,
                    tr("Compare with all nodes as {0}").format(STRATEGY_NAMES[lowering]),
                    partial(pins.compare_lowering, lowering),
                    separated=lowering == STRATEGIES[0],
                )
                for lowering in STRATEGIES
            ),
            *(
                Command(
                    f"compare-steps-{preset.name}",
                    menu,
                    tr("Compare with the pipeline “{0}”").format(preset.title),
                    partial(pins.compare_steps, preset.steps),
                    separated=preset is PRESETS[0],
                )
                for preset in PRESETS
            ),
        )

    def _show_difference(self) -> None:
        """Show what the step that is looked at has changed, or what is pinned."""
        self._window.panes.show_difference()

    def _next_change(self, step: int) -> None:
        """Go to the next change of the difference, or to the one before."""
        self._show_difference()
        difference = self._window.panes.difference
        (difference.next_change if step > 0 else difference.previous_change)()

    def _compare_before(self) -> None:
        """Compare with what undo goes back to."""
        workspace = self._window.workspace
        before = workspace.changes.before
        if before is not None:
            workspace.pins.compare_with(before)


def enable_comparing(commands: Commands, workspace: Workspace) -> None:
    """Let those commands be available that there is something for."""
    snapshot, pinned = workspace.snapshot, workspace.pins.first is not None
    has_torch = snapshot is not None and snapshot.model.kind == "torch"
    for key in ("difference", "next-change", "previous-change", "pin-step"):
        commands.enable(key, snapshot is not None)
    for key in ("compare-pinned", "swap-sides", "unpin"):
        commands.enable(key, pinned)
    commands.enable("compare-before", workspace.changes.before is not None)
    for lowering in STRATEGIES:
        commands.enable(f"compare-{lowering}", has_torch)
    for preset in PRESETS:
        commands.enable(f"compare-steps-{preset.name}", snapshot is not None)
