"""The menu Passes: navigation through the steps, and editing of the pipeline."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from lowerscope.app.kit.commands import Command
from lowerscope.core.files.pipelines_and_schedules import (
    PRESETS,
    load_preset,
    preset_of,
    save_preset,
    with_pipeline,
)
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import (
    STRATEGIES,
    Step,
    binds_params,
    with_bound_params,
    with_params_as_inputs,
)
from lowerscope.core.model.snapshot import Preset

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.document.stepping import Stepping
    from lowerscope.app.panes.sessions.trust import Trusting
    from lowerscope.app.panes.steps.pipeline_view import PipelineView
    from lowerscope.app.shell.panes import Panes
    from lowerscope.app.shell.window import MainWindow


COMPARING = ("difference", "pin-step", "compare-pinned", "swap-sides", "unpin", "compare-before")
FILES = "Pipelines (*.json)"


class PipelineEditing(QObject):
    """Selects pipelines, and edits their steps."""

    def __init__(
        self, document: Document, stepping: Stepping, trusting: Trusting, window: MainWindow
    ) -> None:
        super().__init__(window)
        self._document = document
        self._stepping = stepping
        self._trusting = trusting
        self._window = window

    @property
    def view(self) -> PipelineView:
        """The Pipeline pane."""
        return self._window.panes.pipeline

    def menu(self, parent: QWidget) -> QMenu:
        """Return the menu of the tool bar: pipelines, and loading or saving one."""
        menu = QMenu(parent)
        presets = (f"pipeline-{preset.name}" for preset in PRESETS)
        others = ("rules-in-model", "save-pipeline", "load-pipeline", "add-pass")
        self._window.commands.fill(menu, *presets, "", *others)
        return menu

    def show_failed(self) -> None:
        """Go to the failed step, and select it."""
        for line in self._stepping.lines("passes"):
            if line.status == "failed" and line.depth == 0:
                self._stepping.go(Moment(section="passes", index=line.number))
                self._window.panes.bring("pipeline")
                self.view.select_place(line.step - 1)

    def fill(self, panes: Panes) -> None:
        """Give the timeline its comparison menu, and connect to the problems."""
        menu = QMenu(panes.timeline)
        self._window.commands.fill(menu, *COMPARING)
        panes.timeline.compare.setMenu(menu)
        settings = self._window.settings
        panes.timeline_action.setChecked(settings.timeline())
        panes.timeline_action.toggled.connect(settings.set_timeline)
        panes.problems.step_wanted.connect(self.show_failed)

    def hide_unchanged(self) -> None:
        """Toggle hiding of steps that changed nothing."""
        chosen = self._stepping.filter
        self._stepping.set_filter(replace(chosen, hide_unchanged=not chosen.hide_unchanged))

    def edit(self, method: str, *values: int) -> None:
        """Call a method of the pane, which applies to the selected step."""
        getattr(self.view, method)(*values)

    def choose(self, steps: tuple[Step, ...]) -> None:
        """Switch to another pipeline, as one undo step."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(with_pipeline(recipe, steps))

    def keep_params(self) -> None:
        """Toggle whether the model's parameters are arguments or constants."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(with_params_as_inputs(recipe, not recipe.params_as_inputs))

    def bind_params(self) -> None:
        """Toggle the step that binds parameters as constants."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(with_bound_params(recipe, not binds_params(recipe)))

    def save(self) -> None:
        """Select a file in a dialog, and save the pipeline to it."""
        recipe = self._document.wanted
        path, _ = QFileDialog.getSaveFileName(
            self._window, self.tr("Save the pipeline"), "pipeline.json", self.tr(FILES)
        )
        if recipe is None or not path:
            return
        name = path.rpartition("/")[2].removesuffix(".json")
        path = path if path.endswith(".json") else f"{path}.json"
        try:
            save_preset(Preset(name=name, title=name, steps=recipe.steps), path)
        except LowerscopeError as error:
            self._document.report(error.problem)
        else:
            self._document.notify(
                self.tr("Saved; --pipeline {0} takes it, too.").format(path), "info"
            )

    def load(self) -> None:
        """Select a file in a dialog, and load its pipeline."""
        path, _ = QFileDialog.getOpenFileName(
            self._window, self.tr("Load a pipeline"), "", self.tr(FILES)
        )
        if not path:
            return
        try:
            preset = load_preset(path)
        except LowerscopeError as error:
            self._document.report(error.problem)
        else:
            recipe = self._document.wanted
            if recipe is not None:
                self._trusting.ask(with_pipeline(recipe, preset.steps), self._document.change)


def binding(window: MainWindow) -> tuple[Command, ...]:
    """Return the switches for the model's parameters, for the menu Lowering."""
    menu, tr = window.tr("&Lowering"), window.tr
    document, pipeline = window.document, window.pipeline

    def binds() -> bool:
        return document.wanted is not None and binds_params(document.wanted)

    def are_inputs() -> bool:
        return document.wanted is not None and document.wanted.params_as_inputs

    def can_bind() -> bool:
        recipe = document.wanted
        from_file = recipe is not None and bool(recipe.source.params) and not document.has_torch()
        return binds() or are_inputs() or from_file

    return (
        Command(
            "params-as-inputs",
            menu,
            tr("Parameters as &inputs"),
            pipeline.keep_params,
            enabled=document.has_torch,
            checked=are_inputs,
        ),
        Command(
            "bind-params",
            menu,
            tr("&Bind parameters (BindParams)"),
            pipeline.bind_params,
            enabled=can_bind,
            checked=binds,
        ),
    )


def passes(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands of the menu Passes."""
    tr, document, pipeline = window.tr, window.document, window.pipeline
    stepping, menu = window.features.stepping, tr("&Passes")

    def has_steps() -> bool:
        return bool(stepping.lines(stepping.section))

    def at_section(section: Section) -> bool:
        return stepping.section == section

    def is_pipeline(preset: Preset) -> bool:
        return document.wanted is not None and preset_of(document.wanted) is preset

    sections: tuple[tuple[Section, str], ...] = (
        ("translate", tr("Steps of the &translation")),
        ("passes", tr("Steps of the pa&sses")),
        ("schedule", tr("Steps of the s&chedule")),
        ("build", tr("Steps to the &metal")),
        ("run", tr("Steps of the r&un")),
    )

    def edit(
        key: str, text: str, method: str, *values: int, shortcut: str = "", line: bool = False
    ) -> Command:
        act = partial(pipeline.edit, method, *values)
        return Command(key, menu, text, act, shortcut, enabled=document.is_open, separated=line)

    return (
        Command(
            "next-step",
            menu,
            tr("&Next step"),
            partial(stepping.step, 1),
            "Alt+Right",
            enabled=has_steps,
        ),
        Command(
            "previous-step",
            menu,
            tr("&Previous step"),
            partial(stepping.step, -1),
            "Alt+Left",
            enabled=has_steps,
        ),
        Command(
            "first-step", menu, tr("&First step"), stepping.first, "Alt+Home", enabled=has_steps
        ),
        Command("last-step", menu, tr("&Last step"), stepping.last, "Alt+End", enabled=has_steps),
        Command("play", menu, tr("Play or pause"), stepping.play_or_pause, "F8", enabled=has_steps),
        Command(
            "leave-steps",
            menu,
            tr("L&eave the steps"),
            stepping.leave,
            "Escape",
            enabled=lambda: stepping.here is not None,
        ),
        Command(
            "hide-unchanged",
            menu,
            tr("&Hide unchanged steps"),
            pipeline.hide_unchanged,
            "Ctrl+H",
            checked=lambda: stepping.filter.hide_unchanged,
        ),
        *(
            Command(
                f"section-{section}",
                menu,
                text,
                partial(stepping.set_section, section),
                checked=partial(at_section, section),
                group="section",
                separated=section == "translate",
            )
            for section, text in sections
        ),
        edit("add-pass", tr("&Add a pass…"), "add_pass", shortcut="Ctrl+P", line=True),
        edit("step-options", tr("&Options of the step…"), "edit_options", shortcut="Ctrl+Shift+O"),
        edit("switch-step", tr("S&witch the step off or on"), "switch"),
        edit("duplicate-step", tr("Duplicate the step"), "duplicate", shortcut="Ctrl+Shift+U"),
        edit("delete-step", tr("&Delete the step"), "remove"),
        edit("move-step-up", tr("Move the step up"), "move_step", -1, shortcut="Ctrl+Shift+Up"),
        edit(
            "move-step-down", tr("Move the step down"), "move_step", 1, shortcut="Ctrl+Shift+Down"
        ),
        edit("copy-link", tr("Copy a lin&k to the step"), "copy_link", shortcut="Ctrl+Shift+K"),
        *(
            Command(
                f"pipeline-{preset.name}",
                menu,
                tr("Pipeline: {0}").format(preset.title),
                partial(pipeline.choose, preset.steps),
                enabled=document.is_open,
                checked=partial(is_pipeline, preset),
                group="pipeline",
                separated=preset is PRESETS[0],
            )
            for preset in PRESETS
        ),
        Command(
            "save-pipeline",
            menu,
            tr("Sa&ve the pipeline as a preset…"),
            pipeline.save,
            enabled=document.is_open,
            separated=True,
        ),
        Command(
            "load-pipeline", menu, tr("Load a p&reset…"), pipeline.load, enabled=document.is_open
        ),
        Command(
            "load-passes",
            menu,
            tr("Load passes of &your own…"),
            window.extensions.choose_passes,
            enabled=document.is_open,
        ),
    )


# --- Commands that compare steps, lowerings and pipelines ---


class CompareCommands(QObject):
    """Commands that compare.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu Compare."""
        document, tr = self._window.document, self._window.tr
        pins, menu = self._window.features.pins, tr("&Compare")

        def pinned() -> bool:
            return pins.first is not None

        return (
            Command(
                "difference",
                menu,
                tr("&Difference"),
                self._show_difference,
                "F4",
                enabled=document.is_open,
            ),
            Command(
                "next-change",
                menu,
                tr("N&ext change"),
                partial(self._next_change, 1),
                "F7",
                enabled=document.is_open,
            ),
            Command(
                "previous-change",
                menu,
                tr("P&revious change"),
                partial(self._next_change, -1),
                "Shift+F7",
                enabled=document.is_open,
            ),
            Command(
                "pin-step",
                menu,
                tr("&Pin this step"),
                pins.pin_here,
                "Ctrl+Shift+D",
                enabled=document.is_open,
                separated=True,
            ),
            Command(
                "compare-pinned",
                menu,
                tr("Co&mpare with the pinned step"),
                pins.compare_here,
                "Ctrl+Shift+B",
                enabled=pinned,
            ),
            Command("swap-sides", menu, tr("&Swap the sides"), pins.swap, enabled=pinned),
            Command("unpin", menu, tr("&Unpin"), pins.clear, enabled=pinned),
            Command(
                "compare-before",
                menu,
                tr("Compare with what Undo goes back &to"),
                self._compare_before,
                enabled=lambda: document.before is not None,
                separated=True,
            ),
            *(
                Command(
                    f"compare-{lowering}",
                    menu,
                    tr("Compare with all nodes as {0}").format(STRATEGY_NAMES[lowering]),
                    partial(pins.compare_lowering, lowering),
                    enabled=document.has_torch,
                    separated=lowering == STRATEGIES[0],
                )
                for lowering in STRATEGIES
            ),
            *(
                Command(
                    f"compare-steps-{preset.name}",
                    menu,
                    tr("Compare with the pipeline “{0}”").format(preset.title),
                    partial(pins.compare_steps, preset.steps),
                    enabled=document.is_open,
                    separated=preset is PRESETS[0],
                )
                for preset in PRESETS
            ),
        )

    def _show_difference(self) -> None:
        """Show the changes made by the current step, or the pinned comparison."""
        self._window.panes.show_difference()

    def _next_change(self, step: int) -> None:
        """Go to the next or the previous change of the difference."""
        self._show_difference()
        difference = self._window.panes.difference
        (difference.next_change if step > 0 else difference.previous_change)()

    def _compare_before(self) -> None:
        """Compare with the recipe that undo returns to."""
        document = self._window.document
        before = document.before
        if before is not None:
            self._window.features.pins.compare_with(before)
