"""All commands of the window, in the order of the menus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu, QMenuBar

from lowerscope.app.kit.commands import Command, Commands
from lowerscope.app.panes.difference.commands import CompareCommands
from lowerscope.app.panes.inputs.commands import changing_inputs, loading_parameters
from lowerscope.app.panes.relax.commands import NodeCommands, importing
from lowerscope.app.panes.run.commands import (
    fault_commands,
    finding_differences,
    reporting,
    run_step_commands,
    running_variants,
    timing_commands,
)
from lowerscope.app.panes.schedule.commands import NumberCommands
from lowerscope.app.panes.sessions.commands import keeping_sessions
from lowerscope.app.panes.steps.commands import binding, passes
from lowerscope.app.shell.desktop_commands import clearing, helping, limiting, setting_up
from lowerscope.app.shell.panes_commands import Pointing

if TYPE_CHECKING:
    from lowerscope.app.shell.window import MainWindow


def add_commands(commands: Commands, window: MainWindow) -> None:
    """Register every command of the window."""
    document, features, tr = window.document, window.features, window.tr
    file, edit, view = tr("&File"), tr("&Edit"), tr("&View")
    lowering, run = tr("&Lowering"), tr("&Run")
    nodes = NodeCommands(document)

    def is_wanted(field: str, value: str) -> bool:
        return document.wanted is not None and getattr(document.wanted, field) == value

    def has_scheme(scheme: str) -> bool:
        return window.settings.scheme() == scheme

    def change(**fields: object) -> Callable[[], None]:
        return partial(document.change_fields, **fields)

    def has_rule_to_write() -> bool:
        node = window.extensions.selected()
        return node is not None and bool(node.strategy)

    def has_rule() -> bool:
        node = window.extensions.selected()
        return node is not None and node.rule_line is not None

    for command in (
        Command("open", file, tr("&Open…"), window.choose_file, "Ctrl+O"),
        Command(
            "reload",
            file,
            tr("&Reload"),
            document.reload,
            "Ctrl+R",
            enabled=lambda: document.is_open() or document.rejected is not None,
        ),
        Command("welcome", file, tr("&Welcome page"), window.show_welcome),
        Command(
            "document", file, tr("&Back to the model"), window.show_panes, enabled=document.is_open
        ),
        *keeping_sessions(
            window, document, window.sessions, window.source_watch, window.open_session
        ),
        window.sandbox.command(),
        reporting(window, document, features.runs.variants),
        Command("save-log", file, tr("Save whole &log…"), lambda: window.panes.log.save_whole()),
        *window.exports.commands(),
        setting_up(window.preferences, window),
        Command("quit", file, tr("&Quit"), window.close, "Ctrl+Q", separated=True),
        Command(
            "undo",
            edit,
            tr("&Undo"),
            document.undo,
            "Ctrl+Z",
            enabled=lambda: document.can_undo,
        ),
        Command(
            "redo",
            edit,
            tr("&Redo"),
            document.redo,
            "Ctrl+Shift+Z",
            enabled=lambda: document.can_redo,
        ),
        *nodes.walking(),
        Command(
            "clear-selection",
            edit,
            tr("&Clear selection"),
            partial(document.select, ()),
            "Ctrl+Shift+A",
        ),
        *(
            Command(
                scheme,
                view,
                title,
                partial(window.set_scheme, scheme),
                checked=partial(has_scheme, scheme),
                group="scheme",
            )
            for scheme, title in (
                ("system", tr("&System colours")),
                ("light", tr("&Light")),
                ("dark", tr("&Dark")),
            )
        ),
        Command(
            "node-map",
            view,
            tr("&Node map"),
            partial(window.show_page, "node-map"),
            "Ctrl+M",
            enabled=document.has_torch,
            separated=True,
        ),
        Command(
            "translation",
            view,
            tr("&Translation of the node"),
            partial(window.show_page, "translation"),
            "Ctrl+T",
            enabled=document.has_torch,
        ),
        *window.graphs.commands(),
        *window.exports.picture_commands(),
        *window.code_commands.commands(),
        *Pointing(document, window).commands(),
        *(
            Command(
                strategy,
                lowering,
                title,
                change(lowering=strategy),
                keys,
                enabled=document.has_torch,
                checked=partial(is_wanted, "lowering", strategy),
                group="lowering",
            )
            for strategy, title, keys in (
                ("high-level", tr("&High-level"), "Ctrl+1"),
                ("te", tr("TE"), "Ctrl+2"),
                ("library", tr("Librar&y"), "Ctrl+3"),
            )
        ),
        *nodes.lowering(),
        Command(
            "extensions",
            lowering,
            tr("Rules and library files…"),
            window.extensions.show_list,
            "Ctrl+L",
            enabled=document.is_open,
            separated=True,
        ),
        Command(
            "write-rule",
            lowering,
            tr("&Write a rule for the node…"),
            window.extensions.write_rule,
            enabled=has_rule_to_write,
        ),
        Command(
            "open-rule",
            lowering,
            tr("&Open the rule of the node"),
            window.extensions.open_rule,
            enabled=has_rule,
        ),
        Command(
            "load-library",
            lowering,
            tr("Load a libr&ary file…"),
            window.extensions.choose_library,
            enabled=document.is_open,
        ),
        Command(
            "reset-overrides",
            lowering,
            tr("Reset all &nodes"),
            change(overrides=()),
            enabled=lambda: document.wanted is not None and bool(document.wanted.overrides),
        ),
        *(
            Command(
                tracer,
                lowering,
                title,
                change(tracer=tracer),
                enabled=document.has_torch,
                checked=partial(is_wanted, "tracer", tracer),
                group="tracer",
                separated=tracer == "auto",
            )
            for tracer, title in (
                ("auto", tr("&Trace automatically")),
                ("fx", tr("Trace with torch.&fx")),
                ("export", tr("Trace with torch.&export")),
            )
        ),
        *importing(document),
        *loading_parameters(window, document),
        *binding(document, window.pipeline),
        Command(
            "inputs",
            lowering,
            tr("Inputs…"),
            window.inputs_form.edit,
            "Ctrl+I",
            enabled=document.is_open,
            separated=True,
        ),
        *changing_inputs(window, features.inputs),
        *passes(document, features.stepping, window.pipeline, window.extensions.choose_passes),
        *window.schedules.commands(),
        *window.tune.commands(),
        *NumberCommands(window.schedules, features.measurements).commands(),
        *CompareCommands(
            window, document, features.pins, lambda: window.panes.show_difference()
        ).commands(),
        Command(
            "run",
            run,
            tr("Ru&n and compare"),
            features.runs.run,
            "F5",
            enabled=lambda: document.wanted is not None and not document.running,
        ),
        *running_variants(window, document, features.runs),
        Command(
            "stop",
            run,
            tr("Sto&p"),
            features.cancel,
            "Shift+F5",
            enabled=lambda: bool(document.job.text) or document.running,
        ),
        *fault_commands(document, features.faults),
        *limiting(window.preferences, window),
        clearing(document, window),
        Command("restart", run, tr("Restart &engine and worker"), features.restart),
        *finding_differences(window, document, window.show_tensor),
        *run_step_commands(document, features.stepping, features.run_steps),
        *timing_commands(document, features.runs, window),
        *window.targets.commands(),
        *window.pane_commands.commands(),
        *helping(window.show_palette, commands, window.help, window.preferences, window),
    ):
        commands.add(command)
    commands.take_keys(window)
    commands.follow(
        document.changed,
        features.runs.variants.changed,
        features.run_steps.breaks_changed,
        features.faults.changed,
        features.pins.changed,
        features.stepping.moment_changed,
        features.stepping.schedule_moved,
        features.stepping.run_moved,
        features.stepping.list_changed,
        features.scheduling.changed,
        features.variants.left_over.changed,
        features.tuning.changed,
        features.colouring.changed,
        window.sandbox.sandboxing.changed,
    )


def fill_menus(bar: QMenuBar, commands: Commands) -> None:
    """Put the commands into the menus."""
    menus: dict[str, QMenu] = {}
    for command, action in commands:
        menu = menus.get(command.menu)
        if menu is None:
            menu = menus[command.menu] = bar.addMenu(command.menu)
            # They say why a command is disabled.
            menu.setToolTipsVisible(True)
            menu.aboutToShow.connect(commands.refresh)
        if command.separated:
            menu.addSeparator()
        menu.addAction(action)
