"""Commands that select the target, and the machine that runs the model."""

from __future__ import annotations

from functools import partial

import msgspec
from PySide6.QtCore import Qt

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.panes.remote.remote_dialog import Targets
from lowerscope.core.model.texts import _


class TargetCommands:
    """Commands on targets and remote machines."""

    def __init__(self, host: Host, document: Document, queries: Queries) -> None:
        self._host = host
        self._document = document
        self.targets = Targets(queries, host.widget)

    def commands(self) -> tuple[Command, ...]:
        """Return the commands."""
        document = self._document
        change = document.change_fields

        def compiled_for(target: str) -> bool:
            return document.wanted is not None and document.wanted.target == target

        return (
            Command(
                "target-llvm",
                _("Target: &llvm"),
                partial(change, target="llvm"),
                checked=partial(compiled_for, "llvm"),
            ),
            Command(
                "target-native",
                _("T&arget: this machine"),
                partial(change, target="native", remote=None),
                checked=partial(compiled_for, "native"),
            ),
            Command(
                "target-other",
                _("Ot&her target…"),
                self.choose_target,
                enabled=document.is_open,
            ),
            Command(
                "target-remote",
                _("&Remote machine…"),
                self.choose_remote,
                enabled=document.is_open,
            ),
            Command(
                "target-here",
                _("R&un on this machine again"),
                self.leave_remote,
                enabled=lambda: document.wanted is not None and document.wanted.remote is not None,
            ),
        )

    def choose_target(self) -> None:
        """Show the targets in a dialog, and apply the selected or typed one."""
        if self._document.wanted is None:
            return
        from lowerscope.app.panes.remote.target_dialog import TargetDialog

        dialog = TargetDialog(self._document, self.targets, self._host.widget)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def choose_remote(self) -> None:
        """Select a remote machine, by tracker and key, in a dialog."""
        if self._document.wanted is None:
            return
        from lowerscope.app.panes.remote.remote_dialog import RemoteDialog

        dialog = RemoteDialog(self._document, self.targets, self._host.widget)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def leave_remote(self) -> None:
        """Run on this machine again; the target stays."""
        recipe = self._document.wanted
        if recipe is not None and recipe.remote is not None:
            self._document.change(msgspec.structs.replace(recipe, remote=None))
