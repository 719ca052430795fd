"""Compared tensors of the values of nodes: the calls that compute them, and torch's tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tvm import ir, relax

from lowerscope.core.comparing.node_findings import Found, NotCompared
from lowerscope.core.lowering.lowered import LoweredModel, NodeLowering
from lowerscope.core.lowering.relax_values import Held, held_from, is_tensor
from lowerscope.core.running.kept_values import Source
from lowerscope.core.running.node_calls import Owners
from lowerscope.core.tracing.tracing import TracedModel


@dataclass(frozen=True)
class Part:
    """A compared tensor of a node's value.

    Attributes
    ----------
    path
        Its path in torch's value.
    type
        In Relax.
    source
        The call that computes it in a run.
    """

    node: str
    path: tuple[Any, ...]
    type: Any
    source: Source


_GIVEN = {
    "placeholder": "an input: it is given",
    "get_attr": "a part of the model: it is given",
    "output": "compared as the output of the model",
}
"""Reasons for not comparing a node, by opcode."""


class NodeParts:
    """The compared tensors of nodes, and their sources.

    Attributes
    ----------
    of
        The tensors of a node's value, by node in graph order.
    reasons
        Why a node has none, by node.
    random
        By node, why its value in a run is not compared: it depends on random numbers. In isolation,
        on torch's inputs, it may be compared,
    draws
        unless it draws them itself.
    """

    def __init__(self, lowered: LoweredModel, traced: TracedModel, owners: Owners) -> None:
        self.of: dict[str, tuple[Part, ...]] = {}
        self.reasons: dict[str, Found] = {}
        self._by_call: dict[int, list[Part]] = {}
        nodes = traced.graph_module.graph.nodes
        self.random = _random_nodes(lowered, traced)
        self.draws = frozenset(name for name, each in lowered.nodes.items() if each.random)
        for node in nodes:
            try:
                if node.op in _GIVEN:
                    raise NotCompared(_GIVEN[node.op], "no reference")
                self.of[node.name] = tuple(_parts(lowered.nodes[node.name], owners))
            except NotCompared as error:
                self.reasons[node.name] = self.random.get(node.name, error.found)
        for parts in self.of.values():
            for part in parts:
                self._by_call.setdefault(part.source[0], []).append(part)

    def given_by(self, call: int) -> Sequence[Part]:
        """Return the parts given by all tensors of a call."""
        return self._by_call.get(call, ())

    def at(self, source: Source) -> Sequence[Part]:
        """Return the parts given by one tensor of a call."""
        return [each for each in self.given_by(source[0]) if each.source == source]


def torch_tensor(value: Any, part: Part) -> torch.Tensor:
    """Return torch's tensor of a node's value.

    Raises
    ------
    NotCompared
        If there is none.
    """
    for step in part.path:
        value = value[step]
    if isinstance(value, (tuple, list, dict)):
        # TVM's importers give one tensor for some operators that give several.
        raise NotCompared("it stands for one tensor, where torch has several", "no reference")
    return held_from(value if isinstance(value, torch.Tensor) else torch.tensor(value))


def has_type(actual: torch.Tensor, kind: Any) -> bool:
    """Return whether a tensor has the dtype and the known extents of a Relax type."""
    if str(actual.dtype).removeprefix("torch.") != str(kind.dtype) or actual.ndim != kind.ndim:
        return False
    extents = getattr(kind.shape, "values", ())
    return all(
        not hasattr(extent, "value") or int(extent.value) == size
        for extent, size in zip(extents, actual.shape, strict=False)
    )


def _parts(node: NodeLowering, owners: Owners) -> Iterator[Part]:
    """Yield the tensors of a node's value, with the calls that compute them."""
    is_empty = True
    for path, value, member in _tensors(node.value, ()):
        is_empty = False
        binding = owners.binding_of(value)
        if binding is None:
            raise NotCompared("it is computed while translating, or given", "no reference")
        source = owners.source_of(binding, member or 0)
        if isinstance(source, str):
            raise NotCompared(source)
        kind = value.ty if member is None else value.ty.fields[member]
        yield Part(node.node, path, kind, source)
    if is_empty:
        raise NotCompared("its value is no tensor", "no reference")


def _random_nodes(lowered: LoweredModel, traced: TracedModel) -> Mapping[str, Found]:
    """Return findings for the nodes that depend on random numbers, by node."""
    random: dict[str, str] = {}
    for node in traced.graph_module.graph.nodes:
        sources = (random[each.name] for each in node.all_input_nodes if each.name in random)
        source = node.name if lowered.nodes[node.name].random else next(sources, "")
        if source:
            random[node.name] = source
            for changed in traced.mutations.get(node.name, ()):
                random[changed] = source
    return {
        name: Found("not comparable", f"depends on {source}, which draws random numbers")
        for name, source in random.items()
    }


def _tensors(
    value: Any, path: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], Any, int | None]]:
    """Yield path, Relax value, and tuple index if any, of a node's tensors."""
    if isinstance(value, (tuple, list)):
        for index, each in enumerate(value):
            yield from _tensors(each, (*path, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _tensors(each, (*path, key))
    elif isinstance(value, Held):
        yield path, value.value, None
    elif is_tensor(value):
        yield path, value, None
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        for index in range(len(value.ty.fields)):
            yield (*path, index), value, index
