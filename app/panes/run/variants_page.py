"""The page Variants: runs of one source side by side, in a table and as bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.app.kit.commands import choose_from
from lowerscope.app.kit.layouts import STRETCH, column_of, scrolled, stack_of
from lowerscope.app.kit.pane import ElidedLabel, SeenPage
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table, figures
from lowerscope.app.panes.common.run_figures import how_of
from lowerscope.app.panes.run.run_variants import KeptRun
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.comparison_records import (
    FunctionTimes,
    Variant,
    beside_reference,
    can_be_told,
    fastest,
    function_times,
    other_sides,
    our_times,
    ratio_of,
)
from lowerscope.core.model.formatting import (
    UNRELIABLE,
    beside_text,
    duration_text,
    durations_text,
    error_text,
    not_finite_text,
    unreliable_text,
    verdict_words,
)
from lowerscope.core.model.graph import STATUS_MARKS
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    FunctionDifference,
    Status,
)
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import DifferenceQuery
from lowerscope.core.model.run_records import RunRecord, is_reliable
from lowerscope.core.model.texts import _

# The rows and bars of the page Variants: of the variants, and of the functions of two.

ROLES = {"same": "quiet", "changed": "", "added": "added", "removed": "removed"}


def variant_columns() -> tuple[Column, ...]:
    """Return the columns of the table of variants."""
    return (
        Column("", width=46, tooltip=_("● shown, ★ the fastest")),
        Column(_("variant"), width=136, stretch=True, editable=True),
        Column(_("TVM"), numeric=True, width=80),
        Column(_("verdict"), width=104),
        Column(_("torch"), numeric=True, width=80),
        Column(_("vs. torch"), numeric=True, width=104, tooltip=_("TVM's time beside torch's")),
        Column(_("spread"), numeric=True, width=110, tooltip=_("Quartiles of TVM's times")),
        Column(_("error"), numeric=True, width=66, tooltip=_("The largest absolute error")),
        Column(_("functions"), numeric=True, width=76),
        Column(_("build"), numeric=True, width=80),
    )


def variant_row(run: KeptRun, variant: Variant, *, shown: bool, best: bool) -> Row:
    record = run.record
    facts = [
        *([_("● shown now")] if shown else []),
        *([_("★ the fastest that does not differ, beyond measurement noise")] if best else []),
        *([_("The files have changed since it was run")] if run.outdated else []),
        _("Return or a double click restores it, F2 renames it, Del deletes it"),
    ]
    marks = ("●" if shown else "") + ("★" if best else "")
    spoken = [*([_("shown")] if shown else []), *([_("fastest")] if best else [])]
    name = Cell(
        variant.name,
        "quiet" if run.outdated else "",
        bold=shown,
        tooltip="\n".join((variant.name, *facts)),
    )
    first = Cell(marks, "right" if best else "accent", spoken=_(", ").join(spoken))
    failed = None if run.problem is None else _failed(run.problem, record)
    if record is None:
        assert failed is not None
        none = Cell("–", "quiet")
        return Row(run.id, (first, name, none, failed, *(none for _column in range(6))))
    return Row(
        run.id,
        (
            first,
            name,
            Cell(
                duration_text(record.tvm_ms),
                "right" if best else "",
                bold=best,
                value=record.tvm_ms,
            ),
            failed or _verdict(record, run.outdated),
            _duration(record.torch_ms),
            _ratio(record),
            _spread(record),
            Cell(error_text(record.max_abs_error), value=record.max_abs_error),
            Cell(f"{record.functions:,}", value=float(record.functions)),
            Cell(duration_text(record.build_ms), value=record.build_ms),
        ),
    )


def variant_bars(variants: Sequence[Variant]) -> tuple[Bar, ...]:
    """Return a bar for each variant that ran, and one for torch."""
    best = fastest(variants)
    ran = [(each.name, each.record, each in best) for each in variants if each.record is not None]
    bars = []
    for name, record, is_best in ran:
        text = duration_text(record.tvm_ms)
        times = our_times(record)
        spread = None if times is None else (times.low, times.high)
        bars.append(Bar(name, (record.tvm_ms,), text, "", spread, is_best))
    for each in other_sides(variants):
        text = duration_text(each.milliseconds)
        bars.append(Bar(each.side, (each.milliseconds,), text, "other", (each.low, each.high)))
    return tuple(bars)


def function_columns() -> tuple[Column, ...]:
    """Return the columns of the functions of two variants, A and B."""
    return (
        Column(_("function"), width=120),
        Column("A", numeric=True, width=73, tooltip=_("The time of its calls in the first")),
        Column("B", numeric=True, width=73, tooltip=_("The time of its calls in the second")),
        figures(_("difference"), 78),
        Column(_("script"), width=76, tooltip=_("Change of its script from A to B")),
        Column(_("calls"), numeric=True, width=56),
        Column(_("nodes"), stretch=True),
    )


def function_row(times: FunctionTimes, texts: Mapping[str, FunctionDifference]) -> Row:
    """Return the row of a function that one of two variants calls."""
    one_side = ""
    if not times.old_calls:
        one_side = _("only in B")
    elif not times.new_calls:
        one_side = _("only in A")
    counts = str(times.old_calls)
    if times.old_calls != times.new_calls:
        counts = f"{times.old_calls} → {times.new_calls}"
    apart = times.difference
    sign = "+" if apart > 0 else "−" if apart < 0 else ""
    nodes = _(", ").join(each.removeprefix("fx:") for each in times.nodes)
    return Row(
        times.name,
        (
            Cell(times.name, tooltip=times.name),
            _duration(times.old_ms if times.old_calls else None),
            _duration(times.new_ms if times.new_calls else None),
            Cell(f"{sign}{duration_text(abs(apart))}", value=apart),
            _text(texts.get(times.name), one_side),
            Cell(counts, value=float(times.new_calls)),
            Cell(nodes, "quiet", tooltip=nodes),
        ),
    )


def _failed(problem: Problem, before: RunRecord | None) -> Cell:
    facts = [problem.line()]
    if before is not None:
        facts.append(_("The figures are from the previous run"))
    return Cell(_("✕ failed: {what}", what=problem.what), "wrong", tooltip="\n".join(facts))


def _verdict(record: RunRecord, outdated: bool) -> Cell:
    words, role = verdict_words(record.verdict)
    text = " · ".join(filter(None, (words, not_finite_text(record.not_finite_count))))
    first = record.first_difference.removeprefix("fx:")
    more = [record.reason] if record.reason else []
    if first:
        more.append(_("The first node that differs is {first}", first=first))
    if outdated:
        text = _("{text}, earlier version", text=text)
    return Cell(text, role, tooltip="\n".join(more))


def _spread(record: RunRecord) -> Cell:
    times = our_times(record)
    if times is None:
        return Cell("–", "quiet")
    found = "" if record.times is None else how_of(record.times)
    words = durations_text(times.low, times.high)
    return Cell(words, "quiet", tooltip=found, value=times.high - times.low)


def _ratio(record: RunRecord) -> Cell:
    ratio, told = ratio_of(record)
    if ratio is None:
        return Cell("–", "quiet")
    text = beside_reference(record)
    if told:
        return Cell(text, value=ratio)
    why = unreliable_text(record.times) or _("Within measurement noise")
    return Cell(text, "quiet", tooltip=why, value=ratio)


def _duration(milliseconds: float | None) -> Cell:
    role = "quiet" if milliseconds is None else ""
    return Cell(duration_text(milliseconds), role, value=milliseconds)


def _text(difference: FunctionDifference | None, one_side: str) -> Cell:
    if one_side:
        return Cell(one_side, "quiet")
    if difference is None:
        return Cell("")
    changed = difference.changed + len(difference.constants)
    counts: tuple[tuple[Status, int, str], ...] = (
        ("added", difference.added, _("{count} added", count=difference.added)),
        ("removed", difference.removed, _("{count} removed", count=difference.removed)),
        ("changed", changed, _("{count} changed", count=changed)),
    )
    if difference.status == "same":
        return Cell(_("= same"), "quiet")
    parts = [f"{STATUS_MARKS[status]}{count}" for status, count, _words in counts if count]
    spoken = _(", ").join(words for _status, count, words in counts if count)
    return Cell(" ".join(parts), spoken=spoken, tooltip=_("lines: {spoken}", spoken=spoken))


# --- Two variants side by side: their functions, the time of each, and the changes ---


class VariantFunctions(QWidget):
    """The functions of two variants that have run.

    Args:
        set_busy: Called with whether a difference is being fetched.
    """

    text_wanted = Signal(str)  # Show the changes of a function's script.

    def __init__(self, queries: Queries, set_busy: Callable[[bool], None]) -> None:
        super().__init__()
        self.sides: tuple[Variant, Variant] | None = None  # The compared variants, A and B.
        self._texts: dict[str, FunctionDifference] = {}
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
        self.table = Table(_("Functions of both variants"), function_columns())
        self.table.set_sortable(True)
        self.table.set_empty(_("Neither of them calls a function"))
        self.table.row_activated.connect(self.text_wanted)
        column_of(self, (self.table, 1))

    def words(self) -> str:
        """Return the names of the variants, and which is faster; empty without any."""
        if self.sides is None:
            return ""
        old, new = self.sides
        before, after = old.record, new.record
        assert before is not None
        assert after is not None
        said = _("the times differ within measurement noise")
        if not (is_reliable(before.times) and is_reliable(after.times)):
            said = UNRELIABLE
        if can_be_told(old, new):
            compared = beside_text(after.tvm_ms, before.tvm_ms, "A", told=True)
            said = _("{side} is {compared}", side="B", compared=compared)
        # The result comes first, since names are long.
        return _("{said}: A {old}, B {new}", said=said, old=old.name, new=new.name)

    def set_sides(self, sides: tuple[Variant, Variant] | None) -> None:
        """Set the variants to compare, both of which have run; or none."""
        if sides == self.sides:
            return
        recipes = None if self.sides is None else [each.recipe for each in self.sides]
        self.sides = sides
        if sides is None:
            self._watch.update()
            return
        if [each.recipe for each in sides] != recipes:
            self._texts = {}
            self._watch.refresh()
        self._show()

    def _show(self) -> None:
        assert self.sides is not None
        before, after = (each.record for each in self.sides)
        assert before is not None
        assert after is not None
        rows = [function_row(each, self._texts) for each in function_times(before, after)]
        self.table.set_rows(rows)

    def _query(self) -> DifferenceQuery | None:
        if self.sides is None:
            return None
        return DifferenceQuery(*(ComparedModule(recipe=each.recipe) for each in self.sides))

    def _take(self, record: DifferenceRecord) -> None:
        self._texts = {each.name: each for each in record.functions}
        if self.sides is not None:
            self._show()

    def _take_problem(self, _problem: Problem) -> None:
        """Show the times without it; the difference itself shows the problem."""


_SHARES = ((872, 240), (560, 552))
"""Shares of the width: the variants beside the bars, and beside the functions of two."""

NARROW = 520
"""Width in pixels below which the parts are stacked."""


class VariantsPage(SeenPage):
    """The table of the cached runs; beside it their times, or the functions of two.

    Args:
        set_busy: Called with whether a request is pending.
    """

    # Show the difference of two recipes' scripts, in a function or in all.
    text_wanted = Signal(object, object, str)

    def __init__(
        self, document: Document, queries: Queries, runs: Runs, set_busy: Callable[[bool], None]
    ) -> None:
        super().__init__()
        self._document = document
        self._variants = runs.variants
        self.run_all = push_button(
            _("Run variants"),
            _("Run high-level and TE, unfused and fused, and the current recipe (Ctrl+F5)"),
        )
        self.go_back = push_button(_("Restore"), _("Restore its recipe; one step to undo (Return)"))
        self.rename = push_button(_("Rename"), _("Give it a name (F2)"))
        self.delete = push_button(_("Delete"), _("Delete it (Del)"))
        self.difference = push_button(
            _("Difference"), _("Difference of both scripts, line by line")
        )
        self.state = ElidedLabel(role="quiet")
        self.table = Table(_("Variants"), variant_columns())
        self.table.word_titles(document.named_engine)
        self.table.set_sortable(True)
        self.table.set_empty(
            _("No run yet"),
            _("Each run (F5) of this source adds a row; Run variants adds four."),
        )
        self.bars = Bars(_("Times of the variants"))
        self.functions = VariantFunctions(queries, set_busy)
        self._lay_out()
        for key, act in ((Qt.Key.Key_F2, self._rename), (Qt.Key.Key_Delete, self._delete)):
            shortcut = QShortcut(QKeySequence(key), self.table)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(act)
        self.run_all.clicked.connect(self._variants.run_all)
        self.go_back.clicked.connect(self._go_back)
        self.rename.clicked.connect(self._rename)
        self.delete.clicked.connect(self._delete)
        self.difference.clicked.connect(self._show_difference)
        self.table.row_activated.connect(self._variants.go_back)
        self.table.row_written.connect(self._variants.rename)
        self.table.menu_wanted.connect(self._open_menu)
        self.table.selectionModel().selectionChanged.connect(self._follow_selection)
        self.functions.text_wanted.connect(self._want_text)
        self._variants.changed.connect(self.show_if_seen)
        document.on(("run", "running"), self.show_if_seen)
        document.on(("recipe", "pending"), self.show_if_seen)
        self.show_content()

    def _lay_out(self) -> None:
        strip = strip_of(
            self.run_all, self.go_back, self.rename, self.delete, (self.state, 1), self.difference
        )
        chart = QWidget()
        column_of(chart, self.bars, STRETCH, margins=(0, 4, 0, 4), spacing=None)
        self._beside = stack_of(scrolled(chart), self.functions)
        across, shares = Qt.Orientation.Horizontal, _SHARES[0]
        self._split = Split(across, self.table, self._beside, sizes=shares, shares=shares)
        column_of(self, strip, (self._split, 1))

    def selected(self) -> list[str]:
        """Ids of the selected runs, if the page is visible."""
        return self.table.selected_keys() if self.isVisible() else []

    # Slots

    def _go_back(self) -> None:
        chosen = self.table.selected_keys()
        if len(chosen) == 1:
            self._variants.go_back(chosen[0])

    def _rename(self) -> None:
        chosen = self.table.selected_keys()
        if len(chosen) == 1:
            self.table.setFocus()
            self.table.write_row(chosen[0])

    def _delete(self) -> None:
        self._variants.remove(self.table.selected_keys())

    def _open_menu(self, _run: str, place: QPoint) -> None:
        menu = QMenu(self)
        actions: dict[QAction, Callable[[], object]] = {}
        if len(self.table.selected_keys()) == 1:
            actions[menu.addAction(_("Re&store\tReturn"))] = self._go_back
            actions[menu.addAction(_("&Rename\tF2"))] = self._rename
        actions[menu.addAction(_("&Delete\tDel"))] = self._delete
        actions[menu.addAction(_("&Copy the rows\tCtrl+C"))] = self.table.copy
        choose_from(menu, place, actions)

    def _show_difference(self) -> None:
        self._want_text("")

    def _want_text(self, function: str) -> None:
        if self.functions.sides is not None:
            old, new = (each.recipe for each in self.functions.sides)
            self.text_wanted.emit(old, new, function)

    def _follow_selection(self) -> None:
        """Show the functions of two selected variants; otherwise the times."""
        chosen = self.table.selected_keys()
        for button in (self.go_back, self.rename):
            button.setEnabled(len(chosen) == 1)
        self.delete.setEnabled(bool(chosen))
        found = self._by_id()
        # In the order of their first run, however the table is sorted.
        two = [each for key, each in found.items() if key in chosen and each.record is not None]
        sides = (two[0], two[1]) if len(chosen) == len(two) == 2 else None
        self.functions.set_sides(sides)
        self.difference.setVisible(sides is not None)
        self.state.set_whole(self._state())
        page = 0 if sides is None else 1
        if page != self._beside.currentIndex():
            self._beside.setCurrentIndex(page)
            self._split.setSizes(list(_SHARES[page]))

    # Content

    def _by_id(self) -> dict[str, Variant]:
        kept = self._variants.kept
        return {each.id: one for each, one in zip(kept, self._variants.all, strict=True)}

    def show_content(self) -> None:
        variants = self._variants
        found = self._by_id()
        best, shown = fastest(tuple(found.values())), variants.shown
        self.table.set_rows(
            [
                variant_row(each, found[each.id], shown=each.id == shown, best=one in best)
                for each, one in zip(variants.kept, found.values(), strict=True)
            ]
        )
        self.bars.set_bars(variant_bars(tuple(found.values())))
        # The table shows a hint while there is nothing beside it.
        self._beside.setVisible(bool(found))
        open_, running = self._document.recipe is not None, self._document.running
        self.run_all.setEnabled(open_ and not running)
        self._follow_selection()

    def _state(self) -> str:
        if self._variants.running:
            return _("Running; Cancel, in the status bar, stops it")
        if len(self._variants.kept) > 1:
            return self.functions.words() or _("Select two to compare their functions")
        return ""

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        wanted = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if self._split.orientation() != wanted:
            self._split.setOrientation(wanted)
            self._split.setSizes(list(_SHARES[self._beside.currentIndex()]))
            # They are in the menu of a row, with their keys.
            for button in (self.go_back, self.rename, self.delete):
                button.setVisible(not narrow)
