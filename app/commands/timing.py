"""Commands on the tolerances of a run, and on how it is timed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command
from lowerscope.app.views.measuring_dialog import edit_measuring
from lowerscope.app.views.tolerances_dialog import edit_tolerances

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def timing_commands(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, workspace = window.tr, window.workspace
    menu = tr("&Run")

    def idle() -> bool:
        return workspace.wanted is not None and not workspace.running

    def times_compile() -> bool:
        recipe = workspace.wanted
        return recipe is not None and recipe.measuring.torch_compile

    return (
        Command(
            "measure-again",
            menu,
            tr("Measure again"),
            workspace.runs.measure_again,
            "Shift+F6",
            enabled=lambda: workspace.run_record is not None and not workspace.running,
            separated=True,
        ),
        Command(
            "measuring",
            menu,
            tr("&Threads and repeats…"),
            partial(edit_measuring, workspace, window),
            enabled=idle,
        ),
        Command(
            "torch-compile",
            menu,
            tr("Time torch.compile as &well"),
            workspace.runs.toggle_torch_compile,
            enabled=idle,
            checked=times_compile,
        ),
        Command(
            "tolerances",
            menu,
            tr("T&olerances…"),
            partial(edit_tolerances, workspace, window),
            enabled=lambda: workspace.wanted is not None,
        ),
    )
