"""The values of a tensor beside torch's: heat maps, errors, the worst elements, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QSpinBox, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.engine.file_broker import ask_for_file
from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.charts.images import HeatMap, HeatPiece, HeatScale, SlicesRow
from lowerscope.app.kit.charts.plots import Histogram
from lowerscope.app.kit.dialogs import file_to_save, show_within
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of, scrolled, stack_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.split import strip_of
from lowerscope.app.kit.tables.data_table import ROW_HEIGHT, Cell, Column, Row, Table
from lowerscope.core.model.comparison_records import (
    Comparison,
    ReferenceDtype,
    Saved,
    TensorPlace,
    Window,
)
from lowerscope.core.model.formatting import (
    error_text,
    shape_text,
    share_text,
    tolerance_text,
    verdict_words,
)
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ComparisonQuery, SaveRunValuesQuery, WindowQuery
from lowerscope.core.model.run_records import COMPARED, NodeRun
from lowerscope.core.model.snapshot import TensorStatistics
from lowerscope.core.model.texts import _, _n, capitalized

# --- The sides of a tensor, in the heat map's format ---

Side = Literal["tvm", "torch", "difference"]
SIDES: tuple[Side, ...] = ("tvm", "torch", "difference")
"""Ours, torch's, and ours - torch."""


def values_of(window: Window, side: Side) -> Sequence[float]:
    """Return the values of the cells of a side, row by row; none if it has none."""
    data = {"tvm": window.ours, "torch": window.torch, "difference": window.difference}[side]
    return memoryview(data).cast("d" if window.format == "<f8" else "q")


def piece_of(window: Window, side: Side) -> HeatPiece:
    """Return a side of a window in the heat map's format."""
    values = values_of(window, side)
    return HeatPiece(window.row_edges, window.column_edges, values, window.outside)


def scale_of(record: Comparison, side: Side) -> HeatScale:
    """Return the colour scale of a side: the same for all slices, and for both sides."""
    if side == "difference":
        most = record.edges[-1] if record.edges else record.atol or 1.0
        return HeatScale(-most, most, diverging=True)
    known = [each for each in (record.ours, record.torch) if each is not None]
    low = min((each.low for each in known if each.low is not None), default=0.0)
    high = max((each.high for each in known if each.high is not None), default=1.0)
    if low < 0 < high:
        most = max(-low, high)
        return HeatScale(-most, most, diverging=True)
    return HeatScale(low, high)


def side_name(side: Side, reference: ReferenceDtype) -> str:
    """Return the name of a side, which is beside the values of a reference."""
    return {"tvm": "TVM", "torch": reference, "difference": f"TVM - {reference}"}[side]


def matrix_of(shape: Sequence[int]) -> tuple[int, int]:
    """Return the rows and columns of a tensor viewed as a matrix."""
    return (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)


# --- Texts of the comparison of a tensor with torch's ---

LARGEST_RELATIVE, NOT_FINITE = "max-rel", "not-finite"
"""Keys of the rows that are about one element."""


def fact_rows(record: Comparison) -> tuple[Row, ...]:
    """Return rows of a label and a text: first what is not finite, then what differs."""
    return tuple(Row(key, (Cell(label, role="quiet"), cell)) for key, label, cell in _facts(record))


def worst_rows(record: Comparison) -> tuple[Row, ...]:
    """Return a row for each of the elements with the largest errors."""
    return tuple(
        Row(
            str(number),
            (
                Cell(index_text(each.index), code=True, tooltip=_("Click to go to it")),
                f"{each.ours:.5g}",
                f"{each.torch:.5g}",
                Cell(error_text(each.error), beyond_role(record)),
            ),
        )
        for number, each in enumerate(record.worst)
    )


def beyond_role(record: Comparison) -> Literal["wrong", "unsure", ""]:
    """Return the role of errors beyond the tolerance."""
    if record.verdict == "rounding":
        return "unsure"
    return "" if record.matches else "wrong"


def places_of(record: Comparison) -> dict[str, tuple[int, ...]]:
    """Return the index of the element that a row of figures is about, by row key."""
    found = {NOT_FINITE: record.not_finite_at} if record.not_finite_at else {}
    return found | ({LARGEST_RELATIVE: record.max_rel_at} if record.max_rel_error else {})


def index_text(index: Sequence[int]) -> str:
    """Return ``[0, 12, 3]``."""
    return f"[{', '.join(map(str, index))}]"


def about_text(record: Comparison) -> str:
    """Return shape and dtype of a tensor, for both sides if they differ."""
    ours = f"{shape_text(record.shape)} {record.dtype}".strip()
    # The reference has its own dtype above its values.
    widened = record.dtype if record.place.reference == "float64" else ""
    torch = f"{shape_text(record.torch_shape)} {widened or record.torch_dtype}".strip()
    if record.torch_dtype and not record.dtype:
        return torch
    if not record.torch_dtype or torch == ours:
        return ours
    return _("TVM {ours}, torch {torch}", ours=ours, torch=torch)


def _facts(record: Comparison) -> Iterator[tuple[str, str, Cell]]:
    if record.not_finite:
        at = index_text(record.not_finite_at)
        if record.not_finite_at or (record.matches is False and not record.shape):
            text = _("{not_finite}, first difference at {at}", not_finite=record.not_finite, at=at)
            cell = _to_go(f"✕ {text}", "wrong")
        else:
            cell = Cell(record.not_finite, role="unsure")
        yield NOT_FINITE, _("not finite"), cell
    if record.reason and not record.outside:
        yield "reason", _("reason"), Cell(record.reason, tooltip=record.reason)
    if record.max_abs_error is not None:
        yield from _errors(record)
    reference = record.place.reference
    for key, side, values in (("ours", "TVM", record.ours), ("torch", reference, record.torch)):
        if values is not None:
            text = statistics_text(values)
            yield key, side, Cell(text, tooltip=text)


def _errors(record: Comparison) -> Iterator[tuple[str, str, Cell]]:
    yield (
        "max-abs",
        _("absolute"),
        Cell(_("{max_abs_error} at most", max_abs_error=error_text(record.max_abs_error))),
    )
    relative = _("{max_rel_error} at most", max_rel_error=error_text(record.max_rel_error))
    at = index_text(record.max_rel_at)
    cell = _to_go(f"{relative}, {at}") if record.max_rel_error else Cell(relative)
    yield LARGEST_RELATIVE, _("relative"), cell
    count = record.torch.count if record.torch is not None else 0
    text = _n(
        "{outside:,} of {count:,} element · {outside_share}",
        "{outside:,} of {count:,} elements · {outside_share}",
        count,
        outside=record.outside,
        outside_share=share_text(record.outside_share),
    )
    tolerance = tolerance_text(record.atol, record.rtol, record.place.reference)
    if record.atol == record.rtol == 0:
        tolerance = _("none: must be equal")
    yield "outside", _("outside"), Cell(text)
    yield "tolerance", _("tolerance"), Cell(tolerance)
    if record.cosine is not None:
        yield "cosine", _("cosine"), Cell(f"{record.cosine:.9g}")


def verdict_text(record: Comparison) -> tuple[str, str]:
    """Return the verdict on a tensor, and its role."""
    if record.verdict is None:
        return _("– not compared"), "quiet"
    words, role = verdict_words(record.verdict)
    return (f"{words} · {record.reason}" if record.reason else words), role


def _to_go(text: str, role: str = "accent") -> Cell:
    return Cell(text, role=role, tooltip=_("Click to go to this element"))


def errors_text(name: str, unequal: int, equal: int) -> str:
    """Return the title of the histogram of errors.

    Args:
        name: The difference, as a formula.
        unequal, equal: Numbers of elements with an error, and without one.
    """
    if not unequal:
        return _n("The element is equal", "All {count:,} elements are equal", equal)
    return _(
        "Error, |{name}| · {unequal:,} of {count:,} unequal",
        name=name,
        unequal=unequal,
        count=unequal + equal,
    )


def statistics_text(values: TensorStatistics) -> str:
    """Return what is not finite, the range, mean and deviation, and the number of zeros."""
    parts = [
        f"✕ {count:,} {word}"
        for count, word in ((values.nans, _("NaN")), (values.infinities, _("infinite")))
        if count
    ]
    if values.low is not None and values.high is not None:
        parts.append(f"{values.low:.4g} … {values.high:.4g}")
    if values.mean is not None:
        parts.append(
            _("mean {mean:.4g}, std {deviation:.4g}", mean=values.mean, deviation=values.deviation)
        )
    if values.zeros:
        parts.append(_n("{count:,} zero", "{count:,} zeros", values.zeros))
    return " · ".join(parts)


CELLS = 256
"""Rows and columns of a piece; a matrix with fewer is fetched as a whole."""

SOON_MS = 80
"""Time after which another part in view is fetched, while the user zooms or drags."""


class SideView(QWidget):
    """The heat map of a side below its name."""

    def __init__(self) -> None:
        super().__init__()
        self.title = Label(role="title")
        self.map = HeatMap("")
        column_of(self, self.title, (self.map, 1))

    def set_name(self, name: str) -> None:
        self.title.setText(name)
        self.map.setAccessibleName(name)


class TensorMatrix(QWidget):
    """The values of one tensor of the last run on both sides, fetched piece by piece.

    Args:
        say_problem: Called with the problem that prevented a piece.
        set_busy: Called with whether a piece is being fetched.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        say_problem: Callable[[Problem], None],
        set_busy: Callable[[bool], None],
    ) -> None:
        super().__init__()
        self._document = document
        self._record: Comparison | None = None
        self._window: Window | None = None  # Of the slice in view.
        self._watch = queries.watch(self, self._query, self._take, say_problem, set_busy)
        self._soon = single_shot(self, SOON_MS, self._watch.update)
        self.what = SegmentedSwitch(_("Values or their difference"))
        self.slices = SlicesRow()
        self.views: Mapping[Side, SideView] = {side: SideView() for side in SIDES}
        self.readout = Label(role="quiet", wraps=True)
        self.readout.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        # Two lines of the language: those of Chinese are higher than the font's.
        self.readout.setText("\n".join((_("difference"),) * 2))
        self.readout.setFixedHeight(self.readout.sizeHint().height())
        self.readout.clear()
        row = row_of(None, self.slices, STRETCH, self.what, spacing=8)
        maps = row_of(None, *((each, 1) for each in self.views.values()), spacing=8)
        column_of(self, row, (maps, 1), self.readout, spacing=6)
        self.what.changed.connect(self._show)
        self.slices.changed.connect(self._fetch)
        for view in self.views.values():
            view.map.view_changed.connect(self._follow)
            view.map.pointed.connect(self._follow)

    @property
    def is_current(self) -> bool:
        """Return whether the values in view are those of the tensor, and of its slice."""
        return self._record is not None and self._watch.is_current

    @property
    def shown(self) -> tuple[Side, ...]:
        """The sides in view."""
        record = self._record
        if record is None or record.torch is None or record.verdict is None:
            return ("tvm",)
        return ("difference",) if self.what.current() == "difference" else ("tvm", "torch")

    def switch(self) -> None:
        """Show the difference in place of the values, or the other way round."""
        keys = [each.key for each in self.what.segments() if each.enabled]
        if len(keys) > 1:
            self.what.set_current(keys[1 - keys.index(self.what.current())])
            self._show()

    def show_tensor(self, record: Comparison) -> None:
        """Show a tensor whose values are cached, at the element that differs most."""
        self._record, self._window = record, None
        self.slices.set_shape(record.shape)
        for side, view in self.views.items():
            view.set_name(self._side_name(side, record))
            view.map.set_extent(*matrix_of(record.shape))
            view.map.clear()
        beside = record.torch is not None and record.verdict is not None
        values, difference = _("Values"), _("Difference")
        self.what.set_segments(
            (
                Segment("values", values, _("Values of both sides (D)")),
                Segment(
                    "difference",
                    difference,
                    f"{self._side_name('difference', record)} (D)" if beside else record.reason,
                    enabled=beside,
                ),
            )
        )
        if not beside:
            self.what.set_current("values")
        largest = record.worst[0].index if record.worst else ()
        worst = record.not_finite_at if record.not_finite else largest
        if worst:
            self.slices.set_index(worst[:-2])
            self._put_cursor(worst)
        # Another run may have other values at the same place.
        self._watch.refresh()
        self._show()

    def show_nothing(self) -> None:
        """Show that there is no tensor."""
        self._record = self._window = None
        self._watch.update()
        for view in self.views.values():
            view.map.clear()

    def go_to(self, index: Sequence[int]) -> None:
        """Show the slice of an element, and put the cursor on it."""
        if tuple(index[:-2]) != self.slices.index():
            self.slices.set_index(index[:-2])
            self._fetch()
        self._put_cursor(index)

    def _put_cursor(self, index: Sequence[int]) -> None:
        row = index[-2] if len(index) > 1 else 0
        self._map().set_cursor(row, index[-1] if index else 0)

    def _follow(self) -> None:
        """Have all heat maps show the part, and the element, that the user goes to in one."""
        source = self.sender()
        for view in self.views.values():
            if view.map is not source and isinstance(source, HeatMap):
                view.map.follow(source)
        self._soon.start()
        self._say_element()

    def _query(self) -> WindowQuery | None:
        record, recipe = self._record, self._document.recipe
        if record is None or recipe is None:
            return None
        extents = matrix_of(record.shape)
        top, left, rows, columns = self._map().shown_range()
        if extents[0] <= CELLS:
            top, rows = 0, extents[0]
        if extents[1] <= CELLS:
            left, columns = 0, extents[1]
        return WindowQuery(
            recipe, record.place, self.slices.index(), top, left, rows, columns, CELLS
        )

    def _fetch(self) -> None:
        """Fetch another slice."""
        self._window = None
        self._watch.update()

    def _take(self, window: Window) -> None:
        self._window = window
        self._show()

    # Display

    def _map(self) -> HeatMap:
        return self.views[self.shown[0]].map

    def _show(self) -> None:
        record = self._record
        if record is None:
            return
        for side, view in self.views.items():
            view.setVisible(side in self.shown)
            if self._window is not None:
                piece, scale = piece_of(self._window, side), scale_of(record, side)
                if piece.values:
                    view.map.set_piece(piece, scale, self._words(self._window))
        self._say_element()

    def _words(self, window: Window) -> str:
        top, left, rows, columns = self._map().shown_range()
        several = self._map().extent()[0] > 1
        parts = [
            _("rows {top}–{top2}", top=top, top2=top + rows - 1) if several else "",
            _("columns {left}–{left2}", left=left, left2=left + columns - 1),
            _("the worst of each cell") if piece_of(window, "tvm").is_reduced else "",
        ]
        return " · ".join(each for each in parts if each)

    def _say_element(self) -> None:
        words = self._readout(*self._map().at())
        self.readout.setText(words)
        for view in self.views.values():
            view.map.say(words)

    def _side_name(self, side: Side, record: Comparison) -> str:
        return self._document.named_engine(side_name(side, record.place.reference))

    def _readout(self, row: int, column: int) -> str:
        record, window = self._record, self._window
        if record is None or window is None:
            return ""
        cell = piece_of(window, "tvm").cell_of(row, column)
        if cell is None:
            return ""
        reference = self._side_name("torch", record)
        words = {"tvm": "TVM", "torch": reference, "difference": _("difference")}
        shown = [
            f"{words[side]} {piece.value(*cell):{'.4g' if side == 'difference' else '.9g'}}"
            for side in SIDES
            if (piece := piece_of(window, side)).values
        ]
        place = (*self.slices.index(), row, column)[-max(len(record.shape), 1) :]
        if piece_of(window, "tvm").is_marked(*cell):
            shown.append(_("✕ out of tolerance"))
        return "  ·  ".join([index_text(place if record.shape else ()), *shown])


WAIT_MS = 200
LOOKING = _("Reading values")
LEAST = 320
"""Least width."""


class TensorPage(QWidget):
    """The value of the last selected node or binding; or of a tensor of a call.

    Args:
        set_busy: Called with whether values are being fetched.
    """

    subject_changed = Signal()  # `has_subject` changed.

    # The tensor of a call that is shown instead of the selection, and its name.
    _place: TensorPlace | None = None
    _place_name = ""

    def __init__(
        self, document: Document, queries: Queries, set_busy: Callable[[bool], None]
    ) -> None:
        super().__init__()
        self._document = document
        self._queries = queries
        self._entity = ""
        self._record: Comparison | None = None
        self._runs: dict[str, NodeRun] = {}
        self._set_busy = set_busy
        # A shorter wait needs no notification.
        self._wait = single_shot(self, WAIT_MS, self._say_busy)
        self._is_wanted = False
        self._watch = queries.watch(
            self, self._query, self._take, self._take_problem, self._be_busy
        )
        self.title = ElidedLabel(role="title")
        self.items = QSpinBox()
        self.items.setAccessibleName(_("Tensor of the node"))
        self.bases = SegmentedSwitch(_("Inputs"))
        self.save = IconButton("save", _("Save the values as a .npy file"), size=(26, 26))
        self.about = Label(role="quiet", wraps=True)
        self.verdict = Label(wraps=True)
        self.matrix = TensorMatrix(document, queries, self._take_problem, self._be_busy)
        self.matrix.setMinimumHeight(270)
        self.errors = Label(role="quiet", wraps=True)
        self.histogram = Histogram(_("Histogram of the errors"), logarithmic=True)
        self.worst = Table(
            _("Worst elements"),
            (
                Column(_("worst elements"), width=120, stretch=True),
                Column("TVM", numeric=True, width=72),
                Column(_("reference"), numeric=True, width=72),
                Column(_("error"), numeric=True, width=66),
            ),
        )
        self.facts = Table(
            _("The tensor beside torch's"), (Column("", width=84), Column("", stretch=True))
        )
        self.facts.horizontalHeader().hide()
        self.empty = EmptyState()
        self.again = self.empty.add_action(_("Try again"), self._watch.refresh)
        self.again.hide()
        self.no_values = EmptyState()
        self.values = stack_of(self.matrix, self.no_values)
        body = QWidget()
        words = column_of(None, self.about, self.verdict, spacing=2)
        head = column_of(None, words, (self.values, 1), margins=(12, 8, 12, 0), spacing=8)
        chart = column_of(None, self.errors, self.histogram, margins=(12, 8, 0, 0))
        column_of(body, (head, 1), chart, self.worst, self.facts, spacing=4)
        self._area = scrolled(body, sideways=False)
        self.stack = stack_of(self.empty, self._area)
        self.setMinimumWidth(LEAST)
        strip = strip_of((self.title, 1), self.items, self.bases, self.save)
        column_of(self, strip, (self.stack, 1))
        switch = QShortcut(QKeySequence("D"), self)
        switch.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        switch.activated.connect(self.matrix.switch)
        self.facts.row_clicked.connect(self._go_to)
        self.worst.row_clicked.connect(self._go_to_worst)
        self.items.valueChanged.connect(self._want)
        self.bases.changed.connect(self._want)
        self.save.clicked.connect(self._open_saving)
        document.on(("snapshot", "run", "running"), self._show_run)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("reference",), self._watch.update)
        self._show_run()

    @property
    def has_subject(self) -> bool:
        """Return whether a node is selected, or the tensor of a call is shown."""
        return self._place is not None or bool(self._entity)

    @property
    def is_current(self) -> bool:
        """Return whether the tensor shown is that of the selection."""
        return self._record is not None and self._watch.is_current

    def save_to(self, side: Saved, file: str) -> None:
        """Save the values shown, of one side, overwriting an existing file."""
        if self._record is not None:
            self._save(self._record.place, side, file)

    def _save(self, place: TensorPlace, side: Saved, file: str) -> None:
        document = self._document
        assert document.recipe is not None
        query = SaveRunValuesQuery(document.recipe, place, file, side)
        ask_for_file(self._queries, query, self._note_saved, document.report)

    def _open_saving(self) -> None:
        menu = QMenu(self)
        beside = self._record is not None and self._record.verdict is not None
        sides: dict[QAction, Saved] = {}
        for side in SIDES:
            reference = self._document.state.reference
            name = self._document.named_engine(side_name(side, reference))
            action = menu.addAction(_("Save {name}…", name=name))
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
        title, kinds = _("Save {name}", name=name), _("NumPy arrays (*.npy)")
        if path := file_to_save(self, title, name, kinds):
            # The values selected before, whatever is shown by now.
            self._save(record.place, side, path)

    def _note_saved(self, path: str) -> None:
        self._document.notify(_("Saved as {path}.", path=path), "info")

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
        self.subject_changed.emit()
        self.bases.set_segments(())
        self.items.blockSignals(True)
        self.items.setRange(0, place.item)
        self.items.setValue(place.item)
        self.items.blockSignals(False)
        self._say_nothing()
        self._want()

    def show_alone(self) -> None:
        """Run the selected node alone on torch's inputs, and show its value."""
        self.bases.set_current("own")
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
        self.subject_changed.emit()
        self._say_nothing()
        run = self._runs.get(entity)
        if run is None:
            self._is_wanted = False
            self._watch.update()
            self._show_nothing()
            return
        why_not = run.own_reason or _("It was not run alone.")
        self.bases.set_segments(
            (
                Segment("run", _("In the run"), _("On inputs that the run computed")),
                Segment(
                    "own",
                    _("Alone"),
                    _("On torch's inputs") if run.own_status in COMPARED else why_not,
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
        own = self.bases.current() == "own"
        place = self._place or TensorPlace(entity=self._entity, own=own)
        item, reference = self.items.value(), self._document.state.reference
        return ComparisonQuery(
            recipe, msgspec.structs.replace(place, item=item, reference=reference)
        )

    def _take(self, record: Comparison) -> None:
        self._record = record
        self.items.blockSignals(True)
        self.items.setRange(0, max(0, record.items - 1))
        show_within(
            self.items,
            _("tensor {number} of {count}", number="{number}", count=record.items),
        )
        self.items.blockSignals(False)
        self.items.setVisible(record.items > 1)
        self.title.set_whole(self._name())
        self.about.setText(about_text(record))
        words, role = verdict_text(record)
        self.verdict.setText(words)
        self.verdict.set_role(role)
        for table, rows in ((self.facts, fact_rows(record)), (self.worst, worst_rows(record))):
            table.set_rows(rows)
            table.setVisible(bool(rows))
            heading = 0 if table is self.facts else ROW_HEIGHT
            table.setFixedHeight(len(rows) * ROW_HEIGHT + heading)
        self._show_errors(record)
        self.save.setEnabled(record.kept)
        self.stack.setCurrentWidget(self._area)
        if record.kept and all(record.shape):
            self.values.setCurrentWidget(self.matrix)
            self.matrix.show_tensor(record)
        else:
            self.matrix.show_nothing()
            empty = _("The tensor has no elements.")
            why = capitalized(record.reason) if all(record.shape) else empty
            self.no_values.set_text(_("No values to show"), why)
            self.values.setCurrentWidget(self.no_values)

    def _show_errors(self, record: Comparison) -> None:
        beyond = beyond_role(record) or "wrong"
        self.histogram.set_counts(record.edges, record.counts, record.atol, beyond)
        self.histogram.setVisible(bool(record.counts))
        count, equal = sum(record.counts), record.equal
        name = side_name("difference", record.place.reference)
        self.errors.setText(errors_text(self._document.named_engine(name), count, equal))
        self.errors.setVisible(bool(count or equal))

    def _take_problem(self, problem: Problem) -> None:
        self._record = None
        self.save.setEnabled(False)
        if problem.code == "cancelled":
            self.empty.set_text(_("Stopped"))
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
            self.empty.set_text(LOOKING)
            self.again.hide()
            self._wait.start()
            return
        self._wait.stop()
        self._document.say("", of="values")

    def _say_busy(self) -> None:
        self._document.say(LOOKING, of="values")

    def _show_nothing(self) -> None:
        self.again.hide()
        record = self._document.run_record
        self._record = None
        self.bases.set_segments(())
        if record is None:
            title = _("Not run yet")
            hint = _("Run (F5) keeps the values of the nodes and shows them here.")
        elif record.calls and not self._runs:
            title = _("No nodes to compare")
            hint = _("In Step, the calls of the run show the tensors that they read and wrote.")
        elif not self._entity:
            title = _("No node selected")
            hint = _("Select one in the table or a graph to see its values.")
        else:
            title = _("No value of {name}", name=name_of(self._entity))
            hint = _("The run computed none.")
        self.empty.set_text(title, hint)
        self.stack.setCurrentWidget(self.empty)

    def _go_to(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        record = self._record
        place = None if record is None else places_of(record).get(key)
        if record is not None and record.kept and place is not None:
            self.matrix.go_to(place)

    def _go_to_worst(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        if self._record is not None and self._record.kept:
            self.matrix.go_to(self._record.worst[int(key)].index)
