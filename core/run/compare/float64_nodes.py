"""Values of FX nodes in float64: in the run of the whole model, and of each node alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.run.compare.verdicts import Exact, noise_between
from lowerscope.core.run.execution import copied, in_eval_mode
from lowerscope.core.run.float64 import Widened, in_float64, widen_module, widened
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS, TorchValues
from lowerscope.core.sources.pytree import mapped
from lowerscope.core.tracing.tracing import TracedModel

ERRORS = (*TORCH_ERRORS, RecursionError, NotImplementedError, LowerscopeError)
"""Exceptions of a node that cannot be computed in float64: its rounding is unknown then."""


class Float64Nodes:
    """A traced model in float64; nothing is computed before a value is requested.

    Args:
        pending: Returns the nodes whose values in the run may still be requested.
        sums: Relative rounding of the longest sums in the built module, by its functions' names.
    """

    def __init__(
        self,
        traced: TracedModel,
        inputs: Sequence[torch.Tensor],
        seed: int,
        pending: Callable[[], Sequence[str]],
        sums: Mapping[str, float],
    ) -> None:
        self._traced, self._inputs, self._seed = traced, inputs, seed
        self._pending, self._sums = pending, sums
        self._nodes = {each.name: each for each in traced.graph_module.graph.nodes}
        self._mode, self._shaking = Widened(()), Widened((), seed)
        self._values: tuple[TorchValues, TorchValues] | None = None
        self._awaited: frozenset[str] = frozenset()
        self._alone: fx.Interpreter | None = None
        self._failed = False

    def in_run(self, name: str, path: Sequence[Any]) -> Exact | None:
        """Return a tensor of a node in the run; ``None`` if it cannot be computed."""
        if self._failed:
            return None
        try:
            if self._values is None:
                self._values = self._started()
            found = []
            for values, mode in zip(self._values, (self._mode, self._shaking), strict=True):
                with in_float64(mode):
                    found.append(_at(values.of(name), path))
            value, other = found
        except ERRORS:
            self._failed = True
            return None
        sums = max(self._sums.values(), default=0.0)
        return Exact(value, self._mode.coarsest, sums, noise_between(value, other))

    def used(self, name: str) -> None:
        """Drop the value of a node."""
        if self._values is not None and name in self._awaited:
            for each in self._values:
                each.used(name)

    def alone(
        self,
        name: str,
        paths: Sequence[Sequence[Any]],
        reads: Sequence[str],
        values: TorchValues,
        functions: Sequence[str],
    ) -> list[Exact] | None:
        """Return the tensors of a node alone; ``None`` if they cannot be computed.

        Args:
            reads: Nodes whose values it is given, which are torch's in `values`.
            functions: Names of the built functions that compute it.
        """
        mode, shaking = Widened(()), Widened((), self._seed)
        try:
            found = [_at(self.computed(name, reads, values, mode), path) for path in paths]
            moved = [_at(self.computed(name, reads, values, shaking), path) for path in paths]
            # The result is rounded to its own dtype.
            for path in paths:
                mode.note(_at(values.of(name), path).dtype)
        except ERRORS:
            return None
        sums = sum(self._sums.get(each, 0.0) for each in dict.fromkeys(functions))
        return [
            Exact(each, mode.coarsest, sums, noise_between(each, shifted))
            for each, shifted in zip(found, moved, strict=True)
        ]

    def computed(
        self,
        name: str,
        reads: Sequence[str],
        values: TorchValues,
        mode: Widened,
    ) -> Any:
        """Compute a node in float64 from torch's values of the nodes that it reads.

        Raises any of `ERRORS`.
        """
        graph = self._traced.graph_module.graph
        places = {each: i for i, each in enumerate(n for n in graph.nodes if n.op == "placeholder")}
        interpreter = self._interpreter()
        known: dict[fx.Node, Any] = {}

        def taken(value: Any) -> Any:
            def of(tensor: Any) -> Any:
                if not isinstance(tensor, torch.Tensor):
                    return tensor
                mode.note(tensor.dtype)
                return mode.shaken(widened(tensor))

            return mapped(value, of)

        def value(node: fx.Node) -> Any:
            if node not in known:
                known[node] = made(node)
            return known[node]

        def made(node: fx.Node) -> Any:
            if node.name != name and node.name in reads:
                return taken(values.of(node.name))
            if node.op == "placeholder":
                return taken(self._inputs[places[node]])
            if node.name in self._traced.mutations or node.name in self._changed():
                raise RuntimeError("it changes a tensor in place")
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), value)
            self._note_weights(node, mode)
            with in_float64(mode):
                return getattr(interpreter, node.op)(node.target, args, kwargs)

        with torch.inference_mode():
            return value(self._nodes[name])

    def _changed(self) -> frozenset[str]:
        return frozenset(itertools.chain.from_iterable(self._traced.mutations.values()))

    def _note_weights(self, node: fx.Node, mode: Widened) -> None:
        """Record the dtypes that the model itself has the weights of a node in."""
        module = self._traced.graph_module
        if node.op == "call_module":
            part = module.get_submodule(str(node.target))
            for each in itertools.chain(part.parameters(), part.buffers()):
                mode.note(each.dtype)
        elif node.op == "get_attr":
            value: Any = module
            for step in str(node.target).split("."):
                value = getattr(value, step)
            if isinstance(value, torch.Tensor):
                mode.note(value.dtype)

    def _interpreter(self) -> fx.Interpreter:
        if self._alone is None:
            self._alone = fx.Interpreter(self._wide(), graph=self._traced.graph_module.graph)
        return self._alone

    def _wide(self) -> fx.GraphModule:
        module = in_eval_mode(copied(self._traced.graph_module))
        assert isinstance(module, fx.GraphModule)
        if not widen_module(module):
            raise RuntimeError("there is no memory for the weights in float64")
        return module

    def _started(self) -> tuple[TorchValues, TorchValues]:
        original = self._traced.graph_module
        for each in (*original.parameters(), *original.buffers(), *self._inputs):
            self._mode.note(each.dtype)
            self._shaking.note(each.dtype)
        self._awaited = frozenset(self._pending())
        inputs, uses = [widened(each) for each in self._inputs], dict.fromkeys(self._awaited, 1)
        plain, other = (
            TorchValues(original, inputs, self._seed, uses, self._wide()) for _side in range(2)
        )
        return plain, other


def _at(value: Any, path: Sequence[Any]) -> torch.Tensor:
    for step in path:
        value = value[step]
    return value if isinstance(value, torch.Tensor) else torch.tensor(value)
