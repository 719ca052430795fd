"""The error budget of a run: where rounding grows, and the cost of narrower weights.

A model is run node by node in float64. Beside that, each node is computed alone on these exact
values: as torch does, which tells the error that it makes itself from the one that it was given;
and with its weights rounded to a narrower dtype. Nothing of the model is changed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from lowerscope.core.model.comparison_records import WeightDtype
from lowerscope.core.run.float64 import (
    ERRORS,
    Widened,
    WideWeights,
    at_path,
    in_float64,
    own_copy,
    wide_copy,
    widened,
)
from lowerscope.core.run.torch_interpreter import TorchValues
from lowerscope.core.tracing.tracing import TracedModel


@dataclass(frozen=True)
class NodeBudget:
    """The exact value of a node, and relative errors of it: root mean squares.

    `made`: by torch's node alone, given exact values in its own dtype. `narrow_made`, `narrow`:
    with narrow weights, of the node alone and of the whole run.
    """

    exact: torch.Tensor
    made: float | None
    narrow_made: float | None
    narrow: float | None


class Referee:
    """A traced model in float64, beside torch's nodes and narrower weights.

    Args:
        names: Nodes whose values are requested, in graph order.
        dtype: Of narrow weights; empty for none.
    """

    def __init__(
        self,
        traced: TracedModel,
        inputs: Sequence[torch.Tensor],
        seed: int,
        names: Collection[str],
        dtype: WeightDtype,
    ) -> None:
        graph = traced.graph_module
        self._nodes = {each.name: each for each in graph.graph.nodes}
        self._changed = {*traced.mutations, *itertools.chain(*traced.mutations.values())}
        uses = Counter(names)
        uses.update(given.name for name in names for given in self._nodes[name].all_input_nodes)
        self._mode = Widened((), WideWeights())
        wide = [widened(each) for each in inputs]
        self._own = own_copy(graph)
        self._wide = wide_copy(graph)
        self._exact = TorchValues(graph, wide, seed, uses, wide_copy(graph))
        self._torch = TorchValues(graph, inputs, seed, uses)
        self._narrow_module: fx.GraphModule | None = None
        self._narrow: TorchValues | None = None
        self._narrow_mode = Widened((), WideWeights(lambda each: narrowed(each, dtype)))
        for each in (*graph.parameters(), *graph.buffers(), *inputs):
            self._mode.note(each.dtype)
            self._narrow_mode.note(each.dtype)
        if dtype:
            self._narrow_module = wide_copy(graph)
            _narrow_own(self._narrow_module, graph, dtype)
            self._narrow = TorchValues(graph, wide, seed, Counter(names), self._narrow_module)

    def of(self, name: str, path: Sequence[Any]) -> NodeBudget:
        """Return a tensor of a node.

        Raises any of `ERRORS` if it cannot be computed in float64.
        """
        with in_float64(self._mode):
            exact = at_path(self._exact.of(name), path)
        with in_float64(self._narrow_mode):
            narrow = None if self._narrow is None else at_path(self._narrow.of(name), path)
        weighted = self._has_weights(name)
        narrow_alone = None
        if weighted:
            narrow_alone = self._alone(name, self._narrow_module, self._narrow_mode, _same)
        right = self._alone(
            name, self._wide, self._mode, lambda *each: _cast(_cast(*each), each[0])
        )
        own = None if right is None else self._alone(name, self._own, None, _cast)
        return NodeBudget(
            exact,
            made=None if own is None else relative_error(at_path(own, path), at_path(right, path)),
            narrow_made=None
            if narrow_alone is None
            else relative_error(at_path(narrow_alone, path), exact),
            narrow=None if narrow is None else relative_error(narrow, exact),
        )

    def used(self, name: str) -> None:
        """Drop the values that nothing else needs."""
        given = (each.name for each in self._nodes[name].all_input_nodes)
        for each in (name, *given):
            self._exact.used(each)
            self._torch.used(each)
        if self._narrow is not None:
            self._narrow.used(name)

    def _has_weights(self, name: str) -> bool:
        node, module = self._nodes[name], self._narrow_module
        if module is None:
            return False
        if node.op == "call_module":
            part = module.get_submodule(str(node.target))
            return any(each.is_floating_point() for each in part.parameters())
        return any(each.op == "get_attr" for each in node.all_input_nodes)

    def _alone(
        self,
        name: str,
        module: fx.GraphModule | None,
        mode: Widened | None,
        given_as: Callable[[Any, Any], Any],
    ) -> Any | None:
        """Compute a node on the exact values of its inputs.

        Returns ``None`` if it changes tensors in place, computes nothing, or fails.

        Args:
            mode: ``None`` for torch's own dtypes.
            given_as: Makes an input of its exact value and torch's.
        """
        node = self._nodes[name]
        given = {each.name for each in node.all_input_nodes}
        if module is None or not node.op.startswith("call_") or self._changed & {name, *given}:
            return None
        interpreter = fx.Interpreter(module, graph=node.graph)

        def value(each: fx.Node) -> Any:
            if each.op == "get_attr":
                return interpreter.fetch_attr(str(each.target))
            return given_as(self._exact.of(each.name), self._torch.of(each.name))

        try:
            # Before the mode, which would leave out the casts.
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), value)
            with torch.random.fork_rng(devices=[]), torch.inference_mode():
                # In each dtype, the same random numbers.
                torch.manual_seed(0)
                with nullcontext() if mode is None else in_float64(mode):
                    return getattr(interpreter, node.op)(node.target, args, kwargs)
        except ERRORS:
            return None


def _same(value: Any, _like: Any) -> Any:
    return value


def _cast(value: Any, like: Any) -> Any:
    """Return a value with the dtypes of another one of the same structure."""
    if isinstance(value, torch.Tensor):
        return value.to(like.dtype)
    if isinstance(value, (tuple, list)):
        return type(value)(_cast(*each) for each in zip(value, like, strict=True))
    return value


def _narrow_own(module: fx.GraphModule, original: fx.GraphModule, dtype: WeightDtype) -> None:
    """Round the weights of a copy that it does not share with its original."""
    shared = set(map(id, original.parameters()))
    with torch.no_grad():
        for each in itertools.chain(module.parameters(), module.buffers()):
            if each.is_floating_point() and id(each) not in shared:
                each.copy_(narrowed(each, dtype))


def narrowed(weight: torch.Tensor, dtype: WeightDtype) -> torch.Tensor:
    """Return the values of a weight in a narrower dtype.

    To ``int8``, each slice along the first axis has a scale of its own. Vectors stay as they are,
    and so do infinite elements, such as those of a mask.
    """
    if dtype != "int8":
        return weight.to(getattr(torch, dtype)).to(weight.dtype)
    if weight.dim() < 2:
        return weight
    finite = weight.isfinite()
    sizes = weight.abs().where(finite, 0)
    largest = sizes.amax(dim=tuple(range(1, weight.dim())), keepdim=True)
    scale = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return ((weight / scale).round().clamp(-127, 127) * scale).where(finite, weight)


def relative_error(value: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the root mean square of an error, relative to that of the finite exact values."""
    if not exact.numel():
        return 0.0
    kind = torch.complex128 if exact.is_complex() else torch.float64
    value, exact = value.to(kind), exact.to(kind)
    same = (value == exact) | (value.isnan() & exact.isnan())
    error = float((value - exact).abs().masked_fill(same, 0).square().mean().sqrt())
    size = float(exact.abs().masked_fill(~exact.isfinite(), 0).square().mean().sqrt())
    return error / size if size else error
