"""The script of the scheduled function: current, previewed, or with the error of a step."""

from __future__ import annotations

import msgspec
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QMenu, QStackedWidget, QWidget

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.code.diff_editor import DiffPart, DiffRun
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.panes.common.script_page import ScriptPage
from lowerscope.app.panes.schedule.model import Preview, Scheduling
from lowerscope.app.panes.schedule.schedule_moves_page import ScheduleMenu
from lowerscope.core.model.line_difference import changed_words, line_runs
from lowerscope.core.model.schedule_records import ScheduleRecord, StepError
from lowerscope.core.model.snapshot import TextRecord


class ScheduleScript(QWidget):
    """The script of the scheduled function.

    It shows the script after the current step; the difference made by a preview; or the text with
    the lines at which a step failed.
    """

    def __init__(
        self,
        document: Document,
        stepping: Stepping,
        scheduling: Scheduling,
        colouring: Colouring,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._stepping = stepping
        self._scheduling = scheduling
        self._shown: ScheduleRecord | None = None
        self.line = ElidedLabel()
        self.line.setContentsMargins(10, 4, 10, 4)
        self.line.setMinimumHeight(26)
        self.script = ScriptPage(document, colouring, self.tr("Scheduled TensorIR script"))
        self.preview = DiffView(self.tr("Difference that the move would make"), changed_words)
        self.preview.set_unified(True)
        self.failed = CodeView(self.tr("Where the step failed"))
        self.menu = ScheduleMenu(document, scheduling, self)
        self.script.code.menu_opening.connect(self._add_moves)
        self.pages = QStackedWidget()
        for page in (self.script, self.preview, self.failed):
            self.pages.addWidget(page)
        column_of(self, self.line, (self.pages, 1))
        self._scheduling.changed.connect(self._show)
        self._scheduling.trying.preview_changed.connect(self._show)
        stepping.schedule_moved.connect(self._show)

    def _add_moves(self, entity: str, menu: QMenu) -> None:
        """Add the primitives for the loop or block at which the menu was opened."""
        chosen = self._document.selection.chosen
        if "/" in entity and entity not in chosen:
            self._document.select((entity,))
        self._script_menu = menu
        menu.addSeparator()
        menu.addAction(self.tr("Moves…"), self._open_moves)

    def _open_moves(self) -> None:
        # At the position of the menu: it may have been opened by key, far from the mouse.
        self.menu.open_at(self._script_menu.pos())

    def _show(self) -> None:
        record, preview = self._scheduling.record, self._scheduling.trying.preview
        if record is None:
            self._shown = None
            self.script.show_text(None)
            self._say("", "quiet")
            self.pages.setCurrentWidget(self.script)
            return
        if record is not self._shown:
            same = self._shown is not None and self._shown.function == record.function
            self._shown = record
            self.script.show_text(_by_headers(record), f"tir:{record.function}", stay=same)
            self.script.code.set_changed_lines(record.changed)
        step = self._scheduling.step
        if preview is not None and preview.error is not None:
            self._show_failed(preview.error, preview.primitive.name, record)
        elif preview is not None and preview.record is not None:
            self._show_preview(preview, preview.record)
        elif preview is None and step is not None and step.error is not None:
            self._show_failed(step.error, step.title, record)
        elif preview is None:
            self.pages.setCurrentWidget(self.script)
            self._say_place(record)

    def _show_preview(self, preview: Preview, record: ScheduleRecord) -> None:
        old, new = preview.base.script.text.split("\n"), record.script.text.split("\n")
        # A line in another loop has another indentation, but is otherwise the same.
        bare = ([line.strip() for line in side] for side in (old, new))
        runs = [DiffRun(run.status, run.old, run.new, run.length) for run in line_runs(*bare)]
        part = DiffPart(record.function, "changed", old, new, runs)
        self.preview.set_parts((part,), preview.base.script.language)
        self.preview.next_change()
        self.pages.setCurrentWidget(self.preview)
        step = next((each for each in record.steps if each.id == preview.primitive.id), None)
        title = preview.primitive.name if step is None else step.title
        self._say(self.tr("Preview: {0}").format(title), "quiet")

    def _show_failed(self, error: StepError, title: str, record: ScheduleRecord) -> None:
        text = error.text or record.script.text
        self.failed.set_text(text, "tvmscript")
        self.failed.set_changed_lines(error.lines)
        self.pages.setCurrentWidget(self.failed)
        if error.lines:
            self.failed.go_to_line(error.lines[0])
        self._say(self.tr("✕ {0}: {1}").format(title, error.message), "wrong")

    def _say_place(self, record: ScheduleRecord) -> None:
        index = self._stepping.schedule_index
        step = self._scheduling.step
        if index is None:
            self._say("", "quiet")
        elif step is None:
            self._say(self.tr("before the first step"), "quiet")
        else:
            count = len(record.steps)
            text = self.tr("after step {0} of {1}: {2}").format(index, count, step.title)
            self._say(text, "quiet")

    def _say(self, text: str, role: str) -> None:
        self.line.set_whole(text)
        self.line.setVisible(bool(text))
        if self.line.property("role") != role:
            self.line.set_role(role)

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would skip the widgets before it.
        self.script.code.setFocus(event.reason())


def _by_headers(record: ScheduleRecord) -> TextRecord:
    """Return the script with each loop linked to its header only; its body is the block's."""
    loops = {each.id for each in record.tree if each.kind == "loop"}
    spans = tuple(
        msgspec.structs.replace(span, last=span.first) if span.entity in loops else span
        for span in record.script.spans
    )
    return msgspec.structs.replace(record.script, spans=spans)
