"""An input: its picture or its statistics, and the source of its value."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.charts.bars import Bars
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.layouts import STRETCH, column_of
from lowerscope.app.kit.pane import FactLines
from lowerscope.app.panes.common.descriptions import Facts
from lowerscope.app.panes.common.run_figures import show_prediction
from lowerscope.app.panes.common.values_panel import ValuesPanel
from lowerscope.app.panes.inputs.inputs_dialog import FILES
from lowerscope.app.panes.inputs.model import Inputs
from lowerscope.core.model.recipe import SEEDS
from lowerscope.core.model.snapshot import InputRecord
from lowerscope.core.model.texts import _

SMALLEST, MOST = 120, 460
"""Bounds on the sides of the picture, in points."""

BESIDE = 380
"""Minimum width of the tools and the scores."""


class InputPanel(QWidget):
    """The value of an input, and the commands on it."""

    def __init__(
        self, document: Document, queries: Queries, inputs: Inputs, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._inputs = inputs
        self.name = ""  # The input shown; empty for none.
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
        shown = column_of(None, self.facts, (self.values, 1), margins=None)
        self._figures = QWidget()
        self._figures.setLayout(shown)
        shown.setContentsMargins(0, 0, 0, 0)
        row = self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(10, 6, 10, 6)
        row.setSpacing(16)
        row.addWidget(self.picture)
        row.addWidget(self._figures, 4)
        row.addLayout(tools)
        row.addWidget(self.bars, 3, Qt.AlignmentFlag.AlignTop)
        row.addStretch(1)
        document.on(("run", "running"), self._show_run)
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
        path, _filter = QFileDialog.getOpenFileName(self, title, "", wanted)
        if path:
            self._inputs.take_file(self.name, path)

    def _reset(self) -> None:
        self._inputs.reset(self.name)

    def _show_run(self) -> None:
        record = self._document.run_record
        if record is not None:
            show_prediction(self.bars, record)
        else:
            self.bars.set_faded(True)
        self.bars.setVisible(bool(self.bars.bars()))

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
