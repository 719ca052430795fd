"""Targets and remote machines: queries to the children, for the dialogs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.queries import Slot
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import RemoteQuery, TargetsQuery
from lowerscope.core.records.remote import Remote, RemoteState
from lowerscope.core.records.target import TargetRecord

if TYPE_CHECKING:
    from lowerscope.app.document.queries import Queries


class Targets(QObject):
    """The catalogue, the target typed last, and the remote machine tried last.

    Attributes
    ----------
    catalogue
        The available targets; empty until they are known.
    typed
        Effect of the typed target, or its error.
    state
        Answer of a remote machine, or why there is none.
    trying
        Whether a query to a remote machine is pending.

    Signals
    -------
    changed
        One of these is new.
    """

    changed = Signal()

    def __init__(self, queries: Queries, parent: QObject) -> None:
        super().__init__(parent)
        self._queries = queries
        self._text = ""
        self._slot = Slot(queries)
        self.catalogue: tuple[TargetRecord, ...] = ()
        self.typed: TargetRecord | Problem | None = None
        self.state: RemoteState | Problem | None = None

    @property
    def trying(self) -> bool:
        """Return whether a query to a remote machine is pending."""
        return self._slot.is_busy

    def ask(self, threads: int) -> None:
        """Query the available targets, for a number of threads."""

        def take(records: tuple[TargetRecord, ...]) -> None:
            self.catalogue = records
            self.changed.emit()

        params = TargetsQuery(threads=threads)
        self._queries.ask(params, take, self._ignore)

    def look(self, text: str, threads: int) -> None:
        """Query the effect of a target being typed; the last query counts."""
        self._text, self.typed = text, None

        def take(records: tuple[TargetRecord, ...]) -> None:
            note(records[0])

        def note(found: TargetRecord | Problem) -> None:
            if self._text == text:
                self.typed = found
                self.changed.emit()

        params = TargetsQuery(texts=(text,), threads=threads)
        self._queries.ask(params, take, note)

    def attempt(self, remote: Remote) -> None:
        """Query a remote machine, as soon as the worker may reach it."""
        sandbox = self._queries.client("worker").sandbox
        if sandbox is None:
            self._attempt(remote)
        else:
            sandbox.ask(remote, partial(self._attempt, remote))

    def _attempt(self, remote: Remote) -> None:
        self.give_up()
        self._slot.ask(RemoteQuery(remote=remote), self._take_state, self._take_state)
        self.changed.emit()

    def give_up(self) -> None:
        """Cancel the query to the remote machine, and discard its answer."""
        self._slot.supersede()
        self.state = None

    def _take_state(self, state: RemoteState | Problem) -> None:
        self.state = state
        self.changed.emit()

    def _ignore(self, problem: Problem) -> None:
        """Leave the catalogue empty: a target can be typed."""
