"""Commands for sessions, and the window's layout in a session."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from lowerscope.app.kit.commands import Command
from lowerscope.core.files.sessions import SUFFIX
from lowerscope.core.files.sources import is_in_memory

if TYPE_CHECKING:
    from lowerscope.app.shell.window import MainWindow


def keeping_sessions(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu File."""
    menu, tr = window.tr("&File"), window.tr
    return (
        Command(
            "save-session",
            menu,
            tr("Sa&ve session as…"),
            partial(save_as, window),
            "Ctrl+S",
            enabled=window.document.is_open,
        ),
        Command("reopen", menu, tr("Reopen where &I was"), partial(reopen, window)),
        Command(
            "watch",
            menu,
            tr("Read files again when they are &saved"),
            window.source_watch.switch,
            checked=lambda: window.source_watch.on,
        ),
        window.sandbox.command(),
    )


def save_as(window: MainWindow) -> None:
    """Select a file in a dialog, and save the session there from now on."""
    snapshot = window.document.snapshot
    if snapshot is None:
        return
    tr, sessions = window.tr, window.sessions
    name = str(sessions.path or f"{snapshot.model.title}{SUFFIX}")
    path, _ = QFileDialog.getSaveFileName(
        window, tr("Save the session"), name, tr("Sessions (*{0})").format(SUFFIX)
    )
    if path:
        sessions.save_as(path)
        recipe = window.document.recipe
        if recipe is not None and is_in_memory(recipe):
            text = tr(
                "{0} lives in the memory of the Python process that made it: the session has all"
                " choices, but cannot be opened again."
            )
            window.banner.show_message(text.format(snapshot.model.title), "info")


def reopen(window: MainWindow) -> None:
    """Open the last session."""
    path = window.sessions.last()
    if path is None:
        window.banner.show_message(window.tr("There is no session to reopen."), "info")
    else:
        window.open_session(str(path))


def title(window: MainWindow) -> str:
    """Return the text of the title bar."""
    snapshot, path = window.document.snapshot, window.sessions.path
    parts = [] if snapshot is None else [snapshot.model.title]
    if path is not None:
        words = "{0} [read-only]" if window.sessions.read_only else "{0}"
        parts.append(window.tr(words).format(Path(path).stem))
    return " – ".join([*parts, "Lowerscope"])
