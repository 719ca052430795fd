"""The page of the inputs: one of them, random or from a file; or a set of them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QProgressBar,
    QPushButton,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.bar_controls import Pill, Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import check_box, push_button
from lowerscope.app.kit.charts.bars import Bars
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.dialogs import file_to_open
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of, scrolled, stack_of
from lowerscope.app.kit.pane import ElidedLabel, FactLines
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import Facts
from lowerscope.app.panes.common.run_figures import show_prediction, verdict_state
from lowerscope.app.panes.common.values_panel import ValuesPanel
from lowerscope.app.panes.inputs.inputs_dialog import FILES
from lowerscope.app.panes.inputs.model import Inputs
from lowerscope.core.model.comparison_records import AgreementRecord, SampleRun, agreement_lines
from lowerscope.core.model.formatting import error_text, shape_text, verdict_words
from lowerscope.core.model.recipe import SEEDS, Source
from lowerscope.core.model.snapshot import InputRecord
from lowerscope.core.model.texts import _, labelled

# --- An input: its picture or its statistics, and the source of its value ---

SMALLEST, MOST = 120, 460
"""Bounds on the sides of the picture, in points."""

BESIDE = 380
"""Minimum width of the tools and the scores."""


class InputPanel(QWidget):
    """The value of an input, and the commands on it."""

    def __init__(self, document: Document, queries: Queries, inputs: Inputs) -> None:
        super().__init__()
        self._document = document
        self._inputs = inputs
        self.name = ""  # The input shown; empty for none.
        self._source: Source | None = None  # The one whose classes the bars show.
        self.picture = PictureView(_("Input image"))
        self.facts = FactLines()
        self.values = ValuesPanel(document, queries, self._show_facts, self._set_busy)
        self.values.save.hide()
        self.bars = Bars(_("The best classes of both sides"), whole=1.0)
        self.file = push_button(
            _("File…"),
            _("An image, .npy, .npz or .pt; or drop one on the window"),
            self._choose_file,
        )
        self.random = push_button(
            _("Random"), _("New values; the weights stay the same"), self._randomise
        )
        self.reset = push_button(
            _("Example"), _("The example value from the model's file"), self._reset
        )
        self.seed = QDoubleSpinBox()
        self.seed.setDecimals(0)
        self.seed.setRange(0, SEEDS - 1)
        self.seed.setFixedWidth(84)
        self.seed.lineEdit().setTextMargins(6, 0, 0, 0)
        self.seed.setAccessibleName(_("Seed of the random values"))
        self.seed.setToolTip(_("Seed of the random values"))
        sources = QGridLayout()
        sources.setSpacing(6)
        sources.addWidget(self.random, 0, 0)
        sources.addWidget(self.seed, 0, 1)
        sources.addWidget(self.file, 1, 0)
        sources.addWidget(self.reset, 1, 1)
        tools = column_of(None, sources, STRETCH, spacing=8)
        self._figures = QWidget()
        column_of(self._figures, self.facts, (self.values, 1), spacing=None)
        row = self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(10, 6, 10, 6)
        row.setSpacing(16)
        row.addWidget(self.picture)
        row.addWidget(self._figures, 4)
        row.addLayout(tools)
        row.addWidget(self.bars, 3, Qt.AlignmentFlag.AlignTop)
        row.addStretch(1)
        document.on(("recipe", "run", "running"), self._show_run)
        self.show_input("")
        self._show_run()

    def show_input(self, name: str) -> None:
        """Show an input by its name, or nothing for an empty name."""
        inputs = self._inputs
        self.name = name
        record = next((each for each in inputs.records if each.name == name), None)
        self.setEnabled(record is not None)
        has_picture = record is not None and record.picture is not None
        self.picture.setVisible(has_picture)
        self._figures.setVisible(not has_picture)
        spec = inputs.spec_of(name) if record is not None else None
        self.reset.setEnabled(spec is not None)
        if spec is not None and spec.seed is not None:
            self.seed.setValue(spec.seed)
        if record is None or not record.picture:
            self._show_figures(record)
            return
        self.values.show_nothing()
        picture = record.picture
        self.picture.set_picture(picture.pixels, picture.width, picture.height, picture.channels)

    def set_narrow(self, narrow: bool) -> None:
        """Stack the parts, or place them side by side."""
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        self._fit()

    def _fit(self) -> None:
        narrow = self._row.direction() == QBoxLayout.Direction.TopToBottom
        # The picture is square, so that the parts beside it get the rest.
        room = SMALLEST if narrow else min(self.height() - 12, self.width() - BESIDE)
        side = max(SMALLEST, min(MOST, room))
        self.picture.setFixedWidth(side)
        self.picture.setMinimumHeight(side if narrow else 0)

    def _show_figures(self, record: InputRecord | None) -> None:
        is_open = self._document.snapshot is not None
        none = _("The model takes no inputs.") if is_open else _("Nothing is open.")
        self.facts.set_facts(() if record is not None else (("", none),))
        if record is None:
            self.values.show_nothing()
        else:
            self.values.show_tensor(record.name)

    def _show_facts(self, facts: Facts) -> None:
        self.facts.set_facts(facts)

    def _set_busy(self, busy: bool) -> None:
        self.facts.setEnabled(not busy)

    def _randomise(self) -> None:
        inputs = self._inputs
        spec = inputs.spec_of(self.name)
        if spec is not None and spec.seed == round(self.seed.value()):
            # Randomising again uses other values.
            self.seed.setValue((self.seed.value() + 1) % SEEDS)
        inputs.randomise(self.name, round(self.seed.value()))

    def _choose_file(self) -> None:
        title = _("Value of {name}", name=self.name)
        wanted = _("Values ({files})", files=FILES)
        if path := file_to_open(self, title, "", wanted):
            self._inputs.take_file(self.name, path)

    def _reset(self) -> None:
        self._inputs.reset(self.name)

    def _show_run(self) -> None:
        record, recipe = self._document.run_record, self._document.recipe
        source = None if recipe is None else recipe.source
        if record is None and source == self._source:
            self.bars.set_faded(True)
        else:
            show_prediction(self.bars, record)
            self._source = source
        self.bars.setVisible(bool(self.bars.bars()))

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


WIDTH, ANY_WIDTH = 264, 16_777_215
"""Width of the figures beside the table; for those above it, Qt's QWIDGETSIZE_MAX."""

NARROW = 500
"""Width below which the figures are above the table."""


class SetPanel(QWidget):
    """The results of the last set that was run, beside a table of its worst samples."""

    taken = Signal()  # A sample was made the input.

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self._inputs = inputs
        self._sets = inputs.sets
        self.folder = push_button(_("Folder…"), _("Images or .npy files, one per sample"))
        self.archive = push_button(
            _(".npz…"),
            _(
                "Arrays with the samples in the first dimension; labels as y give the accuracy "
                "as well"
            ),
        )
        self.again = QPushButton(_("Run again"))
        self.stop = QPushButton(_("Cancel"))
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.summary = Label(wraps=True)
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.error = Label(role="wrong", wraps=True)
        self.worst = Table(
            _("Worst samples"),
            (
                Column(_("sample"), width=80),
                Column(_("error"), numeric=True, width=66, tooltip=_("Max abs error")),
                Column(_("class"), width=100, tooltip=_("Results of both sides")),
                Column(_("label"), width=82),
                Column(_("status"), stretch=True, width=92),
            ),
        )
        self.worst.set_empty(
            _("No set has been run"),
            _("Choose a folder or an .npz; the worst samples are listed here."),
        )
        buttons = row_of(None, self.folder, self.archive, self.again, self.stop, STRETCH, spacing=6)
        left = column_of(
            None,
            buttons,
            self.bar,
            self.summary,
            self.error,
            STRETCH,
            margins=(12, 6, 0, 6),
            spacing=8,
        )
        side = self._side = QWidget()
        side.setLayout(left)
        row = self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(side)
        row.addWidget(self.worst, 1)
        self.folder.clicked.connect(self.choose_folder)
        self.archive.clicked.connect(self.choose_file)
        self.again.clicked.connect(self._run_again)
        self.stop.clicked.connect(self._sets.cancel)
        self.worst.row_clicked.connect(self._take)
        self._sets.changed.connect(self._show)
        self._show()

    def choose_folder(self) -> None:
        """Select a folder in a dialog, and run its samples."""
        path = QFileDialog.getExistingDirectory(self, _("A folder of inputs"))
        if path:
            self._sets.run(path)

    def choose_file(self) -> None:
        """Select a file of samples in a dialog, and run them."""
        if path := file_to_open(self, _("A set of inputs"), "", _("Arrays (*.npz *.npy)")):
            self._sets.run(path)

    def _run_again(self) -> None:
        self._sets.run()

    def _take(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        record = self._sets.record
        if record is not None:
            self._inputs.take_sample(record.worst[int(key)].inputs)
            self.taken.emit()

    def _show(self) -> None:
        sets = self._sets
        record, running = sets.record, sets.running
        self.stop.setVisible(running)
        self.again.setVisible(bool(sets.path) and not running)
        self.bar.setVisible(running)
        text, fraction = sets.progress
        self.bar.setRange(0, 0 if fraction is None else 1000)
        self.bar.setValue(round(1000 * (fraction or 0.0)))
        self.error.setVisible(sets.problem is not None)
        self.error.setText("" if sets.problem is None else sets.problem.line())
        if running:
            self.summary.setText(labelled(Path(sets.path).name, text))
        else:
            self.summary.setText("" if record is None else summary_text(record))
        rows = () if record is None else record.worst
        self.worst.set_rows([_row(str(place), each) for place, each in enumerate(rows)])

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = event.size().width() < NARROW
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        self._side.setMinimumWidth(0 if narrow else WIDTH)
        self._side.setMaximumWidth(ANY_WIDTH if narrow else WIDTH)


def summary_text(record: AgreementRecord) -> str:
    """Return a summary of the runs on a set, as lines."""
    lines = [line.strip() for line in agreement_lines(record, Path(record.path).name)]
    lines += [_("left out: {each}", each=each) for each in record.unread[:3]]
    more = record.count - record.ran - 3
    return "\n".join([*lines, *([_("and {count} more", count=more)] if more > 0 else [])])


def _row(key: str, run: SampleRun) -> Row:
    text, role = verdict_words(run.verdict)
    shown = labelled(text, run.reason) if run.reason else text
    another = run.torch != run.tvm and bool(run.torch)
    classes = f"TVM {run.tvm} ≠ {run.torch}" if another else run.tvm
    return Row(
        key,
        (
            Cell(run.title, bold=True, tooltip=_("Click to use it as the input")),
            error_text(run.max_abs_error),
            Cell(classes, role="wrong" if another else "", tooltip=classes),
            Cell(run.label, role="quiet"),
            Cell(shown, role=role, tooltip=run.reason),
        ),
    )


NARROW_PAGE = 500
"""Width below which parts are stacked."""

ROOM = 560
"""Minimum width for the verdict above the input."""


class InputsPage(QWidget):
    """The page with all settings of the inputs' values."""

    def __init__(self, document: Document, queries: Queries, inputs: Inputs) -> None:
        super().__init__()
        self._document = document
        self._inputs = inputs
        self.switch = SegmentedSwitch(
            _("One input or a set"),
            (
                Segment("one", _("One input"), _("Draw, drop or choose its value")),
                Segment("set", _("A set"), _("Run many inputs and see how well both sides agree")),
            ),
        )
        self.name = QComboBox()
        self.name.setAccessibleName(_("Input"))
        self.origin = ElidedLabel(role="quiet")
        self.live = check_box(
            _("Run at once"),
            _("Run as soon as the input has changed; nothing is rebuilt"),
        )
        self.live.setChecked(inputs.live)
        self.verdict = Pill()
        self.error = Label(role="wrong", wraps=True)
        self.one = InputPanel(document, queries, inputs)
        self.sets = SetPanel(inputs)
        # In a narrow pane its parts are stacked.
        self._area = scrolled(self.one, sideways=False)
        self._stack = stack_of(self._area, self.sets)
        strip = row_of(
            None,
            self.switch,
            self.name,
            (self.origin, 1),
            self.verdict,
            self.live,
            margins=(10, 6, 10, 2),
            spacing=12,
        )
        column_of(self, strip, self.error, (self._stack, 1))
        self.error.setContentsMargins(12, 2, 12, 2)
        self.switch.changed.connect(self._switch)
        self.name.activated.connect(self._choose)
        self.sets.taken.connect(self.show_one)
        inputs.sets.began.connect(self.show_set)
        self.live.toggled.connect(inputs.set_live)
        document.on(("snapshot",), self._show_inputs)
        document.on(("run", "running"), self._show_run)
        inputs.changed.connect(self._show_state)
        self._show_inputs()
        self._show_run()
        self._show_state()

    def current(self) -> str:
        """Return the name of the input shown; empty for none."""
        return self.one.name

    def drop(self, path: str) -> None:
        """Use a dropped file as the input shown, or a folder as a set of inputs."""
        inputs = self._inputs
        (self.show_set if inputs.is_set(path) else self.show_one)()
        inputs.drop(path, self.one.name)

    def show_set(self) -> None:
        """Show the runs on a set of inputs."""
        self.switch.set_current("set")
        self._switch("set")

    def show_one(self) -> None:
        """Show the input of the next run."""
        self.switch.set_current("one")
        self._switch("one")

    def _switch(self, key: str) -> None:
        self._stack.setCurrentWidget(self.sets if key == "set" else self._area)
        self.live.setVisible(key == "one")
        self._show_origin()
        self.name.setVisible(key == "one" and self.name.count() > 1)
        self._show_run()

    def _choose(self) -> None:
        self.one.show_input(self.name.currentText())
        self._show_origin()

    def _show_inputs(self) -> None:
        names = [each.name for each in self._inputs.records]
        shown = self.one.name
        if names != [self.name.itemText(place) for place in range(self.name.count())]:
            self.name.clear()
            self.name.addItems(names)
        if shown not in names:
            shown = names[0] if names else ""
        self.name.setCurrentText(shown)
        self.name.setVisible(len(names) > 1 and self.switch.current() == "one")
        self.one.show_input(shown)
        self._show_origin()

    def _show_origin(self) -> None:
        records = self._inputs.records
        record = next((each for each in records if each.name == self.one.name), None)
        if self.switch.current() == "set":
            text = self._inputs.sets.path
        elif record is None:
            text = ""
        else:
            text = f"{record.name} {shape_text(record.shape)} {record.dtype} · {record.origin}"
        self.origin.set_whole(text)

    def _show_run(self) -> None:
        document = self._document
        record = document.run_record
        if document.running:
            self.verdict.set_state("busy", _("running"))
        elif record is not None:
            self.verdict.set_state(*verdict_state(record), record.reason)
        known = record is not None or document.running
        # In a narrow pane it is only in the tool bar.
        has_room = self.width() >= ROOM
        self.verdict.setVisible(known and has_room and self.switch.current() == "one")

    def _show_state(self) -> None:
        inputs = self._inputs
        self.live.setChecked(inputs.live)
        problem = inputs.problem
        self.error.setText("" if problem is None else problem.line())
        self.error.setVisible(problem is not None)
        self.error.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.one.set_narrow(self.width() < NARROW_PAGE)
        self._show_run()
