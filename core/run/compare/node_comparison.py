"""Comparison of each FX node with torch's value, in a run and in isolation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import tvm
from tvm import ir, relax

from lowerscope.core.build.targets import one_torch_thread
from lowerscope.core.ir.relax import BUILTIN, relax_functions
from lowerscope.core.lowering.types import LoweredModel, NodeLowering
from lowerscope.core.lowering.values import EncodedTensor, held_from, is_tensor
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.run_records import (
    COMPARED,
    STATUS_OF,
    VERDICT_OF,
    ExactErrors,
    NodeStatus,
    OutputVerdict,
)
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.run.calls import CallsOf, Owners, Source
from lowerscope.core.run.compare.uninitialised import uninitialised
from lowerscope.core.run.compare.verdicts import (
    Difference,
    Exact,
    beside_float64,
    depends_on_random,
    difference,
    verdict_over,
    without_float64,
)
from lowerscope.core.run.execution import to_torch, to_tvm
from lowerscope.core.run.float64 import Float64Nodes
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS, TorchValues
from lowerscope.core.tracing.tracing import TracedModel


@dataclass(frozen=True)
class Found:
    """Distance of a node's value from torch's, over its tensors.

    ``together`` has the names of other nodes that had to be run with it. ``is_far`` as in
    `Difference`.
    """

    status: NodeStatus
    reason: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    not_finite: str = ""
    together: tuple[str, ...] = ()
    exact: ExactErrors | None = None
    is_far: bool = False

    @property
    def verdict(self) -> OutputVerdict | None:
        """The verdict on the value; ``None`` if it was not compared."""
        return VERDICT_OF[self.status] if self.status in COMPARED else None

    @property
    def matches(self) -> bool | None:
        """Return whether it matches; ``None`` if it was not compared or is inconclusive."""
        return {"matches": True, "rounding": True, "differs": False}.get(self.status)


class NotCompared(Exception):
    """A value cannot be compared; ``found`` says why."""

    def __init__(self, reason: str, status: NodeStatus = "not comparable") -> None:
        super().__init__(reason)
        self.found = Found(status, reason)


def fields_of(found: Found | None, own: Found | None) -> dict[str, Any]:
    """Return the fields of a `NodeRun` that are about its value."""
    found = found or Found("no reference")
    own = own or Found("no reference")
    return {
        "status": found.status,
        "matches": found.matches,
        "reason": found.reason,
        "max_abs_error": found.max_abs,
        "max_rel_error": found.max_rel,
        "not_finite": found.not_finite,
        "own_status": own.status,
        "own_abs_error": own.max_abs,
        "own_matches": own.matches,
        "own_reason": own.reason,
        "exact": found.exact,
        "own_exact": own.exact,
        "own_with": tuple(f"fx:{each}" for each in own.together),
    }


@dataclass(frozen=True)
class Part:
    """A compared tensor of a node's value."""

    node: str
    path: tuple[Any, ...]
    type: Any
    source: Source


_GIVEN = {
    "placeholder": _("an input: its value is given"),
    "get_attr": _("a part of the model: its value is given"),
    "output": _("compared as the output of the model"),
}
"""Reasons for not comparing a node, by opcode."""


class NodeParts:
    """The compared tensors of nodes, and their sources."""

    def __init__(self, lowered: LoweredModel, traced: TracedModel, owners: Owners) -> None:
        # The tensors of a node's value, by node in graph order.
        self.of: dict[str, tuple[Part, ...]] = {}
        self.reasons: dict[str, Found] = {}  # Why a node has none, by node.
        self._by_call: dict[int, list[Part]] = {}
        nodes = traced.graph_module.graph.nodes
        modules = dict(traced.graph_module.named_modules(remove_duplicate=False))
        # By node, why its value in a run is not compared where TVM has drawn other random numbers:
        # it depends on them. In isolation, on torch's inputs, it may be compared,
        self.random = _random_nodes(lowered, traced)
        # unless it draws them itself.
        self.draws = frozenset(name for name, each in lowered.nodes.items() if each.random)
        without_values = uninitialised(traced.graph_module.graph, modules, traced.values)
        for node in nodes:
            try:
                if node.op in _GIVEN:
                    raise NotCompared(_GIVEN[node.op], "no reference")
                if node.name in without_values:
                    raise NotCompared(_("its elements are not initialised"), "no reference")
                self.of[node.name] = tuple(_parts(lowered.nodes[node.name], owners))
            except NotCompared as error:
                self.reasons[node.name] = error.found
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

    Raises `NotCompared` if there is none.
    """
    for step in part.path:
        value = value[step]
    if isinstance(value, (tuple, list, dict)):
        # TVM's importers give one tensor for some operators that give several.
        raise NotCompared(_("it is one tensor, where torch has several"), "no reference")
    return held_from(value if isinstance(value, torch.Tensor) else torch.tensor(value))


def as_held(exact: Exact) -> Exact:
    """Return a tensor in float64 as TVM holds it: complex numbers as pairs of floats."""
    value, noise = held_from(exact.value), exact.noise
    if noise is not None and noise.shape != value.shape:
        noise = noise.unsqueeze(-1).expand_as(value)
    sides = exact.sides if value is exact.value else None
    return replace(exact, value=value, noise=noise, sides=sides)


def has_type(actual: torch.Tensor, kind: Any) -> bool:
    """Return whether a tensor has the dtype and the known extents of a Relax type."""
    if str(actual.dtype).removeprefix("torch.") != str(kind.dtype) or actual.ndim != kind.ndim:
        return False
    extents = getattr(kind.shape, "values", ())
    return all(
        not hasattr(extent, "value") or int(extent.value) == size
        for extent, size in zip(extents, actual.shape, strict=False)
    )


def channels_first(actual: torch.Tensor, kind: Any) -> torch.Tensor:
    """Return a tensor of a Relax type that a pass gave the channels last with them second again.

    Any other tensor is returned as it is.
    """
    if actual.ndim < 3 or has_type(actual, kind):
        return actual
    moved = actual.movedim(-1, 1)
    return moved if has_type(moved, kind) else actual


def _parts(node: NodeLowering, owners: Owners) -> Iterator[Part]:
    """Yield the tensors of a node's value, with the calls that compute them."""
    is_empty = True
    for path, value, member in tensors_of(node.value, ()):
        is_empty = False
        binding = owners.binding_of(value)
        if binding is None:
            raise NotCompared(_("it is computed during the translation, or given"), "no reference")
        source = owners.source_of(binding, member or 0)
        if isinstance(source, str):
            raise NotCompared(source)
        kind = value.ty if member is None else value.ty.fields[member]
        yield Part(node.node, path, kind, source)
    if is_empty:
        raise NotCompared(_("its value is not a tensor"), "no reference")


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
        name: Found("not comparable", depends_on_random(source)) for name, source in random.items()
    }


def tensors_of(
    value: Any, path: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], Any, int | None]]:
    """Yield path, Relax value, and tuple index if any, of a node's tensors."""
    if isinstance(value, (tuple, list)):
        for index, each in enumerate(value):
            yield from tensors_of(each, (*path, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from tensors_of(each, (*path, key))
    elif isinstance(value, EncodedTensor):
        yield path, value.value, None
    elif is_tensor(value):
        yield path, value, None
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        for index in range(len(value.ty.fields)):
            yield (*path, index), value, index


@dataclass(frozen=True)
class RunAlone:
    """Isolated run of a node: its tensors in order, and the names of others that had to run.

    `functions`: names of the functions that were called.
    """

    values: tuple[torch.Tensor, ...]
    together: tuple[str, ...]
    functions: tuple[str, ...]

    def given(self, reads: Sequence[str]) -> list[str]:
        """Return those of the nodes read of which no tensor was computed again.

        An index of a sort may be read where what it sorts is computed again.
        """
        return [each for each in reads if each not in self.together]


class NodesAlone:
    """The calls of a run, which can be repeated for one node with torch's values.

    That finds the nodes in which an error starts. The kernels are those of the run. The calls that
    compute a node's value are repeated, back to reads of another node's value, which is replaced by
    torch's.
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
        self._draws = {
            part.source[0]: name for name in parts.draws for part in parts.of.get(name, ())
        }
        main = dict(relax_functions(calls.before))["main"]
        self._given = {
            hash(variable): value for variable, value in zip(main.params, arguments, strict=True)
        }
        # By node, the nodes whose values are read to run it; nodes that cannot be run alone are
        # absent.
        self.reads: dict[str, tuple[str, ...]] = {}
        self.reasons: dict[str, Found] = {}  # Why a node cannot be run alone, by node.
        for name in parts.of:
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

        Raises `NotCompared` if it cannot be run so, or fails.
        """
        made: dict[int, list[Any]] = {}
        given = tuple(
            channels_first(
                to_torch(self._run(part.source[0], name, values, made)[part.source[1]]), part.type
            )
            for part in self._parts.of[name]
        )
        ran = [each.removeprefix("fx:") for index in made for each in self._nodes_of[index]]
        return RunAlone(
            given,
            tuple(dict.fromkeys(each for each in ran if each != name)),
            tuple(self._calls.calls[index].callee for index in made),
        )

    def _needed(self, name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        seen: set[int] = set()
        waiting = [part.source[0] for part in self._parts.of[name]]
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            if index in self._draws:
                raise NotCompared(
                    _(
                        "{node} draws random numbers anew at each call",
                        node=self._draws[index],
                    )
                )
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
            _(
                "{callee} takes sizes or memory besides tensors, or returns none, so it is not "
                "called alone",
                callee=callee,
            )
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
            raise NotCompared(
                _("it fails alone: {last_line}", last_line=last_line(error))
            ) from error
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
                raise NotCompared(_("no call gives one of its inputs by itself"))
            return to_tvm(given) if isinstance(given, torch.Tensor) else given
        part = self._other(source, name)
        if part is None:
            return self._run(source[0], name, values, made)[source[1]]
        value = torch_tensor(values.of(part.node), part)
        # Of a call of a function of Relax, such as a loop, no shapes are known.
        known = self._shapes.get(source[0])
        if known is not None and tuple(value.shape) != known[source[1]][0] and value.ndim > 2:
            # A pass gave it the channels last.
            value = value.movedim(1, -1).contiguous()
        found = tuple(value.shape), str(value.dtype).removeprefix("torch.")
        if known is not None and found != known[source[1]]:
            raise NotCompared(
                _("torch's value of {node} has another shape or dtype", node=part.node)
            )
        return to_tvm(value)


class NodeComparison:
    """Comparison of the values of nodes with torch's, call by call.

    A node's value in the run is compared first, and right after it the value that the node gives in
    isolation: torch's values are cached no longer than that.
    """

    def __init__(
        self,
        parts: NodeParts,
        alone: NodesAlone,
        traced: TracedModel,
        inputs: Sequence[torch.Tensor],
        seed: int,
        tolerances: Tolerances,
        sums: Mapping[str, float],
    ) -> None:
        self.in_run: dict[str, Found] = dict(parts.reasons)
        self.alone = dict(self.in_run)
        self._parts, self._alone, self._tolerances = parts, alone, tolerances
        self._left = {name: len(each) for name, each in parts.of.items()}
        self._found: dict[str, list[Difference]] = {}
        self._unread: dict[str, Found] = {}
        uses = Counter(list(parts.of))
        for reads in alone.reads.values():
            uses.update(reads)
        self._values = TorchValues(traced.graph_module, inputs, seed, uses)
        self._exact = Float64Nodes(traced, inputs, seed, self._pending, sums)
        # Whether TVM has drawn other random numbers than torch, such as after one that a pass left
        # out.
        self._drew_others = False
        self._has_differed = False

    def _pending(self) -> list[str]:
        return [name for name, count in self._left.items() if count]

    def take(self, index: int, tensors: Sequence[torch.Tensor], stale: str = "") -> None:
        """Compare the results of a call; once for each call."""
        for part in self._parts.given_by(index):
            name = part.node
            if stale:
                self._unread[name] = Found("not comparable", stale)
            elif name not in self.in_run:
                found = self._in_run(part, tensors)
                if isinstance(found, Found):
                    self.in_run[name] = found
                else:
                    self._found.setdefault(name, []).append(found)
            self._left[name] -= 1
            if not self._left[name]:
                self._finish(name)

    def _in_run(self, part: Part, tensors: Sequence[torch.Tensor]) -> Difference | Found:
        """Return the difference of a tensor, or why it was not compared."""
        random = self._parts.random.get(part.node)
        if random is not None and self._drew_others:
            return random
        actual = channels_first(tensors[part.source[1]], part.type)
        if not has_type(actual, part.type):
            return Found(
                "not comparable", _("its value has another shape or dtype after the passes")
            )
        try:
            expected = self._expected(part)
        except NotCompared as error:
            return error.found
        found = self._difference(actual, expected)
        if random is not None and part.node in self._parts.draws and not found.matches:
            self._drew_others = True
            return random
        exact = None if found.matches else self._exact.in_run(part.node, part.path)
        if random is not None and exact is not None:
            # It may change by other random numbers, and not by rounding.
            exact = replace(exact, noise=None, sides=None)
        if exact is not None and self._has_differed:
            # Its inputs may differ: the other sides of jumps, which take long, explain nothing.
            exact = replace(exact, sides=None)
        found = self._beside(found, actual, expected, exact)
        if found.verdict == "differ":
            dtype = self._exact.computed_in(part.node)
            found = without_float64(found, actual, expected, dtype, self._tolerances)
        self._has_differed |= found.verdict == "differ"
        return found

    def _beside(
        self,
        found: Difference,
        actual: torch.Tensor,
        expected: torch.Tensor,
        exact: Exact | None,
    ) -> Difference:
        if exact is None:
            return found
        exact = as_held(exact)
        return beside_float64(found, actual, expected, exact, self._tolerances)

    def _difference(self, actual: torch.Tensor, expected: torch.Tensor) -> Difference:
        # Steps are short: more threads would wait for each other, and take time from TVM's.
        with one_torch_thread():
            return difference(actual, expected, self._tolerances)

    def _expected(self, part: Part) -> torch.Tensor:
        try:
            return torch_tensor(self._values.of(part.node), part)
        except TORCH_ERRORS as error:
            reason = _(
                "torch could not run the graph so far: {last_line}", last_line=last_line(error)
            )
            raise NotCompared(reason, "no reference") from error

    def _finish(self, name: str) -> None:
        """Record the finding of a node, and run it in isolation."""
        # Leave out unread tensors, unless there are no others.
        found = self._found.pop(name, ())
        unread = None if found else self._unread.get(name)
        self.in_run.setdefault(name, unread or found_over(found))
        try:
            self.alone[name] = self._found_alone(name)
        except NotCompared as error:
            self.alone[name] = error.found
        self._exact.used(name)
        for each in (name, *self._alone.reads.get(name, ())):
            self._values.used(each)

    def _found_alone(self, name: str) -> Found:
        if name in self._alone.reasons:
            return self._alone.reasons[name]
        parts = self._parts.of[name]
        expected = [self._expected(part) for part in parts]
        ran = self._alone.run(name, self._values)
        pairs = list(zip(ran.values, expected, strict=True))
        found = [self._difference(*pair) for pair in pairs]
        if not all(each.matches for each in found):
            reads, paths = ran.given(self._alone.reads[name]), [part.path for part in parts]
            exact = self._exact.alone(name, paths, reads, self._values, ran.functions)
            rights: Sequence[Exact | None] = [None] * len(found) if exact is None else exact
            found = [
                each if each.matches else self._beside(each, *pair, right)
                for each, pair, right in zip(found, pairs, rights, strict=True)
            ]
        return found_over(found, ran.together)


def found_over(found: Sequence[Difference], together: tuple[str, ...] = ()) -> Found:
    """Return the finding over all tensors of a node."""
    measured = [each for each in found if each.is_measured]
    return Found(
        STATUS_OF[verdict_over(found)],
        _("; ").join(each.reason for each in found if each.reason),
        max((each.max_abs for each in measured), default=None),
        max((each.max_rel for each in measured), default=None),
        _("; ").join(each.not_finite for each in found if each.not_finite),
        together,
        max((each.exact for each in found if each.exact), key=lambda each: each.tvm, default=None),
        any(each.is_far for each in found),
    )
