"""The values of one node beside torch's: statistics, histogram of the difference, heat map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.engine.file_broker import ask_for_file
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.charts.histogram import Histogram
from lowerscope.app.kit.dialogs import EmptyState
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.table import Column, Table
from lowerscope.app.panes.run.tensor_matrix import (
    SIDES,
    TensorMatrix,
    about_text,
    fact_rows,
    places_of,
)
from lowerscope.core.model.comparison_records import Comparison, Saved, TensorPlace
from lowerscope.core.model.entities import name_of
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ComparisonQuery, SaveRunValuesQuery
from lowerscope.core.model.run_records import COMPARED, NodeRun

NARROW = 500
"""Width below which the figures are above the values."""

WIDE_SIZES, NARROW_SIZES = [256, 500], [100, 160]

SOON_MS = 200
LOOKING = "Looking at values"


class TensorPage(QWidget):
    """The value of the last selected node or binding; or of a tensor of a call.

    Args:
        set_busy: Called with whether values are being fetched.
    """

    # The tensor of a call that is shown instead of the selection, and its name.
    _place: TensorPlace | None = None
    _place_name = ""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._queries = queries
        self._entity = ""
        self._record: Comparison | None = None
        self._runs: dict[str, NodeRun] = {}
        self._set_busy = set_busy
        # A shorter wait needs no notification.
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(SOON_MS)
        self._wait.timeout.connect(self._say_busy)
        self._is_wanted = False
        self._watch = queries.watch(
            self, self._query, self._take, self._take_problem, self._be_busy
        )
        self.title = ElidedLabel()
        self.title.setProperty("role", "title")
        self.items = QSpinBox()
        self.items.setPrefix(self.tr("tensor "))
        self.items.setAccessibleName(self.tr("Which of its tensors"))
        self.bases = SegmentedSwitch(self.tr("On which inputs"))
        self.save = QPushButton(self.tr("Save…"))
        self.save.setAccessibleName(self.tr("Save the values as a .npy file"))
        self.facts = Table(
            self.tr("The tensor beside torch's"),
            (Column("", width=84), Column("", stretch=True, wrap=True)),
        )
        self.facts.horizontalHeader().hide()
        self.histogram = Histogram(
            self.tr("Histogram of the difference, TVM - torch"), logarithmic=True
        )
        self.matrix = TensorMatrix(document, queries, self._take_problem, self._be_busy)
        self.empty = EmptyState()
        self.again = self.empty.add_action(self.tr("Try again"), self._try_again)
        self.again.hide()
        left = QWidget()
        under = QVBoxLayout(left)
        under.setContentsMargins(0, 0, 0, 0)
        under.setSpacing(0)
        under.addWidget(self.facts, 1)
        under.addWidget(self.histogram)
        self.right = QStackedWidget()
        self.no_values = EmptyState()
        self.right.addWidget(self.matrix)
        self.right.addWidget(self.no_values)
        self.split = Split(Qt.Orientation.Horizontal)
        self.split.addWidget(left)
        self.split.addWidget(self.right)
        self.split.setStretchFactor(0, 0)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes(WIDE_SIZES)
        self.split.setChildrenCollapsible(False)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self.split)
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 4, 10, 4)
        strip.setSpacing(12)
        strip.addWidget(self.title, 1)
        strip.addWidget(self.items)
        strip.addWidget(self.bases)
        strip.addWidget(self.save)
        self.strip = strip
        # In a narrow pane, the choices have a line of their own.
        second = self._second = QHBoxLayout()
        second.setContentsMargins(10, 0, 10, 0)
        second.setSpacing(12)
        second.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addLayout(second)
        column.addWidget(self.stack, 1)
        self.facts.row_clicked.connect(self._go_to)
        self.items.valueChanged.connect(self._want)
        self.bases.changed.connect(self._want)
        self.save.clicked.connect(self._open_saving)
        document.on(("snapshot",), self._show_run)
        document.on(("run", "running"), self._show_run)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_run()

    def save_to(self, side: Saved, file: str) -> None:
        """Save the values shown, of one side, overwriting an existing file."""
        if self._record is not None:
            self._save(self._record.place, side, file)

    def _save(self, place: TensorPlace, side: Saved, file: str) -> None:
        document = self._document
        assert document.recipe is not None
        query = SaveRunValuesQuery(document.recipe, place, file, side)
        client = self._queries.client(query.child)
        ask_for_file(client, query, self._note_saved, document.report)

    def _open_saving(self) -> None:
        menu = QMenu(self)
        beside = self._record is not None and self._record.verdict is not None
        sides: dict[QAction, Saved] = {}
        for side in SIDES:
            words = {
                "tvm": self.tr("Values of TVM…"),
                "torch": self.tr("Values of torch…"),
                "difference": self.tr("Difference, TVM - torch…"),
            }
            action = menu.addAction(words[side])
            action.setEnabled(beside or side == "tvm")
            sides[action] = side
        chosen = sides.get(menu.exec(self.save.mapToGlobal(self.save.rect().bottomLeft())))
        menu.deleteLater()
        if chosen is not None:
            self._choose_file(chosen)

    def _choose_file(self, side: Saved) -> None:
        record = self._record
        if record is None:
            return
        name = f"{self._name()}-{side}.npy"
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save {0}").format(name), name, self.tr("NumPy arrays (*.npy)")
        )
        if path:
            # The values selected before, whatever is shown by now.
            path = path if Path(path).suffix == ".npy" else f"{path}.npy"
            self._save(record.place, side, path)

    def _note_saved(self, path: str) -> None:
        self._document.notify(self.tr("Saved as {0}.").format(path), "info")

    # Selection

    def _show_run(self) -> None:
        self._is_wanted = False
        self._watch.update()
        self._record = None
        self.matrix.show_nothing()
        self._entity = ""
        run = self._document.run_record
        # A large model has many, and each selection looks one up.
        self._runs = {} if run is None else {each.id: each for each in run.nodes}
        self._show_selection()

    def look_at(self, place: TensorPlace, name: str) -> None:
        """Show a tensor that a call has read or written, until the selection changes."""
        self._place, self._place_name = place, name
        self.bases.set_segments(())
        self.items.blockSignals(True)
        self.items.setRange(0, place.item)
        self.items.setValue(place.item)
        self.items.blockSignals(False)
        self._say_nothing()
        self._want()

    def look_at_selection(self) -> None:
        """Show the value of the selection again."""
        if self._place is not None:
            self._show_run()

    def _name(self) -> str:
        return name_of(self._entity) if self._place is None else self._place_name

    def _show_selection(self) -> None:
        entity = self._selected()
        if entity == self._entity and entity:
            return
        self._entity, self._place = entity, None
        self._say_nothing()
        run = self._runs.get(entity)
        if run is None:
            self._is_wanted = False
            self._watch.update()
            self._show_nothing()
            return
        why_not = run.own_reason or self.tr("It was not run alone.")
        self.bases.set_segments(
            (
                Segment("run", self.tr("In the run"), self.tr("On what the run has computed")),
                Segment(
                    "own",
                    self.tr("Alone"),
                    self.tr("On torch's inputs") if run.own_status in COMPARED else why_not,
                    enabled=run.own_status in COMPARED,
                ),
            )
        )
        if run.own_status not in COMPARED:
            self.bases.set_current("run")
        self.items.blockSignals(True)
        self.items.setRange(0, 0)
        self.items.blockSignals(False)
        self._want()

    def _selected(self) -> str:
        selection = self._document.selection
        for kind in ("fx:", "relax:main/"):
            chosen = [each for each in selection.chosen if each.startswith(kind)]
            if chosen:
                return chosen[-1]
        return next(iter(selection.of_kind("fx")), "")

    def _want(self) -> None:
        self._is_wanted = True
        # The title and the buttons have been reset, even if it is the tensor that is shown.
        self._watch.refresh()

    def _query(self) -> ComparisonQuery | None:
        recipe = self._document.recipe
        if recipe is None or not self._is_wanted:
            return None
        place = TensorPlace(
            entity=self._entity, item=self.items.value(), own=self.bases.current() == "own"
        )
        if self._place is not None:
            place = msgspec.structs.replace(self._place, item=self.items.value())
        return ComparisonQuery(recipe, place)

    def _take(self, record: Comparison) -> None:
        self._record = record
        self.items.blockSignals(True)
        self.items.setRange(0, max(0, record.items - 1))
        self.items.setSuffix(self.tr(" of {0}").format(record.items))
        self.items.blockSignals(False)
        self.items.setVisible(record.items > 1)
        about = about_text(record)
        self.title.set_whole(" · ".join(each for each in (self._name(), about) if each))
        self.facts.set_rows(fact_rows(record))
        self._show_histogram()
        self.histogram.set_counts(record.edges, record.counts)
        self.save.setEnabled(record.kept)
        self.stack.setCurrentWidget(self.split)
        if record.kept and all(record.shape):
            self.right.setCurrentWidget(self.matrix)
            self.matrix.show_tensor(record)
        else:
            self.matrix.show_nothing()
            why = record.reason if all(record.shape) else self.tr("The tensor has no elements.")
            self.no_values.set_text(self.tr("No values to look at"), why)
            self.right.setCurrentWidget(self.no_values)

    def _show_histogram(self) -> None:
        counted = self._record is not None and bool(self._record.counts)
        self.histogram.setVisible(counted and self.split.orientation() == Qt.Orientation.Horizontal)

    def _take_problem(self, problem: Problem) -> None:
        self._record = None
        self.save.setEnabled(False)
        if problem.code == "cancelled":
            self.empty.set_text(self.tr("Stopped"))
        else:
            self.empty.set_text(problem.headline, problem.todo)
        self.again.show()
        self.stack.setCurrentWidget(self.empty)

    def _say_nothing(self) -> None:
        self.title.set_whole(self._name())
        self.items.hide()
        self.save.setEnabled(False)

    def _be_busy(self, busy: bool) -> None:
        """Show a longer request in the status bar, where it can be cancelled."""
        self._set_busy(busy)
        if busy:
            self._wait.start()
            return
        self._wait.stop()
        self._document.say("", of="values")

    def _say_busy(self) -> None:
        self._document.say(self.tr(LOOKING), of="values")

    def _try_again(self) -> None:
        self._watch.refresh()

    def _show_nothing(self) -> None:
        self.again.hide()
        record = self._document.run_record
        self._record = None
        self.bases.set_segments(())
        if record is None:
            title = self.tr("Not run yet")
            hint = self.tr("Run (F5) keeps the values of the nodes; they can be looked at then.")
        elif not self._entity:
            title = self.tr("No node selected")
            hint = self.tr("Select one, in the table or in a graph, to look at its values.")
        else:
            title = self.tr("No value of {0}").format(name_of(self._entity))
            hint = self.tr("The run has computed none.")
        self.empty.set_text(title, hint)
        self.stack.setCurrentWidget(self.empty)

    def _go_to(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        record = self._record
        place = None if record is None else places_of(record).get(key)
        if record is not None and record.kept and place is not None:
            self.matrix.as_picture.setChecked(False)
            self.matrix.go_to(place)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = event.size().width() < NARROW
        wanted = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if self.split.orientation() != wanted:
            self.split.setOrientation(wanted)
            self.split.setSizes(NARROW_SIZES if narrow else WIDE_SIZES)
            row, first = (self._second, 0) if narrow else (self.strip, 1)
            row.insertWidget(first, self.items)
            row.insertWidget(first + 1, self.bases)
            self._show_histogram()
