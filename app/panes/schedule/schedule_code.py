"""The code of the scheduled function: previewed, at its step, compiled, and as Python."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from lowerscope.app.document.shared import Shared
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.code.diff_editor import (
    DiffPart,
    DiffRun,
    Printed,
    SideText,
    compact_side,
    told_apart,
)
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.kit.layouts import row_of, stack_of
from lowerscope.app.kit.pane import ElidedLabel, Pane
from lowerscope.app.panes.common.script_page import CompiledPage, FetchedPage, ScriptPage
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Preview, Scheduling
from lowerscope.app.panes.schedule.schedule_moves_page import ScheduleMenu
from lowerscope.core.model.compact_script import compact_script
from lowerscope.core.model.line_difference import changed_words, line_runs
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule import APPLY_RULES
from lowerscope.core.model.schedule_records import ScheduleRecord, StepError
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.texts import _

FOOTER = 34
"""Height of the line below the code, which is there whether or not it says something."""


class ScheduleCode(Pane):
    """The scheduled function as code.

    The page *Preview* comes to the front while a primitive is previewed: the difference that it
    makes, or the lines that prevent it. The others show the function at the current step.
    """

    def __init__(self, shared: Shared, scheduling: Scheduling, measurements: Measurements) -> None:
        super().__init__(_("TensorIR"))
        self._document = document = shared.document
        self._stepping = stepping = shared.stepping
        self._scheduling = scheduling
        self._shown: ScheduleRecord | None = None
        self._previewing = False
        self.difference = DiffView(_("Effect of the primitive"), changed_words)
        self.difference.set_unified(True)
        self.difference.set_empty(
            _("No primitive selected"),
            _("Point at one in the list to see its effect on the function here."),
        )
        self.rejected = CodeView(_("Lines that prevent the primitive"))
        self.preview = stack_of(self.difference, self.rejected)
        self.script = ScriptPage(shared, _("Scheduled TensorIR script"))
        self.failed = CodeView(_("Lines at which the step failed"))
        self.scripts = stack_of(self.script, self.failed)
        self.python = CodeView(_("The schedule as Python"))
        self.python.set_empty(
            _("No step yet"), _("The steps of the schedule appear here as Python.")
        )
        busy = self.set_busy
        self.texts: dict[str, FetchedPage] = {
            "llvm": CompiledPage(shared, "llvm", _("LLVM IR"), busy),
            "asm": CompiledPage(shared, "asm", _("Assembly"), busy),
            "numpy": FetchedPage(shared, "numpy", _("NumPy loops"), busy),
            "te": FetchedPage(shared, "te", _("Tensor expressions"), busy),
        }
        self.columns = SegmentedSwitch(
            _("Columns of the preview"),
            (
                Segment("unified", _("Unified")),
                Segment("side", _("Side by side")),
            ),
        )
        self.line = ElidedLabel()
        self.edit = push_button(_("Edit…"), _("Change the step that failed"))
        self.force = QPushButton(_("Apply anyway"))
        self.end = push_button(
            _("To the end"), _("Show the function after all steps"), look="quiet"
        )
        self.menu = ScheduleMenu(document, scheduling, measurements, self)
        self._lay_out()
        self.columns.changed.connect(self._set_columns)
        self.script.code.menu_opening.connect(self._add_moves)
        self.edit.clicked.connect(self._edit)
        self.force.clicked.connect(self._force)
        self.end.clicked.connect(scheduling.go_to_end)
        self.page_changed.connect(self._show_page)
        scheduling.changed.connect(self._show)
        scheduling.busy_changed.connect(self._show_busy)
        scheduling.trying.preview_changed.connect(self._show)
        stepping.schedule_moved.connect(self._show)
        document.on(("code_form",), self._show)
        self._show()

    def _lay_out(self) -> None:
        for key, title, page in (
            ("preview", _("Preview"), self.preview),
            ("script", _("Script"), self.scripts),
            ("llvm", _("LLVM"), self.texts["llvm"]),
            ("asm", _("Assembly"), self.texts["asm"]),
            ("python", _("Python"), self.python),
            ("numpy", _("NumPy"), self.texts["numpy"]),
            ("te", _("TE"), self.texts["te"]),
        ):
            self.add_page(key, title, page)
        self.set_current("script")
        self.add_corner(self.columns)
        footer = QWidget()
        footer.setFixedHeight(FOOTER)
        footer.setProperty("edge", "top")
        footer.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row_of(footer, (self.line, 1), self.edit, self.force, self.end, margins=(10, 0, 8, 0))
        layout = self.layout()
        assert layout is not None
        layout.addWidget(footer)

    # The menu of the script

    def _add_moves(self, entity: str, menu: QMenu) -> None:
        """Add the primitives for the loop or block at which the menu was opened."""
        chosen = self._document.selection.chosen
        if "/" in entity and entity not in chosen:
            self._document.select((entity,))
        self._script_menu = menu
        menu.addSeparator()
        menu.addAction(_("Primitives…"), self._open_moves)

    def _open_moves(self) -> None:
        # At the position of the menu: it may have been opened by key, far from the mouse.
        self.menu.open_at(self._script_menu.pos())

    # Content

    def _set_columns(self, key: str) -> None:
        self.difference.set_unified(key == "unified")

    def _show_busy(self) -> None:
        self.set_busy(self._scheduling.busy)

    def _show(self) -> None:
        record, preview = self._scheduling.record, self._scheduling.trying.preview
        if record is not self._shown:
            self._show_record(record)
        self._show_step()
        self._show_preview(preview)
        self._turn_page(preview is not None)
        self._show_page()

    def _show_record(self, record: ScheduleRecord | None) -> None:
        before, self._shown = self._shown, record
        if record is None:
            self.script.show_text(None)
            return
        same = before is not None and before.function == record.function
        self.script.show_text(_by_headers(record), (f"tir:{record.function}",), stay=same)
        self.script.code.set_changed_lines(record.changed)

    def _show_step(self) -> None:
        """Show the script at the current step, or the lines at which that failed."""
        record, step = self._scheduling.record, self._scheduling.step
        error = None if step is None else step.error
        if record is not None and error is not None:
            _show_lines(self.failed, error, record)
        self.scripts.setCurrentWidget(self.script if error is None else self.failed)

    def _show_preview(self, preview: Preview | None) -> None:
        record = self._scheduling.record
        if preview is None or record is None:
            self.difference.set_parts(())
            self.preview.setCurrentWidget(self.difference)
            self.set_context("")
        elif preview.error is not None:
            _show_lines(self.rejected, preview.error, record)
            self.preview.setCurrentWidget(self.rejected)
            self.set_context("")
        elif preview.record is not None:
            self._show_difference(preview.base, preview.record)
            self.preview.setCurrentWidget(self.difference)

    def _show_difference(self, base: ScheduleRecord, record: ScheduleRecord) -> None:
        old, new = self._side(base.script.text), self._side(record.script.text)
        # A line in another loop has another indentation, but is otherwise the same.
        bare = ([line.text.strip() for line in side.printed] for side in (old, new))
        runs = [DiffRun(run.status, run.old, run.new, run.length) for run in line_runs(*bare)]
        changes = ((run.old, run.new, run.length) for run in runs if run.status == "changed")
        old, new = told_apart(old, new, changes)
        part = DiffPart(
            "",
            "changed",
            old.lines,
            new.lines,
            runs,
            old_printed=old.printed_by_number(),
            new_printed=new.printed_by_number(),
        )
        changed = part.count("changed")
        self.difference.set_parts((part,), base.script.language)
        for editor in self.difference.editors():
            editor.unfold_all()
        self.difference.next_change()
        added, removed = part.count("added") + changed, part.count("removed") + changed
        self.set_context(f"+{added:,} −{removed:,}")

    def _side(self, text: str) -> SideText:
        """Return a script in the form in which all panes show code."""
        if not self._document.code_form.compact:
            lines = text.split("\n")
            return SideText(lines, {}, list(map(Printed, lines)))
        side, hidden = compact_side(text), compact_script(text).hidden
        kept = [at for at in range(len(side.lines)) if at not in hidden]
        return SideText([side.lines[at] for at in kept], {}, [side.printed[at] for at in kept])

    def _turn_page(self, previewing: bool) -> None:
        """Bring the preview to the front when it begins, and the script when it ends."""
        began, self._previewing = previewing and not self._previewing, previewing
        if began and self.current() == "script":
            self.set_current("preview")
        elif not previewing and self.current() == "preview":
            self.set_current("script")

    def _show_page(self, _page: str = "") -> None:
        record, page = self._scheduling.record, self.current()
        self.columns.setVisible(page == "preview")
        if page == "python":
            steps = record is not None and record.steps
            self.python.set_text(record.code if record is not None and steps else "", "python")
        for key, text in self.texts.items():
            if record is None:
                text.show_nothing()
            elif key == page:
                text.show_text_of(record.function, self._scheduling.moment)
        self._show_line()

    def _show_line(self) -> None:
        """Show what the code is of: the preview, the step that failed, or the current step."""
        scheduling, preview = self._scheduling, self._scheduling.trying.preview
        record, step, index = scheduling.record, scheduling.step, self._stepping.schedule_index
        error = None if step is None else step.error
        showing = self.current() == "preview" and preview is not None
        text, role = "", "quiet"
        if showing and preview is not None:
            text, role = self._preview_line(preview)
        elif step is not None and error is not None:
            text, role = f"✕ {step.title}: {error.message}", "wrong"
        elif record is not None:
            text = self._step_line(record, index)
        self.line.set_whole(text)
        if self.line.property("role") != role:
            self.line.set_role(role)
        self.edit.setVisible(error is not None and not showing)
        self.force.setVisible(error is not None and error.unsafe and not showing)
        if error is not None:
            self.force.setToolTip(
                _(
                    "Apply it in spite of this: {message}. Check the values afterwards.",
                    message=error.message,
                )
            )
        count = 0 if record is None else len(record.steps)
        self.end.setVisible(index is not None and index < count and not showing)

    def _preview_line(self, preview: Preview) -> tuple[str, str]:
        steps = () if preview.record is None else preview.record.steps
        step = next((each for each in steps if each.id == preview.primitive.id), None)
        title = preview.primitive.name if step is None else step.title
        if preview.error is not None:
            return f"✕ {title}: {preview.error.message}", "wrong"
        if preview.record is None:
            return _("Preview: {title}…", title=title), "quiet"
        return _("✓ legal · {title}", title=title), "right"

    def _step_line(self, record: ScheduleRecord, index: int | None) -> str:
        count = len(record.steps)
        place = count if index is None else min(index, count)
        if not count:
            return unscheduled_line(self._scheduling.recipe)
        if not place:
            return _("Before the first step; the next primitive is inserted here")
        step = record.steps[place - 1]
        text = _(
            "After step {place} of {count}: {title}", place=place, count=count, title=step.title
        )
        if step.comment:
            text = f"{text} · {step.comment}"
        return text

    def _edit(self) -> None:
        step = self._scheduling.step
        if step is not None:
            self._scheduling.trying.edit(step.id)

    def _force(self) -> None:
        step = self._scheduling.step
        if step is not None:
            self._scheduling.editing.force(step.id)

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would skip the widgets before it.
        self.script.code.setFocus(event.reason())


def unscheduled_line(recipe: Recipe | None) -> str:
    """Return what is said of a function without steps: the model may schedule it all the same."""
    if recipe is not None and any(each.name == APPLY_RULES and each.on for each in recipe.steps):
        return _(
            "Unscheduled here; in the model, ApplyRules schedules it where a rule fits, as "
            "Auto-schedule does"
        )
    return _("Unscheduled")


def _show_lines(view: CodeView, error: StepError, record: ScheduleRecord) -> None:
    """Show the function, with the lines that an error is about."""
    view.set_text(error.text or record.script.text, "tvmscript")
    view.set_changed_lines(error.lines)
    if error.lines:
        view.go_to_line(error.lines[0])


def _by_headers(record: ScheduleRecord) -> TextRecord:
    """Return the script with each loop linked to its header only; its body is the block's."""
    loops = {each.id for each in record.tree if each.kind == "loop"}
    spans = tuple(
        msgspec.structs.replace(span, last=span.first) if span.entity in loops else span
        for span in record.script.spans
    )
    return msgspec.structs.replace(record.script, spans=spans)
