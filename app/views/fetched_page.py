"""A text that is fetched from the engine when it is visible."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.views.script_page import ScriptPage
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import TextQuery
from lowerscope.core.records.snapshot import TextRecord, View
from lowerscope.core.records.steps import Moment


class FetchedPage(QWidget):
    """A script page for one kind of text.

    Parameters
    ----------
    view
        Kind of text.
    name
        Accessible name of the code view.
    set_busy
        Called with whether a text is being fetched.
    kind
        Kind of the functions: ``"tir"`` or ``"relax"``.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        colouring: Colouring,
        view: View,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
        *,
        kind: str = "tir",
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._view: View = view
        self._kind = "relax" if view == "bytecode" else kind
        self._name: str | None = None
        self._moment: Moment | None = None
        self._shown_name: str | None = None
        self._watch = queries.watch(
            self,
            self._query,
            self._take_text,
            self._take_problem,
            set_busy,
            self._note_progress,
        )
        self.script = ScriptPage(document, colouring, name)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.column.addWidget(self.script, 1)

    def show_text_of(self, name: str, moment: Moment | None = None) -> None:
        """Show the text of a function or file, once visible; empty for the module.

        The same function at another `moment` keeps its scroll position.
        """
        self._name, self._moment = name, moment
        self._watch.update()

    @property
    def is_current(self) -> bool:
        """Return whether the requested text is shown."""
        return self._watch.is_current

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._name = self._shown_name = None
        self._watch.update()
        if title:
            self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _query(self) -> TextQuery | None:
        recipe = self._document.recipe
        if recipe is None or self._name is None:
            return None
        return TextQuery(recipe, self._name, self._view, self._moment)

    def _note_progress(self, text: str, fraction: float | None) -> None:
        """Show the child's progress."""

    def _take_text(self, record: TextRecord) -> None:
        stays = self._shown_name == self._name and bool(self.script.code.text())
        name = self._shown_name = self._name
        entity = f"{self._kind}:{name}" if name and self._view != "source" else ""
        self.script.show_text(record, entity, stay=stays)

    def _take_problem(self, problem: Problem) -> None:
        self._shown_name = None
        self.script.code.set_empty(problem.headline, problem.todo)
        self.script.show_text(None)
