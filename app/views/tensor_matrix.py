"""A tensor as a matrix: slices, heat map, the values around an element, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Pending, Queries
from lowerscope.app.views.slices_row import SlicesRow
from lowerscope.app.views.tensor_sides import (
    SIDES,
    Side,
    channels_of,
    grey_of,
    matrix_of,
    piece_of,
    scale_of,
    values_of,
)
from lowerscope.app.views.tensor_words import index_text
from lowerscope.app.widgets.charts.heat_map import HeatMap, number_text
from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.picture_view import PictureView
from lowerscope.app.widgets.segmented import Segment, SegmentedSwitch
from lowerscope.app.widgets.split import Split
from lowerscope.app.widgets.value_grid import ValueGrid
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import WindowQuery
from lowerscope.core.records.comparison import Comparison, Window

Wanted = tuple[tuple[int, ...], tuple[int, int, int, int]]
"""A slice, and a part of it: first row and column, and the numbers of rows and columns."""

MOST_KEPT = 8
"""Number of cached pieces, for zooming out again."""


class TensorMatrix(QWidget):
    """The values of one tensor of the last run, fetched piece by piece.

    Parameters
    ----------
    say_problem
        Called with the problem that prevented a piece.
    set_busy
        Called with whether a piece is being fetched.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        say_problem: Callable[[Problem], None],
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._queries = queries
        self._say_problem = say_problem
        self._set_busy = set_busy
        self._record: Comparison | None = None
        self._windows: dict[Wanted, Window] = {}
        self._asked: tuple[Pending, Wanted] | None = None
        self._side: Side = "difference"
        self.sides = SegmentedSwitch(self.tr("Whose values"))
        self.slices = SlicesRow()
        self.as_picture = QPushButton(self.tr("Picture"))
        self.as_picture.setCheckable(True)
        self.as_picture.setToolTip(self.tr("The channels as one picture"))
        self.map = HeatMap(self.tr("Heat map"))
        self.grid = ValueGrid(self.tr("Values around the element"))
        self.picture = PictureView(self.tr("The tensor as a picture"))
        self.readout = ElidedLabel()
        self.readout.setContentsMargins(10, 0, 10, 4)
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 2, 10, 0)
        strip.setSpacing(12)
        strip.addWidget(self.sides)
        strip.addWidget(self.slices)
        strip.addWidget(self.as_picture)
        strip.addStretch(1)
        self.split = Split(Qt.Orientation.Horizontal)
        self.split.addWidget(self.map)
        self.split.addWidget(self.grid)
        self.split.setStretchFactor(0, 5)
        self.split.setStretchFactor(1, 4)
        self.split.setSizes([250, 200])
        self.stack = QStackedWidget()
        self.stack.addWidget(self.split)
        self.stack.addWidget(self.picture)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(strip)
        column.addWidget(self.stack, 1)
        column.addWidget(self.readout)
        self.sides.changed.connect(self._choose_side)
        self.slices.changed.connect(self._fetch)
        self.as_picture.toggled.connect(self._fetch)
        self.map.view_changed.connect(self._fetch)
        self.map.pointed.connect(self._point_at)

    def show_tensor(self, record: Comparison) -> None:
        """Show a tensor whose values are cached, at the element that differs most."""
        self._forget()
        self._record = record
        self.slices.set_shape(record.shape)
        self.map.set_extent(*matrix_of(record.shape))
        self.map.clear()
        self.grid.set_piece(None)
        channels = channels_of(record.shape)
        self.as_picture.setVisible(channels > 0)
        if not channels:
            self.as_picture.setChecked(False)
        self._show_sides(record)
        worst = record.not_finite_at if record.not_finite else record.max_abs_at
        if worst:
            self.go_to(worst)
        else:
            self._fetch()

    def show_nothing(self) -> None:
        """Show that there is no tensor."""
        self._forget()
        self._record = None
        self.map.clear()
        self.grid.set_piece(None)

    def go_to(self, index: Sequence[int]) -> None:
        """Show the slice of an element, and put the cursor on it."""
        self.slices.set_index(index[:-2])
        row = index[-2] if len(index) > 1 else 0
        self.map.set_cursor(row, index[-1] if index else 0)
        self._fetch()

    def _show_sides(self, record: Comparison) -> None:
        beside = record.torch is not None and record.verdict is not None
        why_not = "" if beside else record.reason
        words = {"tvm": "TVM", "torch": "torch", "difference": self.tr("Difference")}
        self.sides.set_segments(
            [
                Segment(
                    side,
                    words[side],
                    why_not if side != "tvm" and why_not else "",
                    enabled=beside or side == "tvm",
                )
                for side in SIDES
            ]
        )
        if not beside:
            self._side = "tvm"
        self.sides.set_current(self._side)

    def _choose_side(self, key: str) -> None:
        self._side = next(side for side in SIDES if side == key)
        self._show()

    # Fetching: one piece at a time, then the one requested last

    def _wanted(self) -> list[Wanted]:
        record = self._record
        if record is None:
            return []
        leading = self.slices.index()
        rows, columns = matrix_of(record.shape)
        if not self.as_picture.isChecked():
            return [(leading, self.map.shown_range())]
        whole = (0, 0, rows, columns)
        return [((*leading[:-1], each), whole) for each in range(channels_of(record.shape))]

    def _fetch(self) -> None:
        record = self._record
        missing = [each for each in self._wanted() if self._found(each) is None]
        if record is None or self._asked is not None:
            return
        if missing:
            leading, (top, left, rows, columns) = missing[0]
            recipe = self._document.recipe
            assert recipe is not None
            query = WindowQuery(recipe, record.place, leading, top, left, rows, columns)
            pending = self._queries.ask(query, self._take, self._take_problem)
            self._asked = pending, missing[0]
            self._set_busy(True)
        self._show()

    def _found(self, wanted: Wanted) -> Window | None:
        """Return the cached values of a part of a slice, at the finest resolution available."""
        exact = self._windows.get(wanted)
        if exact is not None:
            return exact
        leading, (top, left, rows, columns) = wanted
        for (other, _), window in self._windows.items():
            inside = _is_inside(top, rows, window.row_edges) and _is_inside(
                left, columns, window.column_edges
            )
            if other == leading and inside:
                return window
        return None

    def _take(self, window: Window) -> None:
        assert self._asked is not None
        _, wanted = self._asked
        self._settle()
        if wanted[0] not in [leading for leading, _ in self._wanted()]:
            # They are of the previous slice.
            self._windows = {}
        elif not self.as_picture.isChecked():
            self._windows = {
                each: kept for each, kept in self._windows.items() if each[0] == wanted[0]
            }
        self._windows[wanted] = window
        for old in list(self._windows)[:-MOST_KEPT]:
            del self._windows[old]
        self._fetch()

    def _take_problem(self, problem: Problem) -> None:
        self._settle()
        self._say_problem(problem)

    def _forget(self) -> None:
        if self._asked is not None:
            self._asked[0].drop()
            self._settle()
        self._windows = {}

    def _settle(self) -> None:
        self._asked = None
        self._set_busy(False)

    # Display

    def _show(self) -> None:
        record = self._record
        if record is None:
            return
        self.stack.setCurrentIndex(1 if self.as_picture.isChecked() else 0)
        windows = [self._found(each) for each in self._wanted()]
        if self.as_picture.isChecked():
            self._show_picture(record, [each for each in windows if each is not None])
        elif windows[0] is not None:
            window = windows[0]
            piece = piece_of(window, self._side)
            self.map.set_piece(piece, scale_of(record, self._side), self._words(window))
            self.grid.set_piece(piece)
            self._point_at(*self.map.at())

    def _show_picture(self, record: Comparison, windows: Sequence[Window]) -> None:
        if len(windows) != channels_of(record.shape):
            return
        scale = scale_of(record, self._side)
        greys = [grey_of(values_of(each, self._side), scale) for each in windows]
        pixels = bytes(value for pixel in zip(*greys, strict=True) for value in pixel)
        height, width = len(windows[0].row_edges) - 1, len(windows[0].column_edges) - 1
        ends = f"{number_text(scale.low)} … {number_text(scale.high)}"
        caption = self.tr("black to white: {0}").format(ends)
        self.picture.set_picture(pixels, width, height, len(greys), caption)

    def _words(self, window: Window) -> str:
        top, left, rows, columns = self.map.shown_range()
        parts = [
            self.tr("rows {0}–{1}").format(top, top + rows - 1) if self.map.extent()[0] > 1 else "",
            self.tr("columns {0}–{1}").format(left, left + columns - 1),
        ]
        if piece_of(window, "tvm").is_reduced:
            parts.append(self.tr("the worst of each cell"))
        return " · ".join(each for each in parts if each)

    def _point_at(self, row: int, column: int) -> None:
        self.grid.set_place(row, column)
        words = self._readout(row, column)
        self.readout.set_whole(words)
        self.map.say(words)

    def _readout(self, row: int, column: int) -> str:
        record = self._record
        wanted = self._wanted()
        window = self._found(wanted[0]) if wanted else None
        if record is None or window is None:
            return ""
        cell = piece_of(window, "tvm").cell_of(row, column)
        if cell is None:
            return ""
        words = {"tvm": "TVM", "torch": "torch", "difference": self.tr("difference")}
        shown = [
            f"{words[side]} {piece.value(*cell):{'.4g' if side == 'difference' else '.9g'}}"
            for side in SIDES
            if (piece := piece_of(window, side)).values
        ]
        place = (*self.slices.index(), row, column)[-max(len(record.shape), 1) :]
        if piece_of(window, "tvm").is_marked(*cell):
            shown.append(self.tr("✕ out of tolerance"))
        return "  ·  ".join([index_text(place if record.shape else ()), *shown])


def _is_inside(first: int, count: int, edges: Sequence[int]) -> bool:
    """Return whether there are cells for all of some rows or columns."""
    is_fine = edges[-1] - edges[0] == len(edges) - 1
    return is_fine and edges[0] <= first and first + count <= edges[-1]
