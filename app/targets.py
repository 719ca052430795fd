"""What is known of targets and of other machines: asked of the children, for the dialogs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.core.engine.target_params import RemoteParams, TargetsParams
from lowerscope.core.errors import Problem
from lowerscope.core.records.remote import Remote, RemoteState
from lowerscope.core.records.target import TargetRecord

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class Targets(QObject):
    """The catalogue, what was typed last, and the other machine that was tried last.

    Attributes
    ----------
    catalogue
        Those to choose from; empty as long as they are not known.
    typed
        What the target that was typed changes, or what is wrong with it.
    state
        What another machine has said, or why nothing is known of it.
    trying
        Whether another machine is being asked.

    Signals
    -------
    changed
        One of these is new.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._text = ""
        self._request: int | None = None
        self.catalogue: tuple[TargetRecord, ...] = ()
        self.typed: TargetRecord | Problem | None = None
        self.state: RemoteState | Problem | None = None

    @property
    def trying(self) -> bool:
        """Whether another machine is being asked."""
        return self._request is not None

    def ask(self, threads: int) -> None:
        """Ask what there is to choose from, with so many threads."""

        def take(records: tuple[TargetRecord, ...]) -> None:
            self.catalogue = records
            self.changed.emit()

        params = TargetsParams(threads=threads)
        self._workspace.engine.request("targets", params, take, self._ignore)

    def look(self, text: str, threads: int) -> None:
        """Ask what a target that is being typed changes; the last one counts."""
        self._text, self.typed = text, None

        def take(records: tuple[TargetRecord, ...]) -> None:
            note(records[0])

        def note(found: TargetRecord | Problem) -> None:
            if self._text == text:
                self.typed = found
                self.changed.emit()

        params = TargetsParams(texts=(text,), threads=threads)
        self._workspace.engine.request("targets", params, take, note)

    def attempt(self, remote: Remote) -> None:
        """Ask another machine what it is, as soon as the worker may reach it."""
        sandbox = self._workspace.worker.sandbox
        if sandbox is None:
            self._attempt(remote)
        else:
            sandbox.ask(remote, partial(self._attempt, remote))

    def _attempt(self, remote: Remote) -> None:
        self.give_up()
        self._request = self._workspace.worker.request(
            "remote", RemoteParams(remote=remote), self._take_state, self._take_state
        )
        self.changed.emit()

    def give_up(self) -> None:
        """Ask the other machine no more, and forget what it has said."""
        request, self._request = self._request, None
        self._workspace.abandon(self._workspace.worker, request)
        self.state = None

    def _take_state(self, state: RemoteState | Problem) -> None:
        self._request = None
        self.state = state
        self.changed.emit()

    def _ignore(self, problem: Problem) -> None:
        """Leave the catalogue empty: a target can be typed."""
