"""Derivation of the pending recipe by the engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Change, Document
from lowerscope.app.document.history import Version
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.recovery import Recovering
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _


class Changes(QObject):
    """Queries the records of each pending version, and shows them."""

    rejected = Signal()  # The pending version could not be derived, or was cancelled.

    def __init__(self, document: Document, queries: Queries, recovering: Recovering) -> None:
        super().__init__(document)
        self._document = document
        self._queries = queries
        self._recovering = recovering
        self._slot = Slot(queries)
        self._asked: Version | None = None
        document.changed.connect(self._follow)

    def _follow(self, change: Change) -> None:
        pending = self._document.pending
        if "pending" not in change.fields or pending is self._asked:
            return
        self._slot.supersede()
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
        self._slot.ask(query, self._accept, self._refuse, document.say)

    def _accept(self, snapshot: Snapshot) -> None:
        version, self._asked = self._asked, None
        assert version is not None
        self._queries.show(version.recipe, snapshot.key)
        with self._document.changing():
            self._document.say("")
            self._document.show(version, snapshot)
        self._recovering.take(version.recipe)

    def _refuse(self, problem: Problem) -> None:
        document = self._document
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
        if self._document.recipe is None and recipe != lost.recipe:
            # Undo returns to the recipe that was opened; otherwise to the one shown.
            history = history.changed_from(lost.recipe)
        self._document.request(Version(recipe, history))
