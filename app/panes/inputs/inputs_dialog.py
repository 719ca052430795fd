"""The form for a model's inputs: rows with shape, dtype and origin of the values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QWidget,
)

from lowerscope.app.engine.window_words import in_window
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.dialogs import Dialog, file_to_open, mark_wrong
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.files.sources import DTYPES, IMAGES, parse_input
from lowerscope.core.model.dimensions import EXTENT, check_dimensions, parse_dimension, parse_sizes
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import SEEDS, Dimension, InputSpec
from lowerscope.core.model.snapshot import InputRecord
from lowerscope.core.model.texts import _

# --- The form for named dimensions: rows with the range and the sizes to run at ---


@dataclass(frozen=True)
class DimensionRow:
    """The fields of one dimension, and the labels beside them."""

    span: QLineEdit
    sizes: QLineEdit
    widgets: tuple[QWidget, ...]


class DimensionsForm(QWidget):
    """A form with a row for each name in the shapes; hidden if there are none.

    Args:
        said: The user's previous specification.
    """

    def __init__(self, said: Sequence[Dimension]) -> None:
        super().__init__()
        self._said = {each.name: each for each in said}
        self._rows: dict[str, DimensionRow] = {}
        self._names: tuple[str, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(2, 1)
        titles = (_("dimension"), _("sizes"), _("run at"))
        for column, title in enumerate(titles):
            label = Label(title, role="quiet")
            self._grid.addWidget(label, 0, column)
        self.hide()

    def row(self, name: str) -> DimensionRow:
        """Return the fields of a dimension."""
        return self._rows[name]

    def set_names(self, names: Iterable[str]) -> None:
        """Show a row for each of `names`; the values of other rows are kept for later."""
        self._names = tuple(dict.fromkeys(names))
        for name in self._names:
            if name not in self._rows:
                self._rows[name] = self._add_row(name)
        for name, row in self._rows.items():
            for widget in row.widgets:
                widget.setVisible(name in self._names)
        self.setVisible(bool(self._names))

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return the filled in dimensions.

        Raises:
            LowerscopeError: If a range or a size is invalid, with the message of the command line.
        """
        return tuple(self._dimension(name, self._rows[name]) for name in self._names)

    def mark(self, where: str) -> None:
        """Mark the fields of the dimension that an error is about; of none for ``""``."""
        for name, row in self._rows.items():
            for field, option in ((row.span, "--dim"), (row.sizes, "--sizes")):
                mark_wrong(
                    field, f"{where} ".startswith((f"{option} {name} ", f"{option} {name}="))
                )

    def _dimension(self, name: str, row: DimensionRow) -> Dimension:
        span, sizes = row.span.text().strip(), row.sizes.text().strip()
        if not span:
            # A word may be a mistake as well: a size that varies is confirmed by its range.
            raise LowerscopeError(
                _("{name} is not a number", name=name),
                where=f"--dim {name}",
                todo=_(
                    "Enter a number in the shape, or the range of {name} here, such as 1..64",
                    name=name,
                ),
            )
        dimension = parse_dimension(f"{name}={span}")
        if not sizes:
            return dimension
        return msgspec.structs.replace(dimension, sizes=parse_sizes(f"{name}={sizes}")[1])

    def _add_row(self, name: str) -> DimensionRow:
        said = self._said.get(name)
        span, sizes = QLineEdit(), QLineEdit()
        span.setPlaceholderText(_("such as 1..64"))
        span.setAccessibleName(_("Range of {name}", name=name))
        sizes.setPlaceholderText(_("the traced size and both ends of the range"))
        sizes.setAccessibleName(_("Sizes of {name} to run at", name=name))
        sizes.setToolTip(_("With several dimensions, the k-th run takes the k-th of each."))
        if said is not None:
            span.setText(f"{said.low}..{said.high}")
            sizes.setText(",".join(map(str, said.sizes)))
        label = Label(name, role="title")
        index = self._grid.rowCount()
        for column, widget in enumerate((label, span, sizes)):
            self._grid.addWidget(widget, index, column)
        return DimensionRow(span, sizes, (label, span, sizes))


FILES = "*.npy *.npz *.pt *.png *.jpg *.jpeg *.bmp"


@dataclass
class InputRow:
    """The fields of one input."""

    name: str
    shape: QLineEdit
    dtype: QComboBox
    low: QLineEdit
    high: QLineEdit
    file: QLineEdit
    known: bool
    said: InputSpec | None
    wrong: Label
    before: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        """Return the texts of the fields."""
        edits = (self.shape, self.low, self.high, self.file)
        return (*(edit.text().strip() for edit in edits), self.dtype.currentText())


class InputsDialog(Dialog):
    """A form with a row for each input.

    It stays open until the model has been traced with what is filled in.

    Args:
        names: Names of the inputs, in order.
        known: The current inputs; may be empty.
        specs: The user's previous specifications.
        seed: The current seed.
        question: A line above the form; empty for none.
        dimensions: The user's previous specification of the named dimensions.
    """

    filled_in = Signal()  # It is filled in correctly, and waits for the model.

    def __init__(
        self,
        names: Sequence[str],
        known: Sequence[InputRecord],
        specs: Sequence[InputSpec],
        seed: int,
        question: str = "",
        parent: QWidget | None = None,
        dimensions: Sequence[Dimension] = (),
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(_("Inputs"))
        self._rows: list[InputRow] = []
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(8)
        titles = (_("input"), _("shape"), _("dtype"), _("integers from"), _("up to"), _("file"))
        for column, title in enumerate(titles):
            label = Label(title, role="quiet")
            grid.addWidget(label, 0, column)
        by_name = {record.name: record for record in known}
        said = {spec.name: spec for spec in specs if spec.name}
        free = [name for name in names if name not in said]
        said |= zip(free, [spec for spec in specs if not spec.name], strict=False)
        for index, name in enumerate(names):
            self._add_row(grid, 2 * index + 1, name, by_name.get(name), said.get(name))
        grid.setColumnStretch(5, 1)
        self.ranges = DimensionsForm(dimensions)
        for row in self._rows:
            row.shape.textChanged.connect(self._show_ranges)
        self._show_ranges()
        # The range of an integer spin box covers half of the seeds only.
        self.seed = QDoubleSpinBox()
        self.seed.setDecimals(0)
        self.seed.setRange(0, SEEDS - 1)
        self.seed.setValue(seed)
        self.seed.setAccessibleName(_("Seed"))
        self.seed.lineEdit().setTextMargins(6, 0, 0, 0)
        self.error = Label(role="wrong", wraps=True)
        self.error.hide()
        self.waiting = Label(_("Tracing the model…"), role="quiet")
        self.waiting.hide()
        self.buttons = self.answers(accept=self._check)
        if known:
            self._add_examples()
        hint = Label(
            _("Values are random, drawn with the seed, unless a file is given."), role="quiet"
        )
        seeds = row_of(None, Label(_("Seed")), self.seed, (hint, 1), spacing=None)
        layout = column_of(self, margins=(16, 16, 16, 12), spacing=12)
        if question:
            layout.addWidget(Label(question))
        layout.addLayout(grid)
        layout.addWidget(self.ranges)
        layout.addWidget(self.error)
        layout.addLayout(seeds)
        layout.addWidget(self.waiting)
        self.keep_in_view(self.waiting)
        layout.addStretch(1)
        layout.addWidget(self.buttons)
        self.resize(720, 0)
        self._specs: tuple[InputSpec, ...] = ()
        self._dimensions: tuple[Dimension, ...] = ()
        offer_help(self, "sources#inputs")

    def row(self, name: str) -> InputRow:
        """Return the fields of an input."""
        return next(row for row in self._rows if row.name == name)

    def specs(self) -> tuple[InputSpec, ...]:
        """Return the specifications, once the dialog is accepted; empty for the file's own."""
        return self._specs

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return the ranges and the sizes to run at."""
        return self._dimensions

    def chosen_seed(self) -> int:
        return round(self.seed.value())

    def _add_row(
        self,
        grid: QGridLayout,
        index: int,
        name: str,
        record: InputRecord | None,
        spec: InputSpec | None,
    ) -> None:
        shape = QLineEdit()
        shape.setPlaceholderText("1×784")
        shape.setMinimumWidth(88)
        shape.setToolTip(
            _("Extents separated by commas or ×; a name denotes any size in a range: batch×784")
        )
        dtype = QComboBox()
        dtype.addItems(list(DTYPES))
        dtype.setCurrentText("float32")
        if record is not None:
            shape.setText(shape_text(record.shape, scalar=""))
            dtype.setCurrentText(record.dtype)
        if spec is not None and spec.shape is not None:
            shape.setText(shape_text(spec.shape, scalar=""))
        if spec is not None and spec.dtype is not None:
            dtype.setCurrentText(spec.dtype)
        low, high, file = QLineEdit(), QLineEdit(), QLineEdit()
        for edit in (low, high):
            edit.setFixedWidth(64)
        if spec is not None:
            low.setText("" if spec.low is None else str(spec.low))
            high.setText("" if spec.high is None else str(spec.high))
            file.setText(spec.file)
        wrong = Label(role="wrong", wraps=True)
        wrong.hide()
        grid.addWidget(wrong, index + 1, 1, 1, 5)
        row = InputRow(name, shape, dtype, low, high, file, record is not None, spec, wrong)
        row.before = row.texts()
        label = Label(name, role="title")
        grid.addWidget(label, index, 0)
        fields = (
            (shape, _("Shape of {name}", name=name)),
            (dtype, _("Dtype of {name}", name=name)),
            (low, _("Smallest integer of {name}", name=name)),
            (high, _("End of the integers of {name}", name=name)),
        )
        for column, (field, title) in enumerate(fields, start=1):
            field.setAccessibleName(title)
            grid.addWidget(field, index, column)
        grid.addLayout(self._file_field(row), index, 5)
        self._rows.append(row)

    def _file_field(self, row: InputRow) -> QHBoxLayout:
        row.file.setPlaceholderText(_("random"))
        row.file.setMinimumWidth(96)
        row.file.setAccessibleName(_("File of {name}", name=row.name))
        browse = push_button(_("Browse…"), act=self._browse, auto_default=False)
        browse.setProperty("input", row.name)
        return row_of(None, (row.file, 1), browse, spacing=4)

    def _browse(self) -> None:
        row = self.row(self.sender().property("input"))
        title = _("Values of {name}", name=row.name)
        kinds = _("Values ({files})", files=FILES)
        if path := file_to_open(self, title, row.file.text(), kinds):
            row.file.setText(path)

    def _add_examples(self) -> None:
        examples = push_button(
            _("Use the file's own"),
            _("The inputs that example_inputs() in the file returns."),
            self._use_examples,
            auto_default=False,
        )
        self.buttons.addButton(examples, QDialogButtonBox.ButtonRole.ResetRole)

    def _use_examples(self) -> None:
        self._specs = ()
        self._dimensions = ()
        self._wait()

    def _show_ranges(self) -> None:
        parts = [part for row in self._rows for part in _extents(row.shape.text()).split(",")]
        self.ranges.set_names([part for part in parts if EXTENT.fullmatch(part)])

    def _check(self) -> None:
        try:
            specs = [_spec_of(row) for row in self._rows]
            self._specs = tuple(spec for spec in specs if spec is not None)
            self._dimensions = self.ranges.dimensions()
            check_dimensions(self._specs, self._dimensions)
        except LowerscopeError as error:
            self.show_problem(error.problem)
            return
        self._wait()

    def show_problem(self, problem: Problem) -> None:
        """Show what is wrong beside the field of an input, or else below the form."""
        self._show_waiting(False)
        self.ranges.mark(problem.where)
        at, of_model = next((row for row in self._rows if row.name == problem.where), None), False
        words = in_window(problem)
        names_option = "--input " in problem.todo or "--dim " in problem.todo
        if names_option or problem.code in ("give-inputs", "change-inputs"):
            # The form that the remedy leads to is this one.
            words = msgspec.structs.replace(words, todo="")
        if at is not None or problem.where.startswith("--"):
            # The field is marked.
            words = msgspec.structs.replace(words, where="")
        elif len(self._rows) == 1 and not problem.where.startswith("--"):
            # That of the model on its only input.
            at, of_model = self._rows[0], True
        for row in self._rows:
            _mark(row, row is at, of_model=of_model)
            row.wrong.setText(words.line() if row is at else "")
            row.wrong.setVisible(row is at)
        self.error.setText("" if at is not None else words.line())
        self.error.setVisible(at is None)
        if at is not None:
            fields = (at.shape, at.low, at.high, at.file)
            wrong = next((each for each in fields if each.property("wrong")), at.shape)
            wrong.setFocus()

    def _wait(self) -> None:
        for row in self._rows:
            _mark(row, False)
            row.wrong.hide()
        self.ranges.mark("")
        self.error.hide()
        self._show_waiting(True)
        self.filled_in.emit()

    def _show_waiting(self, waiting: bool) -> None:
        self.waiting.setVisible(waiting)
        for button in self.buttons.buttons():
            role = self.buttons.buttonRole(button)
            if role in (self.buttons.ButtonRole.AcceptRole, self.buttons.ButtonRole.ResetRole):
                button.setEnabled(not waiting)


def _mark(row: InputRow, wrong: bool, *, of_model: bool = False) -> None:
    """Mark the fields of a row that contain its error; that of a model is in the shape."""
    named = bool(row.file.text().strip())
    shaped = not named and wrong
    if shaped and not of_model:
        try:
            parse_input(f"{row.name}={_extents(row.shape.text())}")
            shaped = False
        except LowerscopeError:
            pass
    mark_wrong(row.file, named and wrong)
    mark_wrong(row.shape, shaped)
    for field in (row.low, row.high):
        mark_wrong(field, wrong and not named and not shaped)


def _extents(text: str) -> str:
    """Return the extents of a written shape, such as ``3x7``, as the command line has them."""
    parts = (part.strip() for part in _BETWEEN.split(text.strip().strip("()[]")))
    return ",".join(part for part in parts if part)


_BETWEEN = re.compile(r"[×,]|(?<=\d)\s*[xX*]\s*(?=\d)|(?<=\w)\s+(?=\w)")
"""Separators of the extents of a shape."""


def _spec_of(row: InputRow) -> InputSpec | None:
    """Parse a row with the parser of the command line's option, for the same errors.

    An unchanged row keeps its previous specification, or none, which means the file's own example.
    """
    if row.known and row.texts() == row.before:
        return row.said
    shape = _extents(row.shape.text())
    file = row.file.text().strip()
    if file:
        picture = Path(file).suffix.lower() in IMAGES
        if shape and (picture or shape != _extents(row.before[0])):
            # A picture is resized to fit; for other files, this is their shape according to the
            # user.
            spec = parse_input(f"{row.name}={shape}")
            return msgspec.structs.replace(spec, file=file)
        return InputSpec(name=row.name, file=file)
    if not shape and not row.known:
        raise LowerscopeError(
            _("the shape is missing"),
            where=row.name,
            todo=_("Enter its extents, such as 1×784, or choose a file"),
        )
    text = f"{row.name}={shape or '()'}:{row.dtype.currentText()}"
    if row.low.text().strip() or row.high.text().strip():
        text += f"[{row.low.text().strip() or 0},{row.high.text().strip()})"
    try:
        return parse_input(text)
    except LowerscopeError as error:
        what, todo = error.problem.what, error.problem.todo
        if "NAME=" in todo:
            # Its advice mentions the option of the command line.
            todo = _("Enter its extents, such as 1×784, and whole numbers for the range")
        raise LowerscopeError(what, where=row.name, todo=todo) from error
