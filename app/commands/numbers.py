"""Commands on the metrics of the scheduled function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


class NumberCommands:
    """Commands that measure."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._measurements = window.features.measurements

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu."""
        tr, menu = self._window.tr, self._window.tr("&Schedule")
        return (
            Command("numbers", menu, tr("Numbers"), self.show, "Ctrl+Shift+N", separated=True),
            Command(
                "measure-function", menu, tr("Check and measure the function"), self.measure, "F6"
            ),
            Command("measure-variants", menu, tr("Measure all variants"), self.measure_all),
            Command("measure-peaks", menu, tr("Measure what this machine can do"), self.peaks),
        )

    def show(self) -> None:
        """Show the metrics of the scheduled function."""
        self._window.schedules.show()
        self._window.panes.schedule.show_numbers()

    def measure(self) -> None:
        """Check and measure the function at the current step again."""
        self.show()
        self._measurements.measure()

    def measure_all(self) -> None:
        """Measure all variants."""
        self.show()
        self._window.panes.schedule.numbers.measure_all()

    def peaks(self) -> None:
        """Measure the machine's peak rates again."""
        self.show()
        self._measurements.measure_peaks()
