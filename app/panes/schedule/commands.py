"""The menu Schedule: the workbench, its history, variants, files, and the rules of functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.commands import Command, Commands, Host, available
from lowerscope.app.kit.dialogs import Dialog, LineQuestion, file_to_open, file_to_save
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_moves_page import LETTERS
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.files.pipelines_and_schedules import save_schedules
from lowerscope.core.model.schedule import shown_name
from lowerscope.core.model.schedule_records import RuledFunction
from lowerscope.core.model.texts import _, _n

if TYPE_CHECKING:
    from lowerscope.app.panes.schedule.schedule_view import ScheduleView

# --- The dialog with the rule of each function of the model, or why there is none ---


class RulesDialog(Dialog):
    """A modeless table of the rules, with a switch that schedules the model by them."""

    def __init__(
        self,
        document: Document,
        stepping: Stepping,
        variants: Variants,
        run: Callable[[], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._stepping = stepping
        self._rules = variants.rules
        self.setWindowTitle(_("Schedule the whole model by rules"))
        self.in_model = check_box(
            _("Apply to the model"),
            _("Add the step ApplyRules to the end of the pipeline, so that Run uses it"),
        )
        self.summary = Label(wraps=True)
        self.table = Table(
            _("Functions and their rules"),
            (
                Column(_("function"), width=230),
                Column(_("calls"), numeric=True, width=56),
                Column(_("rule"), width=190),
                Column(_("steps"), numeric=True, width=56),
                Column(_("why not"), stretch=True),
            ),
        )
        note = Label(
            _(
                "Each schedule can be read step by step: double-click a function, then choose "
                "Auto-schedule in Schedule. Your own schedules take precedence over rules."
            ),
            role="quiet",
            wraps=True,
        )
        self.run = push_button(_("Run"), _("Run the model and compare it with torch"))
        close = QPushButton(_("Close"))
        for button in (self.run, close):
            button.setAutoDefault(False)
        row = row_of(None, self.in_model, STRETCH, self.run, close, spacing=8)
        column_of(
            self, self.summary, (self.table, 1), note, row, margins=(16, 16, 16, 12), spacing=12
        )
        self.resize(860, 420)
        self.in_model.clicked.connect(self._rules.set_in_model)
        self.run.clicked.connect(run)
        close.clicked.connect(self.close)
        self.table.row_activated.connect(self._open)
        self._rules.changed.connect(self._show)
        document.on(("snapshot",), self._follow)
        document.on(("recipe", "pending"), self._show_model)
        document.on(("run", "running"), self._show_model)
        self._show()
        offer_help(self, "schedule-rules")

    def _follow(self) -> None:
        if self.isVisible():
            self._rules.ask()

    def _show(self) -> None:
        rules = self._rules
        self.table.set_rows([_row(each) for each in rules.functions])
        if rules.problem is not None:
            self.table.set_empty(_("No rules"), rules.problem.line())
        elif rules.busy:
            self.table.set_empty(f"{rules.busy}…", "")
        else:
            self.table.set_empty(
                _("No TensorIR function"),
                _("Rules schedule functions: add LegalizeOps to the pipeline."),
            )
        self.summary.setText(summary(rules.functions))
        self.summary.setVisible(bool(rules.functions))
        self._show_model()

    def _show_model(self) -> None:
        self.in_model.setChecked(self._rules.in_model)
        self.in_model.setEnabled(self._document.wanted is not None)
        ready = self._document.recipe is not None and not self._document.running
        self.run.setEnabled(ready)

    def _open(self, function: str) -> None:
        """Schedule a function in the workbench."""
        self._document.select((f"tir:{function}",))
        self._stepping.set_section("schedule")

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._rules.ask()
        self._show_model()


def summary(functions: tuple[RuledFunction, ...]) -> str:
    """Return how many functions have a rule, which rules, and how many have none."""
    ruled = [each for each in functions if each.rule]
    names = sorted({each.rule for each in ruled})
    by_rule = [
        f"{name} {sum(1 + len(each.twins) for each in ruled if each.rule == name)}"
        for name in names
    ]
    several, whole = (sum(1 + len(each.twins) for each in some) for some in (ruled, functions))
    text = _n(
        "A rule fits {fitting:,} of {count:,} function",
        "A rule fits {fitting:,} of {count:,} functions",
        whole,
        fitting=several,
    )
    if not by_rule:
        return _("{sentence}.", sentence=text)
    return _("{sentence}: {rules}.", sentence=text, rules=_(", ").join(by_rule))


def _row(record: RuledFunction) -> Row:
    name = record.function
    if record.twins:
        name += f"  +{len(record.twins)}"
    tooltip = "\n".join((record.function, *record.twins))
    if record.by_hand:
        rule, why = (
            Cell(_("○ your schedule"), role="quiet"),
            _("a schedule takes precedence over a rule"),
        )
    elif record.rule:
        rule, why = Cell(f"✓ {record.rule}", role="right"), ""
    else:
        rule, why = Cell(_("✕ none"), role="quiet"), record.reason
    return Row(
        record.function,
        (
            Cell(name, bold=True, tooltip=tooltip),
            f"{record.calls:,}",
            rule,
            f"{record.steps:,}" if record.rule and not record.by_hand else "",
            Cell(why, role="quiet", tooltip=why),
        ),
    )


FILES = _("Schedules (*.json)")


class ScheduleCommands(QObject):
    """Commands on schedules."""

    def __init__(
        self,
        host: Host,
        document: Document,
        stepping: Stepping,
        scheduling: Scheduling,
        variants: Variants,
        run: Callable[[], None],
        commands: Commands,
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document = document
        self._stepping = stepping
        self._scheduling = scheduling
        self._variants = variants
        self._run = run
        self._commands = commands
        # Created on first use; it keeps its last content.
        self._rules: RulesDialog | None = None

    @property
    def view(self) -> ScheduleView:
        """The Schedule pane."""
        from lowerscope.app.panes.schedule.schedule_view import ScheduleView

        return self._host.view(ScheduleView)

    def has_function(self) -> bool:
        """Return whether the workbench has a function."""
        return self._scheduling.active and self._scheduling.record is not None

    def commands(self) -> tuple[Command, ...]:
        document, variants, scheduling = self._document, self._variants, self._scheduling
        letters = {name: letter for letter, name in LETTERS.items()}

        def has_schedule() -> bool:
            return self.has_function() and scheduling.schedule is not None

        def offers(name: str) -> bool:
            return self.has_function() and any(each.name == name for each in scheduling.moves.all)

        def has_steps() -> bool:
            return self.has_function() and bool(scheduling.primitives)

        return (
            Command(
                "workbench",
                _("Schedule the f&unction"),
                self.show,
                "Ctrl+Shift+S",
                enabled=document.is_open,
            ),
            Command(
                "schedule-moves",
                _("Primitives…"),
                self.open_moves,
                "Ctrl+.",
                enabled=lambda: bool(scheduling.function),
            ),
            *(
                Command(
                    f"primitive-{name}",
                    title,
                    partial(self._choose, name),
                    enabled=partial(offers, name),
                    key_there=letters.get(name, ""),
                )
                for name, title in (
                    ("split", _("&Split")),
                    ("reorder", _("&Reorder")),
                    ("fuse", _("&Fuse")),
                    ("parallel", _("&Parallel")),
                    ("vectorize", _("&Vectorize")),
                    ("unroll", _("&Unroll")),
                    ("cache_read", _("Cache &read")),
                    ("cache_write", _("Cache &write")),
                    ("compute_at", _("Compute at")),
                    ("reverse_compute_at", _("Reverse compute at")),
                )
            ),
            *(
                Command(
                    key, title, partial(self._on_history, *act), enabled=has_steps, key_there=there
                )
                for key, title, there, *act in (
                    ("edit-primitive", _("&Edit the step…"), "Return", "edit_step"),
                    ("switch-primitive", _("S&witch the step on or off"), "Space", "switch_step"),
                    ("insert-primitive", _("&Insert before the step"), "Insert", "insert_before"),
                    ("primitive-up", _("Move the step &back"), "Ctrl+Left", "move_step", -1),
                    ("primitive-down", _("Move the step f&orward"), "Ctrl+Right", "move_step", 1),
                    ("delete-primitive", _("Delete the &step"), "Del", "remove_step"),
                )
            ),
            Command(
                "by-rule",
                _("&Auto-schedule"),
                self.by_rule,
                "Ctrl+Shift+R",
                enabled=self.has_function,
            ),
            Command(
                "rules-in-model",
                _("Schedule the whole model by rules"),
                self.rules_in_model,
                "Ctrl+Shift+M",
                enabled=document.is_open,
            ),
            Command(
                "new-variant", _("&New variant…"), self._ask_new_name, enabled=self.has_function
            ),
            *available(
                has_schedule,
                Command("duplicate-variant", _("Du&plicate the variant"), self.duplicate),
                Command("rename-variant", _("&Rename the variant…"), self._ask_other_name),
                Command("delete-variant", _("Delete the &variant"), self._variants.remove),
                Command("unscheduled", _("Unsc&heduled"), partial(self._variants.choose, None)),
                Command("copy-schedule", _("&Copy as Python"), self.copy_python),
                Command("save-schedule", _("Save as &JSON…"), self.save),
            ),
            Command("load-schedule", _("&Load JSON…"), self.load, enabled=self.has_function),
            Command(
                "left-over",
                _("&Orphaned schedules…"),
                self._show_left_over,
                enabled=lambda: bool(variants.left_over.all),
            ),
            Command(
                "apply-to-model",
                _("Apply to the &model"),
                self.apply_to_model,
                enabled=document.is_open,
                checked=lambda: variants.in_model,
            ),
        )

    def fill(self) -> None:
        """Give the pane its menus."""
        self._variant_menu = self.view.variant_menu
        self._variant_menu.aboutToShow.connect(self._fill_variants)
        self._left_menu = self.view.left_over.menu()
        self._left_menu.aboutToShow.connect(self._fill_left_over)
        self._commands.fill(
            self.view.history.keep.menu(), "copy-schedule", "save-schedule", "load-schedule"
        )

    def show(self) -> None:
        """Show the workbench."""
        self._stepping.set_section("schedule")
        self._host.bring("schedule")
        self.view.setFocus()

    def open_moves(self) -> None:
        """Open the menu of primitives for the selection."""
        if not self._scheduling.active:
            self.show()
        self.view.tree.open_menu()

    def _choose(self, name: str) -> None:
        self._scheduling.trying.choose_named(name)

    def by_rule(self) -> None:
        """Create a variant with the schedule that a rule writes for the function."""
        self.show()
        self._variants.by_rule.ask()

    def rules_in_model(self) -> None:
        """Schedule the whole model by rules, and show the rule of each function."""
        self._variants.rules.set_in_model(True)
        if self._rules is None:
            self._rules = RulesDialog(
                self._document, self._stepping, self._variants, self._run, self._host.widget
            )
        self._rules.show()

    def duplicate(self) -> None:
        """Add a copy of the enabled variant."""
        schedule = self._scheduling.schedule
        if schedule is not None:
            name = _("copy of {name}", name=shown_name(schedule.variant))
            self._variants.add(name, copied=True)

    def copy_python(self) -> None:
        """Copy the schedule to the clipboard as a Python function."""
        record = self._scheduling.record
        if record is not None:
            QGuiApplication.clipboard().setText(record.code)
            self._document.notify(_("Copied as apply_trace(sch)."), "info")

    def save(self) -> None:
        """Select a file in a dialog, and save the schedule to it."""
        schedule, name = self._scheduling.schedule, f"{self._scheduling.function}.json"
        if schedule is None:
            return
        title = _("Save the schedule")
        if path := file_to_save(self._host.widget, title, name, FILES):
            with self._document.reporting():
                save_schedules([schedule], path)
                self._document.notify(_("Saved as {path}.", path=path), "info")

    def load(self) -> None:
        """Select a file in a dialog, and load its schedule as another variant."""
        if path := file_to_open(self._host.widget, _("Load a schedule"), "", FILES):
            with self._document.reporting():
                self._variants.load(path)

    def apply_to_model(self) -> None:
        """Toggle whether the schedules are applied to the model."""
        self._variants.set_in_model(not self._variants.in_model)

    def _on_history(self, method: str, *values: int) -> None:
        getattr(self.view.history, method)(*values)

    def _ask_new_name(self) -> None:
        self._ask_name(_("New variant"), _("Add"), "", self._variants.add)

    def _ask_other_name(self) -> None:
        schedule = self._scheduling.schedule
        if schedule is not None:
            title, name = _("Rename the variant"), shown_name(schedule.variant)
            self._ask_name(title, _("Rename"), name, self._variants.rename)

    def _ask_name(self, title: str, act: str, name: str, take: Callable[[str], None]) -> None:
        question = LineQuestion(title, _("Name"), act, name, self._host.widget)
        question.accepted.connect(partial(self._take_name, question, take))
        question.open()

    def _take_name(self, question: LineQuestion, take: Callable[[str], None]) -> None:
        take(question.answer())

    def _fill_variants(self) -> None:
        menu: QMenu = self._variant_menu
        menu.clear()
        schedule = self._scheduling.schedule
        for each in self._variants.all:
            count = len(each.primitives)
            words = _n(
                "{name} · 1 step",
                "{name} · {count} steps",
                count,
                name=literal(shown_name(each.variant)),
            )
            text = words
            action = menu.addAction(text, partial(self._variants.choose, each.variant))
            action.setCheckable(True)
            action.setChecked(each is schedule)
        commands = self._commands
        menu.addAction(commands.action("unscheduled"))
        menu.addSeparator()
        for key in ("new-variant", "duplicate-variant", "rename-variant", "delete-variant"):
            menu.addAction(commands.action(key))

    def _fill_left_over(self) -> None:
        menu, left_over = self._left_menu, self._variants.left_over
        menu.clear()
        scheduling = self._scheduling
        for each in left_over.all:
            inner = menu.addMenu(literal(left_over.title(each)))
            inner.addAction(literal(left_over.reason(each))).setEnabled(False)
            inner.addSeparator()
            here = _("&Try on {function}", function=literal(scheduling.function) or _("a function"))
            tried = inner.addAction(here, partial(left_over.try_here, each))
            tried.setEnabled(scheduling.active and scheduling.record is not None)
            inner.addAction(_("&Copy as Python"), partial(left_over.copy, each))
            inner.addAction(_("&Delete"), partial(left_over.remove, each))

    def _show_left_over(self) -> None:
        """Open the menu of orphaned schedules."""
        self.show()
        self.view.left_over.showMenu()


# --- Commands on the metrics of the scheduled function ---


class NumberCommands:
    """Commands that measure."""

    def __init__(self, schedules: ScheduleCommands, measurements: Measurements) -> None:
        self._schedules = schedules
        self._measurements = measurements

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu."""
        return (
            Command("numbers", _("Metrics"), self.show, "Ctrl+Shift+N"),
            Command(
                "measure-function",
                _("Apply and &measure"),
                self.measure,
                "Ctrl+Return",
                enabled=self._schedules.has_function,
            ),
            Command("measure-variants", _("Measure all variants"), self.measure_all),
            Command(
                "measure-peaks",
                _("Measure the &peak rates of this machine"),
                self._measurements.measure_peaks,
            ),
        )

    def show(self) -> None:
        """Show the metrics of the scheduled function."""
        self._schedules.show()
        self._schedules.view.show_numbers()

    def measure(self) -> None:
        """Apply the primitive of the form, if there is one, and check and measure the function."""
        view = self._schedules.view
        if view.form.isVisible():
            view.form.apply_and_measure()
        else:
            self._measurements.measure()

    def measure_all(self) -> None:
        """Measure all variants."""
        self._schedules.view.variants.measure_all()
