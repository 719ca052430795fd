"""The menu Passes: the way through the steps, and the pipeline that they come from."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from lowerscope.app.actions import Command, Commands
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.passes.presets import (
    PRESETS,
    load_preset,
    preset_of,
    save_preset,
    with_pipeline,
)
from lowerscope.core.recipe import (
    Recipe,
    Step,
    binds_params,
    with_bound_params,
    with_params_as_inputs,
)
from lowerscope.core.records.passes import Preset
from lowerscope.core.records.steps import Clock, Moment

if TYPE_CHECKING:
    from lowerscope.app.panes import Panes
    from lowerscope.app.trusting import Trusting
    from lowerscope.app.views.pipeline_view import PipelineView
    from lowerscope.app.window import MainWindow
    from lowerscope.app.workspace import Workspace

STEPPING = ("next-step", "previous-step", "first-step", "last-step", "play")
EDITING = (
    "add-pass",
    "step-options",
    "switch-step",
    "duplicate-step",
    "delete-step",
    "move-step-up",
    "move-step-down",
    "copy-link",
    "save-pipeline",
    "load-pipeline",
    "load-passes",
)
COMPARING = ("difference", "pin-step", "compare-pinned", "swap-sides", "unpin", "compare-before")
FILES = "Pipelines (*.json)"


class PipelineEditing(QObject):
    """Chooses pipelines, and keeps the commands of the menu as the state is."""

    def __init__(self, workspace: Workspace, trusting: Trusting, window: MainWindow) -> None:
        super().__init__(window)
        self._workspace = workspace
        self._trusting = trusting
        self._window = window

    @property
    def view(self) -> PipelineView:
        """The pane with the pipeline."""
        return self._window.panes.pipeline

    def watch(self, commands: Commands) -> None:
        """Keep the commands as the state is, from now on."""
        self._commands = commands
        workspace = self._workspace
        for signal in (
            workspace.stepping.moment_changed,
            workspace.stepping.schedule_moved,
            workspace.stepping.run_moved,
            workspace.stepping.list_changed,
            workspace.recipe_wanted,
            workspace.snapshot_changed,
        ):
            signal.connect(self._show_state)
        self._show_state()

    def menu(self, parent: QWidget) -> QMenu:
        """Return the menu of the tool bar: the pipelines, and files with them."""
        menu = QMenu(parent)
        for preset in PRESETS:
            menu.addAction(self._commands.action(f"pipeline-{preset.name}"))
        menu.addSeparator()
        for key in ("rules-in-model", "save-pipeline", "load-pipeline", "add-pass"):
            menu.addAction(self._commands.action(key))
        return menu

    def show_failed(self) -> None:
        """Look at the step that failed, and select it."""
        for line in self._workspace.stepping.lines("passes"):
            if line.status == "failed" and line.depth == 0:
                self._workspace.stepping.go(Moment(clock="passes", index=line.number))
                self._window.panes.bring("pipeline")
                self.view.select_place(line.step - 1)

    def fill(self, panes: Panes) -> None:
        """Give the timeline its menu of what the step can be compared with; follow problems."""
        menu = QMenu(panes.timeline)
        for key in COMPARING:
            menu.addAction(self._commands.action(key))
        panes.timeline.compare.setMenu(menu)
        settings = self._window.settings
        panes.timeline_action.setChecked(settings.timeline())
        panes.timeline_action.toggled.connect(settings.set_timeline)
        panes.problems.step_wanted.connect(self.show_failed)

    def hide_unchanged(self) -> None:
        """Go through the steps that changed something alone, or through all of them."""
        chosen = self._workspace.stepping.filter
        self._workspace.stepping.set_filter(
            replace(chosen, hide_unchanged=not chosen.hide_unchanged)
        )

    def edit(self, method: str, *values: int) -> None:
        """Do something with the selected step of the pane."""
        getattr(self.view, method)(*values)

    def choose(self, steps: tuple[Step, ...]) -> None:
        """Go over to another pipeline, as one step of undo."""
        recipe = self._workspace.wanted
        if recipe is not None:
            self._go_over(with_pipeline(recipe, steps))

    def _go_over(self, recipe: Recipe) -> None:
        self._workspace.change(recipe)
        # A command that chose what is chosen already has switched its mark off.
        self._show_state()

    def keep_params(self) -> None:
        """Make arguments of the model's parameters, or constants again."""
        recipe = self._workspace.wanted
        if recipe is not None:
            self._go_over(with_params_as_inputs(recipe, not recipe.params_as_inputs))

    def bind_params(self) -> None:
        """Switch the step on, or off, that makes constants of parameters that are arguments."""
        recipe = self._workspace.wanted
        if recipe is not None:
            self._go_over(with_bound_params(recipe, not binds_params(recipe)))

    def save(self) -> None:
        """Ask for a file, and write the pipeline into it."""
        recipe = self._workspace.wanted
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
            self._workspace.report(error.problem)
        else:
            self._workspace.announced.emit(
                self.tr("Saved; --pipeline {0} takes it, too.").format(path), "info"
            )

    def load(self) -> None:
        """Ask for a file, and take its pipeline."""
        path, _ = QFileDialog.getOpenFileName(
            self._window, self.tr("Load a pipeline"), "", self.tr(FILES)
        )
        if not path:
            return
        try:
            preset = load_preset(path)
        except LowerscopeError as error:
            self._workspace.report(error.problem)
        else:
            recipe = self._workspace.wanted
            if recipe is not None:
                self._trusting.ask(with_pipeline(recipe, preset.steps), self._go_over)

    def _show_state(self) -> None:
        stepping, commands = self._workspace.stepping, self._commands
        recipe = self._workspace.wanted
        for key in STEPPING:
            commands.enable(key, bool(stepping.lines(stepping.clock)))
        commands.enable("leave-steps", stepping.here is not None)
        commands.check("hide-unchanged", stepping.filter.hide_unchanged)
        commands.check(f"clock-{stepping.clock}")
        opened = self._workspace.recipe is not None
        for key in EDITING:
            commands.enable(key, opened)
        self._show_binding(recipe)
        chosen = None if recipe is None else preset_of(recipe)
        for preset in PRESETS:
            action = commands.action(f"pipeline-{preset.name}")
            action.setEnabled(opened)
            action.setChecked(preset is chosen)

    def _show_binding(self, recipe: Recipe | None) -> None:
        snapshot, commands = self._workspace.snapshot, self._commands
        has_torch = snapshot is not None and snapshot.model.kind == "torch"
        commands.enable("params-as-inputs", has_torch)
        if recipe is None:
            commands.enable("bind-params", False)
            return
        binds = binds_params(recipe)
        commands.check("params-as-inputs", recipe.params_as_inputs)
        commands.check("bind-params", binds)
        from_file = bool(recipe.source.params) and not has_torch
        commands.enable("bind-params", binds or recipe.params_as_inputs or from_file)


def passes(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands of the menu Passes."""
    tr, stepping, pipeline = window.tr, window.workspace.stepping, window.pipeline
    menu = tr("&Passes")

    clocks: tuple[tuple[Clock, str], ...] = (
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
        return Command(key, menu, text, act, shortcut, separated=line)

    return (
        Command("next-step", menu, tr("&Next step"), partial(stepping.step, 1), "Alt+Right"),
        Command(
            "previous-step", menu, tr("&Previous step"), partial(stepping.step, -1), "Alt+Left"
        ),
        Command("first-step", menu, tr("&First step"), stepping.first, "Alt+Home"),
        Command("last-step", menu, tr("&Last step"), stepping.last, "Alt+End"),
        Command("play", menu, tr("Pl&ay or pause"), stepping.play_or_pause, "F8"),
        Command("leave-steps", menu, tr("L&eave the steps"), stepping.leave, "Escape"),
        Command(
            "hide-unchanged",
            menu,
            tr("&Hide unchanged steps"),
            pipeline.hide_unchanged,
            "Ctrl+H",
            checkable=True,
        ),
        *(
            Command(
                f"clock-{clock}",
                menu,
                text,
                partial(stepping.set_clock, clock),
                group="clock",
                separated=clock == "translate",
            )
            for clock, text in clocks
        ),
        edit("add-pass", tr("A&dd a pass…"), "add_pass", shortcut="Ctrl+P", line=True),
        edit("step-options", tr("&Options of the step…"), "edit_options", shortcut="Ctrl+Shift+O"),
        edit("switch-step", tr("S&witch the step off or on"), "switch"),
        edit("duplicate-step", tr("D&uplicate the step"), "duplicate", shortcut="Ctrl+Shift+U"),
        edit("delete-step", tr("Delete the step"), "remove"),
        edit("move-step-up", tr("Move the step up"), "move_step", -1, shortcut="Ctrl+Shift+Up"),
        edit(
            "move-step-down", tr("Move the step down"), "move_step", 1, shortcut="Ctrl+Shift+Down"
        ),
        edit("copy-link", tr("&Copy a link to the step"), "copy_link", shortcut="Ctrl+Shift+K"),
        *(
            Command(
                f"pipeline-{preset.name}",
                menu,
                tr("Pipeline: {0}").format(preset.title),
                partial(pipeline.choose, preset.steps),
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
            separated=True,
        ),
        Command("load-pipeline", menu, tr("Load a p&reset…"), pipeline.load),
        Command(
            "load-passes", menu, tr("Load passes of your own…"), window.extensions.choose_passes
        ),
    )
