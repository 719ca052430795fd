"""A text that is fetched from the engine when it is looked at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.views.script_page import ScriptPage
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records.snapshot import TextRecord, View
from lowerscope.core.records.steps import Moment


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
    kind
        Of the functions: ``"tir"`` or ``"relax"``.
    """

    def __init__(
        self,
        workspace: Workspace,
        view: View,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
        *,
        kind: str = "tir",
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._view: View = view
        self._kind = "relax" if view == "bytecode" else kind
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)
        self.script = ScriptPage(workspace, name)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.column.addWidget(self.script, 1)

    def show_text_of(self, name: str, moment: Moment | None = None) -> None:
        """Show the text of a function, or of a file, when the page is looked at; empty for the
        module.

        The same function at another `moment` stays where it was scrolled to.
        """
        self._fetching.want(name, moment)

    @property
    def is_current(self) -> bool:
        """Whether what is to be shown is there."""
        return self._fetching.is_settled

    def forget(self) -> None:
        """Count what is shown as out of date; it stays in view until something else is there."""
        self._fetching.forget()

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._fetching.forget()
        if title:
            self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _ask(self, name: str, moment: Moment | None) -> int:
        return self._workspace.fetches.text(
            self._view, name, self._take_text, self._take_problem, moment
        )

    def _take_text(self, record: TextRecord) -> None:
        before, empty = self._fetching.shown, not self.script.code.text()
        self._fetching.settle(came=True)
        name = self._fetching.shown
        self.script.show_text(
            record,
            f"{self._kind}:{name}" if name and self._view != "source" else "",
            stay=before == name and not empty,
        )

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self.script.code.set_empty(problem.headline, problem.todo)
        self.script.show_text(None)
