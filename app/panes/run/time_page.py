"""The last run over time: its calls, its memory, and shares by node, function, module or call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import Qt

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.charts.plots import Group, Piece, RunChart, Span
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel, SeenPage
from lowerscope.app.kit.plain_text import Label, MarkupLabel, join_markup, markup
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table, figures
from lowerscope.app.kit.theme import family_colour
from lowerscope.app.panes.common.descriptions import names_of
from lowerscope.app.panes.common.run_figures import ratio_cell
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.formatting import (
    NONE,
    bytes_text,
    duration_text,
    shape_text,
    share_text,
)
from lowerscope.core.model.graph import FAMILY_NAMES, STRATEGY_LETTERS
from lowerscope.core.model.run_records import (
    NOT_THERE,
    CallRun,
    MemoryRecord,
    RunRecord,
    Storage,
)
from lowerscope.core.model.snapshot import FxNode, Snapshot
from lowerscope.core.model.texts import _, _n, capitalized

# --- The calls of the last run and its memory, over time, and the page of its tensors ---


def selected_with(call: CallRun) -> tuple[str, ...]:
    """Return the ids selected with a call: its nodes, or its callee."""
    return call.nodes or ((call.entity,) if call.entity else ())


def spans_of(snapshot: Snapshot, record: RunRecord) -> tuple[Span, ...]:
    """Return the calls of a run as spans, with the memory allocated during each."""
    live = record.memory.live
    whole = sum(each.milliseconds for each in record.calls) or 1.0
    return tuple(
        Span(
            key=f"call:{index}",
            length=call.milliseconds,
            title=call.function,
            tooltip="\n".join(_call_lines(call, index, whole, live)),
            family=_family_of(snapshot, call),
            amount=live[index] if index < len(live) else 0.0,
        )
        for index, call in enumerate(record.calls)
    )


def _family_of(snapshot: Snapshot, call: CallRun) -> str:
    """Return the family of a call; of a fused one, that of its heaviest operator."""
    nodes = (snapshot.nodes.get(each) for each in call.nodes)
    found = {"" if node is None else node.family for node in nodes}
    return next((family for family in FAMILY_NAMES if family in found), "")


def _call_lines(call: CallRun, index: int, whole: float, live: Sequence[int]) -> Iterator[str]:
    yield f"{index + 1}  {call.function}"
    yield f"{duration_text(call.milliseconds)}  ·  {share_text(call.milliseconds / whole)}"
    if call.nodes:
        yield names_of(call.nodes)
    if index < len(live):
        yield _("{live} of memory in use", live=bytes_text(live[index]))


def groups_of(snapshot: Snapshot, record: RunRecord) -> tuple[Group, ...]:
    """Return the consecutive calls of each part of the model; none for a model without parts."""
    paths = [
        next(
            (node.module.split(".") for each in call.nodes if (node := snapshot.nodes.get(each))),
            [],
        )
        for call in record.calls
    ]
    depth = 0
    while len({tuple(path[: depth + 1]) for path in paths if path}) == 1 and depth < 8:
        depth += 1
    found: list[Group] = []
    for number, path in enumerate(paths):
        title = path[min(depth, len(path) - 1)] if path else ""
        if found and found[-1].title == title:
            found[-1] = Group(found[-1].first, number, title)
        else:
            found.append(Group(number, number, title))
    # Where each call is a part of its own, the titles of the calls say as much.
    return tuple(each for each in found if each.title) if 1 < len(found) < len(paths) else ()


def pieces_of(memory: MemoryRecord) -> tuple[Piece, ...]:
    """Return the storages, the largest first."""
    storages = sorted(memory.storages, key=lambda each: -each.size)
    return tuple(Piece(each.begin, each.end, _storage_text(each)) for each in storages)


def _storage_text(storage: Storage) -> str:
    lines = [_("storage of {size}", size=bytes_text(storage.size))]
    for tensor in storage.tensors[:8]:
        shape = shape_text(tensor.shape)
        calls = {"written": tensor.written + 1, "last": tensor.last + 1}
        at = (
            _("calls {written} to {last}, returned", **calls)
            if tensor.returned
            else _("calls {written} to {last}", **calls)
        )
        lines.append(f"{tensor.name}: {shape} {tensor.dtype}, {at}")
    if len(storage.tensors) > 8:
        lines.append(_("and {count} more", count=len(storage.tensors) - 8))
    return "\n".join(lines)


def memory_text(memory: MemoryRecord) -> str:
    """Return a line on the memory that a run allocates, or why it is unknown."""
    if memory.reason:
        return _("memory: {reason}", reason=memory.reason)
    if not memory.storages:
        return ""
    return _n(
        "memory: at most {peak} in {count} storage, {tensors} without sharing",
        "memory: at most {peak} in {count} storages, {tensors} without sharing",
        len(memory.storages),
        peak=bytes_text(memory.peak),
        tensors=bytes_text(memory.tensors),
    )


HEAD = 28
"""Height of the line above the chart."""


class CallsStrip(SeenPage):
    """The chart of the calls with the memory during them; a click selects what a call computes.

    Args:
        with_pieces: Whether the storages are shown below the memory.
    """

    def __init__(self, document: Document, runs: Runs, *, with_pieces: bool = False) -> None:
        super().__init__()
        self._document = document
        self._runs = runs
        self._with_pieces = with_pieces
        self.summary = ElidedLabel(role="quiet")
        self.chart = RunChart(_("Calls of the run and their memory"))
        size = (24, 24)
        smaller = IconButton("minus", _("Zoom out (-)"), size=size)
        larger = IconButton("plus", _("Zoom in (+)"), size=size)
        whole = IconButton("fit", _("Show the whole run (0)"), size=size)
        smaller.clicked.connect(self._zoom_out)
        larger.clicked.connect(self._zoom_in)
        whole.clicked.connect(self.chart.show_all)
        title = Label(_("Calls"), role="title")
        self.legend = MarkupLabel(role="quiet")
        head = row_of(
            None,
            title,
            (self.summary, 1),
            self.legend,
            smaller,
            whole,
            larger,
            margins=(12, 2, 8, 2),
            spacing=8,
        )
        column_of(self, head, (self.chart, 1))
        self.setMinimumHeight(HEAD + 56)
        self.chart.chosen.connect(self._select_call)
        document.on(("snapshot", "run", "running"), self.show_if_seen)
        document.on(("selection", "snapshot"), self._show_selection)
        theme.notifier().changed.connect(self.show_if_seen)

    def show_content(self) -> None:
        snapshot, record = self._document.snapshot, self._runs.newest
        if snapshot is None or record is None or not record.calls:
            self.chart.set_run(())
            self.chart.set_empty(_("No call was timed."))
            self.legend.setText("")
            self.summary.set_whole("")
            return
        count, whole = len(record.calls), sum(each.milliseconds for each in record.calls)
        calls = _n("1 call", "{count} calls", count)
        words = [_("{calls} in {whole}", calls=calls, whole=duration_text(whole))]
        if self._with_pieces:
            words.append(memory_text(record.memory))
        self.summary.set_whole(" · ".join(filter(None, words)))
        pieces = pieces_of(record.memory) if self._with_pieces else ()
        peak = record.memory.peak
        most = _("memory in use, at most {peak}", peak=bytes_text(peak)) if peak else ""
        groups = groups_of(snapshot, record)
        spans = spans_of(snapshot, record)
        self.chart.set_run(spans, pieces, most, groups)
        colours, families = theme.current(), {each.family for each in spans}
        entry = '<span style="color:{0}">■</span> {1}'
        self.legend.setText(
            join_markup(
                " &nbsp; ",
                [
                    markup(entry, family_colour(colours, family), title)
                    for family, title in FAMILY_NAMES.items()
                    if family in families
                ],
            )
        )
        self._show_selection()

    def _show_selection(self) -> None:
        record = self._runs.newest
        if record is None or not self.isVisible():
            return
        chosen, marked = set(self._document.selection.chosen), self.chart.marked()
        calls = [
            f"call:{index}"
            for index, call in enumerate(record.calls)
            if not chosen.isdisjoint(selected_with(call)) or call.entity in chosen
        ]
        # A function is called several times: the selected call stays marked.
        self.chart.mark([marked] if marked in calls else calls)

    def _select_call(self, key: str) -> None:
        record = self._runs.newest
        if record is not None:
            self._document.select(selected_with(record.calls[int(key.partition(":")[2])]))

    def _zoom_in(self) -> None:
        self.chart.zoom_by(self.chart.ZOOM_STEP)

    def _zoom_out(self) -> None:
        self.chart.zoom_by(1 / self.chart.ZOOM_STEP)


# --- The page Memory: the storages of the last run, and the tensors in them ---


def memory_rows(memory: MemoryRecord, record: RunRecord) -> Iterator[Row]:
    """Yield a row for each tensor that a run allocates; those of the largest storage first."""
    storages = sorted(memory.storages, key=lambda each: -each.size)
    for number, storage in enumerate(storages, start=1):
        for tensor in storage.tensors:
            maker = record.calls[tensor.written].function
            written, last = tensor.written + 1, tensor.last + 1
            kept = _("{written} to {last}", written=written, last=last)
            kept = str(written) if written == last else kept
            yield Row(
                f"{number}:{tensor.name}:{tensor.written}",
                (
                    Cell(tensor.name, bold=True),
                    Cell(f"{shape_text(tensor.shape)} {tensor.dtype}", "quiet"),
                    Cell(bytes_text(tensor.size), value=tensor.size),
                    Cell(str(number), value=number),
                    Cell(bytes_text(storage.size), value=storage.size),
                    Cell(kept, value=tensor.written),
                    Cell(maker, "quiet", tooltip=maker),
                    Cell(_("returned") if tensor.returned else "", "quiet"),
                ),
            )


class MemoryPage(SeenPage):
    """The memory over time with its storages, above a table of the tensors."""

    def __init__(self, document: Document, runs: Runs) -> None:
        super().__init__()
        self._runs = runs
        self.calls = CallsStrip(document, runs, with_pieces=True)
        self.table = Table(
            _("Tensors allocated by the run"),
            (
                Column(_("tensor"), width=110),
                Column(_("shape"), width=140),
                figures(_("size"), 80),
                Column(_("storage"), numeric=True, width=70, tooltip=_("Largest first")),
                figures(_("storage size"), 80),
                Column(
                    _("calls"),
                    numeric=True,
                    width=90,
                    tooltip=_("The call that writes it, and the last one that reads it"),
                ),
                Column(_("written by"), width=120, stretch=True),
                Column("", width=72),
            ),
        )
        self.table.set_sortable(True)
        down = Qt.Orientation.Vertical
        split = Split(down, self.calls, self.table, sizes=(200, 300), shares=(0, 1))
        column_of(self, (split, 1))
        document.on(("snapshot", "run", "running"), self.show_if_seen)

    def show_content(self) -> None:
        record = self._runs.newest
        if record is None:
            return
        if record.ran_on:
            self.table.set_empty(_("It ran on {ran_on}", ran_on=record.ran_on), NOT_THERE)
        else:
            self.table.set_empty(_("No memory is allocated"), capitalized(record.memory.reason))
        self.table.set_rows(tuple(memory_rows(record.memory, record)))


# --- Shares of a run's time: rows by node, function, module or call ---


@dataclass
class Share:
    """The data of a row, not yet formatted."""

    key: str  # Unique key and displayed name.
    title: str
    entities: tuple[str, ...]  # Ids selected with it.
    calls: dict[int, None] = field(default_factory=dict)  # Indices of its calls.
    # Ids of the FX nodes to which torch's time belongs.
    nodes: dict[str, None] = field(default_factory=dict)
    note: str = ""  # Text after the name.


def shares_of(snapshot: Snapshot, record: RunRecord, by: str) -> tuple[Share, ...]:
    """Return the shares of a run's calls."""
    makers = {"node": _by_node, "function": _by_function, "module": _by_module, "call": _by_call}
    return tuple(makers[by](snapshot, record))


def _by_node(snapshot: Snapshot, record: RunRecord) -> Iterator[Share]:
    for node in snapshot.fx:
        calls = _calls_of(record, (node.id,))
        run = next((each for each in record.nodes if each.id == node.id), None)
        if calls or (run is not None and run.torch_ms is not None):
            others = () if run is None else run.shared_with
            note = _("fused with {others}", others=names_of(others)) if others else ""
            name = node.title
            yield Share(node.id, name, (node.id,), calls, {node.id: None}, note)


def _by_function(snapshot: Snapshot, record: RunRecord) -> Iterator[Share]:
    found: dict[str, Share] = {}
    for index, call in enumerate(record.calls):
        entities = (call.entity,) if call.entity else call.nodes
        share = found.setdefault(call.function, Share(call.function, call.function, entities))
        share.calls[index] = None
        share.nodes |= dict.fromkeys(call.nodes)
        share.note = names_of(tuple(share.nodes))
    yield from found.values()


def _by_module(snapshot: Snapshot, record: RunRecord) -> Iterator[Share]:
    """Yield a share for each module of the nodes, and for the modules that contain these."""
    inside: dict[str, list[FxNode]] = {}
    place: dict[str, int] = {"": 0}
    for number, node in enumerate(snapshot.fx):
        for path in _paths(node.module):
            inside.setdefault(path, []).append(node)
            place.setdefault(path, number)
    # In the order of their first calls, each below the module that contains it.
    for path in sorted(inside, key=lambda each: [place[above] for above in _paths(each)]):
        ids = tuple(node.id for node in inside[path])
        calls = _calls_of(record, ids)
        if not calls:
            continue
        depth = len(_paths(path)) - 1
        title = f"{'    ' * depth}{path.rpartition('.')[2]}" if path else _("the whole model")
        note = _n("1 node", "{count} nodes", len(ids))
        yield Share(f"module:{path}", title, ids, calls, dict.fromkeys(ids), note)


def _paths(module: str) -> list[str]:
    """Return the path of a module and of all that contain it, the whole model first."""
    parts = module.split(".") if module else []
    return [".".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _by_call(snapshot: Snapshot, record: RunRecord) -> Iterator[Share]:
    for index, call in enumerate(record.calls):
        note = names_of(call.nodes)
        title = f"{index + 1}  {call.function}"
        nodes = dict.fromkeys(call.nodes)
        yield Share(f"call:{index}", title, selected_with(call), {index: None}, nodes, note)


def _calls_of(record: RunRecord, nodes: Iterable[str]) -> dict[int, None]:
    wanted = set(nodes)
    return {
        index: None for index, call in enumerate(record.calls) if not wanted.isdisjoint(call.nodes)
    }


def time_rows(snapshot: Snapshot, record: RunRecord, by: str) -> tuple[Row, ...]:
    """Return the rows of the table; see `TimePage`."""
    whole = sum(each.milliseconds for each in record.calls)
    torch = {each.id: each.torch_ms for each in record.nodes if each.torch_ms is not None}
    return tuple(
        _row(snapshot, record, each, whole, torch) for each in shares_of(snapshot, record, by)
    )


def _row(
    snapshot: Snapshot, record: RunRecord, share: Share, whole: float, torch: Mapping[str, float]
) -> Row:
    taken = sum(record.calls[index].milliseconds for index in share.calls)
    of_torch = [torch[each] for each in share.nodes if each in torch]
    there = sum(of_torch) if of_torch else None
    # Calls may compute nodes of other rows as well.
    computed = {each for index in share.calls for each in record.calls[index].nodes}
    whole_there = sum(torch.get(each, 0.0) for each in computed) if of_torch else None
    part = taken / whole if whole else 0.0
    strategy = strategy_of(snapshot, share.nodes)
    # A node without a call of its own is computed at build time.
    known = bool(share.calls)
    return Row(
        share.key,
        (
            Cell(share.title, bold=True, tooltip=share.title.strip()),
            Cell(STRATEGY_LETTERS.get(strategy, ""), role=strategy),
            Cell(str(len(share.calls)), value=len(share.calls)),
            Cell(duration_text(taken) if known else NONE, value=taken),
            Cell(share_text(part) if known else NONE, value=part),
            Cell(duration_text(there), value=there or 0.0),
            ratio_cell(taken if known else None, whole_there, record.times),
            Cell(share.note, role="quiet", tooltip=share.note),
        ),
    )


def strategy_of(snapshot: Snapshot, nodes: Iterable[str]) -> str:
    """Return the strategy of some nodes; empty if they have none or several."""
    found = {
        node.strategy
        for each in nodes
        if (node := snapshot.nodes.get(each)) is not None and node.strategy
    }
    return next(iter(found)) if len(found) == 1 else ""


class TimePage(SeenPage):
    """A table of the times by node, by function, by module or by call."""

    def __init__(self, document: Document, runs: Runs) -> None:
        super().__init__()
        self._document = document
        self._runs = runs
        self._entities: dict[str, tuple[str, ...]] = {}
        self.by = SegmentedSwitch(
            _("Times by"),
            (
                Segment("node", _("Nodes"), _("The time of each FX node's calls")),
                Segment("function", _("Functions"), _("All calls of each function")),
                Segment("module", _("Modules"), _("Each part of the model")),
                Segment("call", _("Calls"), _("Each call, in order")),
            ),
        )
        self.summary = ElidedLabel(role="quiet")
        self.table = Table(
            _("Times"),
            (
                Column(_("name"), width=160),
                Column(_("strategy"), width=72, tooltip=_("The strategy")),
                figures(_("calls"), 56),
                figures(
                    _("TVM"),
                    84,
                    _("Median of a few runs measured call by call; a fused call counts in full"),
                ),
                figures(_("share"), 72),
                figures(_("torch"), 92, _("The nodes one by one in torch, median")),
                figures(_("vs. torch"), 96, _("TVM's time beside torch's for the same nodes")),
                Column(_("fusion"), stretch=True, width=110),
            ),
        )
        self.table.word_titles(document.named_engine)
        self.table.set_sortable(True)
        column_of(self, strip_of(self.by, (self.summary, 1)), (self.table, 1))
        self.by.changed.connect(self._show_rows)
        self.table.row_clicked.connect(self._select_row)
        document.on(("snapshot", "run", "running"), self.show_if_seen)
        document.on(("selection", "snapshot"), self._show_selection)

    def show_content(self) -> None:
        record = self._runs.newest
        self.by.setVisible(record is not None and bool(record.calls))
        self.summary.set_whole("")
        if record is not None and record.ran_on:
            there = _("It ran on {ran_on}", ran_on=record.ran_on)
            self.table.set_empty(there, NOT_THERE)
        elif record is not None:
            self.summary.set_whole(self._summary(record))
            self.table.set_empty(
                _("No call was timed"),
                _("The run has no calls, or they could not be distinguished."),
            )
        self._show_rows()

    def _summary(self, record: RunRecord) -> str:
        whole = sum(each.milliseconds for each in record.calls)
        count = len(record.calls)
        calls = _n("1 call", "{count} calls", count)
        return _(
            "{calls}: {whole} measured one by one, {tvm_ms} as a whole",
            calls=calls,
            whole=duration_text(whole),
            tvm_ms=duration_text(record.tvm_ms),
        )

    def _show_rows(self) -> None:
        snapshot, record = self._document.snapshot, self._runs.newest
        self._entities = {}
        if snapshot is None or record is None or not record.calls:
            self.table.set_rows(())
            return
        by = self.by.current()
        self._entities = {each.key: each.entities for each in shares_of(snapshot, record, by)}
        self.table.set_rows(time_rows(snapshot, record, by))
        self._show_selection()

    def _show_selection(self) -> None:
        if not self.isVisible():
            return
        chosen = set(self._document.selection.chosen)
        rows = [key for key, each in self._entities.items() if each and chosen >= set(each)]
        self.table.set_selection(rows)
        if rows:
            self.table.reveal(rows[0])

    def _select_row(self, key: str, modifiers: Qt.KeyboardModifier) -> None:
        entities = self._entities.get(key, ())
        if entities:
            self._document.select(entities, extend=bool(modifiers & EXTENDING))
