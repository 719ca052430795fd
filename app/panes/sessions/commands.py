"""Commands for sessions, and the window's layout in a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QFileDialog

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.host import Host
from lowerscope.app.panes.sessions.sessions import Sessions
from lowerscope.app.panes.sessions.source_watch import SourceWatch
from lowerscope.core.files.sessions import SUFFIX
from lowerscope.core.files.sources import is_in_memory
from lowerscope.core.model.texts import _


def keeping_sessions(
    host: Host,
    document: Document,
    sessions: Sessions,
    watch: SourceWatch,
    open_session: Callable[[str], None],
) -> tuple[Command, ...]:
    """Return the commands."""
    return (
        Command(
            "save-session",
            _("Sa&ve session as…"),
            partial(save_as, host, document, sessions),
            "Ctrl+S",
            enabled=document.is_open,
        ),
        Command(
            "reopen",
            _("Reopen the last sess&ion"),
            partial(reopen, document, sessions, open_session),
        ),
        Command(
            "watch",
            _("Reload files when they are &saved"),
            watch.switch,
            checked=lambda: watch.on,
        ),
    )


def save_as(host: Host, document: Document, sessions: Sessions) -> None:
    """Select a file in a dialog, and save the session there from now on."""
    snapshot = document.snapshot
    if snapshot is None:
        return
    name = str(sessions.path or f"{snapshot.model.title}{SUFFIX}")
    path, _filter = QFileDialog.getSaveFileName(
        host.widget, _("Save the session"), name, _("Sessions (*{suffix})", suffix=SUFFIX)
    )
    if path:
        sessions.save_as(path)
        recipe = document.recipe
        if recipe is not None and is_in_memory(recipe):
            text = _(
                "{title} exists only in the memory of the Python process that made it: the "
                "session records all choices, but cannot be opened again.",
                title=snapshot.model.title,
            )
            document.notify(text, "info")


def reopen(document: Document, sessions: Sessions, open_session: Callable[[str], None]) -> None:
    """Open the last session."""
    path = sessions.last()
    if path is None:
        document.notify(_("There is no session to reopen."), "info")
    else:
        open_session(str(path))


def title(document: Document, sessions: Sessions) -> str:
    """Return the text of the title bar."""
    snapshot, path = document.snapshot, sessions.path
    parts = [] if snapshot is None else [snapshot.model.title]
    if path is not None:
        name = Path(path).stem
        parts.append(_("{name} [read-only]", name=name) if sessions.read_only else name)
    return " – ".join([*parts, "Lowerscope"])
