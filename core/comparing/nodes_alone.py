"""Isolated runs of FX nodes on torch's inputs, to find the nodes in which an error starts.

The kernels are those of the run. The calls that compute a node's value are repeated, back to reads
of another node's value, which is replaced by torch's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import tvm
from tvm import ir

from lowerscope.core.comparing.node_findings import Found, NotCompared
from lowerscope.core.comparing.node_parts import NodeParts, Part, torch_tensor
from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.bytecode import BUILTIN
from lowerscope.core.execution.running import to_torch, to_tvm
from lowerscope.core.execution.walking import TorchValues
from lowerscope.core.progress import Progress
from lowerscope.core.relax_bindings import relax_functions
from lowerscope.core.running.calls import CallsOf
from lowerscope.core.running.kept_values import Source


@dataclass(frozen=True)
class RunAlone:
    """Isolated run of a node: its tensors in order, and the names of others that had to run."""

    values: tuple[torch.Tensor, ...]
    together: tuple[str, ...]


class NodesAlone:
    """The calls of a run, which can be repeated for one node with torch's values.

    Parameters
    ----------
    arguments
        Of ``main``.
    functions
        The called functions by event, as `calls.watched` fills it in.
    nodes_of
        The ids of the nodes that a call computes, by call.
    progress
        Notified of each call before it begins.

    Attributes
    ----------
    reads
        By node, the nodes whose values are read to run it; nodes that cannot be run alone are
        absent.
    reasons
        Why a node cannot be run alone, by node.
    """

    def __init__(
        self,
        calls: CallsOf,
        parts: NodeParts,
        arguments: Sequence[Any],
        functions: Mapping[str, Any],
        nodes_of: Sequence[Sequence[str]],
        progress: Progress,
    ) -> None:
        self._calls, self._parts, self._functions = calls, parts, functions
        self._progress = progress
        self._nodes_of = nodes_of
        self._shapes: dict[int, list[tuple[tuple[int, ...], str]]] = {}
        main = dict(relax_functions(calls.before))["main"]
        self._given = {
            hash(variable): value for variable, value in zip(main.params, arguments, strict=True)
        }
        self.reads: dict[str, tuple[str, ...]] = {}
        self.reasons: dict[str, Found] = {}
        for name in parts.of:
            if name in parts.draws:
                self.reasons[name] = parts.random[name]
                continue
            try:
                self.reads[name] = self._needed(name)
            except NotCompared as error:
                self.reasons[name] = error.found

    def note(self, index: int, tensors: Sequence[Any]) -> None:
        """Record the results of a call."""
        # If a pass has already made the call, it returns no tensor.
        if all(isinstance(each, tvm.runtime.Tensor) for each in tensors):
            self._shapes[index] = [
                (tuple(map(int, each.shape)), str(each.dtype)) for each in tensors
            ]

    def run(self, name: str, values: TorchValues) -> RunAlone:
        """Run a node of `reads` alone, all of whose calls have been recorded.

        Raises
        ------
        NotCompared
            If it cannot be run so, or fails.
        """
        made: dict[int, list[Any]] = {}
        given = tuple(
            to_torch(self._run(part.source[0], name, values, made)[part.source[1]])
            for part in self._parts.of[name]
        )
        ran = [each.removeprefix("fx:") for index in made for each in self._nodes_of[index]]
        return RunAlone(given, tuple(dict.fromkeys(each for each in ran if each != name)))

    def _needed(self, name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        seen: set[int] = set()
        waiting = [part.source[0] for part in self._parts.of[name]]
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            if self._calls.arguments(index) is None:
                raise self._not_called(index)
            for source in self._calls.sources(index):
                if source is None:
                    continue
                part = self._other(source, name)
                if part is None:
                    waiting.append(source[0])
                else:
                    found[part.node] = None
        return tuple(found)

    def _not_called(self, index: int) -> NotCompared:
        callee = self._calls.calls[index].callee
        return NotCompared(
            f"{callee} takes sizes or memory besides tensors, or gives none, so it is not called"
            " alone"
        )

    def _other(self, source: Source, name: str) -> Part | None:
        """Return the part of another node's value that a call computes."""
        parts = self._parts.at(source)
        own = any(each.node == name for each in parts)
        return None if own else next(iter(parts), None)

    def _run(
        self, index: int, name: str, values: TorchValues, made: dict[int, list[Any]]
    ) -> list[Any]:
        if index in made:
            return made[index]
        arguments, shapes = self._calls.arguments(index), self._shapes.get(index)
        if arguments is None or shapes is None:
            raise self._not_called(index)
        read = [self._value(each, name, values, made) for each in arguments]
        event = self._calls.calls[index].event
        try:
            if event == f"{BUILTIN}reshape":
                made[index] = [to_tvm(to_torch(read[0]).reshape(shapes[0][0]))]
            else:
                made[index] = [tvm.runtime.empty(shape, dtype) for shape, dtype in shapes]
                self._progress.at_call(index, True)
                self._functions[event](*read, *made[index])
        except (*TVM_ERRORS, LowerscopeError) as error:
            raise NotCompared(f"it fails alone: {last_line(error)}") from error
        return made[index]

    def _value(
        self, argument: Any, name: str, values: TorchValues, made: dict[int, list[Any]]
    ) -> Any:
        source = self._calls.source_of_variable(argument)
        if source is None:
            constant = self._calls.argument_of(argument)
            if isinstance(constant, ir.GenericConst):
                return constant.value
            given = self._given.get(hash(constant))
            if given is None:
                raise NotCompared("no call gives one of its inputs by itself")
            return to_tvm(given) if isinstance(given, torch.Tensor) else given
        part = self._other(source, name)
        if part is None:
            return self._run(source[0], name, values, made)[source[1]]
        value = torch_tensor(values.of(part.node), part)
        found = tuple(value.shape), str(value.dtype).removeprefix("torch.")
        if found != self._shapes[source[0]][source[1]]:
            raise NotCompared(f"torch's value of {part.node} has another shape or dtype")
        return to_tvm(value)
