"""The commands that choose what translates the graph: Lowerscope's rules, or TVM's importers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command, Commands
from lowerscope.core.recipe import TRANSLATORS

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace


def importing(window: MainWindow) -> tuple[Command, ...]:
    """Return the choices of a translator, for the menu on lowering."""
    tr = window.tr
    titles = {
        "lowerscope": tr("Translate with Lowerscope's r&ules"),
        "tvm-fx": tr("Translate with TVM's fro&m_fx"),
        "tvm-export": tr("Translate with TVM's from_exported_&program"),
    }
    return tuple(
        Command(
            translator,
            tr("&Lowering"),
            titles[translator],
            partial(window.change, translator=translator),
            group="translator",
            separated=translator == TRANSLATORS[0],
        )
        for translator in TRANSLATORS
    )


def show_translator(commands: Commands, workspace: Workspace) -> None:
    """Show which translator is chosen, and whether there is something to translate."""
    snapshot, recipe = workspace.snapshot, workspace.wanted
    for translator in TRANSLATORS:
        commands.enable(translator, snapshot is not None and snapshot.model.kind == "torch")
    if recipe is not None:
        commands.check(recipe.translator)
