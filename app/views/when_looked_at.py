"""When to fetch what a page shows: once it is looked at, and once for each thing to show."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from lowerscope.app.workspace import Workspace
from lowerscope.core.records.steps import Moment

Wanted = tuple[str, Moment | None]
"""What a page can show: what goes by a name, at a moment."""


class WhenLookedAt(QObject):
    """Fetches for a page while it can be seen.

    Parameters
    ----------
    page
        The page, which owns this.
    ask
        Asks the workspace for what goes by a name at a moment; returns the number of the fetch.
    set_busy
        Called with whether something is on its way.
    """

    def __init__(
        self,
        page: QWidget,
        workspace: Workspace,
        ask: Callable[[str, Moment | None], int],
        set_busy: Callable[[bool], None],
    ) -> None:
        super().__init__(page)
        self._page = page
        self._workspace = workspace
        self._ask = ask
        self._set_busy = set_busy
        self._wanted: Wanted | None = None
        self._shown: Wanted | None = None
        self._request: int | None = None
        # What is asked for again after a crash, once: a second crash may be its own doing.
        self._again: Wanted | None = None
        page.installEventFilter(self)
        workspace.recovering.replayed.connect(self._ask_again)

    @property
    def shown(self) -> str | None:
        """The name of what the page shows; ``None`` before it has come."""
        return None if self._shown is None else self._shown[0]

    @property
    def wanted(self) -> str | None:
        """The name of what the page is to show."""
        return None if self._wanted is None else self._wanted[0]

    @property
    def is_settled(self) -> bool:
        """Whether the page shows what it is to show."""
        return self._shown == self._wanted

    def want(self, name: str, moment: Moment | None = None) -> None:
        """Have the page show what goes by `name`, as a whole or at a moment."""
        if (name, moment) != self._wanted:
            self._wanted = (name, moment)
            self._again = None
            self._fetch()

    def fetch_again(self) -> None:
        """Ask once more for what did not come."""
        self._fetch()

    def forget(self) -> None:
        """Want nothing any more, and count what is shown as out of date."""
        self._drop()
        self._wanted = self._shown = None

    def settle(self, came: bool) -> None:
        """Say that the answer is there: what was wanted has come, or a problem has."""
        self._request, self._shown = None, self._wanted if came else None
        self._set_busy(False)

    def _fetch(self) -> None:
        if self._wanted is None or self._wanted == self._shown or not self._page.isVisible():
            return
        if self._workspace.recipe is None:
            # It is empty, and was asked to look into what is not there.
            return
        self._drop()
        self._set_busy(True)
        self._request = self._ask(*self._wanted)

    def _ask_again(self) -> None:
        if self._wanted is not None and self._wanted != self._again:
            self._again = self._wanted
            self._fetch()

    def _drop(self) -> None:
        if self._request is not None:
            self._workspace.fetches.drop(self._request)
            self._request = None
            self._set_busy(False)

    # Qt's own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show:
            self._fetch()
        elif event.type() == QEvent.Type.Hide:
            self._drop()
        return super().eventFilter(watched, event)
