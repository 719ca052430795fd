"""Forms for a run: the tolerances of the comparison, and threads and repeats of its timing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec
from PySide6.QtWidgets import QDialogButtonBox, QFormLayout, QGridLayout, QLineEdit, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.buttons import check_box
from lowerscope.app.kit.dialogs import Dialog, mark_wrong, number_field
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.run_records import LEAST, MOST, REPEATS, Measuring
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import DTYPES, EPSILONS, Tolerance, Tolerances, parse_number

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
        for column, title in enumerate((_("dtype"), "rtol", "atol", _("in effect"))):
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
        recipe = self._document.wanted
        if recipe is not None:
            read = {dtype: self._read(dtype) for dtype in DTYPES}
            changed = msgspec.structs.replace(recipe, tolerances=Tolerances(**read))
            self._document.change(changed)


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
