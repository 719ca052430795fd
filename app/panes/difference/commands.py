"""Commands that compare steps, lowerings and pipelines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.kit.commands import Command, Host, available
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.recipe import (
    STRATEGIES,
)
from lowerscope.core.model.texts import _


class CompareCommands(QObject):
    """Commands that compare.

    Args:
        show: Shows the difference.
    """

    def __init__(
        self, host: Host, document: Document, pins: Pins, show: Callable[[], None]
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document = document
        self._pins = pins
        self._show = show

    def commands(self) -> tuple[Command, ...]:
        document, pins = self._document, self._pins

        def pinned() -> bool:
            return pins.first is not None

        return (
            *available(
                document.is_open,
                Command("difference", _("&Difference"), self._show, "F9"),
                Command("next-change", _("N&ext change"), partial(self._next_change, 1), "F8"),
                Command(
                    "previous-change",
                    _("P&revious change"),
                    partial(self._next_change, -1),
                    "Shift+F8",
                ),
                Command(
                    "unified", _("Side by side or &unified"), self._toggle_columns, key_there="T"
                ),
                Command("pin-step", _("&Pin this step"), pins.pin_here, "Ctrl+Shift+D"),
            ),
            *available(
                pinned,
                Command(
                    "compare-pinned",
                    _("Co&mpare with the pinned step"),
                    pins.compare_here,
                    "Ctrl+Shift+B",
                ),
                Command("swap-sides", _("&Swap the sides"), pins.swap),
                Command("unpin", _("&Unpin"), pins.clear),
            ),
            Command(
                "compare-before",
                _("Compare with the state before the last chan&ge"),
                self._compare_before,
                enabled=lambda: document.before is not None,
            ),
            *(
                Command(
                    f"compare-{lowering}",
                    _(
                        "Compare with all nodes as {strategy_names}",
                        strategy_names=STRATEGY_NAMES[lowering],
                    ),
                    partial(pins.compare_lowering, lowering),
                    enabled=document.has_torch,
                )
                for lowering in STRATEGIES
            ),
            *(
                Command(
                    f"compare-steps-{preset.name}",
                    _("Compare with the pipeline “{title}”", title=preset.title),
                    partial(pins.compare_steps, preset.steps),
                    enabled=document.is_open,
                )
                for preset in PRESETS
            ),
        )

    def _next_change(self, step: int) -> None:
        """Go to the next or the previous change of the difference."""
        from lowerscope.app.panes.difference.difference_view import DifferenceView

        self._show()
        difference = self._host.view(DifferenceView)
        (difference.next_change if step > 0 else difference.previous_change)()

    def _toggle_columns(self) -> None:
        """Show the difference in one column, or in two."""
        from lowerscope.app.panes.difference.difference_view import DifferenceView

        self._show()
        self._host.view(DifferenceView).toggle_columns()

    def _compare_before(self) -> None:
        """Compare with the recipe that undo returns to."""
        before = self._document.before
        if before is not None:
            self._pins.compare_with(before)
