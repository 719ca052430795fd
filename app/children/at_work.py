"""What a child is at for long, and that nobody else says: it is said, and can be stopped.

A change, a run or an export says itself how far it is, and has its own way to be stopped. For all
else that the window asks for, a text, a graph, a difference, what a rule makes of a function, there
is this one: whatever takes longer than a second has words in the line at the bottom, and a cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from lowerscope.core.engine.methods import METHODS

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

SAY_MS = 800
"""So long a child may be at something before it is said."""

_OWN = frozenset(
    (
        *("run", "variant_times", "agreement", "guard", "export", "remote", "targets"),
        *("measure", "check", "peaks", "tune", "tune_state", "pause_tuning"),
    )
)
"""Methods with a place in the window that says how far they are and stops them, or that are
measured by themselves."""


class AtWork(QObject):
    """Says what the children are at, where nobody else does, and stops it.

    Attributes
    ----------
    said
        What it says now; empty for nothing.
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._clients = workspace.engine, workspace.worker
        self._timer = QTimer(self, singleShot=True, interval=SAY_MS)
        self._timer.timeout.connect(self._say)
        self.said = ""
        for client in self._clients:
            client.state_changed.connect(self._follow)
        workspace.activity_changed.connect(self._follow)

    def cancel(self) -> None:
        """Stop all that the children are asked for here; each is told so as a problem."""
        for client in self._clients:
            for request, method in client.under_way().items():
                if method not in _OWN:
                    client.cancel(request)

    def _follow(self) -> None:
        if not self._doing():
            self._timer.stop()
            said, self.said = self.said, ""
            if said:
                self._workspace.say("", of="asked")
        elif not self._workspace.activity.text and not self._timer.isActive():
            self._timer.start()

    def _say(self) -> None:
        doing = self._doing()
        if doing and not self._workspace.activity.text:
            self.said = doing[0].upper() + doing[1:]
            self._workspace.say(self.said, of="asked")

    def _doing(self) -> str:
        for client in self._clients:
            for method in client.under_way().values():
                if method not in _OWN:
                    return METHODS[method].doing
        return ""
