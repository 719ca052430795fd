"""What a run shows of each FX node: the time of its calls, and its value against torch's."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tvm import ir, relax

from lowerscope.core.calls import BoundCall, CallsOf, watch, watched
from lowerscope.core.errors import LowerscopeError, last_line
from lowerscope.core.execution.comparing import Difference, difference
from lowerscope.core.execution.running import Execution, to_torch
from lowerscope.core.execution.walking import Walk
from lowerscope.core.lowering.lowered import LoweredModel, NodeLowering
from lowerscope.core.lowering.relax_values import Held, held_from, is_tensor
from lowerscope.core.passes.bindings import bindings_by_name
from lowerscope.core.passes.following import inverse
from lowerscope.core.passes.transforming import TransformedModel
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.relax_bindings import bound_in
from lowerscope.core.run_records import CallRun, NodeRun
from lowerscope.core.run_steps import call_runs, calls_without_nodes
from lowerscope.core.stages import Stages
from lowerscope.core.tolerances import Tolerances
from lowerscope.core.tracing.tracing import TracedModel

BUDGET = 0.5
"""Seconds that the watched runs that are timed should take together."""

REPEATS = 20
"""Watched runs that are timed, at most; one at least."""


@dataclass(frozen=True)
class NodeRuns:
    """The records of nodes and bindings, and of the calls that they are about."""

    nodes: tuple[NodeRun, ...] = ()
    calls: tuple[CallRun, ...] = ()


def node_runs(
    stages: Stages,
    recipe: Recipe,
    inputs: Sequence[torch.Tensor],
    progress: Progress,
    *,
    repeats: int = REPEATS,
) -> NodeRuns:
    """Run again, watched, and return what that shows of each FX node and each binding.

    Of a source without torch, the calls alone. What cannot be told of a node is said in its record.

    Parameters
    ----------
    repeats
        Watched runs that are timed, at most; one at least.

    Raises
    ------
    Cancelled
        If the user has stopped it.
    """
    lowered, traced = stages.lowered, stages.traced
    if lowered is None or traced is None:
        return NodeRuns(calls=calls_without_nodes(stages, inputs, progress))
    progress.report("Comparing node by node")
    calls = CallsOf(stages.recorded, "main")
    owners = Owners(stages, lowered, calls)
    execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
    comparison = Comparison(stages, lowered, traced, recipe, inputs, owners)
    times: list[list[float]] = []
    try:
        first = watched(execution, calls.calls, comparison.take, progress)
        progress.check()
        progress.report("Timing node by node")
        # The first one was slowed down by what torch did in between.
        once = max(sum(first.seconds), 1e-6)
        for _ in range(max(1, min(repeats, int(BUDGET / once)))):
            times.append(watch(execution, calls.calls, progress=progress))
            progress.check()
    except LowerscopeError as error:
        return NodeRuns(tuple(NodeRun(id=each, reason=error.problem.what) for each in owners.all))
    medians = [statistics.median(each) * 1000 for each in zip(*times, strict=True)]
    return NodeRuns(
        nodes=tuple(_records(lowered, owners, comparison, medians)),
        calls=call_runs(
            stages, calls.calls, first.places, medians, owners.bindings_of, owners.nodes_of
        ),
    )


class Owners:
    """Which calls compute which FX nodes and bindings, and which call gives which value."""

    def __init__(self, stages: Stages, lowered: LoweredModel, calls: CallsOf) -> None:
        self.calls: tuple[BoundCall, ...] = calls.calls
        self._source_of = calls.source_of
        self._became = stages.transformed.bindings_in_main
        self._made_anew = _made_anew(stages.transformed)
        self.fates = stages.transformed.fates
        main = lowered.module["main"]
        bounds = bound_in("main", main)
        self._ids = {hash(each.binding.var): each.id for each in bounds}
        self._values = {each.id: each.binding.value for each in bounds}
        self._readers = _readers(main, self._ids, self._values)
        node_of = {
            f"relax:main/{name}": f"fx:{node.node}"
            for node in lowered.nodes.values()
            for name in node.bindings
        }
        self.all = (*(f"fx:{name}" for name in lowered.nodes), *self._values)
        origins = inverse(self._became)
        # Another name for a value takes no time.
        self.bindings_of = [
            tuple(each for each in origins.get(call.binding, ()) if not self._is_name(each))
            for call in self.calls
        ]
        self.nodes_of = [
            tuple(dict.fromkeys(node_of[each] for each in bindings if each in node_of))
            for bindings in self.bindings_of
        ]

    def calls_for(self, entity: str) -> tuple[int, ...]:
        """Return the indices of the calls that compute a node or a binding."""
        owners = self.nodes_of if entity.startswith("fx:") else self.bindings_of
        return tuple(index for index, each in enumerate(owners) if entity in each)

    def source_of(self, binding: str) -> tuple[int, int] | str:
        """Return call and tensor that are the value of a binding before the passes, or why not."""
        binding = self._named(binding)
        fate = self.fates.get(binding)
        if binding in self._made_anew:
            return f"not comparable: changed by {self._made_anew[binding]}"
        found = self._became.get(binding, ())
        if not found:
            return fate.text if fate is not None else "its binding is gone after the passes"
        together = {
            each
            for each, became in self._became.items()
            if found[-1] in became and not self._is_name(each)
        }
        if binding in together and len(together) > 1:
            # Of what is computed by one call, it gives what others read.
            given = [each for each in together if self._is_read_outside(each, together)]
            if given != [binding]:
                why = fate.text if fate is not None else "a call computes several bindings"
                return f"it has no value of its own: {why}"
        source = self._source_of(found[-1])
        return source if source is not None else "no call gives its value by itself"

    def binding_of(self, value: Any) -> str | None:
        """Return the id of the binding that a Relax value is the variable of."""
        return self._ids.get(hash(value))

    def _is_name(self, binding: str) -> bool:
        return hash(self._values[binding]) in self._ids

    def _named(self, binding: str) -> str:
        while self._is_name(binding):
            binding = self._ids[hash(self._values[binding])]
        return binding

    def _is_read_outside(self, binding: str, together: set[str]) -> bool:
        return any(
            self._is_read_outside(each, together)
            if self._is_name_in(each)
            else each not in together
            for each in self._readers.get(binding, ("",))
        )

    def _is_name_in(self, reader: str) -> bool:
        return bool(reader) and self._is_name(reader)


def _made_anew(transformed: TransformedModel) -> Mapping[str, str]:
    """Return, by lowered binding, the step that kept no more than its name and type.

    Where neither the variable nor the value is kept, nothing says that the value is to be the same:
    a pass that folds what follows into a convolution gives it other weights, and its name.
    """
    found: dict[str, str] = {}
    for number, run in enumerate(transformed.runs, start=1):
        if run.depth > 0 or run.after is None:
            continue
        guessed = bindings_by_name(run.before, run.after)
        if guessed:
            origins = transformed.origins_before(number)
            came = [origin for each in guessed for origin in origins.get(each, ())]
            found.update(dict.fromkeys(came, run.name.removeprefix("relax.")))
    return found


def _readers(
    main: Any, ids: Mapping[int, str], values: Mapping[str, Any]
) -> Mapping[str, tuple[str, ...]]:
    """Return which bindings read each binding; ``""`` for what is returned."""
    readers: dict[str, dict[str, None]] = {}

    def note(expression: Any, reader: str) -> None:
        read = ids.get(hash(expression))
        if read is not None and read != reader:
            readers.setdefault(read, {})[reader] = None

    for name, value in values.items():
        relax.analysis.post_order_visit(value, lambda each, at=name: note(each, at))
    relax.analysis.post_order_visit(main.body.body, lambda each: note(each, ""))
    return {read: tuple(found) for read, found in readers.items()}


@dataclass(frozen=True)
class Part:
    """A tensor of a node's value that is compared: ``path`` leads to it in torch's value."""

    node: str
    path: tuple[Any, ...]
    type: Any


class Comparison:
    """Compares values as soon as they are computed, and keeps the differences alone."""

    def __init__(
        self,
        stages: Stages,
        lowered: LoweredModel,
        traced: TracedModel,
        recipe: Recipe,
        inputs: Sequence[torch.Tensor],
        owners: Owners,
    ) -> None:
        self.found: dict[str, list[Difference]] = {}
        self.reasons: dict[str, str] = {}
        self._tolerances: Tolerances = recipe.tolerances
        self.parts: dict[int, list[tuple[int, Part]]] = {}
        self._left: dict[str, int] = {}
        self._values: dict[str, Any] = {}
        random = _random_nodes(lowered, traced)
        for node in traced.graph_module.graph.nodes:
            self._plan(lowered.nodes[node.name], node.op, random.get(node.name, ""), owners)
        self.walk = Walk(traced.graph_module, inputs, recipe.seed, self._left)

    def _plan(self, node: NodeLowering, opcode: str, random: str, owners: Owners) -> None:
        """Say which call gives each tensor of a node's value, or why nothing is compared."""
        reason = {
            "placeholder": "an input: it is given",
            "get_attr": "a part of the model: it is given",
            "output": "compared as the output of the model",
        }.get(opcode, "")
        if random:
            reason = f"depends on {random}, which draws random numbers"
        parts: list[tuple[int, int, Part]] = []
        for path, value, member in () if reason else _tensors(node.value, ()):
            binding = owners.binding_of(value)
            if binding is None:
                reason = "it is computed while translating, or given"
                break
            source = owners.source_of(binding)
            if isinstance(source, str):
                reason = source
                break
            index, item = source
            kind = value.ty if member is None else value.ty.fields[member]
            parts.append((index, item + (member or 0), Part(node.node, path, kind)))
        if reason or not parts:
            self.reasons[node.node] = reason or "its value is no tensor"
            return
        self._left[node.node] = len(parts)
        for index, item, part in parts:
            self.parts.setdefault(index, []).append((item, part))

    def take(self, index: int, tensors: tuple[Any, ...]) -> None:
        """Compare what a call has just computed."""
        for item, part in self.parts.get(index, ()):
            if part.node not in self.reasons:
                self._compare(part, to_torch(tensors[item]))

    def _compare(self, part: Part, actual: torch.Tensor) -> None:
        name = part.node
        if not _has_type(actual, part.type):
            self.reasons[name] = "its value has another shape or dtype after the passes"
            return
        try:
            if name not in self._values:
                self._values[name] = self.walk.take(name)
            expected = self._values[name]
            for step in part.path:
                expected = expected[step]
        except (RuntimeError, TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            self.reasons[name] = f"torch could not run the graph so far: {last_line(error)}"
            return
        if isinstance(expected, (tuple, list, dict)):
            # TVM's importers give one tensor for some operators that give several.
            self.reasons[name] = "it stands for one tensor, where torch has several"
            return
        if not isinstance(expected, torch.Tensor):
            expected = torch.tensor(expected)
        found = difference(actual, held_from(expected), self._tolerances)
        self.found.setdefault(name, []).append(found)
        self._left[name] -= 1
        if not self._left[name]:
            del self._values[name]

    def of(self, name: str) -> dict[str, Any]:
        """Return the fields of a node's record that are about its value."""
        found = self.found.get(name, [])
        if name in self.reasons or not found:
            return {"reason": self.reasons.get(name, "")}
        return {
            "max_abs_error": max(each.max_abs for each in found),
            "max_rel_error": max(each.max_rel for each in found),
            "matches": all(each.matches for each in found),
            "reason": "; ".join(each.reason for each in found if each.reason),
        }


def _random_nodes(lowered: LoweredModel, traced: TracedModel) -> Mapping[str, str]:
    """Return, by node, the node that draws the random numbers that it depends on."""
    random: dict[str, str] = {}
    for node in traced.graph_module.graph.nodes:
        sources = (random[each.name] for each in node.all_input_nodes if each.name in random)
        source = node.name if lowered.nodes[node.name].random else next(sources, "")
        if source:
            random[node.name] = source
            for changed in traced.mutations.get(node.name, ()):
                random[changed] = source
    return random


def _tensors(
    value: Any, path: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], Any, int | None]]:
    """Yield path, Relax value, and place in that if it is a tuple, of a node's tensors."""
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


def _has_type(actual: torch.Tensor, kind: Any) -> bool:
    """Return whether a tensor has the dtype, and the extents that are known, of a Relax type."""
    if str(actual.dtype).removeprefix("torch.") != str(kind.dtype) or actual.ndim != kind.ndim:
        return False
    extents = getattr(kind.shape, "values", ())
    return all(
        not hasattr(extent, "value") or int(extent.value) == size
        for extent, size in zip(extents, actual.shape, strict=False)
    )


def _records(
    lowered: LoweredModel, owners: Owners, comparison: Comparison, medians: Sequence[float]
) -> Iterator[NodeRun]:
    """Yield the records: nodes first. A binding has the error of the node whose value it is."""
    values: dict[str, str] = {}
    for node in lowered.nodes.values():
        binding = owners.binding_of(node.value)
        if binding is not None and node.node in comparison.found:
            values.setdefault(binding, node.node)
    for entity in owners.all:
        is_node = entity.startswith("fx:")
        name = entity.removeprefix("fx:") if is_node else values.get(entity, "")
        calls = owners.calls_for(entity)
        others = dict.fromkeys(each for index in calls for each in owners.nodes_of[index])
        yield NodeRun(
            id=entity,
            milliseconds=sum(medians[index] for index in calls) if calls else None,
            calls=calls,
            shared_with=tuple(each for each in others if is_node and each != entity),
            **(comparison.of(name) if name else {"reason": "it is not the value of a node"}),
        )
