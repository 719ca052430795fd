"""The rows of the page Compare: the results of a run for each FX node, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QCoreApplication

from lowerscope.app.views.descriptions import names_of
from lowerscope.app.views.hand_over_words import hand_over_text
from lowerscope.app.widgets.table import Cell, Row
from lowerscope.core.model.formatting import duration_text, error_text
from lowerscope.core.model.labels import STRATEGY_LETTERS, STRATEGY_NAMES
from lowerscope.core.records.run import NodeRun, NodeStatus, RunRecord
from lowerscope.core.records.snapshot import FxNode, Snapshot
from lowerscope.core.rendering.verdict_text import status_words

GIVEN = ("placeholder", "get_attr", "output")
"""Opcodes of nodes that compute nothing, so that there is nothing to compare."""

_ORDER: dict[NodeStatus, float] = {
    "differs": 0.0,
    "inconclusive": 1.0,
    "not comparable": 2.0,
    "no reference": 3.0,
    "matches": 4.0,
}
"""Sort order of the verdicts."""


def compared_nodes(snapshot: Snapshot, record: RunRecord) -> Iterator[tuple[FxNode, NodeRun]]:
    """Yield the nodes that compute something, in the order of the graph, with their results."""
    runs = {each.id: each for each in record.nodes}
    for node in snapshot.fx:
        if node.opcode not in GIVEN and node.id in runs:
            yield node, runs[node.id]


def is_of(run: NodeRun, sort: str) -> bool:
    """Return whether a node is one of ``"all"``, ``"starts"``, ``"differs"``,
    ``"not-compared"``.
    """
    if sort == "starts":
        return starts_here(run)
    if sort == "not-compared":
        return run.matches is None
    return sort == "all" or run.matches is False


def starts_here(run: NodeRun) -> bool:
    """Return whether a node also differs in isolation, on torch's inputs: its error is its own."""
    return run.matches is not True and run.own_matches is False


def came_from_above(run: NodeRun) -> bool:
    """Return whether a node differs in the run, but not in isolation on torch's inputs."""
    return run.matches is False and run.own_matches is True


def node_rows(snapshot: Snapshot, record: RunRecord) -> tuple[Row, ...]:
    """Return the rows of the nodes that compute something, keyed by node id."""
    inside = _compared_at(record)
    return tuple(
        _row(node, run, record, inside.get(node.id, ()))
        for node, run in compared_nodes(snapshot, record)
    )


def verdict_cell(run: NodeRun) -> Cell:
    """Return the cell with a node's verdict: a mark and a word."""
    words, role = status_words(run.status)
    return Cell(words, role=role, value=_ORDER[run.status], spoken=words.partition(" ")[2])


def _compared_at(record: RunRecord) -> Mapping[str, Sequence[str]]:
    """Return, by the node that holds the value of a fused group, the group's other nodes."""
    runs = {each.id: each for each in record.nodes}
    return {
        run.id: [each for each in run.shared_with if each in runs and runs[each].matches is None]
        for run in record.nodes
        if run.matches is not None and run.shared_with and run.id.startswith("fx:")
    }


def _row(node: FxNode, run: NodeRun, record: RunRecord, inside: Sequence[str]) -> Row:
    letters, name = STRATEGY_LETTERS.get(node.strategy), STRATEGY_NAMES.get(node.strategy, "")
    called = dict.fromkeys(record.calls[index].function for index in run.calls)
    functions = ", ".join(called)
    about = "\n".join(each for each in (node.label, name, node.rule, functions) if each)
    operator = f"{letters} · {_operator(node)}" if letters else _operator(node)
    handed = hand_over_text([record.calls[index] for index in run.calls])
    said = "; ".join((*_said(run, inside), *filter(None, (handed,))))
    return Row(
        node.id,
        (
            verdict_cell(run),
            Cell(node.title, bold=True, tooltip=node.label),
            Cell(operator, role=node.strategy or "quiet", tooltip=about),
            _error_cell(run.max_abs_error, run.matches),
            _error_cell(run.own_abs_error, run.own_matches, run.own_reason),
            _time_cell(run.milliseconds),
            _time_cell(run.torch_ms),
            Cell(said, role="quiet", tooltip=said) if said else "",
        ),
    )


def _operator(node: FxNode) -> str:
    """Return a node's operator: the class of its module, or the last part of its target."""
    if node.opcode == "call_module":
        return node.label.partition(" · ")[0] or node.target
    # The target of a Python builtin is ``<built-in function getitem>``.
    return node.target.rstrip(">").split()[-1].rpartition(".")[2]


def _error_cell(error: float | None, matches: bool | None, reason: str = "") -> Cell | str:
    if error is None:
        return Cell("–", role="quiet", tooltip=reason) if reason else "–"
    role = "wrong" if matches is False else ""
    return Cell(error_text(error), role=role, value=error, tooltip=reason)


def _time_cell(milliseconds: float | None) -> Cell | str:
    if milliseconds is None:
        return "–"
    return Cell(duration_text(milliseconds), value=milliseconds)


def _said(run: NodeRun, inside: Sequence[str]) -> Iterator[str]:
    if run.not_finite:
        yield run.not_finite
    if came_from_above(run):
        yield _tr("came from above")
    elif starts_here(run):
        yield _tr("starts here")
    reason = run.reason.removeprefix(run.not_finite).removeprefix("; ")
    if reason:
        yield reason
    if inside:
        yield _tr("the value of a fused group, with {0} inside").format(names_of(tuple(inside)))
    if run.own_with:
        yield _tr("alone, run with {0}").format(names_of(run.own_with))


def _tr(text: str) -> str:
    return QCoreApplication.translate("CompareRows", text)
