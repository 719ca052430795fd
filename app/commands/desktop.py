"""General commands: settings, command palette, shortcuts, help and About.

The modules of their windows are imported on first use.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def setting_up(window: MainWindow) -> Command:
    """Return the command that opens the settings, for the menu File."""
    tr = window.tr
    return Command(
        "settings",
        tr("&File"),
        tr("Setti&ngs…"),
        partial(_settings, window),
        "Ctrl+,",
        separated=True,
    )


def limiting(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands on the memory of runs, for the menu Run."""
    menu, tr = window.tr("&Run"), window.tr
    return (
        Command(
            "memory-limit",
            menu,
            tr("&Memory limit of the worker…"),
            partial(_settings, window, "memory_limit"),
        ),
        Command(
            "keep", menu, tr("Memory for &values of a run…"), partial(_settings, window, "keep")
        ),
    )


def helping(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands of the menu Help."""
    menu, tr = window.tr("&Help"), window.tr
    return (
        Command("palette", menu, tr("&All commands…"), partial(_palette, window), "Ctrl+Shift+P"),
        Command(
            "shortcuts", menu, tr("&Keyboard shortcuts"), partial(_shortcuts, window), "Ctrl+?"
        ),
        *window.help.commands(),
        Command("about", menu, tr("A&bout Lowerscope"), partial(_about, window)),
    )


def _settings(window: MainWindow, field: str = "") -> None:
    from lowerscope.app.views.settings_dialog import open_settings

    open_settings(window, field)


def _palette(window: MainWindow) -> None:
    from lowerscope.app.views.palette import open_palette

    open_palette(window)


def _shortcuts(window: MainWindow) -> None:
    from lowerscope.app.views.shortcuts_page import open_shortcuts

    open_shortcuts(window)


def _about(window: MainWindow) -> None:
    from lowerscope.app.views.about import show_about

    show_about(window)
