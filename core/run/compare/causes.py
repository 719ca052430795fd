"""The node where a difference starts, where the calls of a run do not tell it.

A call that computes several nodes gives the value of the last one only, and a tolerance may hide
what a node does wrong. Such nodes are computed again: beside float64, and each as it was
translated, without the passes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import tvm
from tvm import relax, tirx
from tvm.relax.analysis import free_vars

from lowerscope.core.build.build import recorded_build
from lowerscope.core.build.targets import one_torch_thread
from lowerscope.core.lowering.builder import functions_of
from lowerscope.core.lowering.partial_module import leaves_of
from lowerscope.core.lowering.types import LoweredModel
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.run_records import COMPARED, NodeRun
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.run.compare.node_comparison import (
    Found,
    NotCompared,
    Part,
    as_held,
    found_over,
    has_type,
    tensors_of,
    torch_tensor,
)
from lowerscope.core.run.compare.verdicts import (
    HALVES,
    Difference,
    Exact,
    against_float64,
    beside_float64,
    beyond_rounding,
    difference,
)
from lowerscope.core.run.execution import Execution
from lowerscope.core.run.float64 import Float64Nodes, rounding_of_sums
from lowerscope.core.run.implementations import coarsest_of
from lowerscope.core.run.kept_run import KeptRun
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS, TorchValues
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.example_run import tensors_in
from lowerscope.core.tracing.tracing import TracedModel

MOST = 12
"""Most nodes that are computed again, each with the others of its call."""

_LESS_ACCURATE = 1.5
"""Ratio of a node's mean error to torch's beyond which it is computed again."""


@dataclass(frozen=True)
class Cause:
    """The node where a difference starts, and what is found of nodes alone, by name."""

    node: str
    alone: Mapping[str, Found]


def cause_of(
    stages: Stages,
    tolerances: Tolerances,
    progress: Progress,
    kept: KeptRun,
    nodes: Sequence[NodeRun],
    first: str,
    *,
    is_differing: bool,
) -> Cause | None:
    """Return the node where a difference starts; ``None`` if it is not known better.

    Args:
        first: The first node whose value differs in the run; empty for none.
        is_differing: Whether the outputs differ, if only in what is no value of a call.
    """
    traced = kept.traced
    assert traced is not None
    leading = names_before(traced, first)
    runs = {each.id.removeprefix("fx:"): each for each in nodes}
    suspects = [each for each in leading if each in runs and _is_suspect(kept, each)]
    unseen: Sequence[str] = ()
    if is_differing and not first and not suspects:
        # No call has the value of the node.
        unseen = [each for each in leading if each in runs and not _is_compared(kept, each)][-MOST:]
    if not suspects and not first and not unseen:
        return None
    progress.report(_("Looking for the node where the difference starts"))
    unknown = {name for name in runs if not _is_compared(kept, name)}
    again = _Again(stages, kept, tolerances, unknown, is_differing=is_differing)
    ratios = again.ratios(suspects, progress.check)
    for name in filter(None, (first, *unseen)):
        ratios.setdefault(name, math.inf)
    worst = sorted(ratios, key=lambda name: -ratios[name])[:MOST]
    groups = {
        name: [each for each in leading if each in again.members(_together(runs[name]))]
        for name in leading
        if name in worst
    }
    again.expect(groups)
    for name, members in groups.items():
        for member in members if len(members) > 1 or name in unseen else ():
            progress.check()
            found = again.translated(member)
            if found is not None and found.status == "differs":
                last = again.translated(name)
                return Cause(
                    member, {member: found} if last is None else {name: last, member: found}
                )
        whole = again.alone(name)
        if whole is not None and whole.status == "differs":
            return Cause(name, {name: whole})
    return None


def is_wrong_as_translated(
    stages: Stages, tolerances: Tolerances, kept: KeptRun, name: str
) -> bool:
    """Return whether a node as it was translated differs on torch's inputs by float64."""
    again = _Again(stages, kept, tolerances, (), is_differing=False)
    again.expect({name: (name,)})
    found = again.translated(name)
    return found is not None and found.status == "differs"


def names_before(traced: TracedModel, first: str = "") -> list[str]:
    """Return the names of the nodes that a node, or else the outputs, depends on, with its own."""
    found: set[str] = set()
    nodes = traced.graph_module.graph.nodes
    for node in reversed(nodes):
        is_read = node.name in found or not found.isdisjoint(traced.mutations.get(node.name, ()))
        if is_read or node.name == first:
            found.add(node.name)
        elif node.op != "output" or first:
            continue
        found.update(each.name for each in node.all_input_nodes)
    return [each.name for each in nodes if each.name in found]


def _is_compared(kept: KeptRun, name: str) -> bool:
    return any(
        name in found and found[name].status in COMPARED
        for found in (kept.found_alone, kept.in_run)
    )


def _is_suspect(kept: KeptRun, name: str) -> bool:
    alone, in_run = kept.found_alone.get(name), kept.in_run.get(name)
    found = alone if alone is not None and alone.status in COMPARED else in_run
    return found is not None and (found.status == "differs" or found.is_far)


def _together(run: NodeRun) -> set[str]:
    return {each.removeprefix("fx:") for each in (run.id, *run.own_with, *run.shared_with)}


class _Again:
    """The nodes of a run, computed once more on torch's inputs.

    Args:
        unknown: Nodes of which no call has the value, such as those that the passes fold.
        is_differing: Whether the outputs differ. If not, a node does by float64 alone.
    """

    def __init__(
        self,
        stages: Stages,
        kept: KeptRun,
        tolerances: Tolerances,
        unknown: Collection[str],
        *,
        is_differing: bool,
    ) -> None:
        assert stages.lowered is not None
        self._unknown, self._is_differing = unknown, is_differing
        self._kept, self._tolerances = kept, tolerances
        self._nodes = TranslatedNodes(stages, stages.lowered, kept.inputs)
        self._coarsest = coarsest = coarsest_of(stages, kept.inputs)
        tensorir = stages.recorded.tensorir
        self._sums = {name: rounding_of_sums(each, coarsest) for name, each in tensorir.items()}
        self._values = self._torch_values(())
        self._found: dict[str, Found | None] = {}

    def _torch_values(self, names: Iterable[str]) -> TorchValues:
        traced = self._kept.traced
        assert traced is not None
        return TorchValues(traced.graph_module, self._kept.inputs, self._kept.seed, Counter(names))

    def ratios(self, names: Sequence[str], check: Callable[[], None]) -> dict[str, float]:
        """Return the ratios of mean errors to torch's for nodes that may be wrong, by name."""
        kept = self._kept
        assert kept.traced is not None
        assert kept.parts is not None
        read = {name: (name, *self._reads_alone(name)) for name in names}
        self._values = self._torch_values(itertools.chain(*read.values()))
        whole = Float64Nodes(kept.traced, kept.inputs, kept.seed, lambda: names, self._sums)
        found: dict[str, float] = {}
        for name in names:
            check()
            run = kept.found_alone.get(name)
            is_alone = run is not None and run.status in COMPARED
            seen = self._alone(name) if is_alone else self._in_run(name, whole)
            errors = [against_float64(ours, theirs, right) for ours, theirs, right in seen if right]
            ratio = max((each.ratio for each in errors if each and each.decides), default=0.0)
            if run is not None and run.status == "differs":
                found[name] = math.inf
            # Of 16-bit floats, both sides may be as far from float64, and apart.
            elif ratio > _LESS_ACCURATE or any(theirs.dtype in HALVES for _, theirs, _ in seen):
                found[name] = ratio
            whole.used(name)
            for each in read[name]:
                self._values.used(each)
        return found

    def _in_run(self, name: str, whole: Float64Nodes) -> list[Compared]:
        """Return the tensors of a node in the run."""
        kept = self._kept
        assert kept.parts is not None
        found: list[Compared] = []
        for part in kept.parts.of[name]:
            ours, right = kept.value(part), whole.in_run(name, part.path)
            try:
                theirs = torch_tensor(self._values.of(name), part)
            except (NotCompared, *TORCH_ERRORS):
                return []
            if ours is None or right is None:
                return []
            found.append((ours, theirs, as_held(right)))
        return found

    def expect(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Begin again, with the nodes that may be computed, by the last one of their call."""
        names = dict.fromkeys((*groups, *itertools.chain(*groups.values())))
        reads = [(name, *self._reads_alone(name), *self._nodes.reads(name)) for name in names]
        self._values = self._torch_values(itertools.chain(*reads))

    def members(self, names: Collection[str]) -> set[str]:
        """Return some nodes, and those that they read and of which no call has the value."""
        assert self._kept.traced is not None
        graph = self._kept.traced.graph_module.graph
        found = set(names)
        for node in reversed(graph.nodes):
            if node.name in found:
                names = [each.name for each in node.all_input_nodes]
                found.update(
                    each for each in names if each in self._unknown or self._nodes.is_alias(each)
                )
        return found

    def _reads_alone(self, name: str) -> tuple[str, ...]:
        alone = self._kept.alone
        return () if alone is None else alone.reads.get(name, ())

    def alone(self, name: str) -> Found | None:
        """Return what the calls of a node make of torch's inputs, within the tolerance or not."""
        found = [self._judged(*each) for each in self._alone(name)]
        together = self._kept.found_alone[name].together if name in self._kept.found_alone else ()
        return found_over(found, together) if found else None

    def _alone(self, name: str) -> list[Compared]:
        alone, parts = self._kept.alone, self._kept.parts
        assert parts is not None
        if alone is None or name not in alone.reads:
            return []
        try:
            ran = alone.run(name, self._values)
            own = parts.of[name]
            expected = [torch_tensor(self._values.of(name), each) for each in own]
        except (NotCompared, *TORCH_ERRORS):
            return []
        paths = [each.path for each in own]
        reads = ran.given(alone.reads[name])
        rights = self._exact(name, paths, reads, self._sums, ran.functions)
        return list(zip(ran.values, expected, rights, strict=True))

    def translated(self, name: str) -> Found | None:
        """Return what a node as it was translated makes of torch's inputs, if that is known."""
        if name not in self._found:
            self._found[name] = self._translated(name)
        return self._found[name]

    def _translated(self, name: str) -> Found | None:
        parts = self._kept.parts
        assert parts is not None
        reason = parts.reasons.get(name)
        if name in parts.draws or (reason is not None and reason.status == "no reference"):
            return None
        try:
            ran = self._nodes.run(name, self._values)
            value = self._values.of(name)
            expected = [torch_tensor(value, each) for each in self._nodes.of(name)]
        except (NotCompared, LowerscopeError, *TORCH_ERRORS, *TVM_ERRORS):
            return None
        if ran is None:
            return None
        sums = {key: rounding_of_sums(each, self._coarsest) for key, each in ran.tensorir.items()}
        paths = [each.path for each in self._nodes.of(name)]
        rights = self._exact(name, paths, self._nodes.reads(name), sums, tuple(sums))
        pairs = zip(ran.values, expected, rights, strict=True)
        given = [self._values.of(each) for each in self._nodes.reads(name)]
        is_whole = all(map(_is_whole, (value, *given)))
        return found_over([self._judged(*each, is_whole=is_whole) for each in pairs])

    def _exact(
        self,
        name: str,
        paths: Sequence[Sequence[Any]],
        reads: Sequence[str],
        sums: Mapping[str, float],
        functions: Sequence[str],
    ) -> Sequence[Exact | None]:
        kept = self._kept
        assert kept.traced is not None
        exact = Float64Nodes(kept.traced, kept.inputs, kept.seed, list, sums)
        found = exact.alone(name, paths, reads, self._values, functions)
        if found is None:
            return [None] * len(paths)
        return list(map(as_held, found))

    def _judged(
        self,
        actual: torch.Tensor,
        expected: torch.Tensor,
        exact: Exact | None,
        *,
        is_whole: bool = False,
    ) -> Difference:
        with one_torch_thread():
            found = difference(actual, expected, self._tolerances)
        if exact is not None and not found.matches:
            found = beside_float64(found, actual, expected, exact, self._tolerances)
        elif exact is not None:
            found = beyond_rounding(found, actual, expected, exact, self._tolerances)
        # Integers of integers are not rounded.
        if found.verdict == "differ" and not self._is_differing and not is_whole:
            seen = None if exact is None else against_float64(actual, expected, exact)
            return found if seen is not None and seen.decides else replace(found, matches=True)
        return found


def _is_whole(value: Any) -> bool:
    """Return whether all tensors in a value are of integers or booleans."""
    return not any(each.is_floating_point() or each.is_complex() for each in tensors_in(value))


Compared = tuple[torch.Tensor, torch.Tensor, Exact | None]
"""A tensor, torch's, and that in float64 if it is known."""


@dataclass(frozen=True)
class TranslatedRun:
    """The tensors of a node as it was translated, and the functions that computed them."""

    values: tuple[torch.Tensor, ...]
    tensorir: Mapping[str, Any]


class TranslatedNodes:
    """Nodes as they were translated, each compiled and run by itself, without the passes.

    Args:
        inputs: Of the run. The sizes of named dimensions are theirs.
    """

    def __init__(
        self, stages: Stages, lowered: LoweredModel, inputs: Sequence[torch.Tensor]
    ) -> None:
        self._stages, self._lowered = stages, lowered
        self._sizes: dict[Any, int] = {}
        parameters = lowered.module["main"].params
        for parameter, value in zip(parameters, inputs, strict=False):
            extents = getattr(getattr(parameter.ty, "shape", None), "values", ())
            for extent, size in zip(extents, value.shape, strict=False):
                if isinstance(extent, tirx.Var):
                    self._sizes.setdefault(extent, size)
        blocks = lowered.module["main"].body.blocks
        self._bindings = [each for block in blocks for each in block.bindings]
        self._bound = {each.var: place for place, each in enumerate(self._bindings)}
        self._tensors: dict[Any, Part] = {}
        for name, node in lowered.nodes.items():
            for path, value, member in tensors_of(node.value, ()):
                if member is None and isinstance(value, relax.Var):
                    self._tensors.setdefault(value, Part(name, path, value.ty, _NONE))

    def of(self, name: str) -> list[Part]:
        """Return the tensors of a node."""
        found = tensors_of(self._lowered.nodes[name].value, ())
        return [
            Part(name, path, value.ty if member is None else value.ty.fields[member], _NONE)
            for path, value, member in found
        ]

    def is_alias(self, name: str) -> bool:
        """Return whether a node is the value of another."""
        node = self._lowered.nodes[name]
        values = list(leaves_of(node.value))
        owners = [self._tensors[each].node for each in values if each in self._tensors]
        return not node.bindings and len(owners) == len(values) > 0 and name not in owners

    def reads(self, name: str) -> tuple[str, ...]:
        """Return the nodes whose values a node is given."""
        _bindings, given = self._parts(name) or ([], {})
        return tuple(dict.fromkeys(each.node for each in given.values()))

    def _parts(self, name: str) -> tuple[list[Any], dict[Any, Part]] | None:
        """Return the bindings that compute a node, and the tensors of others that they read.

        ``None`` if they read something that is no node's value.
        """
        node = self._lowered.nodes[name]
        own = set(node.bindings)
        needed: set[int] = set()
        given: dict[Any, Part] = {}
        waiting = list(leaves_of(node.value))
        seen: set[Any] = set()
        while waiting:
            variable = waiting.pop()
            if not isinstance(variable, relax.Var) or variable in seen:
                continue
            seen.add(variable)
            place = self._bound.get(variable)
            part = self._tensors.get(variable)
            if part is not None and (place is None or variable.name not in own):
                given[variable] = part
            elif place is not None:
                needed.add(place)
                waiting.extend(free_vars(self._bindings[place].value))
            else:
                return None
        return [self._bindings[place] for place in sorted(needed)], given

    def run(self, name: str, values: TorchValues) -> TranslatedRun | None:
        """Run a node on torch's values; ``None`` if that is not possible.

        Raises `NotCompared` if torch has no such values, and a `LowerscopeError` if it fails.
        """
        found = self._parts(name)
        if found is None:
            return None
        bindings, given = found
        arguments = {key: torch_tensor(values.of(part.node), part) for key, part in given.items()}
        if not all(has_type(arguments[key], part.type) for key, part in given.items()):
            return None
        results = list(leaves_of(self._lowered.nodes[name].value))
        if not bindings:
            # It is the value of another node.
            if arguments.keys() != set(results):
                return None
            return TranslatedRun(tuple(arguments[each] for each in results), {})
        with self._stages.loaded.environment():
            built = recorded_build(self._module(bindings, given, results), self._stages.target)
        with self._stages.running():
            sized = [torch.empty(size, dtype=torch.int8) for size in self._sizes.values()]
            given_to_main = [*arguments.values(), *sized]
            outputs = Execution(built.built.executable, "main", given_to_main).outputs()
        return TranslatedRun(outputs, built.tensorir)

    def _module(
        self, bindings: Sequence[Any], given: Collection[Any], results: Sequence[Any]
    ) -> tvm.IRModule:
        module = self._lowered.module
        inputs = [relax.Var(f"input_{place}", each.ty) for place, each in enumerate(given)]
        outputs = [relax.Var(f"output_{place}", each.ty) for place, each in enumerate(results)]
        pairs = [*zip(given, inputs, strict=True), *zip(outputs, results, strict=True)]
        names = [relax.VarBinding(*each) for each in pairs]
        block = [*names[: len(inputs)], *bindings, *names[len(inputs) :]]
        builder = relax.BlockBuilder()
        attributes = dict(module["main"].attrs.items())
        # A node may read "length + 1" of what it is given, and nothing else tells "length".
        sized = [relax.Var(f"size_{n}", relax.TensorType([n], "int8")) for n in self._sizes]
        with builder.function("main", params=[*inputs, *sized], attrs=attributes):
            builder._end_block()
            builder._func._blocks.append(relax.DataflowBlock(block))
            builder._begin_binding_block()
            builder.emit_func_output(relax.Tuple(outputs))
        used = functions_of(bindings, dict(module.functions_items()))
        functions = {
            variable: function
            for variable, function in module.functions_items()
            if variable.name_hint in used
        }
        main = builder.get()["main"]
        return tvm.IRModule({**functions, module.get_global_var("main"): main}, attrs=module.attrs)


_NONE = (0, 0)
"""Source of a tensor that no call of the run gives."""
