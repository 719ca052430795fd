"""All commands of the window, in the order of the menus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu, QMenuBar

from lowerscope.app.actions import Command, Commands
from lowerscope.app.commands.caches import clearing
from lowerscope.app.commands.comparing import CompareCommands
from lowerscope.app.commands.desktop import helping, limiting, setting_up
from lowerscope.app.commands.differing_nodes import finding_differences
from lowerscope.app.commands.faults import FaultCommands
from lowerscope.app.commands.importers import importing
from lowerscope.app.commands.inputs import changing_inputs
from lowerscope.app.commands.nodes import NodeCommands
from lowerscope.app.commands.numbers import NumberCommands
from lowerscope.app.commands.parameters import loading_parameters
from lowerscope.app.commands.pipeline import passes
from lowerscope.app.commands.pointing import Pointing
from lowerscope.app.commands.reporting import reporting
from lowerscope.app.commands.run_steps import RunStepCommands
from lowerscope.app.commands.sessions import keeping_sessions
from lowerscope.app.commands.timing import TimingCommands
from lowerscope.app.commands.variants import running_variants

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def add_commands(commands: Commands, window: MainWindow) -> None:
    """Register every command of the window."""
    workspace, tr = window.workspace, window.tr
    file, edit, view = tr("&File"), tr("&Edit"), tr("&View")
    lowering, run = tr("&Lowering"), tr("&Run")
    nodes, run_steps, timing = (
        NodeCommands(window),
        RunStepCommands(window),
        TimingCommands(window),
    )

    def change(**fields: object) -> Callable[[], None]:
        return partial(window.change, **fields)

    for command in (
        Command("open", file, tr("&Open…"), window.choose_file, "Ctrl+O"),
        Command("reload", file, tr("&Reload"), workspace.changes.reload, "Ctrl+R"),
        Command("welcome", file, tr("&Welcome page"), window.show_welcome),
        Command("document", file, tr("&Back to the model"), window.show_panes),
        *keeping_sessions(window),
        *reporting(window),
        Command("save-log", file, tr("Save whole &log…"), lambda: window.panes.log.save_whole()),
        *window.exports.commands(),
        setting_up(window),
        Command("quit", file, tr("&Quit"), window.close, "Ctrl+Q", separated=True),
        Command("undo", edit, tr("&Undo"), workspace.changes.undo, "Ctrl+Z"),
        Command("redo", edit, tr("&Redo"), workspace.changes.redo, "Ctrl+Shift+Z"),
        *nodes.walking(),
        Command(
            "clear-selection",
            edit,
            tr("&Clear selection"),
            partial(workspace.select, ()),
            "Ctrl+Shift+A",
        ),
        Command(
            "system",
            view,
            tr("&System colours"),
            partial(window.set_scheme, "system"),
            group="scheme",
        ),
        Command("light", view, tr("&Light"), partial(window.set_scheme, "light"), group="scheme"),
        Command("dark", view, tr("&Dark"), partial(window.set_scheme, "dark"), group="scheme"),
        Command(
            "node-map",
            view,
            tr("&Node map"),
            partial(window.show_page, "node-map"),
            "Ctrl+M",
            separated=True,
        ),
        Command(
            "translation",
            view,
            tr("&Translation of the node"),
            partial(window.show_page, "translation"),
            "Ctrl+T",
        ),
        *window.graphs.commands(),
        *window.exports.picture_commands(),
        *window.code_commands.commands(),
        *Pointing(window).commands(),
        Command(
            "high-level",
            lowering,
            tr("&High-level"),
            change(lowering="high-level"),
            "Ctrl+1",
            group="lowering",
        ),
        Command("te", lowering, tr("&TE"), change(lowering="te"), "Ctrl+2", group="lowering"),
        Command(
            "library",
            lowering,
            tr("&Library"),
            change(lowering="library"),
            "Ctrl+3",
            group="lowering",
        ),
        *nodes.lowering(),
        Command(
            "extensions",
            lowering,
            tr("R&ules and library files…"),
            window.extensions.show_list,
            "Ctrl+L",
            separated=True,
        ),
        Command(
            "write-rule", lowering, tr("&Write a rule for the node…"), window.extensions.write_rule
        ),
        Command(
            "open-rule", lowering, tr("&Open the rule of the node"), window.extensions.open_rule
        ),
        Command(
            "load-library", lowering, tr("Load a libr&ary file…"), window.extensions.choose_library
        ),
        Command("reset-overrides", lowering, tr("Reset all nodes"), change(overrides=())),
        Command(
            "auto",
            lowering,
            tr("Trace &automatically"),
            change(tracer="auto"),
            group="tracer",
            separated=True,
        ),
        Command(
            "fx",
            lowering,
            tr("Trace with torch.&fx"),
            change(tracer="fx"),
            group="tracer",
        ),
        Command(
            "export",
            lowering,
            tr("Trace with torch.&export"),
            change(tracer="export"),
            group="tracer",
        ),
        *importing(window),
        *loading_parameters(window),
        Command(
            "params-as-inputs",
            lowering,
            tr("&Parameters as inputs"),
            window.pipeline.keep_params,
            checkable=True,
        ),
        Command(
            "bind-params",
            lowering,
            tr("&Bind parameters (BindParams)"),
            window.pipeline.bind_params,
            checkable=True,
        ),
        Command(
            "inputs", lowering, tr("&Inputs…"), window.opening.edit_inputs, "Ctrl+I", separated=True
        ),
        *changing_inputs(window),
        *passes(window),
        *window.schedules.commands(),
        *window.tune.commands(),
        *NumberCommands(window).commands(),
        *CompareCommands(window).commands(),
        Command("run", run, tr("&Run and compare"), workspace.run, "F5"),
        *running_variants(window),
        Command("stop", run, tr("&Stop"), workspace.cancel, "Shift+F5"),
        *FaultCommands(window).commands(),
        *limiting(window),
        clearing(window),
        Command("restart", run, tr("Restart &engine and worker"), workspace.restart),
        *finding_differences(window),
        *run_steps.commands(),
        *timing.commands(),
        *window.targets.commands(),
        *window.pane_commands.commands(),
        *helping(window),
    ):
        commands.add(command)
    run_steps.watch(commands)
    timing.watch(commands)
    window.tune.watch(commands)
    commands.check(window.settings.scheme())
    window.targets.watch()


def fill_menus(bar: QMenuBar, commands: Commands) -> None:
    """Put the commands into menus."""
    commands.part_letters()
    menus: dict[str, QMenu] = {}
    for command, action in commands:
        menu = menus.get(command.menu)
        if menu is None:
            menu = menus[command.menu] = bar.addMenu(command.menu)
            # Why a command cannot be carried out.
            menu.setToolTipsVisible(True)
        if command.separated:
            menu.addSeparator()
        menu.addAction(action)
