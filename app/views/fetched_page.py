"""A text that is fetched from the engine when it is looked at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.views.script_page import ScriptPage
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records import TextRecord, View


class FetchedPage(QWidget):
    """A script page for one kind of text.

    Parameters
    ----------
    view
        What the text shows.
    name
        Accessible name of the code view.
    set_busy
        Called with whether a text is on its way.
    """

    def __init__(
        self,
        workspace: Workspace,
        view: View,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._view: View = view
        self._set_busy = set_busy
        self._wanted: str | None = None
        self._shown: str | None = None
        self._request: int | None = None
        self.script = ScriptPage(workspace, name)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.column.addWidget(self.script, 1)

    def show_text_of(self, name: str) -> None:
        """Show the text of a function, fetched when the page is looked at; empty for the module."""
        if name != self._wanted:
            self._wanted = name
            self._fetch()

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._drop()
        self._wanted = self._shown = None
        if title:
            self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _fetch(self) -> None:
        if self._wanted is None or self._wanted == self._shown or not self.isVisible():
            return
        self._drop()
        self._set_busy(True)
        self._request = self._workspace.fetch_text(
            self._view, self._wanted, self._take_text, self._take_problem
        )

    def _take_text(self, record: TextRecord) -> None:
        self._request, self._shown = None, self._wanted
        self._set_busy(False)
        whole = f"tir:{self._shown}" if self._shown else ""
        self.script.show_text(record, whole)

    def _take_problem(self, problem: Problem) -> None:
        self._request, self._shown = None, None
        self._set_busy(False)
        self.script.code.set_empty(problem.what[:1].upper() + problem.what[1:], problem.todo)
        self.script.show_text(None)

    def _drop(self) -> None:
        if self._request is not None:
            self._workspace.drop_fetch(self._request)
            self._request = None
            self._set_busy(False)

    # Qt's own

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fetch()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._drop()
