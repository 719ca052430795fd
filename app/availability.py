"""Which commands there is something for, and which choices are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowerscope.app.commands.comparing import enable_comparing
from lowerscope.app.commands.differing_nodes import enable_finding
from lowerscope.app.commands.importers import show_translator
from lowerscope.app.commands.inputs import enable_inputs
from lowerscope.app.commands.parameters import enable_parameters
from lowerscope.app.commands.sessions import enable_sessions
from lowerscope.app.commands.variants import enable_variants

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow

NEED_MODEL = (
    *("inputs", "target-other", "document", "extensions", "load-library"),
    *("export-files", "export-function", "export-step", "save-picture", "save-picture-seen"),
)
"""Commands for what is open."""

NEED_TORCH = (
    *("high-level", "te", "library", "next-node", "previous-node", "node-map", "translation"),
    *("auto", "fx", "export"),
)
"""Commands for sources with a PyTorch model."""


def show_availability(window: MainWindow) -> None:
    """Let those commands be available that there is something for, and mark what is chosen."""
    workspace, commands = window.workspace, window.commands
    recipe, snapshot = workspace.wanted, workspace.snapshot
    has_torch = snapshot is not None and snapshot.model.kind == "torch"
    for key in NEED_MODEL:
        commands.enable(key, snapshot is not None)
    commands.enable("reload", snapshot is not None or workspace.refused is not None)
    for key in NEED_TORCH:
        commands.enable(key, has_torch)
    selected = has_torch and bool(workspace.selection.of_kind("fx"))
    for key in ("selection-high-level", "selection-te", "selection-library", "selection-reset"):
        commands.enable(key, selected)
    node = window.extensions.selected()
    commands.enable("write-rule", node is not None and bool(node.strategy))
    commands.enable("open-rule", node is not None and node.rule_line is not None)
    commands.enable("reset-overrides", recipe is not None and bool(recipe.overrides))
    commands.enable("run", recipe is not None and not workspace.running)
    commands.enable("stop", bool(workspace.activity.text) or workspace.running)
    commands.enable("undo", workspace.changes.can_undo)
    commands.enable("redo", workspace.changes.can_redo)
    enable_comparing(commands, workspace)
    enable_finding(commands, workspace)
    enable_variants(commands, workspace)
    enable_inputs(commands, workspace)
    enable_parameters(commands, workspace)
    enable_sessions(commands, window)
    show_translator(commands, workspace)
    window.graphs.enable_figures()
    if recipe is not None:
        commands.check(recipe.lowering)
        commands.check(recipe.tracer)
        for target in ("llvm", "native"):
            commands.check(f"target-{target}", recipe.target == target)
