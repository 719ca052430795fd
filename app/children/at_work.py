"""Notification and cancellation of long requests that have no progress display of their own.

Changes, runs and exports report their progress, and can be cancelled, themselves. All other
requests of the window (a text, a graph, a difference, the schedule that a rule writes) are handled
here: one that takes longer than a second is shown in the status bar, with a cancel button.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QTimer

from lowerscope.app.children.pair import Children
from lowerscope.app.document.document import Document
from lowerscope.core.model import queries as q

SAY_MS = 800
"""Delay before a request is shown."""

_OWN: tuple[type[q.Query[Any]], ...] = (
    *(q.RunQuery, q.VariantTimesQuery, q.AgreementQuery, q.GuardQuery, q.ExportQuery),
    *(q.RemoteQuery, q.TargetsQuery, q.MeasureQuery, q.CheckQuery, q.PeaksQuery),
    *(q.TuneQuery, q.TuneStateQuery, q.PauseTuningQuery),
)
"""Queries that are shown and cancelled elsewhere in the window, or that are themselves measured."""


class AtWork(QObject):
    """Shows the children's long requests, and cancels them.

    Attributes
    ----------
    said
        The text shown; empty for none.
    """

    def __init__(self, document: Document, children: Children) -> None:
        super().__init__(document)
        self._document = document
        self._clients = children.engine, children.worker
        self._timer = QTimer(self, singleShot=True, interval=SAY_MS)
        self._timer.timeout.connect(self._say)
        self.said = ""
        for client in self._clients:
            client.state_changed.connect(self._follow)
        document.on(("activities",), self._follow)

    def cancel(self) -> None:
        """Cancel all these requests; the problem of each is delivered."""
        for client in self._clients:
            for request, query in client.under_way().items():
                if not isinstance(query, _OWN):
                    client.cancel(request)

    def _follow(self) -> None:
        if not self._doing():
            self._timer.stop()
            said, self.said = self.said, ""
            if said:
                self._document.say("", of="asked")
        elif not self._document.activity.text and not self._timer.isActive():
            self._timer.start()

    def _say(self) -> None:
        doing = self._doing()
        if doing and not self._document.activity.text:
            self.said = doing[0].upper() + doing[1:]
            self._document.say(self.said, of="asked")

    def _doing(self) -> str:
        for client in self._clients:
            for query in client.under_way().values():
                if not isinstance(query, _OWN):
                    return query.doing
        return ""
