"""The history of a schedule: its steps side by side, with the time after each."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.charts.step_strip import StepCell, StepStrip
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import PartsLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.split import head_of
from lowerscope.app.panes.schedule.measurements import START, Measurements, Scheduled
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.schedule import shown_name
from lowerscope.core.model.schedule_records import ScheduleStep, Verdict
from lowerscope.core.model.texts import _, _n

SAME: dict[Verdict, tuple[str, str, str]] = {
    "same": (_("✓ same"), "right", _("checked: the result is the same after this step")),
    "differs": (_("✕ differs"), "wrong", _("checked: the result differs after this step")),
    "inconclusive": (
        _("? inconclusive"),
        "unsure",
        _("checked: there was no finite value to compare"),
    ),
    "unknown": (_("? not known"), "", _("the check after this step had no result")),
}
"""Mark, role and text for a step, by the verdict on the function after it."""


class ScheduleHistory(QWidget):
    """The steps of the schedule, of which the current one is marked."""

    def __init__(
        self,
        document: Document,
        stepping: Stepping,
        scheduling: Scheduling,
        measurements: Measurements,
    ) -> None:
        super().__init__()
        self._document = document
        self._scheduling = scheduling
        self._stepping = stepping
        self._measurements = measurements
        self.context = PartsLabel()
        self.context.set_role("quiet")
        self.automatic = check_box(
            _("Measure after each step"), _("Check and measure each step automatically")
        )
        self.all = push_button(
            _("Measure all"),
            _("Check and measure the function after each step that was not measured yet"),
        )
        self.undo = push_button(_("Undo"), _("Undo the last change (Ctrl+Z)"))
        self.keep = push_button(_("Save"), _("Copy, save or load the schedule"))
        self.keep.setMenu(QMenu(self))
        self.strip = StepStrip(_("Steps of the schedule"))
        head = head_of(
            Label(_("History"), role="title"),
            (self.context, 1),
            self.automatic,
            self.all,
            self.undo,
            self.keep,
        )
        column_of(self, head, (self.strip, 1))
        editing = scheduling.editing
        queued = Qt.ConnectionType.QueuedConnection
        self.automatic.clicked.connect(measurements.set_automatic)
        self.all.clicked.connect(self.measure_all)
        self.undo.clicked.connect(document.undo)
        self.strip.stepped.connect(self._go, queued)
        self.strip.row_activated.connect(self._edit, queued)
        self.strip.switched.connect(editing.switch)
        self.strip.moved.connect(editing.move, queued)
        self.strip.removed.connect(editing.remove)
        self.strip.inserted.connect(self._insert_before)
        self.strip.menu_wanted.connect(self._open_menu)
        scheduling.changed.connect(self._show)
        measurements.changed.connect(self._show_cells)
        stepping.schedule_moved.connect(self._show)
        document.on(("recipe", "pending"), self._show_undo)
        self._show()

    # Content

    def _show(self) -> None:
        scheduling = self._scheduling
        record, schedule = scheduling.record, scheduling.schedule
        self._show_cells()
        count = 0 if record is None else len(record.steps)
        name = _("unscheduled") if schedule is None else shown_name(schedule.variant)
        steps = _n("1 step", "{count} steps", count)
        words = (name, steps, _("time after each, on a log scale"))
        self.context.set_whole("" if record is None else " · ".join(words))
        for button in (self.all, self.keep):
            button.setEnabled(record is not None)
        self._show_undo()

    def _show_undo(self) -> None:
        self.undo.setEnabled(self._document.can_undo)

    def _show_cells(self) -> None:
        record, measurements = self._scheduling.record, self._measurements
        self.automatic.setChecked(measurements.automatic)
        if record is None:
            self.strip.set_cells(())
            return
        after = measurements.prefixes()
        cells = [self._start_cell(after.get(START))]
        for place, step in enumerate(record.steps):
            cells.append(self._cell(place, step, after.get(step.id)))
        known = [measurements.measured(each) for each in after.values()]
        torch = next(
            (
                each.torch_ms
                for each in known
                if each and each.torch_ms and not each.torch_does_more
            ),
            None,
        )
        level = None
        if torch is not None:
            words = _("torch {torch}", torch=duration_text(torch))
            level = (self._document.named_engine(words), torch)
        self.strip.set_cells(cells, level)
        index = self._stepping.schedule_index
        place = len(record.steps) if index is None else min(index, len(record.steps))
        self.strip.select(record.steps[place - 1].id if place else START)

    def _start_cell(self, of: Scheduled | None) -> StepCell:
        value, text, unsure = self._time(of)
        return StepCell(
            START,
            _("unscheduled"),
            value,
            text,
            unsure,
            mark=_("start"),
            quiet=True,
            tooltip=_("Before the first step"),
        )

    def _cell(self, place: int, step: ScheduleStep, of: Scheduled | None) -> StepCell:
        value, text, unsure = self._time(of)
        mark, role, said = self._mark(step, of)
        note = step.error.message.partition("\n")[0] if step.error is not None else step.comment
        lines = (step.title, step.code, note, text and _("takes {text}", text=text), said)
        return StepCell(
            step.id,
            step.title,
            value,
            text,
            unsure,
            mark,
            role,
            quiet=step.status != "done",
            place=place,
            said=note or said,
            tooltip="\n".join(filter(None, lines)),
        )

    def _time(self, of: Scheduled | None) -> tuple[float | None, str, bool]:
        measured = None if of is None else self._measurements.measured(of)
        if measured is None:
            return None, "", False
        return measured.milliseconds, duration_text(measured.milliseconds), measured.disturbed

    def _mark(self, step: ScheduleStep, of: Scheduled | None) -> tuple[str, str, str]:
        """Return the mark of a step, its role, and what it says in words."""
        if step.status == "off":
            return _("○ off"), "", _("switched off")
        if step.status == "failed":
            return _("✕ failed"), "wrong", ""
        checked = None if of is None else self._measurements.checked(of)
        return ("", "", "") if checked is None else SAME[checked.verdict]

    # Editing

    def measure_all(self) -> None:
        """Check and measure the function after each step."""
        measurements = self._measurements
        measurements.measure_all(
            tuple(each.primitives for each in measurements.prefixes().values())
        )

    def _go(self, key: str) -> None:
        # Not the step that is current by now: a time that was measured may have come in between.
        record = self._scheduling.record
        if record is None:
            return
        places = {each.id: place for place, each in enumerate(record.steps, start=1)}
        place, count = places.get(key, 0), len(record.steps)
        at_end = self._stepping.schedule_index is None and place == count
        if not at_end or (count and record.steps[-1].status == "failed"):
            self._scheduling.go(place)

    def _edit(self, key: str) -> None:
        if key != START:
            self._scheduling.trying.edit(key)

    def current(self) -> str:
        """Return the id of the selected step, or ``""``."""
        key = self.strip.current_key()
        return "" if key == START else key

    def edit_step(self) -> None:
        """Show the form of the selected step."""
        if self.current():
            self._edit(self.current())

    def switch_step(self) -> None:
        """Enable or disable the selected step."""
        self._scheduling.editing.switch(self.current())

    def remove_step(self) -> None:
        """Remove the selected step."""
        self._scheduling.editing.remove(self.current())

    def move_step(self, by: int) -> None:
        """Move the selected step forward or back."""
        cell = self.strip.cell(self.strip.current_key())
        if cell is not None and cell.place >= 0:
            self._scheduling.editing.move(cell.place, cell.place + by)

    def insert_before(self) -> None:
        """Insert the next applied primitive before the selected step."""
        self._insert_before(self.strip.current_key())

    def _insert_before(self, key: str) -> None:
        cell = self.strip.cell(key)
        if cell is not None and cell.place >= 0:
            self._scheduling.go(cell.place)

    def _open_menu(self, key: str, place: QPoint) -> None:
        if key == START:
            return
        record = self._scheduling.record
        steps = () if record is None else record.steps
        off = any(each.id == key and each.status == "off" for each in steps)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(_("Edit…"), self.edit_step)
        menu.addAction(_("Switch on") if off else _("Switch off"), self.switch_step)
        menu.addAction(_("Insert before it"), self.insert_before)
        menu.addSeparator()
        menu.addAction(_("Delete"), self.remove_step)
        menu.popup(place)
