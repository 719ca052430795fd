"""Choices that depend on rounding: outputs that differ though each node computes as torch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import torch
from torch import fx

from lowerscope.core.model.run_records import NodeRun, RunRecord, first_difference
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.run.compare.node_comparison import NotCompared, Part, torch_tensor
from lowerscope.core.run.compare.verdicts import difference
from lowerscope.core.run.execution import copied
from lowerscope.core.run.kept_run import KeptRun
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS
from lowerscope.core.sources.opened_model import in_eval_mode, run_mode


def with_choices(
    record: RunRecord,
    nodes: Sequence[NodeRun],
    kept: KeptRun | None,
    tolerances: Tolerances,
    check: Callable[[], None],
) -> tuple[RunRecord, Sequence[NodeRun]]:
    """Return a run that differs as one that differs by rounding, if a choice is the cause.

    The first node that differs gives integers, or a tensor of another shape: indices of the largest
    elements, or the boxes above a threshold. The values that it chooses by are within tolerance.
    If torch, given TVM's value of each node, computes TVM's value of the next ones to the end, no
    node is wrong, and the outputs differ by the rounding of what is chosen by.

    `check`: called before each node; may raise to cancel.
    """
    name = first_difference(nodes).removeprefix("fx:")
    if record.verdict != "differ" or record.sizes or kept is None or not name:
        return record, nodes
    if not _is_choice(kept, name) or not _torch_follows(kept, tolerances, check):
        return record, nodes
    why = _("by rounding: {node} chooses by values that match within tolerance", node=name)

    def explained(reason: str) -> str:
        return _("{reason}, {why}", reason=reason, why=why)

    def by_rounding(each: Any) -> Any:
        return msgspec.structs.replace(each, matches=True, reason=explained(each.reason))

    kept.in_run = {
        key: replace(each, status="rounding", reason=explained(each.reason))
        if each.status == "differs"
        else each
        for key, each in kept.in_run.items()
    }
    outputs = [
        msgspec.structs.replace(by_rounding(each), verdict="rounding")
        if each.verdict == "differ"
        else each
        for each in record.outputs
    ]
    reason = explained(record.reason)
    found = msgspec.structs.replace(
        record, verdict="rounding", reason=reason, outputs=tuple(outputs)
    )
    return found, [
        msgspec.structs.replace(by_rounding(each), status="rounding")
        if each.status == "differs"
        else each
        for each in nodes
    ]


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
        ours = _value(kept, part)
        if ours is None or expected.shape is None:
            return False
        is_exact = not (ours.is_floating_point() or ours.is_complex())
        if is_exact or tuple(ours.shape) != expected.shape:
            return True
    return False


def _value(kept: KeptRun, part: Part) -> torch.Tensor | None:
    call, item = part.source
    written = kept.values.calls[call].written if call in kept.values.calls else ()
    return written[item].value if item < len(written) and call not in kept.unread else None


def _torch_follows(kept: KeptRun, tolerances: Tolerances, check: Callable[[], None]) -> bool:
    """Return whether torch computes each value of TVM's from the ones before it."""
    assert kept.parts is not None
    assert kept.traced is not None
    graph_module = kept.traced.graph_module
    model = in_eval_mode(copied(graph_module))
    interpreter = fx.Interpreter(model, graph=graph_module.graph)
    interpreter.args_iter = iter([value.detach().clone() for value in kept.inputs])
    known: set[fx.Node] = set()
    torch.manual_seed(kept.seed)
    with run_mode(model)():
        for node in graph_module.graph.nodes:
            check()
            if node.op == "output":
                return known.issuperset(node.all_input_nodes)
            try:
                value = interpreter.run_node(node)
                parts = kept.parts.of.get(node.name, ())
                ours = {part.path: _value(kept, part) for part in parts}
                for part in parts:
                    if not _agrees(kept, part, ours[part.path], value, tolerances):
                        return False
            except (*TORCH_ERRORS, NotCompared):
                return False
            if parts and None not in ours.values():
                value = _replaced(value, (), ours)
            if node.op in ("placeholder", "get_attr") or (parts and None not in ours.values()):
                known.add(node)
            interpreter.env[node] = value
    return False


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
        return own.clone() if isinstance(value, torch.Tensor) else own.item()
    if isinstance(value, dict):
        return {key: _replaced(each, (*path, key), ours) for key, each in value.items()}
    if isinstance(value, tuple | list):
        made = [_replaced(each, (*path, index), ours) for index, each in enumerate(value)]
        return made if isinstance(value, list) else tuple(made)
    return value
