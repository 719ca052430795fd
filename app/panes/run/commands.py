"""Commands on runs, and the forms for their tolerances and their timing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, get_args

import msgspec
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFormLayout,
    QGridLayout,
    QLineEdit,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.buttons import check_box
from lowerscope.app.kit.commands import Command, Host, available
from lowerscope.app.kit.dialogs import Dialog, file_to_save, mark_wrong, number_field
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.run.outcomes import differing, runs_alone, select_next, starting
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.comparison_records import ReferenceDtype, Variant
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.queries import ReasonsQuery
from lowerscope.core.model.run_records import LEAST, MOST, REPEATS, Measuring
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import DTYPES, EPSILONS, Tolerance, Tolerances, parse_number

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from lowerscope.app.document.document import Document
    from lowerscope.app.document.queries import Queries
    from lowerscope.app.document.stepping import Stepping
    from lowerscope.app.document.timelines import RunSteps
    from lowerscope.app.panes.run.bisecting import Bisecting
    from lowerscope.app.panes.run.rounding_page import Rounding
    from lowerscope.app.panes.run.run_variants import RunVariants
    from lowerscope.app.panes.run.runs import Faults, Generations, Runs

# --- Forms for a run: the tolerances of the comparison, and threads and repeats of its timing ---

FIELD_WIDTH = 110


@dataclass(frozen=True)
class ToleranceRow:
    """The fields of one dtype, and an explanation of their numbers."""

    rtol: QLineEdit
    atol: QLineEdit
    means: Label


class TolerancesDialog(Dialog):
    """Two numbers for each dtype, checked while they are typed; applied as one undo step."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        recipe, record = document.wanted, document.run_record
        assert recipe is not None
        used = set() if record is None else {each.dtype for each in record.outputs}
        self.setWindowTitle(_("Tolerances"))
        self.rows: dict[str, ToleranceRow] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        for column, title in enumerate((_("dtype"), "rtol", "atol", _("allowed error"))):
            label = Label(title, role="quiet")
            grid.addWidget(label, 0, column)
        for dtype in DTYPES:
            self._add_row(grid, dtype, used)
        exact = Label(_("Integers and booleans have to be equal."))
        hint = Label(
            _(
                "Values match where |TVM - torch| ≤ atol + rtol × |torch|. Complex numbers have "
                "the tolerance of their parts."
            )
        )
        for label in (exact, hint):
            label.setProperty("role", "quiet")
            label.setWordWrap(True)
        self.error = Label(role="wrong", wraps=True)
        self.buttons = self.answers()
        self.accepted.connect(self._take)
        defaults = self.buttons.addButton(QDialogButtonBox.StandardButton.RestoreDefaults)
        defaults.setText(_("Restore defaults"))
        defaults.clicked.connect(self._show_defaults)
        column_ = column_of(
            self, hint, grid, exact, self.error, margins=(16, 16, 16, 12), spacing=12
        )
        self.keep_in_view(self.error)
        column_.addStretch(1)
        column_.addWidget(self.buttons)
        self.setMinimumWidth(640)
        self._show(recipe.tolerances)
        offer_help(self, "result#tolerances")

    def _add_row(self, grid: QGridLayout, dtype: str, used: Collection[str]) -> None:
        row = ToleranceRow(QLineEdit(), QLineEdit(), Label())
        line = grid.rowCount()
        name = Label(dtype)
        if dtype in used:
            name.setProperty("role", "title")
            name.setToolTip(_("The dtype of an output of this model"))
        grid.addWidget(name, line, 0)
        for column, (field, which) in enumerate(((row.rtol, "rtol"), (row.atol, "atol")), start=1):
            field.setFixedWidth(FIELD_WIDTH)
            field.setAccessibleName(f"{which} {dtype}")
            field.textChanged.connect(self._check)
            grid.addWidget(field, line, column)
        row.means.setProperty("role", "quiet")
        row.means.setWordWrap(True)
        row.means.setMinimumWidth(200)
        grid.addWidget(row.means, line, 3)
        grid.setColumnStretch(3, 1)
        self.rows[dtype] = row

    def _show(self, tolerances: Tolerances) -> None:
        for dtype, row in self.rows.items():
            tolerance: Tolerance = getattr(tolerances, dtype)
            row.rtol.setText(str(tolerance.rtol))
            row.atol.setText(str(tolerance.atol))

    def _show_defaults(self) -> None:
        self._show(Tolerances())

    def _read(self, dtype: str) -> Tolerance:
        row = self.rows[dtype]
        for field in (row.rtol, row.atol):
            mark_wrong(field, False)
        field = row.rtol
        try:
            rtol = parse_number(row.rtol.text(), "rtol")
            field = row.atol
            return Tolerance(rtol, parse_number(row.atol.text(), "atol"))
        except LowerscopeError as error:
            mark_wrong(field, True)
            problem = error.problem
            where = f"{dtype}, {problem.where}"
            raise LowerscopeError(problem.what, where=where, todo=problem.todo) from error

    def _check(self) -> None:
        problems = []
        for dtype, row in self.rows.items():
            try:
                row.means.setText(self._means(dtype, self._read(dtype)))
            except LowerscopeError as error:
                row.means.setText("")
                problems.append(error.problem.line())
        self.error.setText(problems[0] if problems else "")
        self.buttons.act.setEnabled(not problems)

    def _means(self, dtype: str, tolerance: Tolerance) -> str:
        """Return what a tolerance accepts, or that it is below the dtype's resolution."""
        if tolerance.rtol == tolerance.atol == 0:
            return _("values have to be equal")
        epsilon = EPSILONS[dtype]
        if 0 < tolerance.rtol + tolerance.atol < epsilon:
            return _(
                "finer than the resolution of {dtype}, which is {epsilon} at 1",
                dtype=dtype,
                epsilon=_rounded(epsilon),
            )
        zero, one, hundred = (
            _rounded(tolerance.atol + tolerance.rtol * size) for size in (0, 1, 100)
        )
        return _(
            "0 may be off by {zero}, 1 by {one}, 100 by {hundred}",
            zero=zero,
            one=one,
            hundred=hundred,
        )

    def _take(self) -> None:
        read = {dtype: self._read(dtype) for dtype in DTYPES}
        self._document.change_fields(tolerances=Tolerances(**read))


def edit_tolerances(document: Document, parent: QWidget) -> None:
    """Show the form for the recipe's tolerances."""
    if document.wanted is not None:
        TolerancesDialog(document, parent).pop_up()


def _rounded(value: float) -> str:
    """Return a number with two digits."""
    return f"{value:.2g}"


NUMBER_WIDTH = 240


class MeasuringDialog(Dialog):
    """A field for each number of the recipe; an existing run is measured again."""

    def __init__(self, document: Document, runs: Runs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs = runs
        recipe = document.wanted
        assert recipe is not None
        threads, measuring = recipe.threads, recipe.measuring
        self.setWindowTitle(_("Threads and repeats"))
        all_of_them = _("all, {machine} here", machine=MACHINE)
        most, width = max(MACHINE, threads), NUMBER_WIDTH
        self.threads = number_field(
            _("Threads"), 0, most, threads, width=width, at_least=all_of_them
        )
        enough = _("for one second, {least} to {repeats}", least=LEAST, repeats=REPEATS)
        self.repeats = number_field(
            _("Repeats"), 0, MOST, measuring.repeats, width=width, at_least=enough
        )
        self.warm_up = number_field(_("Warm-up"), 1, MOST, measuring.warm_up, width=width)
        self.compiled = check_box(
            _("Time torch.compile as well"),
            _("Compiling takes seconds to minutes, and needs a C++ compiler."),
        )
        self.compiled.setChecked(measuring.torch_compile)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        for title, field, hint in (
            (_("Threads"), self.threads, _("of TVM and of torch")),
            (_("Repeats"), self.repeats, _("timed calls of each side")),
            (_("Warm-up"), self.warm_up, _("calls of each side before the timed ones")),
        ):
            label = Label(title)
            label.setBuddy(field)
            form.addRow(label, _with_hint(field, hint))
        form.addRow(Label(), self.compiled)
        note = Label(
            _(
                "The sides take turns. Each has its median, and a spread from the lower to the "
                "upper quartile. One is called faster if the medians differ by more than that."
            ),
            role="quiet",
            wraps=True,
        )
        measured = document.run_record is not None
        buttons = self.answers(_("Measure") if measured else "")
        self.accepted.connect(self._take)
        column_of(self, form, note, buttons, margins=(16, 16, 16, 12), spacing=12)
        self.setMinimumWidth(460)
        offer_help(self, "result#threads-and-repeats")

    def _take(self) -> None:
        measuring = Measuring(
            warm_up=self.warm_up.value(),
            repeats=self.repeats.value(),
            torch_compile=self.compiled.isChecked(),
        )
        self._runs.measure_as(self.threads.value(), measuring)


def edit_measuring(document: Document, runs: Runs, parent: QWidget) -> None:
    """Show the form for timing runs."""
    if document.wanted is not None:
        MeasuringDialog(document, runs, parent).pop_up()


def _with_hint(field: QWidget, hint: str) -> QWidget:
    label = Label(hint, role="quiet")
    both = QWidget()
    row_of(both, field, (label, 1), spacing=12)
    return both


def timing_commands(document: Document, runs: Runs, parent: QWidget) -> tuple[Command, ...]:
    def idle() -> bool:
        return document.wanted is not None and not document.running

    def times_compile() -> bool:
        recipe = document.wanted
        return recipe is not None and recipe.measuring.torch_compile

    return (
        Command(
            "measure-again",
            _("Measure again"),
            runs.measure_again,
            "Ctrl+M",
            enabled=lambda: document.run_record is not None and not document.running,
        ),
        *available(
            idle,
            Command(
                "measuring",
                _("&Threads and repeats…"),
                partial(edit_measuring, document, runs, parent),
            ),
            Command(
                "torch-compile",
                _("Time torch.compile as &well"),
                runs.toggle_torch_compile,
                checked=times_compile,
            ),
        ),
        Command(
            "tolerances",
            _("T&olerances…"),
            partial(edit_tolerances, document, parent),
            enabled=lambda: document.wanted is not None,
        ),
    )


# --- Commands of the timeline Run: its steps, and the breakpoints ---


def run_step_commands(
    document: Document, stepping: Stepping, steps: RunSteps
) -> tuple[Command, ...]:
    def has_breaks() -> bool:
        return bool(steps.calls or steps.breaks or stepping.breaks)

    def clear() -> None:
        steps.clear()
        stepping.clear_breaks()

    return (
        Command(
            "toggle-break",
            _("Toggle breakpoint at the selection"),
            steps.toggle_selected,
            "Ctrl+B",
            "B",
            enabled=lambda: bool(document.selection.chosen),
        ),
        *(
            Command(key, title, partial(stepping.to_break, step), keys, enabled=has_breaks)
            for key, title, step, keys in (
                ("next-break", _("Continue to the next breakpoint"), 1, "Ctrl+F8"),
                ("previous-break", _("Back to the previous breakpoint"), -1, "Ctrl+Shift+F8"),
            )
        ),
        Command(
            "clear-breaks",
            _("Remove all brea&kpoints"),
            clear,
            enabled=lambda: bool(steps.breaks or stepping.breaks),
        ),
    )


# --- Commands for failed runs ---


def fault_commands(faults: Faults) -> tuple[Command, ...]:
    return (
        Command(
            "go-back",
            _("&Back to the last correct state"),
            faults.go_back,
            enabled=lambda: faults.can_go_back,
        ),
    )


# --- Commands on variants ---


def running_variants(host: Host, document: Document, runs: Runs) -> tuple[Command, ...]:
    return (
        Command(
            "run-variants",
            _("Run var&iants"),
            runs.variants.run_all,
            "Ctrl+F5",
            enabled=lambda: document.recipe is not None and not document.running,
        ),
        Command(
            "variants",
            _("Variant&s side by side"),
            partial(host.show_page, "variants"),
            "Ctrl+Shift+V",
            enabled=document.is_open,
        ),
    )


# --- The command that generates tokens ---


def generating(host: Host, generations: Generations) -> Command:
    def generate() -> None:
        host.show_page("tokens")
        generations.run()

    return Command(
        "generate-tokens",
        _("Generate to&kens"),
        generate,
        enabled=lambda: generations.is_there and not generations.running,
    )


# --- Commands that go to the nodes whose values differ from torch's ---


def finding_differences(
    host: Host,
    document: Document,
    show_tensor: Callable[[], None],
    show_alone: Callable[[], None],
) -> tuple[Command, ...]:
    def select() -> None:
        record = document.run_record
        if record is not None and record.first_difference:
            document.select((record.first_difference,))

    def differs() -> bool:
        return bool(differing(document))

    def starts() -> bool:
        return bool(starting(document))

    def refers_to(name: str) -> bool:
        return document.state.reference == name

    def differs_first() -> bool:
        record = document.run_record
        return record is not None and bool(record.first_difference)

    return (
        *available(
            document.is_open,
            Command(
                "compare-nodes",
                _("Compare no&de by node"),
                partial(host.show_page, "compare"),
                "Ctrl+N",
            ),
            Command(
                "compare-values", _("Show the values o&f the node"), show_tensor, "Ctrl+Shift+E"
            ),
        ),
        Command(
            "run-alone",
            _("Run the node a&lone"),
            show_alone,
            enabled=lambda: runs_alone(document),
            key_there="A",
        ),
        *(
            Command(
                f"reference-{name}",
                name,
                partial(document.set, reference=name),
                enabled=document.is_open,
                checked=partial(refers_to, name),
            )
            for name in get_args(ReferenceDtype)
        ),
        Command(
            "first-difference",
            _("Go to the &first difference"),
            select,
            "F4",
            enabled=differs_first,
        ),
        *(
            Command(
                key, title, partial(select_next, document, differing, step), keys, enabled=differs
            )
            for key, title, step, keys in (
                ("next-difference", _("Ne&xt node that differs"), 1, "Alt+PgDown"),
                ("previous-difference", _("Previous node that differs"), -1, "Alt+PgUp"),
            )
        ),
        *(
            Command(
                key,
                title,
                partial(select_next, document, starting, step),
                enabled=starts,
                key_there=there,
            )
            for key, title, step, there in (
                ("next-start", _("Next &start of a difference"), 1, "N"),
                ("previous-start", _("Previous start of a difference"), -1, "Shift+N"),
            )
        ),
    )


# --- The command that exports a report on the variants ---


@dataclass(frozen=True)
class Reporting:
    """The export of a report on the variants that ran."""

    host: Host
    document: Document
    queries: Queries
    runs: RunVariants
    bisecting: Bisecting
    rounding: Rounding

    def command(self) -> Command:
        return Command(
            "export-report", _("&Export report…"), self.export, enabled=lambda: bool(self.runs.kept)
        )

    def export(self) -> None:
        """Select a file in a dialog, and write a report on the selected variants, or on all."""
        # Imported here to keep the window's start fast.
        from lowerscope.app.panes.run.variants_page import VariantsPage
        from lowerscope.core.files.report import source_name

        chosen = self.host.view(VariantsPage).selected()
        variants = [
            msgspec.structs.replace(
                variant,
                wrong_step=self.bisecting.record_of(variant.recipe),
                rounding=self.rounding.record_of(variant.recipe),
            )
            for kept, variant in zip(self.runs.kept, self.runs.all, strict=True)
            if not chosen or kept.id in chosen
        ]
        if not variants:
            return
        name = PurePath(source_name(variants[0].recipe).replace(":", "-")).stem
        title, kinds = _("Export a report"), _("Reports (*.html)")
        path = file_to_save(self.host.widget, title, f"{name}.html", kinds)
        if path:
            path = path if path.endswith((".html", ".htm")) else f"{path}.html"
            self._explain(path, variants, ())

    def _explain(
        self, path: str, variants: Sequence[Variant], explained: tuple[Variant, ...]
    ) -> None:
        """Ask for the reasons of the next variant; write the report once each has its own."""
        if len(explained) == len(variants):
            self._write(path, explained)
            return
        variant = variants[len(explained)]

        def take(reasons: tuple[tuple[str, str], ...]) -> None:
            known = msgspec.structs.replace(variant, reasons=reasons)
            self._explain(path, variants, (*explained, known))

        def refuse(problem: Problem) -> None:
            if problem.code != "cancelled":
                take(())

        if variant.record is None:
            take(())
        else:
            self.queries.ask(ReasonsQuery(variant.recipe), take, refuse)

    def _write(self, path: str, variants: Sequence[Variant]) -> None:
        from lowerscope.core.files.report import write_report

        with self.document.reporting():
            written = write_report(path, variants)
            self.document.notify(_("Report written: {written}", written=written), "info")
