"""Commands that compare steps, lowerings and pipelines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from lowerscope.app.actions import Command
from lowerscope.core.model.labels import STRATEGY_NAMES
from lowerscope.core.passes.presets import PRESETS
from lowerscope.core.recipe import STRATEGIES

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class CompareCommands(QObject):
    """Commands that compare.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu Compare."""
        document, tr = self._window.document, self._window.tr
        pins, menu = self._window.features.pins, tr("&Compare")

        def pinned() -> bool:
            return pins.first is not None

        return (
            Command(
                "difference",
                menu,
                tr("&Difference"),
                self._show_difference,
                "F4",
                enabled=document.is_open,
            ),
            Command(
                "next-change",
                menu,
                tr("N&ext change"),
                partial(self._next_change, 1),
                "F7",
                enabled=document.is_open,
            ),
            Command(
                "previous-change",
                menu,
                tr("P&revious change"),
                partial(self._next_change, -1),
                "Shift+F7",
                enabled=document.is_open,
            ),
            Command(
                "pin-step",
                menu,
                tr("&Pin this step"),
                pins.pin_here,
                "Ctrl+Shift+D",
                enabled=document.is_open,
                separated=True,
            ),
            Command(
                "compare-pinned",
                menu,
                tr("Co&mpare with the pinned step"),
                pins.compare_here,
                "Ctrl+Shift+B",
                enabled=pinned,
            ),
            Command("swap-sides", menu, tr("&Swap the sides"), pins.swap, enabled=pinned),
            Command("unpin", menu, tr("&Unpin"), pins.clear, enabled=pinned),
            Command(
                "compare-before",
                menu,
                tr("Compare with what Undo goes back &to"),
                self._compare_before,
                enabled=lambda: document.before is not None,
                separated=True,
            ),
            *(
                Command(
                    f"compare-{lowering}",
                    menu,
                    tr("Compare with all nodes as {0}").format(STRATEGY_NAMES[lowering]),
                    partial(pins.compare_lowering, lowering),
                    enabled=document.has_torch,
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
                    enabled=document.is_open,
                    separated=preset is PRESETS[0],
                )
                for preset in PRESETS
            ),
        )

    def _show_difference(self) -> None:
        """Show the changes made by the current step, or the pinned comparison."""
        self._window.panes.show_difference()

    def _next_change(self, step: int) -> None:
        """Go to the next or the previous change of the difference."""
        self._show_difference()
        difference = self._window.panes.difference
        (difference.next_change if step > 0 else difference.previous_change)()

    def _compare_before(self) -> None:
        """Compare with the recipe that undo returns to."""
        document = self._window.document
        before = document.before
        if before is not None:
            self._window.features.pins.compare_with(before)
