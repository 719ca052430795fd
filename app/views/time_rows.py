"""Shares of a run's time: rows by node, function, module or call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication

from lowerscope.app.views.descriptions import names_of
from lowerscope.app.widgets.charts.run_chart import Piece, Span
from lowerscope.app.widgets.table import Cell, Row
from lowerscope.core.model.formatting import (
    NONE,
    bytes_text,
    duration_text,
    ratio_text,
    shape_text,
    share_text,
)
from lowerscope.core.model.labels import STRATEGY_LETTERS
from lowerscope.core.records.memory import MemoryRecord, Storage
from lowerscope.core.records.run import CallRun, RunRecord
from lowerscope.core.records.snapshot import FxNode, Snapshot
from lowerscope.core.records.times import is_reliable
from lowerscope.core.rendering.time_text import UNRELIABLE

_MIXED = ""


@dataclass
class Share:
    """The data of a row, not yet formatted.

    Attributes
    ----------
    key, title
        Unique key and displayed name.
    entities
        Ids selected with it.
    calls
        Indices of its calls.
    nodes
        Ids of the FX nodes to which torch's time belongs.
    note
        Text after the name.
    """

    key: str
    title: str
    entities: tuple[str, ...]
    calls: dict[int, None] = field(default_factory=dict)
    nodes: dict[str, None] = field(default_factory=dict)
    note: str = ""


def shares_of(snapshot: Snapshot, record: RunRecord, by: str) -> tuple[Share, ...]:
    """Return the shares of a run's calls."""
    makers = {
        "node": _by_node,
        "function": _by_function,
        "module": _by_module,
        "call": _by_call,
    }
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
    snapshot: Snapshot,
    record: RunRecord,
    share: Share,
    whole: float,
    torch: Mapping[str, float],
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
