"""The top bar: model, modes, step, lowering, pipeline, target, verdict, time and Run."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from lowerscope.app.document.document import Document, switched
from lowerscope.app.document.stepping import SECTION_TITLES, Stepping
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import (
    BarTabs,
    Field,
    Part,
    Pill,
    Segment,
    SegmentedSwitch,
)
from lowerscope.app.kit.buttons import push_button, run_icon, strategy_icon
from lowerscope.app.kit.commands import add_choices
from lowerscope.app.kit.layouts import STRETCH, row_of
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.typefaces import TextMetrics
from lowerscope.app.panes.common.run_figures import claims_of, how_of, short_claim, verdict_state
from lowerscope.app.panes.relax.commands import ImporterField
from lowerscope.app.panes.run.commands import edit_measuring
from lowerscope.app.panes.run.runs import Faults, Runs
from lowerscope.app.shell.modes import MODES
from lowerscope.core.files.pipelines_and_schedules import pipeline_title
from lowerscope.core.files.sources import source_label
from lowerscope.core.model.formatting import (
    duration_text,
    error_text,
    shape_text,
    tolerance_text,
)
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.machines import short_target
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import ANY_PROCESSOR, NATIVE, STRATEGIES, Recipe
from lowerscope.core.model.run_records import RunRecord, is_reliable
from lowerscope.core.model.snapshot import ModelRecord
from lowerscope.core.model.texts import _, _n, labelled

STRATEGY_HINTS = {
    "high-level": _("Relax operators"),
    "te": _("TensorIR functions made from tensor expressions"),
    "library": _("Calls into torch, on the same memory"),
}
STEP_WIDTH = 190
"""Largest width of the chip with the current step."""

ONE_BOX = 1400
"""Width of the bar below which pipeline and target share a box."""

NARROW = 1280
"""Width below which the lowering is a menu, and the time keeps its first line only."""

BESIDE_CHIP = 160
"""Pixels added to that width while the chip is in the bar."""

BESIDE_IMPORTER = 90
"""Pixels added to both widths while the importer is in the bar."""

SMALL = 1000
"""Width below which only the verdict is left of a run, and the step is a number."""

SHADES = {"high-level": "accent", "te": "te", "library": "library"}
"""Colours of the strategies, as fields of the theme."""

TARGETS = {ANY_PROCESSOR: "llvm", NATIVE: _("this machine")}


class ToolBar(QWidget):
    """The bar with the most frequent choices.

    Signals:
        remote_wanted, here_wanted: Run on a remote machine, or on this one again.
    """

    target_wanted = Signal()  # Show the available targets.
    remote_wanted = Signal()
    here_wanted = Signal()
    cancel_wanted = Signal()

    def __init__(self, document: Document, stepping: Stepping, runs: Runs, faults: Faults) -> None:
        super().__init__()
        self._document = document
        self._stepping = stepping
        self._runs = runs
        self._faults = faults
        self.setProperty("ground", "panel")
        self.setProperty("edge", "bottom")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(44)
        self.model = Field(_("Model and inputs"), least=100)
        self.modes = BarTabs(
            _("Mode"),
            [
                Segment(mode.key, mode.title, f"{mode.tooltip} (Ctrl+{number})")
                for number, mode in enumerate(MODES, start=1)
            ],
        )
        self.step = push_button(
            "", _("All panes show this step; leave it (Esc)"), act=stepping.leave
        )
        self.step.setProperty("chip", True)
        self.step.setMaximumWidth(STEP_WIDTH)
        self.step.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.step.hide()
        self.lowering = SegmentedSwitch(
            _("Lowering"),
            [
                Segment(each, STRATEGY_NAMES[each], STRATEGY_HINTS[each], shade=SHADES[each])
                for each in STRATEGIES
            ],
        )
        self.lowering.changed.connect(self._change_lowering)
        self.lowering_box = Field(_("Lowering"))
        self.lowering_box.set_menu(self._lowering_menu())
        self.importer = ImporterField(document)
        self.overrides = push_button("", _("Nodes with an override"), look="quiet")
        self.overrides.setMenu(QMenu(self))
        self.pipeline = Field(_("Pipeline"))
        self.target = Field(_("Target"))
        self.target.set_menu(self._target_menu())
        # Both, in a narrow window.
        self.plan = Field(_("Pipeline and target"))
        self.run = push_button(_("Run"), act=self._run_or_cancel, look="primary")
        self.run.setAccessibleName(_("Run and compare with torch"))
        self.run.setToolTip(_("Run and compare with torch (F5)"))
        # As wide for either word, so that nothing moves.
        self.run.setFixedWidth(82)
        self.run.installEventFilter(self)
        self.verdict = Pill()
        self.times = Field(_("Times"), framed=False)
        self.times.set_clickable(True)
        self.times.clicked.connect(self._edit_measuring)
        row_of(
            self,
            self.model,
            self.modes,
            self.step,
            self.importer,
            self.lowering,
            self.lowering_box,
            self.overrides,
            self.pipeline,
            self.target,
            self.plan,
            STRETCH,
            self.verdict,
            self.times,
            self.run,
            margins=(12, 0, 12, 0),
            spacing=8,
        )
        theme.notifier().changed.connect(self._show_icons)
        document.on(("recipe", "pending"), self._show_recipe)
        document.on(("snapshot",), self._show_recipe)
        document.on(("run", "running"), self._show_run)
        faults.changed.connect(self._show_run)
        moves = (stepping.moment_changed, stepping.schedule_moved, stepping.run_moved)
        for moved in (*moves, stepping.list_changed):
            moved.connect(self._show_step)
        self._show_recipe()
        self._show_run()

    def set_menus(self, model: QMenu, pipeline: QMenu) -> None:
        """Set the menus of the model and of the pipeline."""
        self.model.set_menu(model)
        self.pipeline.set_menu(pipeline)
        both = QMenu(self)
        target = self.target.menu()
        assert target is not None
        for title, menu in ((_("Pipeline"), pipeline), (_("Target"), target)):
            entry = QAction(title, both)
            entry.setMenu(menu)
            both.addAction(entry)
        self.plan.set_menu(both)

    def show_mode(self, key: str) -> None:
        """Show which mode is the current one."""
        self.modes.set_current(key)

    def _show_step(self) -> None:
        here, line = self._stepping.here, self._stepping.line
        if self.step.isHidden() == (here is not None):
            self.step.setVisible(here is not None)
            self._fit()
            self._show_run()
        name = "" if line is None else f"{line.label} · {line.title}"
        if line is not None and self.width() < SMALL:
            name = line.label
        if line is None:
            words = _("before the first step")
        elif here is None or here.section in ("passes", "schedule"):
            words = _("at step {name}", name=name)
        else:
            # Numbers begin anew in each section.
            words = labelled(SECTION_TITLES[here.section], name)
        room = TextMetrics(self.step.font()).elidedText(
            words, Qt.TextElideMode.ElideRight, STEP_WIDTH - 46
        )
        self.step.setText(f"{literal(room)}  ✕")
        self.step.setAccessibleName(words)
        title = "" if line is None else f"{line.label} {line.title}: "
        self.step.setToolTip(_("{title}all panes show this step. Leave it: Esc", title=title))

    def _show_plan(self) -> None:
        """Show pipeline and target in one box where two, or the chip beside them, have no room."""
        one_box, is_open = self._has_one_box(), self._document.wanted is not None
        self.pipeline.setVisible(is_open and not one_box)
        self.target.setVisible(is_open and not one_box)
        self.plan.setVisible(is_open and one_box)

    def _form(self, width: int) -> tuple[bool, bool, bool]:
        """Return which forms a width requires: one box, the narrow one, and the small one."""
        chip = not self.step.isHidden()
        room = width - (0 if self.importer.isHidden() else BESIDE_IMPORTER)
        one_box = room < ONE_BOX + (STEP_WIDTH if chip else 0)
        return one_box, room < NARROW + (BESIDE_CHIP if chip else 0), width < SMALL

    def _has_one_box(self) -> bool:
        return self._form(self.width())[0]

    def _is_narrow(self) -> bool:
        return self._form(self.width())[1]

    def _fit(self) -> None:
        """Show each part in the form that there is room for."""
        narrow = self._is_narrow()
        self.lowering.setVisible(not narrow)
        self.lowering_box.setVisible(narrow)
        self._show_plan()

    def _lowering_menu(self) -> QMenu:
        menu = QMenu(self)
        names = {strategy: STRATEGY_NAMES[strategy] for strategy in STRATEGIES}
        self._strategies = add_choices(menu, names, self._choose_lowering)
        menu.setToolTipsVisible(True)
        return menu

    def _choose_lowering(self, action: QAction) -> None:
        self._change_lowering(action.data())

    def _target_menu(self) -> QMenu:
        menu = QMenu(self)
        targets = {
            NATIVE: _("This machine – with its vector instructions"),
            ANY_PROCESSOR: _("llvm – any processor of this kind"),
        }
        self._targets = add_choices(menu, targets, self._change_target)
        menu.addSeparator()
        menu.addAction(_("Other target…"), self.target_wanted.emit)
        menu.addAction(_("Remote machine…"), self.remote_wanted.emit)
        self._here = menu.addAction(_("Run on this machine again"), self.here_wanted.emit)
        menu.addSeparator()
        menu.addAction(_("Threads and repeats…"), self._edit_measuring)
        return menu

    def _show_recipe(self) -> None:
        recipe, snapshot = self._document.wanted, self._document.snapshot
        for part in (self.lowering, self.lowering_box, self.run):
            part.setEnabled(recipe is not None)
        self._fit()
        if recipe is None:
            self.model.set_lines([Part(_("No model"), "strong")])
            self.overrides.hide()
            return
        same_source = (
            snapshot is not None
            and self._document.recipe is not None
            and (self._document.recipe.source == recipe.source)
        )
        model = snapshot.model if snapshot is not None and same_source else None
        parts = _model_parts(recipe, model)
        self.model.set_lines(*([part] for part in parts))
        self.model.setToolTip("\n".join(part.text for part in parts))
        has_torch = model is None or model.kind == "torch"
        for strategy in STRATEGIES:
            hint = self._document.named_engine(STRATEGY_HINTS[strategy])
            if not has_torch:
                hint = _("This source is a Relax module already.")
            elif strategy == "library" and recipe.translator != "lowerscope":
                hint = _("TVM's importers do not support library functions.")
            enabled = has_torch and (strategy != "library" or recipe.translator == "lowerscope")
            self.lowering.set_segment_enabled(strategy, enabled, hint)
            action = next(each for each in self._strategies.actions() if each.data() == strategy)
            action.setEnabled(enabled)
            action.setToolTip(hint)
            action.setChecked(recipe.lowering == strategy)
        self.lowering.set_current(recipe.lowering)
        name = STRATEGY_NAMES[recipe.lowering]
        self.lowering_box.set_lines([Part(_("Lowering"), "quiet")], [Part(name)])
        hint = self._document.named_engine(STRATEGY_HINTS[recipe.lowering])
        self.lowering_box.setToolTip(hint)
        run = self._document.named_engine(_("Run and compare with torch (F5)"))
        self.run.setToolTip(run)
        self._show_overrides(recipe)
        title = pipeline_title(recipe)
        pipeline = title
        self.pipeline.set_lines([Part(_("Pipeline"), "quiet")], [Part(title)])
        self.pipeline.setToolTip(title)
        count = recipe.threads
        threads = _n("{count} thread", "{count} threads", count) if count else _("all threads")
        title = TARGETS.get(recipe.target) or short_target(recipe.target)
        target = [Part(f"{title} · {threads}")]
        if recipe.remote is not None:
            target.insert(0, Part(recipe.remote.title, "strong"))
        self.target.set_lines([Part(_("Target"), "quiet")], target)
        where = "" if recipe.remote is None else f"\n{recipe.remote.tracker}"
        self.target.setToolTip(f"{title} · {threads}\n{recipe.target}{where}")
        small = [Part(part.text, "quiet") for part in target]
        self.plan.set_lines([Part(pipeline)], small)
        self.plan.setToolTip(f"{pipeline}\n{self.target.toolTip()}")
        self._here.setVisible(recipe.remote is not None)
        for action in self._targets.actions():
            action.setChecked(action.data() == recipe.target)
        self._show_run()

    def _show_overrides(self, recipe: Recipe) -> None:
        count = len(recipe.overrides)
        self.overrides.setVisible(count > 0)
        self.overrides.setText(_n("{count} override", "{count} overrides", count))
        menu = self.overrides.menu()
        menu.clear()
        for override in recipe.overrides:
            name = literal(override.pattern.removeprefix("fx:"))
            words = labelled(name, STRATEGY_NAMES[override.strategy])
            line = menu.addAction(
                words if override.on else _("{override} (switched off)", override=words)
            )
            line.setCheckable(True)
            line.setChecked(override.on)
            line.setData(override)
            line.triggered.connect(self._switch_override)
        menu.addSeparator()
        menu.addAction(_("Reset all"), self._reset_overrides)

    def _switch_override(self) -> None:
        action = self.sender()
        assert isinstance(action, QAction)
        self._document.change_by(switched, action.data())

    def _reset_overrides(self) -> None:
        self._document.change_fields(overrides=())

    def _show_run(self) -> None:
        document = self._document
        # While another source is being opened, the outcome would be beside its name.
        shown = (
            document.recipe is not None
            and document.wanted is not None
            and (document.recipe.source == document.wanted.source)
        )
        record = document.run_record if shown else None
        running = document.running
        self.run.setText(_("Stop") if running else _("Run"))
        self._show_icons()
        self.times.setVisible(record is not None and not running and self.width() >= SMALL)
        failed = self._faults.failed
        self.verdict.setVisible(record is not None or failed is not None or running)
        if running:
            self.verdict.set_state("busy", _("running"))
        elif failed is not None:
            self.times.hide()
            self.verdict.set_state("wrong", self._failure(failed), "", failed.line())
        elif record is not None:
            self._show_verdict(record)

    def _failure(self, problem: Problem) -> str:
        words = {
            "crashed": _("crashed"),
            "memory": _("out of memory"),
            "stopped": _("stopped"),
        }
        return words.get(problem.code, _("failed"))

    def _show_verdict(self, record: RunRecord) -> None:
        role, words, figure = verdict_state(record)
        if self._has_one_box() and not self.step.isHidden():
            # There is room for the chip or for the figure, which the tool tip has as well.
            figure = ""
        self.verdict.set_state(role, words, figure, verdict_tooltip(record))
        sure, second = record.times is None or is_reliable(record.times), list[Part]()
        first = [Part(f"TVM {duration_text(record.tvm_ms, about=not sure)}", "strong")]
        if record.times is not None:
            second = [Part(short_claim(record.times), "quiet")]
            claims = (claims_of(record.times), how_of(record.times))
            self.times.setToolTip("\n".join(each for each in claims if each))
        self.times.set_lines(first, *([] if self._is_narrow() else [second]))

    def _change_lowering(self, strategy: str) -> None:
        self._document.change_fields(lowering=strategy)

    def _change_target(self, action: QAction) -> None:
        # A native target does not apply to a remote machine.
        here = {"remote": None} if action.data() == NATIVE else {}
        self._document.change_fields(target=action.data(), **here)

    def _edit_measuring(self) -> None:
        edit_measuring(self._document, self._runs, self)

    def _show_icons(self) -> None:
        self.run.setIcon(run_icon(self._document.running))
        for action in self._strategies.actions():
            action.setIcon(strategy_icon(action.data()))

    def _run_or_cancel(self) -> None:
        if self._document.running:
            self.cancel_wanted.emit()
        else:
            self._runs.run()

    # Qt

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # The second click of a double click would stop what the first one has begun.
        return watched is self.run and event.type() == QEvent.Type.MouseButtonDblClick

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        self.modes.set_narrow(self.width() < SMALL)
        if self._form(self.width()) != self._form(event.oldSize().width()):
            self._show_run()
            self._show_step()


def verdict_tooltip(record: RunRecord) -> str:
    """Return the reason, or the largest errors and the tolerance, a line each."""
    if record.verdict == "no-reference":
        return record.reason
    if record.verdict in ("not-comparable", "inconclusive"):
        why = f"{record.verdict.replace('-', ' ')}: {record.reason}"
        if record.max_abs_error is None:
            return why
        largest = error_text(record.max_abs_error)
        return _(
            "{why}\nthe other outputs match {reference}, largest absolute error {largest}",
            why=why,
            reference=record.reference,
            largest=largest,
        )
    errors = _(
        "largest absolute error {absolute}\nlargest relative error {relative}\n"
        "tolerance {tolerance}",
        absolute=error_text(record.max_abs_error),
        relative=error_text(record.max_rel_error),
        tolerance=tolerance_text(record.atol, record.rtol, record.reference),
    )
    return f"{errors}\n{record.reason}" if record.reason else errors


def _model_parts(recipe: Recipe, model: ModelRecord | None) -> list[Part]:
    if model is None:
        return [Part(source_label(recipe.source.spec), "strong")]
    parts = [Part(model.title, "strong")]
    first = model.inputs[0] if model.inputs else None
    if first is not None:
        more = f" +{len(model.inputs) - 1}" if len(model.inputs) > 1 else ""
        text = f"{first.name} {shape_text(first.shape)} {first.dtype}{more}"
        parts.append(Part(text, "quiet"))
    return parts
