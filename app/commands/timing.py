"""Commands on the tolerances of a run, and on how it is timed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command
from lowerscope.app.views.measuring_dialog import edit_measuring
from lowerscope.app.views.tolerances_dialog import edit_tolerances

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from lowerscope.app.document.document import Document
    from lowerscope.app.runs.running import Runs


def timing_commands(document: Document, runs: Runs, parent: QWidget) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    tr, menu = runs.tr, runs.tr("&Run")

    def idle() -> bool:
        return document.wanted is not None and not document.running

    def times_compile() -> bool:
        recipe = document.wanted
        return recipe is not None and recipe.measuring.torch_compile

    return (
        Command(
            "measure-again",
            menu,
            tr("Measure again"),
            runs.measure_again,
            "Shift+F6",
            enabled=lambda: document.run_record is not None and not document.running,
            separated=True,
        ),
        Command(
            "measuring",
            menu,
            tr("&Threads and repeats…"),
            partial(edit_measuring, document, runs, parent),
            enabled=idle,
        ),
        Command(
            "torch-compile",
            menu,
            tr("Time torch.compile as &well"),
            runs.toggle_torch_compile,
            enabled=idle,
            checked=times_compile,
        ),
        Command(
            "tolerances",
            menu,
            tr("T&olerances…"),
            partial(edit_tolerances, document, parent),
            enabled=lambda: document.wanted is not None,
        ),
    )
