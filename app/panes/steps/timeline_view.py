"""The strip between the panes: the steps of a timeline as dots, and its buttons."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.run_steps import RunSteps
from lowerscope.app.document.stepping import APART, StepLine, Stepping
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.step_slider import Dot, StepSlider
from lowerscope.app.panes.common.step_texts import (
    call_text,
    changed_text,
    left_out_text,
    run_text,
    step_text,
)
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.module_steps import Moment, Section

ROOMY = 1180
"""Width from which the number of hidden steps is shown."""

SECTIONS: dict[str, Section] = {
    "translate": "translate",
    "passes": "passes",
    "schedule": "schedule",
    "build": "build",
    "run": "run",
}


class TimelineView(QWidget):
    """The timeline strip: buttons, the timelines, the current step, and the slider.

    Args:
        scheduled: Returns the name of the scheduled function; empty for none.
    """

    def __init__(
        self,
        document: Document,
        stepping: Stepping,
        scheduled: Callable[[], str],
        run_steps: RunSteps,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._scheduled = scheduled
        self._run_steps = run_steps
        self._stepping = stepping
        self.setAccessibleName(self.tr("Timeline"))
        self.setProperty("ground", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.back = self._button("◂", self.tr("Previous step"))
        self.on = self._button("▸", self.tr("Next step"))
        self.play = QPushButton(self.tr("Play"))
        self.leave = QPushButton(self.tr("Leave"))
        self.leave.setProperty("quiet", True)
        self.leave.setToolTip(self.tr("Show the module as a whole again (Esc)"))
        self.sections = SegmentedSwitch(
            self.tr("Steps of"),
            (
                Segment("translate", self.tr("Translate"), self.tr("One step for each FX node")),
                Segment("passes", self.tr("Passes"), self.tr("One step for each pass")),
                Segment(
                    "schedule",
                    self.tr("Schedule"),
                    self.tr("One step for each primitive of the function's schedule"),
                ),
                Segment(
                    "build",
                    self.tr("To the metal"),
                    self.tr("The passes of TVM's build, after these"),
                ),
                Segment("run", self.tr("Run"), self.tr("One step for each call of the last run")),
            ),
        )
        self.title = Label()
        self.title.setProperty("role", "title")
        self.facts = ElidedLabel()
        self.facts.setProperty("role", "quiet")
        self.left_out = ElidedLabel()
        self.left_out.setProperty("role", "unsure")
        self.hidden = Label()
        self.hidden.setProperty("role", "quiet")
        self.compare = QPushButton(self.tr("Compare…"))
        self.compare.setToolTip(self.tr("Pin the step, and compare it with another one"))
        self.slider = StepSlider(self.tr("Step"))
        self._lay_out()
        self.back.clicked.connect(self._step_back)
        self.on.clicked.connect(self._step_on)
        self.play.clicked.connect(self._stepping.play_or_pause)
        self.leave.clicked.connect(self._stepping.leave)
        self.sections.changed.connect(self._choose_section)
        self.slider.chosen.connect(self._go)
        self.slider.stepped.connect(self._stepping.step)
        self._stepping.moment_changed.connect(self._show_moment)
        self._stepping.schedule_moved.connect(self._show_moment)
        self._stepping.run_moved.connect(self._show_moment)
        document.on(("run", "running"), self._show_run)
        self._stepping.list_changed.connect(self._show_list)
        self._stepping.playing_changed.connect(self._show_playing)
        self._show_list()

    def _button(self, text: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFixedWidth(28)
        button.setStyleSheet("padding: 0px")
        return button

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setContentsMargins(10, 6, 10, 0)
        row.setSpacing(6)
        for widget in (self.back, self.on, self.play):
            row.addWidget(widget)
        row.addSpacing(4)
        row.addWidget(self.sections)
        row.addSpacing(8)
        row.addWidget(self.title)
        row.addWidget(self.left_out, 1)
        row.addWidget(self.facts, 1)
        row.addWidget(self.leave)
        row.addWidget(self.hidden)
        row.addWidget(self.compare)
        self.row = row
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 2)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.slider)
        self.setFixedHeight(self.sizeHint().height())

    def _step_back(self) -> None:
        self._stepping.pause()
        self._stepping.step(-1)

    def _step_on(self) -> None:
        self._stepping.pause()
        self._stepping.step(1)

    def _go(self, number: int) -> None:
        self._stepping.pause()
        self._stepping.go(Moment(section=self._stepping.section, index=number))

    def _choose_section(self, key: str) -> None:
        self._stepping.set_section(SECTIONS[key])

    def _show_playing(self) -> None:
        self.play.setText(self.tr("Pause") if self._stepping.playing else self.tr("Play"))

    def _show_list(self) -> None:
        stepping = self._stepping
        lines = stepping.dots(stepping.section)
        self.sections.set_current(stepping.section)
        start = Dot(0, big=True, state="start", tooltip=self.tr("before the first step"))
        self.slider.set_dots([start, *(self._dot(line) for line in lines)] if lines else ())
        for button in (self.back, self.on, self.play):
            button.setEnabled(bool(lines))
        self.compare.setEnabled(bool(lines) and stepping.section not in APART)
        # There is nothing to compare, and the text needs the space.
        self.compare.setVisible(stepping.section != "run")
        self._show_hidden()
        self._show_moment()

    def _show_run(self) -> None:
        # The page of calls shows whether a run is in progress.
        if self._stepping.section == "run":
            self._show_moment()

    def _show_hidden(self) -> None:
        if self._stepping.section == "run":
            steps = self._run_steps
            self.hidden.setText("" if steps.failed is not None else run_text(steps.calls))
            return
        chosen = self._stepping.filter
        small, made = self._stepping.passed_over(self._stepping.section)
        text = ""
        if small and (chosen.name or chosen.function):
            text = self.tr("{0} of {1} not of the filter").format(small, made)
        elif small:
            text = self.tr("{0} of {1} unchanged, hidden as small dots").format(small, made)
        self.hidden.setText(text)

    def _dot(self, line: StepLine) -> Dot:
        state = {"failed": "wrong", "skipped": "skipped", "off": "off"}.get(line.status, "")
        big = self._stepping.takes(line) and line.status in ("done", "failed")
        if self._stepping.section == "run":
            big = line.heavy
        text = step_text(line)
        if line.is_break:
            text = self.tr("{0} · break").format(text)
        return Dot(line.number, big=big, state=state, tooltip=text, is_break=line.is_break)

    def _show_moment(self) -> None:
        stepping = self._stepping
        moment, line = stepping.here, stepping.line
        here = moment is not None and moment.section == stepping.section
        self.leave.setVisible(moment is not None)
        self.title.setProperty("role", "title")
        if not here or moment is None:
            self.slider.set_current(None)
            self._say(*self._whole())
        elif line is None:
            self.slider.set_current(0)
            self._say(self.tr("before the first step"), "")
        else:
            self.slider.set_current(line.number)
            self._say_step(line)

    def _say_step(self, line: StepLine) -> None:
        title = f"{line.label} {line.title}"
        if line.status == "failed":
            self._say(self.tr("✕ {0} failed").format(title), line.error, wrong=True)
            return
        time = "" if line.milliseconds is None else duration_text(line.milliseconds)
        steps = self._run_steps
        if self._stepping.section == "run" and steps.index is not None and steps.failed is None:
            time = call_text(steps.calls[steps.index], steps.calls)
        mark = self.tr("● break") if line.is_break else ""
        facts = (time, changed_text(line), mark)
        self._say(title, " · ".join(fact for fact in facts if fact), left_out_text(line))

    def _whole(self) -> tuple[str, str]:
        stepping = self._stepping
        lines = stepping.lines(stepping.section)
        if not lines:
            return self._none()
        failed = next((line for line in lines if line.status == "failed"), None)
        if failed is not None and stepping.section not in APART:
            return "", self.tr("{0} failed: the steps before it can be looked at").format(
                failed.title
            )
        if stepping.section == "run" and failed is not None:
            return "", self.tr("the run came to a bad end in call {0}").format(failed.label)
        if stepping.section == "run":
            calls = self.tr("1 call") if len(lines) == 1 else self.tr("{0} calls")
            return "", self.tr("{0}; ▸ goes through them").format(calls.format(len(lines)))
        outer = sum(line.depth == 0 for line in lines)
        count = self.tr("1 step") if outer == 1 else self.tr("{0} steps").format(outer)
        return "", self.tr("{0}, all made; ▸ goes through them").format(count)

    def _none(self) -> tuple[str, str]:
        if self._document.snapshot is None:
            return "", ""
        scheduled = (
            self.tr("nothing was done to the function yet: select a loop below")
            if self._scheduled()
            else self.tr("no function: select a node or a TensorIR function")
        )
        words = {
            "translate": self.tr("nothing was translated: the source is a module already"),
            "passes": self.tr("the pipeline has no pass"),
            "schedule": scheduled,
            "build": self.tr("not built yet"),
            "run": self._no_run(),
        }
        return "", words[self._stepping.section]

    def _no_run(self) -> str:
        steps = self._run_steps
        if self._document.running:
            return self.tr("running…")
        return steps.why_none or self.tr("not run yet: Run (F5)")

    def _say(self, title: str, facts: str, left_out: str = "", *, wrong: bool = False) -> None:
        self.left_out.set_whole(left_out)
        self.left_out.setVisible(bool(left_out))
        self.title.setText(title)
        self.title.setVisible(bool(title))
        role = "wrong" if wrong else "title"
        if self.title.property("role") != role:
            self.title.setProperty("role", role)
        self.title.style().polish(self.title)
        self.facts.set_whole(facts)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # If space is short, the step takes precedence.
        self.hidden.setVisible(self.width() >= ROOMY)
