"""The page of the inputs: one of them, drawn, random or from a file; or a set of them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QScrollArea,
    QStackedWidget,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.bar_controls import Pill, Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import check_box
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.inputs.input_panel import InputPanel
from lowerscope.app.panes.inputs.model import Inputs
from lowerscope.app.panes.inputs.set_panel import SetPanel
from lowerscope.app.shell.tool_bar import verdict_state
from lowerscope.core.model.formatting import shape_text

NARROW = 500
"""Width below which parts are stacked."""

ROOM = 560
"""Minimum width for the verdict above the input."""


class InputsPage(QWidget):
    """The page with all settings of the inputs' values."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        inputs: Inputs,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._inputs = inputs
        self.switch = SegmentedSwitch(
            self.tr("One input or a set"),
            (
                Segment("one", self.tr("One input"), self.tr("Draw, drop or choose its value")),
                Segment("set", self.tr("A set"), self.tr("Run many, and see how far both agree")),
            ),
        )
        self.name = QComboBox()
        self.name.setAccessibleName(self.tr("Which input"))
        self.origin = ElidedLabel(role="quiet")
        self.live = check_box(
            self.tr("Run at once"),
            self.tr("Run as soon as the input has changed; nothing is rebuilt"),
        )
        self.live.setChecked(inputs.live)
        self.verdict = Pill()
        self.error = Label(role="wrong", wraps=True)
        self.one = InputPanel(document, queries, inputs)
        self.sets = SetPanel(inputs)
        self._stack = QStackedWidget()
        # In a narrow pane its parts are stacked.
        area = self._area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidgetResizable(True)
        area.setWidget(self.one)
        for panel in (area, self.sets):
            self._stack.addWidget(panel)
        strip = row_of(
            None,
            self.switch,
            self.name,
            (self.origin, 1),
            self.verdict,
            self.live,
            margins=(10, 6, 10, 2),
            spacing=12,
        )
        column_of(self, strip, self.error, (self._stack, 1))
        self.error.setContentsMargins(12, 2, 12, 2)
        self.switch.changed.connect(self._switch)
        self.name.activated.connect(self._choose)
        self.sets.taken.connect(self.show_one)
        inputs.sets.began.connect(self.show_set)
        self.live.toggled.connect(inputs.set_live)
        document.on(("snapshot",), self._show_inputs)
        document.on(("run", "running"), self._show_run)
        inputs.changed.connect(self._show_state)
        self._show_inputs()
        self._show_run()
        self._show_state()

    def current(self) -> str:
        """Return the name of the input shown; empty for none."""
        return self.one.name

    def drop(self, path: str) -> None:
        """Use a dropped file as the input shown, or a folder as a set of inputs."""
        inputs = self._inputs
        (self.show_set if inputs.is_set(path) else self.show_one)()
        inputs.drop(path, self.one.name)

    def show_set(self) -> None:
        """Show the runs on a set of inputs."""
        self.switch.set_current("set")
        self._switch("set")

    def show_one(self) -> None:
        """Show the input of the next run."""
        self.switch.set_current("one")
        self._switch("one")

    def _switch(self, key: str) -> None:
        self._stack.setCurrentWidget(self.sets if key == "set" else self._area)
        self.live.setVisible(key == "one")
        self._show_origin()
        self.name.setVisible(key == "one" and self.name.count() > 1)
        self._show_run()

    def _choose(self) -> None:
        self.one.show_input(self.name.currentText())
        self._show_origin()

    def _show_inputs(self) -> None:
        names = [each.name for each in self._inputs.records]
        shown = self.one.name
        if names != [self.name.itemText(place) for place in range(self.name.count())]:
            self.name.clear()
            self.name.addItems(names)
        if shown not in names:
            shown = names[0] if names else ""
        self.name.setCurrentText(shown)
        self.name.setVisible(len(names) > 1 and self.switch.current() == "one")
        self.one.show_input(shown)
        self._show_origin()

    def _show_origin(self) -> None:
        records = self._inputs.records
        record = next((each for each in records if each.name == self.one.name), None)
        if self.switch.current() == "set":
            text = self._inputs.sets.path
        elif record is None:
            text = ""
        else:
            text = f"{record.name} {shape_text(record.shape)} {record.dtype} · {record.origin}"
        self.origin.set_whole(text)

    def _show_run(self) -> None:
        document = self._document
        record = document.run_record
        if document.running:
            self.verdict.set_state("busy", self.tr("running"))
        elif record is not None:
            self.verdict.set_state(*verdict_state(record), record.reason)
        known = record is not None or document.running
        # In a narrow pane it is only in the tool bar.
        has_room = self.width() >= ROOM
        self.verdict.setVisible(known and has_room and self.switch.current() == "one")

    def _show_state(self) -> None:
        inputs = self._inputs
        self.live.setChecked(inputs.live)
        problem = inputs.problem
        self.error.setText("" if problem is None else problem.line())
        self.error.setVisible(problem is not None)
        self.error.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.one.set_narrow(self.width() < NARROW)
        self._show_run()
