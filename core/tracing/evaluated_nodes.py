"""Values of the nodes of a graph while it is being traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

import torch
from torch import fx

from lowerscope.core.sources.opened_model import version_of
from lowerscope.core.tracing.example_run import memory_of, tensors_in
from lowerscope.core.tracing.splitting import Selected, TorchPart


class EvaluatedNodes:
    """Values of the nodes of a graph that is being traced, on one set of inputs.

    A model that is split is traced again for each statement that runs in torch. The nodes that are
    the same as in the trace before, from the start on, keep their values.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        self._inputs = inputs
        self.sizes: Mapping[str, int] = {}
        """The sizes of named dimensions in the inputs."""
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._writes: list[tuple[int, int]] = []  # place of a node, and the memory that it changes
        self._places: dict[fx.Node, int] = {}
        self._interpreter: fx.Interpreter | None = None

    def begin(self) -> None:
        """Start another trace, of the same model."""
        self._places, self._interpreter = {}, None

    def of(self, node: fx.Node, root: torch.nn.Module, *, content: bool) -> Any:
        """Return the value of a node after all nodes so far have run.

        `content`: whether the elements of tensors are read; nodes of the trace before may have
            changed them.
        """
        if self._interpreter is None:
            self._interpreter = fx.Interpreter(root, graph=node.graph)
            self._interpreter.extra_traceback = False
        if node not in self._places:
            for each in node.graph.nodes:
                if each not in self._places:
                    self._add(each, self._interpreter)
                if each is node:
                    break
        value = self._values[self._places[node]]
        if content and self._written_after(len(self._places), _memory_of([value])):
            self._run_again(self._interpreter)
            value = self._values[self._places[node]]
        return value

    def _add(self, node: fx.Node, interpreter: fx.Interpreter) -> None:
        place, key = len(self._places), self._key(node, interpreter)
        if place < len(self._keys) and self._keys[place] != key:
            if self._written_after(place, _memory_of(self._values[:place])):
                self._run_again(interpreter)
            self._cut(place)
        if place == len(self._keys):
            value = self._run(node, interpreter, place)
            self._keys.append(key)
            self._values.append(value)
        self._places[node] = place
        interpreter.env[node] = self._values[place]

    def _run(self, node: fx.Node, interpreter: fx.Interpreter, place: int) -> Any:
        if node.op == "placeholder":
            return self._inputs[sum(each.op == "placeholder" for each in self._places)].clone()
        read = [*tensors_in([interpreter.env[each] for each in node.all_input_nodes])]
        versions = [version_of(each) for each in read]
        value = interpreter.run_node(node)
        for tensor, version in zip(read, versions, strict=True):
            if version_of(tensor) != version:
                self._writes.append((place, memory_of(tensor)))
        return value

    def _run_again(self, interpreter: fx.Interpreter) -> None:
        """Run the nodes so far without those that followed in the trace before."""
        nodes, self._places = list(self._places), {}
        interpreter.env.clear()
        self._cut(0)
        for node in nodes:
            self._add(node, interpreter)

    def _cut(self, count: int) -> None:
        del self._keys[count:], self._values[count:]
        self._writes = [each for each in self._writes if each[0] < count]

    def _written_after(self, count: int, memory: set[int]) -> bool:
        return any(place >= count and written in memory for place, written in self._writes)

    def _key(self, node: fx.Node, interpreter: fx.Interpreter) -> Any:
        """Return the values that decide what a node computes."""
        target: Any = node.target
        if node.op in ("get_attr", "call_module"):
            target = interpreter.fetch_attr(str(node.target))
        if isinstance(target, TorchPart):
            target = target.function.__code__, target.names, target.changed, target.values
        return node.op, self._key_of(target), self._key_of(node.args), self._key_of(node.kwargs)

    def _key_of(self, value: Any) -> Any:
        if isinstance(value, fx.Node):
            return fx.Node, self._places[value]
        if isinstance(value, tuple | list):
            return type(value), *map(self._key_of, value)
        if isinstance(value, Mapping):
            return dict, *((key, self._key_of(each)) for key, each in value.items())
        if isinstance(value, slice):
            return slice, *map(self._key_of, (value.start, value.stop, value.step))
        if isinstance(value, Selected):
            held = {**value._modules, **value._parameters, **value._buffers}
            return Selected, value.training, self._key_of(held)
        if isinstance(value, bool | int | float | complex | str | frozenset | CodeType):
            return type(value), value
        return _Same(value)


class _Same:
    """A value that equals itself only, or if it is a tensor, one of the same elements."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same):
            return False
        one, two = self.value, other.value
        if one is two:
            return True
        if not (type(one) is type(two) is torch.Tensor):
            return False
        same = one.shape == two.shape and one.dtype == two.dtype and one.stride() == two.stride()
        return same and torch.equal(one, two)

    __hash__ = None  # type: ignore[assignment]


def _memory_of(values: Sequence[Any]) -> set[int]:
    """Return the addresses of the memory of tensors."""
    return {memory_of(each) for each in tensors_in(values)}
