"""The dialog with the rule of each function of the model, or why there is none."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.schedule.schedule_variants import Variants
from lowerscope.core.model.schedule_records import RuledFunction
from lowerscope.core.model.texts import _, _n


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
            _("Add the step ApplyRules at the end of the pipeline, so that Run uses it"),
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
    return _("{sentence}: {rules}.", sentence=text, rules=", ".join(by_rule))


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
