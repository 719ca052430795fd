"""The menu Passes: navigation through the steps, and editing of the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.document.document import Document, Trust
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.document.timelines import NodeSteps
from lowerscope.app.kit.commands import Command, Commands, Host, available
from lowerscope.app.kit.dialogs import file_to_open, file_to_save
from lowerscope.core.files.pipelines_and_schedules import (
    PRESETS,
    load_preset,
    preset_of,
    save_preset,
    with_pipeline,
)
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import (
    Step,
    binds_params,
    with_bound_params,
    with_params_as_inputs,
)
from lowerscope.core.model.snapshot import Preset
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.panes.steps.pipeline_view import PipelineView


COMPARING = ("difference", "pin-step", "compare-pinned", "swap-sides", "unpin", "compare-before")
FILES = _("Pipelines (*.json)")


class PipelineEditing(QObject):
    """Selects pipelines, and edits their steps."""

    def __init__(
        self, host: Host, document: Document, stepping: Stepping, trust: Trust, commands: Commands
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document = document
        self._stepping = stepping
        self._trust = trust
        self._commands = commands

    @property
    def view(self) -> PipelineView:
        """The Pipeline pane."""
        from lowerscope.app.panes.steps.pipeline_view import PipelineView

        return self._host.view(PipelineView)

    def menu(self, parent: QWidget) -> QMenu:
        """Return the menu of the tool bar: pipelines, and loading or saving one."""
        menu = QMenu(parent)
        presets = (f"pipeline-{preset.name}" for preset in PRESETS)
        others = ("rules-in-model", "save-pipeline", "load-pipeline", "add-pass")
        self._commands.fill(menu, *presets, "", *others)
        return menu

    def show_failed(self) -> None:
        """Go to the failed step, and select it."""
        for line in self._stepping.lines("passes"):
            if line.status == "failed" and line.depth == 0:
                self._stepping.go(Moment(section="passes", index=line.number))
                self._host.bring("pipeline")
                self.view.select_place(line.step - 1)

    def comparison_menu(self, parent: QWidget) -> QMenu:
        """Return the comparison menu of the timeline."""
        menu = QMenu(parent)
        self._commands.fill(menu, *COMPARING)
        return menu

    def focus_filter(self) -> None:
        """Go to the filter of the list."""
        self._host.bring("pipeline")
        self.view.focus_filter()

    def hide_unchanged(self) -> None:
        """Toggle hiding of steps that changed nothing."""
        chosen = self._stepping.filter
        self._stepping.set_filter(replace(chosen, hide_unchanged=not chosen.hide_unchanged))

    def edit(self, method: str, *values: int) -> None:
        """Call a method of the pane, which applies to the selected step."""
        getattr(self.view, method)(*values)

    def choose(self, steps: tuple[Step, ...]) -> None:
        """Switch to another pipeline, as one undo step."""
        self._document.change_by(with_pipeline, steps)

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
        title = _("Save the pipeline")
        path = file_to_save(self._host.widget, title, "pipeline.json", FILES)
        if recipe is None or not path:
            return
        name = path.rpartition("/")[2].removesuffix(".json")
        said = _("Saved; --pipeline {path} uses it on the command line.", path=path)
        with self._document.reporting():
            save_preset(Preset(name=name, title=name, steps=recipe.steps), path)
            self._document.notify(said, "info")

    def load(self) -> None:
        """Select a file in a dialog, and load its pipeline."""
        path = file_to_open(self._host.widget, _("Load a pipeline"), "", FILES)
        recipe = self._document.wanted
        if path and recipe is not None:
            try:
                steps = load_preset(path).steps
            except LowerscopeError as error:
                self._document.report(error.problem)
            else:
                self._trust(with_pipeline(recipe, steps), self._document.change)


def binding(document: Document, pipeline: PipelineEditing) -> tuple[Command, ...]:
    """Return the switches for the model's parameters."""

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
            _("Parameters as &inputs"),
            pipeline.keep_params,
            enabled=document.has_torch,
            checked=are_inputs,
        ),
        Command(
            "bind-params",
            _("&Bind parameters (BindParams)"),
            pipeline.bind_params,
            enabled=can_bind,
            checked=binds,
        ),
    )


def passes(
    document: Document,
    stepping: Stepping,
    pipeline: PipelineEditing,
    node_steps: NodeSteps,
    load_passes: Callable[[], None],
) -> tuple[Command, ...]:
    """Return the commands of the menu Passes."""

    def has_steps() -> bool:
        return bool(stepping.lines(stepping.section))

    def at_section(section: Section) -> bool:
        return stepping.section == section

    def is_pipeline(preset: Preset) -> bool:
        return document.wanted is not None and preset_of(document.wanted) is preset

    sections: tuple[tuple[Section, str], ...] = (
        ("translate", _("Section: &Translate")),
        ("passes", _("Section: Pa&sses")),
        ("schedule", _("Section: S&chedule")),
        ("build", _("Section: &Build")),
        ("run", _("Section: R&un")),
    )

    def edit(
        key: str, text: str, method: str, *values: int, shortcut: str = "", line: bool = False
    ) -> Command:
        act = partial(pipeline.edit, method, *values)
        return Command(key, text, act, shortcut, enabled=document.is_open)

    return (
        Command(
            "next-step",
            _("&Next step"),
            partial(stepping.step, 1),
            "F10",
            enabled=partial(stepping.can_step, 1),
        ),
        Command(
            "previous-step",
            _("&Previous step"),
            partial(stepping.step, -1),
            "F7",
            "Shift+F10",
            enabled=partial(stepping.can_step, -1),
        ),
        *available(
            has_steps,
            Command("first-step", _("&First step"), stepping.first, "Alt+Home", "Home"),
            Command("last-step", _("&Last step"), stepping.last, "Alt+End", "End"),
            Command("play", _("Play or pause"), stepping.play_or_pause, "Ctrl+Space", "Space"),
        ),
        Command(
            "play-until",
            _("Play &until the selection changes"),
            node_steps.play_until_changed,
            "Ctrl+Shift+Space",
            enabled=lambda: bool(node_steps.selected()),
        ),
        Command(
            "leave-steps",
            _("L&eave the steps"),
            stepping.leave,
            "Escape",
            enabled=lambda: stepping.here is not None,
        ),
        Command(
            "filter-steps",
            _("Filter the steps"),
            pipeline.focus_filter,
            enabled=document.is_open,
            key_there="/",
        ),
        Command(
            "hide-unchanged",
            _("&Fold unchanged steps"),
            pipeline.hide_unchanged,
            "Ctrl+H",
            checked=lambda: stepping.filter.hide_unchanged,
        ),
        *(
            Command(
                f"section-{section}",
                text,
                partial(stepping.set_section, section),
                checked=partial(at_section, section),
                group="section",
            )
            for section, text in sections
        ),
        edit("add-pass", _("&Add a pass…"), "add_pass", shortcut="Ctrl+P", line=True),
        edit("step-options", _("&Options of the step…"), "edit_options", shortcut="Ctrl+Shift+O"),
        edit("switch-step", _("S&witch the step on or off"), "switch"),
        edit("duplicate-step", _("Duplicate the step"), "duplicate", shortcut="Ctrl+Shift+U"),
        edit("break-pass", _("Stop at this pass when playing"), "toggle_break"),
        edit("delete-step", _("&Delete the step"), "remove"),
        edit("move-step-up", _("Move the step up"), "move_step", -1, shortcut="Ctrl+Shift+Up"),
        edit("move-step-down", _("Move the step down"), "move_step", 1, shortcut="Ctrl+Shift+Down"),
        *available(
            document.is_open,
            *(
                Command(
                    f"pipeline-{preset.name}",
                    preset.title,
                    partial(pipeline.choose, preset.steps),
                    checked=partial(is_pipeline, preset),
                    group="pipeline",
                )
                for preset in PRESETS
            ),
            Command("save-pipeline", _("Sa&ve the pipeline as a preset…"), pipeline.save),
            Command("load-pipeline", _("Load a p&reset…"), pipeline.load),
            Command("load-passes", _("Load passes of &your own…"), load_passes),
        ),
    )
