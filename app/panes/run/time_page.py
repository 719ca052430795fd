"""The time of the last run: its calls and its memory as a chart, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.charts.plots import Piece, RunChart, Span
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import names_of
from lowerscope.core.model.formatting import (
    NONE,
    UNRELIABLE,
    bytes_text,
    duration_text,
    ratio_text,
    shape_text,
    share_text,
)
from lowerscope.core.model.graph import STRATEGY_LETTERS
from lowerscope.core.model.run_records import (
    NOT_THERE,
    CallRun,
    MemoryRecord,
    RunRecord,
    Storage,
    is_reliable,
)
from lowerscope.core.model.snapshot import FxNode, Snapshot

# --- Shares of a run's time: rows by node, function, module or call ---

_MIXED = ""


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
            note = _tr("fused with {0}").format(names_of(others)) if others else ""
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
        title = f"{'    ' * depth}{path.rpartition('.')[2]}" if path else _tr("the whole model")
        note = _tr("{0} nodes").format(len(ids)) if len(ids) != 1 else _tr("1 node")
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


def selected_with(call: CallRun) -> tuple[str, ...]:
    """Return the ids selected with a call: its nodes, or its callee."""
    return call.nodes or ((call.entity,) if call.entity else ())


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
    part = taken / whole if whole else 0.0
    strategy = strategy_of(snapshot, share.nodes)
    # A node without a call of its own is computed at build time.
    known = bool(share.calls)
    sure = there is None or record.times is None or is_reliable(record.times)
    return Row(
        share.key,
        (
            Cell(share.title, bold=True, tooltip=share.title.strip()),
            Cell(STRATEGY_LETTERS.get(strategy, ""), role=strategy),
            Cell(str(len(share.calls)), value=len(share.calls)),
            Cell(duration_text(taken) if known else NONE, value=taken),
            Cell(share_text(part) if known else NONE, value=part),
            Cell(duration_text(there), value=there or 0.0),
            Cell(
                ratio_text(taken / there, about=not sure) if known and there else NONE,
                role="" if sure else "unsure",
                tooltip="" if sure else UNRELIABLE,
                value=_ratio(taken, there),
            ),
            Cell(share.note, role="quiet", tooltip=share.note),
        ),
    )


def _ratio(taken: float, there: float | None) -> float:
    return taken / there if there else 0.0


def strategy_of(snapshot: Snapshot, nodes: Iterable[str]) -> str:
    """Return the strategy of some nodes; empty if they have none or several."""
    found = {
        node.strategy
        for each in nodes
        if (node := snapshot.nodes.get(each)) is not None and node.strategy
    }
    return next(iter(found)) if len(found) == 1 else _MIXED


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
            role=strategy_of(snapshot, call.nodes),
            amount=live[index] if index < len(live) else 0.0,
        )
        for index, call in enumerate(record.calls)
    )


def _call_lines(call: CallRun, index: int, whole: float, live: Sequence[int]) -> Iterator[str]:
    yield f"{index + 1}  {call.function}"
    yield f"{duration_text(call.milliseconds)}  ·  {share_text(call.milliseconds / whole)}"
    if call.nodes:
        yield names_of(call.nodes)
    if index < len(live):
        yield _tr("{0} of memory are taken").format(bytes_text(live[index]))


def pieces_of(memory: MemoryRecord) -> tuple[Piece, ...]:
    """Return the storages, the largest first."""
    storages = sorted(memory.storages, key=lambda each: -each.size)
    return tuple(Piece(each.begin, each.end, _storage_text(each)) for each in storages)


def _storage_text(storage: Storage) -> str:
    lines = [_tr("storage of {0}").format(bytes_text(storage.size))]
    for tensor in storage.tensors[:8]:
        shape = shape_text(tensor.shape)
        at = _tr("calls {0} to {1}").format(tensor.written + 1, tensor.last + 1)
        returned = _tr(", returned") if tensor.returned else ""
        lines.append(f"{tensor.name}: {shape} {tensor.dtype}, {at}{returned}")
    if len(storage.tensors) > 8:
        lines.append(_tr("and {0} more").format(len(storage.tensors) - 8))
    return "\n".join(lines)


def memory_text(memory: MemoryRecord) -> str:
    """Return a line on the memory that a run allocates, or why it is unknown."""
    if memory.reason:
        return _tr("memory: {0}").format(memory.reason)
    if not memory.storages:
        return ""
    return _tr("memory: at most {0} in {1} storages, {2} if none were shared").format(
        bytes_text(memory.peak), len(memory.storages), bytes_text(memory.tensors)
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("TimeRows", text)


CHART_AND_TABLE = [88, 140]
"""Initial heights; the table takes additional space."""


class TimePage(QWidget):
    """The chart of the run above the times by node, by function, by module or by call."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._entities: dict[str, tuple[str, ...]] = {}
        self._stale = True
        self.by = SegmentedSwitch(
            self.tr("Times by"),
            (
                Segment("node", self.tr("Nodes"), self.tr("The time of each FX node's calls")),
                Segment("function", self.tr("Functions"), self.tr("All calls of each function")),
                Segment("module", self.tr("Modules"), self.tr("Each part of the model")),
                Segment("call", self.tr("Calls"), self.tr("Each call, in order")),
            ),
        )
        self.summary = ElidedLabel(role="quiet")
        self.chart = RunChart(self.tr("Calls of the run and the memory that they take"))
        self.table = Table(
            self.tr("Times"),
            (
                Column(self.tr("name"), width=160),
                Column(self.tr("as"), width=50, tooltip=self.tr("The strategy")),
                Column(self.tr("calls"), numeric=True, width=56, falling=True),
                Column(
                    self.tr("TVM"),
                    numeric=True,
                    width=84,
                    falling=True,
                    tooltip=self.tr("Median over a few watched runs; of a fused call, all of it"),
                ),
                Column(self.tr("share"), numeric=True, width=72, falling=True),
                Column(
                    self.tr("torch"),
                    numeric=True,
                    width=84,
                    falling=True,
                    tooltip=self.tr("The nodes one by one in torch, median"),
                ),
                Column(
                    self.tr("ratio"),
                    numeric=True,
                    width=72,
                    falling=True,
                    tooltip=self.tr("TVM's time by torch's: above 1, TVM takes longer"),
                ),
                Column(self.tr("with"), stretch=True, width=110),
            ),
        )
        self.table.set_sortable(True)
        strip = row_of(None, self.by, (self.summary, 1), margins=(10, 4, 10, 4), spacing=12)
        down = Qt.Orientation.Vertical
        self.parts = Split(down, self.chart, self.table, sizes=CHART_AND_TABLE, shares=(0, 1))
        column_of(self, strip, (self.parts, 1))
        self.by.changed.connect(self._show_rows)
        self.table.row_clicked.connect(self._select_row)
        self.chart.chosen.connect(self._select_call)
        document.on(("snapshot",), self._show_run)
        document.on(("run", "running"), self._show_run)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_run()

    def _show_run(self) -> None:
        # Thousands of rows are not built for a hidden page.
        self._stale = not self.isVisible()
        if self._stale:
            return
        snapshot, record = self._document.snapshot, self._document.run_record
        has_calls = snapshot is not None and record is not None and bool(record.calls)
        self.chart.setVisible(has_calls)
        self.by.setVisible(has_calls)
        if snapshot is not None and record is not None and has_calls:
            memory = record.memory
            self.chart.set_run(spans_of(snapshot, record), pieces_of(memory), memory_text(memory))
            self.summary.set_whole(self._summary(record))
        else:
            self.summary.set_whole("")
        self._say_empty()
        self._show_rows()

    def _summary(self, record: RunRecord) -> str:
        whole = sum(each.milliseconds for each in record.calls)
        count = len(record.calls)
        calls = self.tr("1 call") if count == 1 else self.tr("{0} calls").format(count)
        return self.tr("{0} in {1} watched, {2} unwatched").format(
            calls, duration_text(whole), duration_text(record.tvm_ms)
        )

    def _say_empty(self) -> None:
        record = self._document.run_record
        if self._document.running:
            said = self.tr("Running…"), self.tr("Cancel, in the status bar, stops it.")
        elif record is None:
            said = (
                self.tr("Not run yet"),
                self.tr("Run (F5) times each call of the virtual machine."),
            )
        elif record.ran_on:
            there = self.tr("It ran on {0}").format(record.ran_on)
            said = (there, self.tr(NOT_THERE))
        else:
            said = (
                self.tr("No call was timed"),
                self.tr("The run calls nothing, or its calls could not be told apart."),
            )
        self.table.set_empty(*said)

    def _show_rows(self) -> None:
        snapshot, record = self._document.snapshot, self._document.run_record
        self._entities = {}
        if snapshot is None or record is None or not record.calls:
            self.table.set_rows(())
            return
        by = self.by.current()
        self._entities = {each.key: each.entities for each in shares_of(snapshot, record, by)}
        self.table.set_rows(time_rows(snapshot, record, by))
        self._show_selection()

    def _show_selection(self) -> None:
        if self._stale:
            return
        chosen = set(self._document.selection.chosen)
        rows = [key for key, each in self._entities.items() if each and chosen >= set(each)]
        self.table.set_selection(rows)
        record = self._document.run_record
        if record is not None:
            marked = self.chart.marked()
            calls = [
                f"call:{index}"
                for index, call in enumerate(record.calls)
                if not chosen.isdisjoint(selected_with(call)) or call.entity in chosen
            ]
            # A function is called several times: the selected call stays marked.
            self.chart.mark([marked] if marked in calls else calls)

    def _select_row(self, key: str, modifiers: Qt.KeyboardModifier) -> None:
        entities = self._entities.get(key, ())
        if key.startswith("call:"):
            self.chart.mark([key])
        if entities:
            self._document.select(entities, extend=bool(modifiers & EXTENDING))

    def _select_call(self, key: str) -> None:
        record = self._document.run_record
        if record is not None:
            self._document.select(selected_with(record.calls[int(key.partition(":")[2])]))
            if self.by.current() == "call":
                self.table.set_selection([key])
                self.table.reveal(key)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._show_run()
