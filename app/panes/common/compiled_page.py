"""Compiled code of a function: bytecode, LLVM IR or assembly, which takes the worker some time."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.timelines import BuildSteps
from lowerscope.app.panes.common.script_page import FetchedPage
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.snapshot import TextRecord, View
from lowerscope.core.model.texts import _

WAITING_MS = 150
"""Delay before a request shows its progress."""


class CompiledPage(FetchedPage):
    """A fetched page that shows the worker's progress, and can cancel it.

    It shows the result of TVM's build, and the scheduled function compiled by itself, at its
    current step. At a step before the end of the build there is no code.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        colouring: Colouring,
        build: BuildSteps,
        view: View,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(document, queries, colouring, view, name, self._note_busy, parent)
        self._build = build
        self._set_busy = set_busy
        empty = self.script.code.empty
        self.cancel = empty.add_action(_("Cancel"), self._cancel)
        self.again = empty.add_action(_("Compile"), self._compile, primary=True)
        self._offer()
        self._timer = QTimer(self, singleShot=True, interval=WAITING_MS)
        self._timer.timeout.connect(self._show_waiting)

    def show_text_of(self, name: str, moment: Moment | None = None) -> None:
        """Show the code of a function, compiled once the page is visible."""
        if moment is None or moment.section == "schedule":
            super().show_text_of(name, moment)
            return
        hint = _("Code is generated at the end of the build. Leave the step (Esc) to see it.")
        self.show_nothing(_("Not compiled yet at this step"), hint)

    def show_nothing(self, title: str = "", hint: str = "") -> None:
        """Show an empty page with a reason."""
        self._timer.stop()
        self._offer()
        super().show_nothing(title, hint)

    def _note_busy(self, busy: bool) -> None:
        if busy:
            self._timer.start()
        else:
            self._timer.stop()
        self._set_busy(busy)

    def _show_waiting(self) -> None:
        busy = self._document.running
        hint = _("The worker is running the model; this follows.") if busy else ""
        self._say(_("Building…"), hint)

    def _note_progress(self, text: str, _fraction: float | None) -> None:
        if not self._timer.isActive():
            self._say(_("Building…"), text)

    def _say(self, title: str, hint: str) -> None:
        self._offer(self.cancel)
        self.script.code.set_empty(title, hint)
        self.script.show_text(None)

    def _take_text(self, record: TextRecord) -> None:
        self._offer()
        super()._take_text(record)
        if self._moment is None:
            self._build.note_built()

    def _take_problem(self, problem: Problem) -> None:
        super()._take_problem(problem)
        self._offer(self.again if problem.code in ("cancelled", "crashed") else None)

    def _offer(self, action: QWidget | None = None) -> None:
        for each in (self.cancel, self.again):
            each.setVisible(each is action)

    def _cancel(self) -> None:
        self._watch.cancel()

    def _compile(self) -> None:
        self._watch.refresh()
