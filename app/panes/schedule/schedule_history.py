"""The history of a schedule: its steps, to show, disable, edit, move and remove."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.trees import StepList
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_tree import START, history_rows

_WIDTHS = {0: 56, 2: 74, 3: 50}


class ScheduleHistory(QWidget):
    """The list of steps; the current one is marked."""

    def __init__(
        self,
        stepping: Stepping,
        scheduling: Scheduling,
        measurements: Measurements,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._scheduling = scheduling
        self._stepping = stepping
        self._measurements = measurements
        titles = (self.tr("#"), self.tr("step"), self.tr("status"), self.tr("same"))
        self.list = StepList(self.tr("Steps of the schedule"), titles)
        self.list.headerItem().setToolTip(
            3, self.tr("Whether the function computes the same after the step, as far as checked")
        )
        for column, width in _WIDTHS.items():
            self.list.header().resizeSection(column, width)
        self.list.installEventFilter(self)
        self.place = ElidedLabel(role="quiet")
        self.end = push_button(
            self.tr("To the end"), self.tr("Look at the function after all steps"), look="quiet"
        )
        self.why = Label(role="wrong", wraps=True)
        self.force = QPushButton(self.tr("Apply anyway"))
        self.edit = QPushButton(self.tr("Edit…"))
        # The rule's comment on the current step: a row has space for a few words only.
        self.comment = Label(role="quiet", wraps=True)
        self.comment.setContentsMargins(10, 4, 10, 6)
        self.comment.hide()
        row = row_of(None, (self.place, 1), self.end, margins=(10, 0, 4, 0), spacing=None)
        self._footer = QWidget()
        self._footer.setLayout(row)
        failed = column_of(None, margins=(10, 4, 10, 6), spacing=4)
        buttons = row_of(None, self.edit, self.force, STRETCH, spacing=None)
        failed.addWidget(self.why)
        failed.addLayout(buttons)
        self._failed = QWidget()
        self._failed.setLayout(failed)
        column_of(self, (self.list, 1), self.comment, self._failed, self._footer)
        self.end.clicked.connect(self._scheduling.go_to_end)
        self.force.clicked.connect(self._force)
        self.edit.clicked.connect(self.edit_step)
        queued = Qt.ConnectionType.QueuedConnection
        self.list.currentItemChanged.connect(self._go, queued)
        self.list.row_activated.connect(self._edit, queued)
        self.list.switched.connect(self._scheduling.editing.switch)
        self.list.moved.connect(self._scheduling.editing.move, queued)
        self.list.removed.connect(self._scheduling.editing.remove)
        self.list.menu_wanted.connect(self._open_menu)
        self._scheduling.changed.connect(self._show)
        self._measurements.changed.connect(self._show_verdicts)
        self._stepping.schedule_moved.connect(self._show_place)
        self._show()

    def _show(self) -> None:
        self._show_verdicts()
        self._show_place()

    def _show_verdicts(self) -> None:
        record, verdicts = self._scheduling.record, self._measurements.verdicts()
        self.list.set_rows(() if record is None else history_rows(record, verdicts))

    def _show_place(self) -> None:
        scheduling = self._scheduling
        index = self._stepping.schedule_index
        steps = () if scheduling.record is None else scheduling.record.steps
        key = ""
        if index is not None:
            key = START if index == 0 else steps[index - 1].id if index <= len(steps) else ""
        self.list.set_marked(key)
        shown = "" if key else (steps[-1].id if steps else START)
        self._show_comment(key or shown)
        self.list.blockSignals(True)
        self.list.select(key or shown)
        self.list.blockSignals(False)
        before_end = index is not None and index < len(steps)
        self._footer.setVisible(before_end)
        self.place.set_whole(
            self.tr("new steps go in after step {0}").format(index)
            if index
            else self.tr("new steps go in before the first")
        )
        self._show_failed()

    def _show_comment(self, key: str) -> None:
        steps = () if self._scheduling.record is None else self._scheduling.record.steps
        found = (number for number, step in enumerate(steps) if step.id == key and step.comment)
        number = next(found, None)
        words = self.tr("Why step {0}: {1}.")
        self.comment.setText(
            "" if number is None else words.format(number + 1, steps[number].comment)
        )
        # In a history with comments it is always visible, so that rows do not move under the mouse.
        shown = any(step.comment for step in steps)
        if shown != self.comment.isVisibleTo(self):
            self.comment.setVisible(shown)
            layout = self.layout()
            assert layout is not None
            layout.activate()

    def _show_failed(self) -> None:
        step = self._scheduling.step
        error = None if step is None else step.error
        self._failed.setVisible(error is not None)
        if error is not None:
            self.why.setText(f"✕ {error.message}")
            self.force.setVisible(error.unsafe)
            self.force.setToolTip(
                self.tr("Apply it although: {0}. Check the numbers afterwards.").format(
                    error.message
                )
            )

    def _go(self) -> None:
        row = self.list.row(self.list.current_key())
        if row is not None and self._scheduling.record is not None:
            count = len(self._scheduling.record.steps)
            if row.value == count and self._stepping.schedule_index is None:
                step = self._scheduling.record.steps[-1] if count else None
                if step is None or step.status != "failed":
                    return
            self._scheduling.go(row.value)

    def _edit(self, key: str) -> None:
        if key != START:
            self._scheduling.trying.edit(key)

    def current(self) -> str:
        """Id of the selected step, or ``""``."""
        key = self.list.current_key()
        return "" if key == START else key

    def edit_step(self) -> None:
        """Show the form of the selected step."""
        if self.current():
            self._edit(self.current())

    def switch_step(self) -> None:
        """Enable or disable the selected step."""
        if self.current():
            self._scheduling.editing.switch(self.current())

    def remove_step(self) -> None:
        """Remove the selected step."""
        if self.current():
            self._scheduling.editing.remove(self.current())

    def move_step(self, by: int) -> None:
        """Move the selected step up or down."""
        row = self.list.row(self.list.current_key())
        if row is not None and row.place >= 0:
            self._scheduling.editing.move(row.place, row.place + by)

    def insert_before(self) -> None:
        """Insert the next applied primitive before the selected step."""
        row = self.list.row(self.list.current_key())
        if row is not None and row.place >= 0:
            self._scheduling.go(row.place)

    def _force(self) -> None:
        step = self._scheduling.step
        if step is not None:
            self._scheduling.editing.force(step.id)

    def _open_menu(self, key: str, place: QPoint) -> None:
        if key == START:
            return
        row = self.list.row(key)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Edit…"), self.edit_step)
        off = row is not None and row.on
        menu.addAction(self.tr("Switch off") if off else self.tr("Switch on"), self.switch_step)
        menu.addAction(self.tr("Insert before it"), self.insert_before)
        menu.addSeparator()
        menu.addAction(self.tr("Delete"), self.remove_step)
        menu.popup(place)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
            if control and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                self.move_step(-1 if event.key() == Qt.Key.Key_Up else 1)
                return True
            if event.key() == Qt.Key.Key_Insert:
                self.insert_before()
                return True
        return super().eventFilter(watched, event)
