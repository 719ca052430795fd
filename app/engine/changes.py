"""Derivation of the pending recipe by the engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.document import Change, Document
from lowerscope.app.document.history import Version
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.recovery import Recovering
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import LoweredQuery, SnapshotQuery
from lowerscope.core.model.recipe import Recipe, part_of, without_steps
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _

EARLY_MS = 700
"""Time after which a source that is being opened is shown before its passes."""


class Changes(QObject):
    """Queries the records of each pending version, and shows them.

    A source whose passes take long is shown without them as soon as it is lowered.
    """

    rejected = Signal()  # The pending version could not be derived, or was cancelled.

    def __init__(self, document: Document, queries: Queries, recovering: Recovering) -> None:
        super().__init__(document)
        self._document = document
        self._queries = queries
        self._recovering = recovering
        self._slot = Slot(queries)
        self._early = Slot(queries)
        self._asked: Version | None = None
        self._told = ""
        self._timer = QTimer(self, singleShot=True, interval=EARLY_MS)
        self._timer.timeout.connect(self._ask_early)
        document.changed.connect(self._follow)

    def _follow(self, change: Change) -> None:
        pending = self._document.pending
        if "pending" not in change.fields or pending is self._asked:
            return
        self._slot.supersede()
        self._end_early()
        self._asked = pending
        if pending is None:
            self._document.say("")
            self._recovering.resume()
        else:
            self._ask(pending)

    def _ask(self, version: Version) -> None:
        document = self._document
        if version.reads_files:
            self._queries.note_reload()
        self._recovering.abandon()
        document.say(_("Opening"))
        query = SnapshotQuery(recipe=version.recipe, metrics=document.metrics)
        self._slot.ask(query, self._accept, self._refuse, self._tell)
        self._timer.start()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        assert self._asked is not None
        part = part_of(self._asked.recipe, self._queries.client("engine").part)
        step = part.place + 1 if part is not None and part.kind == "step" else 0
        self._document.say(text, fraction, step=step)
        if text != self._told and not self._timer.isActive():
            self._told = text
            self._ask_early()

    def _ask_early(self) -> None:
        """Ask for the records before the passes, again at each stage until they are known."""
        version, shown = self._asked, self._document.recipe
        opens = shown is None or (version is not None and version.recipe.source != shown.source)
        if version is not None and version.recipe.steps and opens:
            query = LoweredQuery(version.recipe, self._document.metrics)
            self._early.ask(query, self._accept_early, lambda _problem: None)

    def _end_early(self) -> None:
        self._timer.stop()
        self._early.drop()

    def _accept_early(self, snapshot: Snapshot) -> None:
        if self._asked is not None and self._asked is self._document.pending:
            self._document.show_lowered(snapshot)
            assert self._document.recipe is not None
            self._queries.show(self._document.recipe, snapshot.key)

    def _accept(self, snapshot: Snapshot) -> None:
        self._end_early()
        version, self._asked = self._asked, None
        assert version is not None
        self._queries.show(version.recipe, snapshot.key)
        with self._document.changing():
            self._document.say("")
            self._document.show(version, snapshot)
        self._recovering.take(version.recipe)

    def _refuse(self, problem: Problem) -> None:
        document = self._document
        self._end_early()
        version, self._asked = self._asked, None
        document.say("")
        if version is not None and problem.code == "crashed":
            again = self._recovering.remedy(version.recipe)
            if again is not None:
                self._request_again(again, version)
                return
        document.reject(problem)
        self.rejected.emit()
        self._recovering.give_up(None if version is None else version.recipe)

    def _request_again(self, recipe: Recipe, lost: Version) -> None:
        """Resubmit the lost version to the restarted engine, without the part that crashed it."""
        history = lost.history
        if self._document.recipe in (None, without_steps(lost.recipe)) and recipe != lost.recipe:
            # Undo returns to the recipe that was opened; otherwise to the one shown.
            history = history.changed_from(lost.recipe)
        self._document.request(Version(recipe, history))
