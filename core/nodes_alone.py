"""Each FX node alone, on what torch has at its inputs: an error that starts there is told apart.

The kernels are those of the run. The calls that compute a node's value are made again, back to
where another node's value is read, and that is torch's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import tvm
from tvm import ir

from lowerscope.core.calls import CallsOf, watched
from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.bytecode import BUILTIN
from lowerscope.core.execution.comparing import difference
from lowerscope.core.execution.running import Execution, to_torch, to_tvm
from lowerscope.core.lowering.relax_values import held_from
from lowerscope.core.node_runs import Comparison, Owners, Part
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.relax_bindings import relax_functions
from lowerscope.core.stages import Stages

Source = tuple[int, int]
"""A call, and which of its tensors."""


@dataclass(frozen=True)
class Alone:
    """How far a node alone is from torch; ``None`` with a ``reason`` where it has no inputs.

    ``together`` has the names of other nodes that had to be run with it.
    """

    max_abs_error: float | None = None
    matches: bool | None = None
    reason: str = ""
    together: tuple[str, ...] = ()


class _NoInputs(Exception):
    """Why a node cannot be run alone."""


def nodes_alone(
    stages: Stages, recipe: Recipe, inputs: Sequence[torch.Tensor], progress: Progress
) -> Mapping[str, Alone]:
    """Return, by name, what each FX node does alone on torch's inputs; see `node_runs`.

    Raises
    ------
    LowerscopeError
        If the run fails, or its calls are not those of ``main`` in order.
    Cancelled
        Between two nodes.
    """
    lowered, traced = stages.lowered, stages.traced
    if lowered is None or traced is None:
        return {}
    progress.report("Running each node alone")
    calls = CallsOf(stages.recorded, "main")
    owners = Owners(stages, lowered, calls)
    comparison = Comparison(stages, lowered, traced, recipe, inputs, owners)
    rerun = _Rerun(stages, calls, inputs, comparison.parts, owners.nodes_of, progress)
    order = [node.name for node in traced.graph_module.graph.nodes]
    needed: dict[str, dict[str, None]] = {}
    found: dict[str, Alone] = {}
    for name in order:
        if name in comparison.reasons:
            found[name] = Alone(reason=comparison.reasons[name])
            continue
        try:
            needed[name] = rerun.needed(name)
        except _NoInputs as reason:
            found[name] = Alone(reason=str(reason))
    last = {each: name for name in needed for each in (name, *needed[name])}
    values: dict[str, Any] = {}
    for name in order:
        progress.check()
        if name in comparison.reasons:
            continue
        values[name] = comparison.walk.take(name)
        if name in needed:
            try:
                found[name] = rerun.compare(name, values, recipe)
            except _NoInputs as reason:
                found[name] = Alone(reason=str(reason))
        for each in [each for each in values if last.get(each, name) == name]:
            del values[each]
    return {name: found[name] for name in order}


class _Rerun:
    """The calls of a run, which can be made again with other inputs."""

    def __init__(
        self,
        stages: Stages,
        calls: CallsOf,
        inputs: Sequence[torch.Tensor],
        parts: Mapping[int, Sequence[tuple[int, Part]]],
        nodes_of: Sequence[Sequence[str]],
        progress: Progress,
    ) -> None:
        self._calls = calls
        self._progress = progress
        self._nodes_of = nodes_of
        arguments = stages.arguments(inputs)
        execution = Execution(stages.built.executable, "main", arguments)
        self._shapes: dict[int, list[tuple[tuple[int, ...], str]]] = {}
        self._functions = watched(execution, calls.calls, self._take, progress).functions
        main = dict(relax_functions(calls.before))["main"]
        self._given = {
            hash(variable): value for variable, value in zip(main.params, arguments, strict=True)
        }
        self._places: dict[str, list[tuple[Source, Part]]] = {}
        self._parts: dict[Source, list[Part]] = {}
        for index, listed in parts.items():
            for item, part in listed:
                self._places.setdefault(part.node, []).append(((index, item), part))
                self._parts.setdefault((index, item), []).append(part)

    def _take(self, index: int, tensors: tuple[Any, ...]) -> None:
        if not all(isinstance(each, tvm.runtime.Tensor) for each in tensors):
            # A pass has made the call already, and it gives no tensor.
            return
        self._shapes[index] = [(tuple(map(int, each.shape)), str(each.dtype)) for each in tensors]

    def needed(self, name: str) -> dict[str, None]:
        """Return the nodes whose values are read."""
        found: dict[str, None] = {}
        seen: set[int] = set()
        waiting = [source[0] for source, _ in self._places[name]]
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            arguments = self._calls.arguments(index)
            if arguments is None or index not in self._shapes:
                callee = self._calls.calls[index].callee
                reason = "takes sizes or memory besides tensors, or gives none"
                raise _NoInputs(f"{callee} {reason}, so it is not called alone")
            for argument in arguments:
                source = self._calls.source_of_variable(argument)
                if source is None:
                    continue
                part = self._other(source, name)
                if part is None:
                    waiting.append(source[0])
                else:
                    found[part.node] = None
        return found

    def _other(self, source: Source, name: str) -> Part | None:
        """Return the part of another node's value that a call gives."""
        own = any(each.node == name for each in self._parts.get(source, ()))
        others = () if own else self._parts.get(source, ())
        return next(iter(others), None)

    def compare(self, name: str, values: Mapping[str, Any], recipe: Recipe) -> Alone:
        """Run a node alone and compare it.

        Parameters
        ----------
        values
            Torch's, of the node and of those that `needed` returned.
        """
        made: dict[int, list[Any]] = {}
        found = []
        for (index, item), part in self._places[name]:
            try:
                actual = to_torch(self._run(index, name, values, made)[item])
            except (*TVM_ERRORS, LowerscopeError) as error:
                raise _NoInputs(f"it fails alone: {last_line(error)}") from error
            expected = _member(values[name], part)
            found.append(difference(actual, expected, recipe.tolerances))
        ran = [each.removeprefix("fx:") for index in made for each in self._nodes_of[index]]
        return Alone(
            max(each.max_abs for each in found),
            all(each.matches for each in found),
            "; ".join(each.reason for each in found if each.reason),
            tuple(dict.fromkeys(each for each in ran if each != name)),
        )

    def _run(
        self, index: int, name: str, values: Mapping[str, Any], made: dict[int, list[Any]]
    ) -> list[Any]:
        if index in made:
            return made[index]
        arguments = self._calls.arguments(index)
        assert arguments is not None, "needed() has looked at it"
        read = [self._value(each, name, values, made) for each in arguments]
        event, shapes = self._calls.calls[index].event, self._shapes[index]
        if event == f"{BUILTIN}reshape":
            made[index] = [to_tvm(to_torch(read[0]).reshape(shapes[0][0]))]
        else:
            made[index] = [tvm.runtime.empty(shape, dtype) for shape, dtype in shapes]
            self._progress.at_call(index, True)
            self._functions[event](*read, *made[index])
        return made[index]

    def _value(
        self, argument: Any, name: str, values: Mapping[str, Any], made: dict[int, list[Any]]
    ) -> Any:
        source = self._calls.source_of_variable(argument)
        if source is None:
            constant = self._calls.argument_of(argument)
            if isinstance(constant, ir.GenericConst):
                return constant.value
            given = self._given.get(hash(constant))
            if given is None:
                raise _NoInputs("no call gives one of its inputs by itself")
            return to_tvm(given) if isinstance(given, torch.Tensor) else given
        part = self._other(source, name)
        if part is None:
            return self._run(source[0], name, values, made)[source[1]]
        value = _member(values[part.node], part)
        if (tuple(value.shape), str(value.dtype).removeprefix("torch.")) != self._shapes[source[0]][
            source[1]
        ]:
            raise _NoInputs(f"torch's value of {part.node} has another shape or dtype")
        return to_tvm(value)


def _member(value: Any, part: Part) -> torch.Tensor:
    for step in part.path:
        value = value[step]
    if isinstance(value, (tuple, list, dict)):
        raise _NoInputs(f"{part.node} stands for one tensor, where torch has several")
    return held_from(value if isinstance(value, torch.Tensor) else torch.tensor(value))
