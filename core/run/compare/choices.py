"""Verdicts that the nodes of a run correct.

Outputs may differ though each node computes as torch does, by a choice that depends on rounding; or
be within the rounding of the whole model though a node does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import torch
from torch import fx

from lowerscope.core.lowering.partial_module import leaves_of
from lowerscope.core.model.run_records import (
    COMPARED,
    NodeRun,
    OutputVerdict,
    RunRecord,
    first_difference,
)
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.run.compare.causes import Cause, names_before
from lowerscope.core.run.compare.node_comparison import (
    Found,
    NotCompared,
    Part,
    fields_of,
    torch_tensor,
)
from lowerscope.core.run.compare.verdicts import difference
from lowerscope.core.run.execution import copied
from lowerscope.core.run.kept_run import KeptRun
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS
from lowerscope.core.sources.opened_model import in_eval_mode, run_mode

_TOPK = (torch.topk, "topk", torch.ops.aten.topk.default)
_SORT = (torch.sort, "sort", torch.ops.aten.sort.default)
_ARGSORT = (torch.argsort, "argsort", torch.ops.aten.argsort.default)
_ANY_OF_EQUALS = (*_TOPK, *_SORT, *_ARGSORT)
"""Targets of the nodes that may return equal elements in any order."""


def corrected(
    record: RunRecord,
    nodes: Sequence[NodeRun],
    kept: KeptRun | None,
    tolerances: Tolerances,
    check: Callable[[], None],
    cause: Callable[..., Cause | None],
) -> tuple[RunRecord, Sequence[NodeRun]]:
    """Return a run, and its nodes, with the verdict that the nodes give it.

    `check`: called before each node; may raise to cancel.
    `cause`: looks for the node where a difference starts: see `causes.cause_of`.
    """
    with_cause, found = _with_cause(record, nodes, kept, cause)
    with_wrong, found = _with_wrong_nodes(with_cause, found, kept)
    return _with_choices(with_wrong, found, kept, tolerances, check, record)


def _with_cause(
    record: RunRecord,
    nodes: Sequence[NodeRun],
    kept: KeptRun | None,
    cause: Callable[..., Cause | None],
) -> tuple[RunRecord, Sequence[NodeRun]]:
    """Return a run with the node where its difference starts, if that is not told by its calls."""
    if record.verdict not in _JUDGED or kept is None or kept.parts is None:
        return record, nodes
    is_differing = record.verdict == "differ"
    name = first_difference(nodes).removeprefix("fx:") if is_differing else ""
    found = cause(kept, nodes, name, is_differing=is_differing)
    if found is None:
        return record, nodes
    kept.found_alone = {**kept.found_alone, **found.alone}
    wrong = found.alone[found.node]
    assert kept.traced is not None
    # No node before it is wrong.
    inexact = {
        each: replace(kept.in_run[each], status="rounding")
        for each in itertools.takewhile(found.node.__ne__, names_before(kept.traced))
        if each in kept.in_run and kept.in_run[each].status == "differs"
    }
    own = _as_cause(kept.in_run.get(found.node), wrong)
    kept.in_run = {**kept.in_run, **inexact, found.node: own}
    alone = {**{each: kept.found_alone[each] for each in inexact}, **found.alone}
    fields = dict(_fields_by_entity(kept, alone))
    nodes = [msgspec.structs.replace(each, **fields.get(each.id, {})) for each in nodes]
    return (record if record.verdict == "differ" else _as_differing(record, found.node)), nodes


_JUDGED = ("match", "rounding", "differ")
"""Verdicts on values that were compared."""


def _fields_by_entity(
    kept: KeptRun, alone: Mapping[str, Found]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ids of nodes, and of the bindings that are their values, with what is found."""
    for name, found in alone.items():
        fields = fields_of(kept.in_run.get(name), found)
        yield f"fx:{name}", fields
        assert kept.owners is not None
        node = kept.owners.nodes[name]
        values = list(leaves_of(node.value))
        binding = kept.owners.binding_of(values[0]) if len(values) == 1 else None
        if binding is not None and node.bindings:
            yield binding, fields


def _as_cause(in_run: Found | None, alone: Found) -> Found:
    """Return what is found of a node in the run, as it is the cause of the difference."""
    if in_run is None or in_run.status not in COMPARED:
        return alone
    return replace(in_run, status="differs", reason=in_run.reason or alone.reason)


def _as_differing(record: RunRecord, name: str) -> RunRecord:
    """Return a run that matches, or differs by rounding, as one that differs, by a node."""
    outputs = tuple(
        msgspec.structs.replace(each, verdict="differ", matches=False)
        if each.verdict == record.verdict
        else each
        for each in record.outputs
    )
    reason = hidden_reason(record.verdict, record.reason, name)
    return msgspec.structs.replace(record, verdict="differ", reason=reason, outputs=outputs)


def hidden_reason(verdict: OutputVerdict, reason: str, node: str) -> str:
    """Return why outputs that match, or differ by rounding, are wrong by a node."""
    if verdict == "match":
        return _(
            "{node} differs by more than rounding on torch's inputs, which the tolerance of the "
            "outputs hides",
            node=node,
        )
    return _(
        "{node} differs by more than rounding on torch's inputs, which the rounding of the "
        "whole model hides: {reason}",
        node=node,
        reason=reason,
    )


def _with_wrong_nodes(
    record: RunRecord, nodes: Sequence[NodeRun], kept: KeptRun | None
) -> tuple[RunRecord, Sequence[NodeRun]]:
    """Return a run that differs by rounding as one that differs, if a node is the cause.

    A model that is sensitive, or computed in half precision, rounds by more than a fault changes
    its outputs. A node that the outputs depend on, and that differs by more than rounding on
    torch's inputs, has such a fault.
    """
    if record.verdict != "rounding" or record.sizes or kept is None or kept.traced is None:
        return record, nodes
    wrong = {
        each.id.removeprefix("fx:")
        for each in nodes
        if each.own_status == "differs" and each.status in ("rounding", "differs")
    }.intersection(names_before(kept.traced))
    if not wrong:
        return record, nodes
    first = next(each for each in kept.traced.graph_module.graph.nodes if each.name in wrong)
    kept.in_run = {
        name: replace(found, status="differs") if name in wrong else found
        for name, found in kept.in_run.items()
    }
    record = _as_differing(record, first.name)
    return record, [
        msgspec.structs.replace(each, status="differs", matches=False)
        if each.id.removeprefix("fx:") in wrong
        else each
        for each in nodes
    ]


def _with_choices(
    record: RunRecord,
    nodes: Sequence[NodeRun],
    kept: KeptRun | None,
    tolerances: Tolerances,
    check: Callable[[], None],
    before: RunRecord,
) -> tuple[RunRecord, Sequence[NodeRun]]:
    """Return a run that differs as one that differs by rounding, if a choice is the cause.

    The first node that differs gives integers, or a tensor of another shape: indices of the largest
    elements, or the boxes above a threshold. The values that it chooses by are within tolerance. Or
    a node chooses among equal elements, of which torch may return any.
    If torch, given TVM's value of each node, computes TVM's value of the next ones to the end, no
    node is wrong, and the outputs differ by the choice alone.

    `before`: the run as the outputs alone tell it.
    """
    name = first_difference(nodes).removeprefix("fx:")
    if record.verdict != "differ" or record.sizes or kept is None or not name:
        return record, nodes
    is_choice = _is_choice(kept, name)
    assert kept.traced is not None
    traced = list(kept.traced.graph_module.graph.nodes)
    if not is_choice and not any(each.target in _ANY_OF_EQUALS for each in traced):
        return record, nodes
    ties = _ties_where_torch_follows(kept, tolerances, check)
    if ties is None or not (ties or is_choice):
        return record, nodes
    first = next((each.name for each in traced if each.name in (name, *ties)), name)
    if ties and (first in ties or not is_choice):
        if _is_unsorted(next(each for each in traced if each.name == ties[0])):
            why = _("by the order of elements, which {node} may return in any", node=ties[0])
        else:
            why = _("by the order of equal elements, which {node} may return in any", node=ties[0])
    else:
        why = _("by rounding: {node} chooses by values that match within tolerance", node=name)

    def explained(reason: str) -> str:
        return _("{reason}, {why}", reason=reason, why=why) if reason else why

    def all_explained(found: Mapping[str, Found]) -> dict[str, Found]:
        return {
            key: replace(each, status="rounding", reason=explained(each.reason))
            if each.status == "differs"
            else each
            for key, each in found.items()
        }

    kept.in_run, kept.found_alone = map(all_explained, (kept.in_run, kept.found_alone))
    nodes = [_node_explained(each, explained) for each in nodes]
    if before.verdict != "differ":
        return before, nodes
    outputs = [
        msgspec.structs.replace(
            each, verdict="rounding", matches=True, reason=explained(each.reason)
        )
        if each.verdict == "differ"
        else each
        for each in record.outputs
    ]
    found = msgspec.structs.replace(
        record, verdict="rounding", reason=explained(before.reason), outputs=tuple(outputs)
    )
    return found, nodes


def _is_unsorted(node: fx.Node) -> bool:
    """Return whether a node may return different elements in any order, too."""
    is_sorted = node.kwargs.get("sorted", node.args[4] if len(node.args) > 4 else True)
    return node.target in _TOPK and not is_sorted


def _node_explained(node: NodeRun, explained: Callable[[str], str]) -> NodeRun:
    if node.status == "differs":
        node = msgspec.structs.replace(
            node, status="rounding", matches=True, reason=explained(node.reason)
        )
    if node.own_status == "differs":
        node = msgspec.structs.replace(
            node, own_status="rounding", own_matches=True, own_reason=explained(node.own_reason)
        )
    return node


def _is_choice(kept: KeptRun, name: str) -> bool:
    """Return whether a node's value differs by integers, or by its shape."""
    assert kept.parts is not None
    assert kept.traced is not None
    info = kept.traced.values[name]
    for part in kept.parts.of.get(name, ()):
        expected = info
        for step in part.path:
            if not isinstance(step, int) or step >= len(expected.items):
                return False
            expected = expected.items[step]
        ours = kept.value(part)
        if ours is None or expected.shape is None:
            return False
        is_exact = not (ours.is_floating_point() or ours.is_complex())
        if is_exact or tuple(ours.shape) != expected.shape:
            return True
    return False


def _ties_where_torch_follows(
    kept: KeptRun, tolerances: Tolerances, check: Callable[[], None]
) -> list[str] | None:
    """Return the nodes that chose other ones of equal elements than torch does.

    ``None`` if torch does not compute each value of TVM's from the ones before it.
    """
    assert kept.parts is not None
    assert kept.traced is not None
    graph_module = kept.traced.graph_module
    model = in_eval_mode(copied(graph_module))
    interpreter = fx.Interpreter(model, graph=graph_module.graph)
    interpreter.args_iter = iter([value.detach().clone() for value in kept.inputs])
    known: set[fx.Node] = set()
    ties: list[str] = []
    torch.manual_seed(kept.seed)
    with run_mode(model)():
        for node in graph_module.graph.nodes:
            check()
            if node.op == "output":
                return ties if known.issuperset(node.all_input_nodes) else None
            try:
                value = interpreter.run_node(node)
                parts = kept.parts.of.get(node.name, ())
                ours = {part.path: kept.value(part) for part in parts}

                def agree(value: Any, ours: Any = ours, parts: Sequence[Part] = parts) -> bool:
                    return all(
                        _agrees(kept, each, ours[each.path], value, tolerances) for each in parts
                    )

                stable = _first_of_equals(interpreter, node)
                # What TVM chose is not seen where its call gives no value of the node.
                is_unseen = not ours or None in ours.values()
                if stable is not None and (is_unseen or not agree(value)):
                    is_pair = isinstance(value, tuple)
                    if not torch.equal(*(each[1] if is_pair else each for each in (stable, value))):
                        ties.append(node.name)
                    value = stable
                if not agree(value):
                    return None
            except (*TORCH_ERRORS, NotCompared):
                return None
            if parts and None not in ours.values():
                value = _replaced(value, (), ours)
            if node.op in ("placeholder", "get_attr") or (parts and None not in ours.values()):
                known.add(node)
            interpreter.env[node] = value
    return None


def _first_of_equals(interpreter: fx.Interpreter, node: fx.Node) -> Any:
    """Return the value of a `topk` or `sort` that keeps the order of equals; ``None`` for others.

    It is the choice of the lowering rule.
    """
    if node.target not in _ANY_OF_EQUALS:
        return None

    def topk(
        input: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
    ) -> Any:
        found = torch.sort(input, dim=dim, descending=largest, stable=True)
        return torch.return_types.topk((found[0].narrow(dim, 0, k), found[1].narrow(dim, 0, k)))

    def in_order(
        input: torch.Tensor, dim: int = -1, descending: bool = False, stable: bool = False
    ) -> Any:
        return torch.sort(input, dim=dim, descending=descending, stable=True)

    arguments, keywords = interpreter.fetch_args_kwargs_from_env(node)
    if node.target in _TOPK:
        return topk(*arguments, **keywords)
    found = in_order(*arguments, **keywords)
    return found[1] if node.target in _ARGSORT else found


def _agrees(
    kept: KeptRun, part: Part, ours: torch.Tensor | None, value: Any, tolerances: Tolerances
) -> bool:
    if ours is None:
        return True
    if difference(ours, torch_tensor(value, part), tolerances).matches:
        return True
    # Sums that are out of tolerance may be as near to float64 as torch's.
    found, alone = kept.in_run.get(part.node), kept.found_alone.get(part.node)
    return any(each is not None and each.status == "rounding" for each in (found, alone))


def _replaced(value: Any, path: tuple[Any, ...], ours: Mapping[Any, torch.Tensor | None]) -> Any:
    """Return a node's value with TVM's tensors in it."""
    if isinstance(value, torch.Tensor | bool | int | float):
        own = ours.get(path)
        if own is None:
            return value
        if not isinstance(value, torch.Tensor):
            return own.item()
        # With torch's strides, as a graph of torch.export has views that only they allow.
        return torch.empty_like(value).copy_(own)
    if isinstance(value, dict):
        return {key: _replaced(each, (*path, key), ours) for key, each in value.items()}
    if isinstance(value, tuple | list):
        made = [_replaced(each, (*path, index), ours) for index, each in enumerate(value)]
        # torch's results of several tensors have names of their members.
        has_names = hasattr(type(value), "n_sequence_fields")
        return made if isinstance(value, list) else (type(value) if has_names else tuple)(made)
    return value
