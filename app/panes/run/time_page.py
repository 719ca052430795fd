"""The page Time: the time of the last run by node, function, module or call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from PySide6.QtCore import Qt

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import ElidedLabel, SeenPage
from lowerscope.app.kit.split import strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table, figures
from lowerscope.app.panes.common.descriptions import names_of
from lowerscope.app.panes.common.run_figures import ratio_cell
from lowerscope.app.panes.run.calls_strip import selected_with
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.formatting import (
    NONE,
    duration_text,
    share_text,
)
from lowerscope.core.model.graph import STRATEGY_LETTERS
from lowerscope.core.model.run_records import NOT_THERE, RunRecord
from lowerscope.core.model.snapshot import FxNode, Snapshot
from lowerscope.core.model.texts import _, _n

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
                figures(_("ratio"), 92, _("TVM's time over torch's for the same nodes")),
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
