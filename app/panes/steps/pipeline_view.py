"""The Pipeline pane: the recipe's steps, editable, and the passes of the build, read-only."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import msgspec
from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.build_steps import BuildSteps
from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import StepLine, Stepping
from lowerscope.app.kit.dialogs import filter_field
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.tables.trees import StepList, StepRow
from lowerscope.app.panes.common.descriptions import nothing_words
from lowerscope.app.panes.steps.pass_dialog import PassDialog
from lowerscope.app.panes.steps.pipeline_rows import (
    METAL,
    build_rows,
    moment_of,
    step_rows,
    with_pin,
)
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CatalogueQuery
from lowerscope.core.model.recipe import Step, changed, inserted, moved, removed
from lowerscope.core.model.snapshot import PassType


class PipelineView(Pane):
    """The Pipeline pane; ``export_wanted`` is for the module at a `Moment`."""

    export_wanted = Signal(object)

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        pins: Pins,
        build: BuildSteps,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(self.tr("Pipeline"), parent)
        self._document = document
        self._queries = queries
        self._pins = pins
        self._build = build
        self._stepping = stepping
        self._dialog: PassDialog | None = None
        self._metal_shown = False
        titles = (self.tr("#"), self.tr("pass"), self.tr("changed"), self.tr("time"))
        self.list = StepList(self.tr("Steps of the pipeline"), titles)
        self.add = QPushButton(self.tr("Add…"))
        self.add.setToolTip(self.tr("Add a pass from the catalogue, after the selected step"))
        self.step = QPushButton(self.tr("Step"))
        self.step.setToolTip(self.tr("What can be done with the selected step"))
        self.step.setMenu(QMenu(self))
        self.step.menu().aboutToShow.connect(self._fill_step_menu)
        self.name = filter_field(self.tr("pass"), self.tr("Filter by the name of a pass"))
        self.function = filter_field(
            self.tr("function"), self.tr("Filter by a function that was changed")
        )
        for field in (self.name, self.function):
            field.textChanged.connect(self._filter)
        self.hide_unchanged = QCheckBox(self.tr("Hide unchanged"))
        self.hide_unchanged.setToolTip(
            self.tr("Go past the steps that changed nothing, and leave out such passes inside")
        )
        self.hide_unchanged.toggled.connect(self._filter)
        self._lay_out()
        self.add.clicked.connect(self.add_pass)
        # Queued: Qt is still handling an event of a row that may be deleted.
        queued = Qt.ConnectionType.QueuedConnection
        self.list.row_activated.connect(self._go, queued)
        self.list.switched.connect(self._switch)
        self.list.moved.connect(self._move)
        self.list.removed.connect(self._remove)
        self.list.folded.connect(self._fold, queued)
        self.list.menu_wanted.connect(self._open_menu)
        self.list.currentItemChanged.connect(self._note_selected)
        document.on(("recipe", "pending"), self._show_rows)
        build.changed.connect(self._show_rows)
        pins.changed.connect(self._show_rows)
        self._stepping.list_changed.connect(self._show_rows)
        self._stepping.moment_changed.connect(self._show_moment)
        self._show_rows()

    def _lay_out(self) -> None:
        page = QWidget()
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 6, 10, 6)
        strip.setSpacing(6)
        strip.addWidget(self.add)
        strip.addWidget(self.step)
        strip.addWidget(self.name, 1)
        strip.addWidget(self.function, 1)
        strip.addWidget(self.hide_unchanged)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self.list, 1)
        self.add_page("steps", self.tr("Steps"), page)
        self.header.tabs.hide()

    # The selected step

    def _row(self) -> StepRow | None:
        """The selected row, or that of the current step."""
        return self.list.row(self.list.current_key()) or self.list.row(self.list.marked())

    def selected_place(self) -> int:
        """Return the index of the selected step in the recipe; -1 for none."""
        row = self._row()
        return -1 if row is None else row.place

    def selected_line(self) -> StepLine | None:
        """Return the pass of the selected row, or the current one."""
        row = self._row()
        at = None if row is None else moment_of(row)
        return self._stepping.line if at is None else self._stepping.lines(at[0])[at[1] - 1]

    def selected_moment(self) -> Moment | None:
        """Return the selected step as a `Moment`, or the current one."""
        row = self._row()
        at = None if row is None else moment_of(row)
        return self._stepping.moment if at is None else Moment(section=at[0], index=at[1])

    def _steps(self) -> tuple[Step, ...]:
        recipe = self._document.wanted
        return () if recipe is None else recipe.steps

    # Commands

    def change_steps(self, steps: tuple[Step, ...]) -> None:
        """Switch to other steps, as one undo step."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(msgspec.structs.replace(recipe, steps=steps))

    def add_pass(self) -> None:
        """Show the dialog that selects a pass, and insert it after the selected step."""
        self._open_dialog(None)

    def add_named_pass(self, name: str) -> None:
        """Show the dialog that adds this pass, with its options."""
        self._open_dialog(None)
        assert self._dialog is not None
        self._dialog.line.setText(name)

    def edit_options(self) -> None:
        """Show the dialog with the options of the selected step."""
        place = self.selected_place()
        if place >= 0:
            self._open_dialog(self._steps()[place])

    def duplicate(self) -> None:
        """Insert a copy of the selected step after it."""
        place = self.selected_place()
        if place >= 0:
            steps = self._steps()
            self.change_steps(inserted(steps, place, steps[place]))
            self.select_place(place + 1)

    def remove(self) -> None:
        """Remove the selected step from the pipeline."""
        place = self.selected_place()
        if place >= 0:
            self.change_steps(removed(self._steps(), place))
            self.select_place(min(place, len(self._steps()) - 1))

    def move_step(self, by: int) -> None:
        """Move the selected step up or down."""
        place = self.selected_place()
        if place >= 0 and 0 <= place + by < len(self._steps()):
            self._move(place, place + by)

    def switch(self) -> None:
        """Enable or disable the selected step."""
        row = self._row()
        if row is not None:
            self._switch(row.key)

    def go_to_selected(self) -> None:
        """Show the module after the selected step."""
        row = self._row()
        if row is not None:
            self._go(row.key)

    def pin(self) -> None:
        """Pin the selected step as one side of the comparison."""
        self._pins.pin(self.selected_moment())

    def compare(self) -> None:
        """Compare the pinned step with the selected one, or that with the one before."""
        pins = self._pins
        if pins.first is None:
            self.go_to_selected()
            pins.wanted.emit()
        else:
            pins.compare(self.selected_moment())

    # The list

    def _show_rows(self) -> None:
        document, stepping = self._document, self._stepping
        chosen = stepping.filter
        for field, text in ((self.name, chosen.name), (self.function, chosen.function)):
            if field.text() != text:
                field.setText(text)
        self.hide_unchanged.setChecked(chosen.hide_unchanged)
        wanted, shown = document.wanted, document.recipe
        self.add.setEnabled(shown is not None)
        words = self.tr("No pass"), self.tr("Add one, or choose a pipeline in the tool bar.")
        self.list.empty.set_text(*(nothing_words(document) if wanted is None else words))
        if wanted is None:
            self.list.set_rows(())
            self.set_context("")
            return
        same = shown is not None and shown.source == wanted.source
        known = shown.steps if shown is not None and same else ()
        lines = stepping.lines("passes") if same else ()
        rows = step_rows(wanted.steps, known, lines, chosen, stepping.unfolded("passes"))
        rows += build_rows(
            stepping.lines("build"),
            chosen,
            stepping.unfolded("build"),
            shown=self._metal_shown,
            note=self._build_note(),
            passed_over=stepping.passed_over("build")[0],
        )
        pinned = self._pins.first
        if pinned is not None and pinned.recipe == shown:
            rows = with_pin(rows, pinned.moment, self.tr("pinned"))
        self.list.set_rows(rows)
        self._show_context()
        self._show_moment()
        self._note_selected()

    def _build_note(self) -> str:
        build = self._build
        if build.busy:
            return self.tr("compiling…")
        if build.problem is not None:
            return build.problem.line()
        return self.tr("the passes of TVM's build, once it is compiled")

    def _show_context(self) -> None:
        lines = [line for line in self._stepping.lines("passes") if line.depth == 0]
        on = [line for line in lines if line.status != "off"]
        time = sum(line.milliseconds or 0.0 for line in on)
        count = self.tr("1 step") if len(on) == 1 else self.tr("{0} steps").format(len(on))
        self.set_context(f"{count} · {duration_text(time)}" if on else "")

    def _show_moment(self) -> None:
        moment, line = self._stepping.moment, self._stepping.line
        at = None if moment is None or line is None else (moment.section, line.number)
        marked = (row.key for row in self.list.rows() if moment_of(row) == at)
        self.list.set_marked("" if at is None else next(marked, ""))
        self._note_selected()

    def _note_selected(self) -> None:
        self.step.setEnabled(self._row() is not None)

    def select_place(self, place: int) -> None:
        """Select the step at an index of the recipe."""
        for row in self.list.rows():
            if row.place == place:
                self.list.select(row.key)

    def _filter(self) -> None:
        self._stepping.set_filter(
            replace(
                self._stepping.filter,
                hide_unchanged=self.hide_unchanged.isChecked(),
                name=self.name.text().strip(),
                function=self.function.text().strip(),
            )
        )

    def _go(self, key: str) -> None:
        row = self.list.row(key)
        at = None if row is None else moment_of(row)
        if at is not None:
            self._stepping.pause()
            self._stepping.go(Moment(section=at[0], index=at[1]))
        elif key == METAL:
            self.list.folded.emit(METAL, not self._metal_shown)

    def _switch(self, key: str) -> None:
        row = self.list.row(key)
        if row is not None and row.place >= 0:
            steps = self._steps()
            self.change_steps(changed(steps, row.place, on=not steps[row.place].on))

    def _move(self, place: int, to: int) -> None:
        self.change_steps(moved(self._steps(), place, to))
        self.select_place(to)

    def _remove(self, _key: str) -> None:
        self.remove()

    def _fold(self, key: str, unfolded: bool) -> None:
        row = self.list.row(key)
        at = None if row is None else moment_of(row)
        if key == METAL:
            self._metal_shown = unfolded
            self._build.look(unfolded)
            self._show_rows()
        elif at is not None:
            section: Section = at[0]
            self._stepping.set_unfolded(section, at[1], unfolded)

    # Menus and dialogs

    def _open_menu(self, _key: str, place: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._fill(menu)
        menu.popup(place)

    def _fill_step_menu(self) -> None:
        menu = self.step.menu()
        menu.clear()
        self._fill(menu)

    def _fill(self, menu: QMenu) -> None:
        row = self._row()
        if row is None:
            return
        at, editable = moment_of(row), row.place >= 0
        applied = at is not None
        menu.addAction(self.tr("Go to this step"), self.go_to_selected).setEnabled(applied)
        menu.addAction(self.tr("Pin"), self.pin).setEnabled(applied)
        pinned = self._pins.first is not None
        words = (
            self.tr("Compare with the pinned step") if pinned else self.tr("Compare with before")
        )
        menu.addAction(words, self.compare).setEnabled(applied)
        export = partial(self.export_wanted.emit, self.selected_moment())
        exported = at is not None and at[0] == "passes"
        menu.addAction(self.tr("Export its module…"), export).setEnabled(exported)
        menu.addSeparator()
        for words, act in (
            (self.tr("Options…"), self.edit_options),
            (self.tr("Switch off") if row.on else self.tr("Switch on"), self.switch),
            (self.tr("Duplicate"), self.duplicate),
            (self.tr("Delete"), self.remove),
        ):
            menu.addAction(words, act).setEnabled(editable)

    def _open_dialog(self, step: Step | None) -> None:
        self._dialog = PassDialog(step, self.window())
        self._dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._dialog.accepted.connect(self._take_chosen)
        self._dialog.finished.connect(self._forget_dialog)
        recipe = self._document.recipe
        assert recipe is not None
        self._queries.ask(CatalogueQuery(recipe), self._take_catalogue, self._take_problem)
        self._dialog.open()

    @property
    def dialog(self) -> PassDialog | None:
        """The open dialog, if any."""
        return self._dialog

    def _forget_dialog(self) -> None:
        self._dialog = None

    def _take_catalogue(self, types: tuple[PassType, ...]) -> None:
        if self._dialog is not None:
            self._dialog.show_catalogue(types)

    def _take_problem(self, problem: Problem) -> None:
        if self._dialog is not None:
            self._dialog.show_problem(problem.line())

    def _take_chosen(self) -> None:
        dialog = self._dialog
        if dialog is None or dialog.chosen is None:
            return
        steps, place = self._steps(), self.selected_place()
        if dialog.edits:
            if place >= 0:
                options = dialog.chosen.options
                self.change_steps(changed(steps, place, options=options))
            return
        to = place + 1 if place >= 0 else len(steps)
        self.change_steps(inserted(steps, to, dialog.chosen))
        self.select_place(to)
