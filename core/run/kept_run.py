"""Cached values of a run and of torch, loaded per tensor on demand.

Torch's values are not stored: the graph is run again up to the requested node.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import torch
import tvm
from tvm import ir, relax

from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import Elements, elements_of
from lowerscope.core.lowering.torch_operators import operator_name
from lowerscope.core.lowering.values import held_from
from lowerscope.core.model.comparison_records import (
    CallSide,
    Comparison,
    ErrorBudget,
    NodeErrors,
    RunStep,
    Saved,
    StepTensor,
    TensorKind,
    TensorPlace,
    WeightDtype,
    Window,
)
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    ComparisonQuery,
    NodeErrorsQuery,
    RunStepQuery,
    SaveRunValuesQuery,
    WindowQuery,
    answers,
)
from lowerscope.core.model.run_records import COMPARED, NOT_THERE
from lowerscope.core.model.snapshot import TensorStatistics
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.passes.bindings import inverse
from lowerscope.core.run.calls import CallsOf, Owners, Source, bytecode_of
from lowerscope.core.run.compare.node_comparison import (
    Found,
    NodeParts,
    NodesAlone,
    NotCompared,
    Part,
    channels_first,
    has_type,
    torch_tensor,
)
from lowerscope.core.run.compare.tensor_values import (
    as_array,
    comparable,
    compared,
    constants_by_name,
    first_of,
    save_array,
    signed_difference,
    statistics_of,
    window,
)
from lowerscope.core.run.compare.verdicts import difference, tolerance_for
from lowerscope.core.run.float64 import ERRORS, Float64Nodes, Referee, relative_error
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS, TorchValues
from lowerscope.core.sandbox.memory_limit import is_shortage
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.tracing.example_run import tensors_in
from lowerscope.core.tracing.tracing import TracedModel


@dataclass(frozen=True, eq=False)
class KeptTensor:
    """A tensor at the time that it was read or written."""

    shape: tuple[int, ...]
    dtype: str
    value: torch.Tensor | None  # ``None`` beyond the budget
    # Of a tensor beyond the budget; for others they are computed on demand.
    statistics: TensorStatistics | None = None
    source: Source | None = None  # the call that wrote it; ``None`` for inputs and weights
    checksum: int = 0

    def as_part(self, part: Part) -> KeptTensor:
        """Return the tensor with the channels where a node's value has them."""
        if self.value is None:
            return self
        value = channels_first(self.value, part.type)
        return self if value is self.value else replace(self, shape=tuple(value.shape), value=value)


@dataclass
class KeptCall:
    """Inputs and outputs of a call."""

    read: tuple[KeptTensor, ...] = ()
    written: tuple[KeptTensor, ...] = ()
    # Whether an input differs from the value that was written: the memory was reused.
    is_stale: bool = False

    def on(self, side: CallSide) -> tuple[KeptTensor, ...]:
        """Return its inputs, or its outputs."""
        return self.read if side == "read" else self.written

    @property
    def is_kept(self) -> bool:
        """Return whether all of it is cached."""
        return all(each.value is not None for each in (*self.read, *self.written))


@dataclass
class KeptValues:
    """Cached values of one run, filled during an instrumented run: see `node_runs.watched`.

    Memory is reused by later calls, so outputs are copied at once; a tensor that several calls read
    is stored once, and weights and inputs are not copied, as they do not change.
    """

    budget: int
    sources_of: Callable[[int], Sequence[Source | None]]
    given: Collection[int] = ()  # addresses of weights and inputs, which are never written
    calls: dict[int, KeptCall] = field(default_factory=dict)
    size: int = 0
    _at: dict[int, KeptTensor] = field(default_factory=dict)

    def begins(self, index: int, tensors: Sequence[Any]) -> None:
        """Store the inputs of a call that is about to begin."""
        sources = self.sources_of(index)
        known = sources if len(sources) == len(tensors) else [None] * len(tensors)
        call = KeptCall()
        read = []
        for tensor, source in zip(tensors, known, strict=True):
            view = torch.utils.dlpack.from_dlpack(tensor)
            written = self._written(source)
            changed = written is not None and not _holds(written, view)
            before = None if source is None else self.calls.get(source[0])
            call.is_stale |= changed or (before is not None and before.is_stale)
            read.append(written if written and not changed else self._kept(view, source))
            self._at[view.data_ptr()] = read[-1]
        call.read = tuple(read)
        self.calls[index] = call

    def took(self, index: int, tensors: Sequence[Any]) -> bool:
        """Store the outputs of a call; return whether all of it is cached."""
        written = []
        for item, tensor in enumerate(tensors):
            if not isinstance(tensor, tvm.runtime.Tensor):
                return False
            view = torch.utils.dlpack.from_dlpack(tensor)
            written.append(self._kept(view, (index, item)))
            self._at[view.data_ptr()] = written[-1]
        self.calls.setdefault(index, KeptCall()).written = tuple(written)
        return all(each.value is not None for each in written)

    @property
    def complete_calls(self) -> int:
        """Number of calls that are cached in full."""
        return sum(each.is_kept for each in self.calls.values())

    def _written(self, source: Source | None) -> KeptTensor | None:
        call = None if source is None else self.calls.get(source[0])
        if call is None or source is None or source[1] >= len(call.written):
            return None
        return call.written[source[1]]

    def _kept(self, view: torch.Tensor, source: Source | None) -> KeptTensor:
        if view.data_ptr() in self.given:
            return KeptTensor(tuple(view.shape), _name(view.dtype), view, source=source)
        known = self._at.get(view.data_ptr())
        if known is not None and known.value is not None and _holds(known, view):
            # reshape makes another tensor object of the same memory.
            value = known.value.reshape(-1).view(view.dtype).reshape(view.shape)
            return KeptTensor(tuple(view.shape), _name(view.dtype), value, source=source)
        return self._copied(view, source)

    def _copied(self, view: torch.Tensor, source: Source | None) -> KeptTensor:
        size = view.numel() * view.element_size()
        shape, dtype = tuple(view.shape), _name(view.dtype)
        value = self._copy(view, size)
        if value is None:
            return KeptTensor(shape, dtype, None, statistics_of(view), source, _checksum(view))
        self.size += size
        return KeptTensor(shape, dtype, value, source=source)

    def _copy(self, view: torch.Tensor, size: int) -> torch.Tensor | None:
        if self.size + size > self.budget:
            return None
        try:
            return view.clone()
        except (RuntimeError, MemoryError) as error:
            if not is_shortage(error):
                raise
            # The worker has less memory left than the budget.
            self.budget = self.size
            return None


def addresses_of(tensors: Sequence[Any]) -> frozenset[int]:
    """Return the memory addresses of TVM tensors."""
    return frozenset(
        torch.utils.dlpack.from_dlpack(each).data_ptr()
        for each in tensors
        if isinstance(each, tvm.runtime.Tensor) and math.prod(each.shape)
    )


def _holds(kept: KeptTensor, view: torch.Tensor) -> bool:
    """Return whether memory still has the value that was read or written."""
    if kept.value is None:
        return kept.checksum == _checksum(view)
    one, other = kept.value.reshape(-1), view.reshape(-1)
    if one.numel() * one.element_size() != other.numel() * other.element_size():
        return False
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def _checksum(view: torch.Tensor) -> int:
    return zlib.crc32(view.reshape(-1).view(torch.uint8).numpy().data)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


_LOOKED_AT = 3
"""Number of tensors cached for further queries."""

_NO_REFERENCE = _("no node of the graph has this value, so torch has no value to compare")


@dataclass(frozen=True)
class _Sides:
    """A tensor of a run, and torch's: ``reason`` says why there is nothing to compare."""

    ours: KeptTensor | None
    theirs: torch.Tensor | None
    items: int
    reason: str = ""
    found: Found | None = None
    part: Part | None = None  # the part of a node's value that it is
    widened: torch.dtype | None = None  # dtype of ours before it was widened to that of theirs

    def tolerances(self, tolerances: Tolerances) -> Tolerances:
        """Return the tolerances: widened values have those of their own dtype."""
        if self.widened is None:
            return tolerances
        own = tolerance_for(self.widened, tolerances)
        return msgspec.structs.replace(tolerances, float64=own)


@dataclass
class KeptRun:
    """Cached values of a run; for a source without torch, of its calls only.

    `unread`: why values of calls are not to be compared: their memory was reused before.
    """

    key: str
    values: KeptValues
    unread: Mapping[int, str] = field(default_factory=dict)
    owners: Owners | None = None
    parts: NodeParts | None = None
    alone: NodesAlone | None = None
    in_run: Mapping[str, Found] = field(default_factory=dict)
    found_alone: Mapping[str, Found] = field(default_factory=dict)
    traced: TracedModel | None = None
    inputs: tuple[torch.Tensor, ...] = ()
    seed: int = 0
    _looked_at: dict[TensorPlace, _Sides] = field(default_factory=dict)

    def value(self, part: Part) -> torch.Tensor | None:
        """Return the value of a part; ``None`` if it is not known, or has another type now."""
        call, item = part.source
        written = self.values.calls[call].written if call in self.values.calls else ()
        if item >= len(written) or call in self.unread:
            return None
        value = written[item].as_part(part).value
        return value if value is None or has_type(value, part.type) else None

    def comparison(self, place: TensorPlace, tolerances: Tolerances) -> Comparison:
        """Return the comparison of a tensor with torch's: see `core.run.compare.tensor_values`.

        Raises a `LowerscopeError` if there is no such place.
        """
        sides = self._sides(place)
        ours, theirs = sides.ours, sides.theirs
        if ours is None or ours.value is not None:
            found = compared(
                place,
                None if ours is None else ours.value,
                theirs,
                sides.tolerances(tolerances),
                sides.reason,
            )
            judged = sides.found
            if sides.widened is not None:
                found = msgspec.structs.replace(found, dtype=_name(sides.widened))
            if found.verdict == "differ" and judged is not None and judged.matches:
                # Not against float64, or not worse than torch.
                reason = judged.reason or found.reason
                found = msgspec.structs.replace(
                    found, verdict="rounding", matches=True, reason=reason
                )
            if found.verdict == "match" and judged is not None and judged.matches is False:
                reason = judged.reason
                found = msgspec.structs.replace(
                    found, verdict="differ", matches=False, reason=reason
                )
            return msgspec.structs.replace(found, items=sides.items)
        known = sides.found if sides.found is not None and sides.items == 1 else None
        return Comparison(
            place=place,
            items=sides.items,
            shape=ours.shape,
            dtype=ours.dtype,
            torch_shape=() if theirs is None else tuple(theirs.shape),
            torch_dtype="" if theirs is None else _name(theirs.dtype),
            ours=ours.statistics,
            torch=None if theirs is None else statistics_of(theirs),
            verdict=None if known is None else known.verdict,
            matches=None if known is None else known.matches,
            reason=_("; ").join(
                each for each in (known.reason if known else "", self._over) if each
            ),
            not_finite="" if known is None else known.not_finite,
            max_abs_error=None if known is None else known.max_abs,
            max_rel_error=None if known is None else known.max_rel,
        )

    def window(
        self,
        place: TensorPlace,
        tolerances: Tolerances,
        leading: Sequence[int],
        area: tuple[int, int, int, int],
        cells: int,
    ) -> Window:
        """Return a window of the tensor at a place: see `core.run.compare.tensor_values`.

        Raises a `LowerscopeError` if there is no such place, or neither its values nor torch's are
        available.
        """
        sides = self._sides(place)
        ours = None if sides.ours is None else sides.ours.value
        reason = sides.reason
        if sides.ours is not None and ours is None:
            reason = self._over
        if ours is None and sides.theirs is None:
            raise LowerscopeError(reason or _("there are no values"), where=_text_of(place))
        judging = sides.tolerances(tolerances)
        return window(place, ours, sides.theirs, judging, leading, area, cells, reason)

    def errors(self, job: Progress, dtype: WeightDtype = "") -> ErrorBudget:
        """Return the errors of both sides of each compared node, in graph order.

        Values that are not cached or not to be compared are left out, and nodes from the first on
        that cannot be computed in float64. Raises a `LowerscopeError` if no node is left.
        """
        compared = {name: each for name, each in self.in_run.items() if each.status in COMPARED}
        if self.traced is None or self.parts is None or not compared:
            raise LowerscopeError(_("the last run has no node that was compared"), where="run")
        nodes = {each.name: each for each in self.traced.graph_module.graph.nodes}
        modules = dict(self.traced.graph_module.named_modules(remove_duplicate=False))
        names = [name for name in self.parts.of if name in compared]
        theirs = self._torch_values(names)
        referee = Referee(self.traced, self.inputs, self.seed, names, dtype)
        found: list[NodeErrors] = []
        for place, name in enumerate(names):
            job.check()
            job.report(_("Computing {name} in float64", name=name), place / len(names))
            for item, part in enumerate(self.parts.of[name]):
                try:
                    budget = referee.of(name, part.path)
                except ERRORS:
                    if not found:
                        text = _("the model cannot be run in float64")
                        raise LowerscopeError(text, where="run") from None
                    return ErrorBudget(dtype=dtype, nodes=tuple(found), stopped=name)
                tensor = self.values.calls[part.source[0]].written[part.source[1]]
                ours = tensor.as_part(part).value
                if ours is not None and part.source[0] not in self.unread:
                    exact = held_from(budget.exact)
                    sides = ours, torch_tensor(theirs.of(name), part)
                    tvm_error, torch_error = (_error(each, exact) for each in sides)
                    errors = NodeErrors(
                        id=f"fx:{name}",
                        item=item,
                        operator=operator_name(nodes[name], modules),
                        tvm=tvm_error,
                        torch=torch_error,
                        relative=relative_error(ours.reshape(exact.shape), exact),
                        made=budget.made,
                        narrow_made=budget.narrow_made,
                        narrow=budget.narrow,
                    )
                    found.append(errors)
            referee.used(name)
            theirs.used(name)
        return ErrorBudget(dtype=dtype, nodes=tuple(found))

    def array(self, place: TensorPlace, side: Saved) -> np.ndarray[Any, Any]:
        """Return a tensor, or the difference of both, as an array.

        Raises a `LowerscopeError` if there is none.
        """
        sides = self._sides(place)
        ours = None if sides.ours is None else sides.ours.value
        over = self._over if sides.ours is not None and ours is None else ""
        if side == "torch" and sides.theirs is not None:
            return as_array(sides.theirs)
        if side == "tvm" and ours is not None:
            return as_array(ours.to(sides.widened or ours.dtype))
        if side == "difference" and ours is not None and sides.theirs is not None:
            if comparable(ours, sides.theirs):
                return as_array(signed_difference(ours, sides.theirs))
            over = _("the shapes or dtypes of both sides differ")
        raise LowerscopeError(over or sides.reason or _NO_REFERENCE, where=_text_of(place))

    @property
    def _over(self) -> str:
        return _(
            "its values were not kept: earlier values fill the limit of {budget} for a run",
            budget=bytes_text(self.values.budget),
        )

    def _sides(self, place: TensorPlace) -> _Sides:
        known = self._looked_at.get(place)
        if known is None:
            known = self._find(place)
            if place.reference == "float64":
                known = self._in_float64(place, known)
            for other in list(self._looked_at)[: 1 - _LOOKED_AT]:
                del self._looked_at[other]
            self._looked_at[place] = known
        return known

    def _find(self, place: TensorPlace) -> _Sides:
        if place.call is not None:
            return self._of_call(place, place.call)
        name = place.entity.removeprefix("fx:")
        if place.entity.startswith("relax:") and self.owners is not None:
            source = self.owners.source_of(place.entity)
            if isinstance(source, str):
                return _Sides(None, None, 0, source)
            items = len(self.values.calls[source[0]].written) - source[1]
            return self._of_source(place, (source[0], source[1] + place.item), items)
        if self.parts is None or not place.entity.startswith("fx:"):
            raise _no_such_place(place)
        if name in self.parts.reasons:
            return self._of_torch(place, name, self.parts.reasons[name].reason)
        parts = self.parts.of.get(name, ())
        if not 0 <= place.item < len(parts):
            raise _no_such_place(place)
        part = parts[place.item]
        if place.own:
            return self._of_node_alone(place, name)
        found = self.in_run.get(name)
        reason = self.unread.get(part.source[0], "")
        if found is not None and found.verdict is None:
            reason = found.reason
        ours = self.values.calls[part.source[0]].written[part.source[1]].as_part(part)
        theirs, missing = self._theirs(name, place.item)
        return _Sides(ours, theirs, len(parts), reason or missing, found, part)

    def _of_call(self, place: TensorPlace, call: int) -> _Sides:
        if call not in self.values.calls:
            raise _no_such_place(place)
        tensors = self.values.calls[call].on(place.side)
        if not 0 <= place.item < len(tensors):
            raise _no_such_place(place)
        tensor = tensors[place.item]
        if tensor.source is None:
            return _Sides(tensor, None, len(tensors), _("it is given: a weight, or an input"))
        return self._of_source(place, tensor.source, len(tensors), tensor)

    def _of_source(
        self, place: TensorPlace, source: Source, items: int, tensor: KeptTensor | None = None
    ) -> _Sides:
        """Return the output of a call, with torch's value of its node."""
        if tensor is None:
            written = self.values.calls[source[0]].written
            if not 0 <= source[1] < len(written):
                raise _no_such_place(place)
            tensor = written[source[1]]
        parts = () if self.parts is None else self.parts.at(source)
        for part in parts[:1]:
            assert self.parts is not None
            theirs, missing = self._theirs(part.node, self.parts.of[part.node].index(part))
            random = self.parts.random.get(part.node)
            drew_others = random is not None and self.in_run.get(part.node) == random
            reason = random.reason if random is not None and drew_others else missing
            return _Sides(tensor.as_part(part), theirs, items, reason, part=part)
        return _Sides(tensor, None, items, _NO_REFERENCE)

    def _of_node_alone(self, place: TensorPlace, name: str) -> _Sides:
        assert self.parts is not None
        assert self.alone is not None
        items = len(self.parts.of[name])
        reads = self.alone.reads.get(name)
        if reads is None:
            return self._of_torch(place, name, self.alone.reasons[name].reason)
        try:
            values = self._torch_values([name, *reads])
            theirs = torch_tensor(values.of(name), self.parts.of[name][place.item])
            ran = self.alone.run(name, values).values[place.item]
        except NotCompared as error:
            return self._of_torch(place, name, error.found.reason)
        except TORCH_ERRORS as error:
            return _Sides(None, None, items, _torch_failed(error))
        ours = KeptTensor(tuple(ran.shape), _name(ran.dtype), ran)
        part = self.parts.of[name][place.item]
        return _Sides(ours, theirs, items, found=self.found_alone.get(name), part=part)

    def _in_float64(self, place: TensorPlace, sides: _Sides) -> _Sides:
        """Return the values of the same graph in float64 in place of torch's."""
        part, theirs, ours = sides.part, sides.theirs, sides.ours
        if part is None or theirs is None or self.traced is None:
            return sides
        if not (theirs.is_floating_point() or theirs.is_complex()):
            # Widening does not change what is exact.
            return sides
        name = part.node
        exact = Float64Nodes(self.traced, self.inputs, self.seed, lambda: [name], {})
        if place.own:
            assert self.alone is not None
            reads = self.alone.reads[name]
            alone = exact.alone(name, [part.path], reads, self._torch_values([name, *reads]), ())
            right = alone[0] if alone else None
        else:
            right = exact.in_run(name, part.path)
        if right is None:
            return replace(
                sides, theirs=None, reason=_("{name} cannot be computed in float64", name=name)
            )
        value = held_from(right.value)
        if ours is not None and ours.value is not None and ours.value.dtype == theirs.dtype:
            wide = replace(ours, value=ours.value.to(value.dtype))
            return replace(sides, ours=wide, theirs=value, widened=theirs.dtype)
        return replace(sides, theirs=value)

    def _of_torch(self, place: TensorPlace, name: str, reason: str) -> _Sides:
        """Return torch's tensor only, for a node without a value in the run."""
        try:
            tensors = list(tensors_in(self._torch_values([name]).of(name)))
        except TORCH_ERRORS:
            tensors = []
        if not 0 <= place.item < len(tensors):
            return _Sides(None, None, len(tensors), reason)
        return _Sides(None, held_from(tensors[place.item]), len(tensors), reason)

    def _theirs(self, name: str, item: int) -> tuple[torch.Tensor | None, str]:
        """Return torch's tensor of a node, or why there is none."""
        assert self.parts is not None
        try:
            value = self._torch_values([name]).of(name)
            return torch_tensor(value, self.parts.of[name][item]), ""
        except NotCompared as error:
            return None, error.found.reason
        except TORCH_ERRORS as error:
            return None, _torch_failed(error)

    def _torch_values(self, names: Sequence[str]) -> TorchValues:
        assert self.traced is not None
        return TorchValues(self.traced.graph_module, self.inputs, self.seed, Counter(names))


def _torch_failed(error: Exception) -> str:
    return _("torch could not run the graph: {last_line}", last_line=last_line(error))


def _error(value: torch.Tensor, right: torch.Tensor) -> float:
    return difference(value.double(), right.double(), Tolerances()).max_abs


def _text_of(place: TensorPlace) -> str:
    if place.call is not None:
        return _(
            "tensor {item} that call {call} has {side}",
            item=place.item,
            call=place.call,
            side=place.side,
        )
    return _(
        "tensor {item} of {partition}", item=place.item, partition=place.entity.partition(":")[2]
    )


def _no_such_place(place: TensorPlace) -> LowerscopeError:
    return LowerscopeError(
        _("the last run has no such value"), where=_text_of(place), todo=_("Run the model again")
    )


class LastRun:
    """The last run of a pipeline."""

    def __init__(self) -> None:
        self.kept: KeptRun | None = None

    def of(self, stages: Stages) -> KeptRun:
        """Return the last run, if it was of these stages.

        Raises a `LowerscopeError` with the code ``"not-kept"`` if it was not.
        """
        _other = stages.loaded
        if self.kept is None or self.kept.key != stages.run_key:
            raise LowerscopeError(
                _("the values of this model's last run are not kept"),
                todo=_("Run it again to see its values"),
                code="not-kept",
            )
        return self.kept


@contextlib.contextmanager
def last_run(query: Any, pipeline: Pipeline, job: Progress) -> Iterator[KeptRun]:
    """Yield the last run, if it was of the recipe of a query, while its files' code may run."""
    stages = pipeline.stages(query.recipe, job)
    kept = pipeline.part(LastRun).of(stages)
    with stages.running():
        yield kept


@answers(ComparisonQuery)
def comparison(query: ComparisonQuery, pipeline: Pipeline, job: Progress) -> Comparison:
    """Return the statistics of a tensor of the last run and of torch's.

    Raises a `LowerscopeError` as `LastRun.of`, and if there is no such tensor.
    """
    with last_run(query, pipeline, job) as kept:
        return kept.comparison(query.place, query.recipe.tolerances)


@answers(NodeErrorsQuery)
def node_errors(query: NodeErrorsQuery, pipeline: Pipeline, job: Progress) -> ErrorBudget:
    """Return the errors of both sides of each compared node: see `KeptRun.errors`.

    Raises a `LowerscopeError` as `LastRun.of`, and as `KeptRun.errors`.
    """
    if query.recipe.remote is not None:
        raise LowerscopeError(NOT_THERE, where="run")
    with last_run(query, pipeline, job) as kept:
        return kept.errors(job, query.dtype)


@answers(WindowQuery)
def answer_window(query: WindowQuery, pipeline: Pipeline, job: Progress) -> Window:
    """Return a window of a tensor of the last run, and of torch's: see `WindowQuery`.

    Raises a `LowerscopeError` as `comparison`, and if no values are cached.
    """
    area = query.top, query.left, query.rows, query.columns
    with last_run(query, pipeline, job) as kept:
        return kept.window(query.place, query.recipe.tolerances, query.leading, area, query.cells)


@answers(SaveRunValuesQuery)
def save_run_values(query: SaveRunValuesQuery, pipeline: Pipeline, job: Progress) -> str:
    """Write a tensor of the last run as ``.npy``; return the file's path.

    Raises a `LowerscopeError` as `comparison`, if there are no such values, and if it cannot be
    written.
    """
    with last_run(query, pipeline, job) as kept:
        array = kept.array(query.place, query.side)
    return save_array(array, query.file)


@answers(RunStepQuery)
def step_of_run(query: RunStepQuery, pipeline: Pipeline, job: Progress) -> RunStep:
    """Return the inputs and outputs of a call of the last run: see `RunStepQuery`.

    Raises a `LowerscopeError` as `comparison`, and if there is no such call.
    """
    stages = pipeline.stages(query.recipe, job)
    kept = pipeline.part(LastRun).of(stages).values.calls.get(query.call)
    if kept is None:
        raise LowerscopeError(
            _("the last run has no call {call}", call=query.call + 1),
            where="run",
            todo=_("Run the model again"),
        )
    return run_step(stages, kept, query.call, query.lines)


FIRST = 8
"""Number of first elements of a tensor that are returned."""

DIGITS = 4
"""Significant digits of the elements."""

Named = tuple[str, TensorKind, str]
"""A name, its kind, and an id; name and id may be empty."""


_UNKNOWN: Named = ("", "value", "")


@dataclass(frozen=True)
class CallNames:
    """The names of a call's inputs and outputs, in the order of its arguments."""

    read: tuple[Named, ...]
    written: tuple[Named, ...]


def step_names(stages: Stages) -> tuple[CallNames, ...]:
    """Return the names of the tensors of each call of ``main``.

    Computed values are named by the binding before the passes, unless that has been merged into
    another.
    """
    calls = CallsOf(stages.recorded, "main")
    names = _Names(stages, calls)
    return tuple(
        CallNames(names.read(index), names.written(index)) for index in range(len(calls.calls))
    )


class _Names:
    def __init__(self, stages: Stages, calls: CallsOf) -> None:
        self._stages = stages
        self._calls = calls

    def read(self, index: int) -> tuple[Named, ...]:
        """Return the tensors that a call reads, in the order of its arguments."""
        return tuple(self._name_of(each) for each in self._reads(index))

    def written(self, index: int) -> tuple[Named, ...]:
        """Return the output tensors of a call."""
        return tuple(self._value(index, item) for item in range(self._calls.calls[index].values))

    def _reads(self, index: int) -> Iterator[Any]:
        """Yield the expressions of a call's input tensors, in the order of its arguments."""
        call = self._calls.calls[index]
        value = self._calls.value_bound_to(call.variable)
        operator = str(getattr(value.op, "name", ""))
        if operator == "relax.reshape":
            args = value.args[:1]
        elif operator in ("relax.call_tir", "relax.call_dps_packed"):
            args = value.args[1:2]
        elif isinstance(value.op, (ir.GlobalVar, relax.ExternFunc)):
            # A pass has already made the call: its outputs come last.
            count = call.values if call.gives == "written" else 0
            args = value.args[: len(value.args) - count]
        else:
            args = value.args[1:]
        for argument in args:
            yield from self._tensors_in(argument)

    def _tensors_in(self, expression: Any) -> Iterator[Any]:
        named = self._calls.value_bound_to(expression)
        kind = getattr(expression, "ty", None)
        if isinstance(named, (ir.Var, ir.GenericConst, relax.Tuple)):
            yield from self._tensors_in(named)
        elif isinstance(expression, relax.Tuple):
            for each in expression.fields:
                yield from self._tensors_in(each)
        elif isinstance(kind, relax.TupleType):
            for place in range(len(kind.fields)):
                yield relax.TupleGetItem(expression, place)
        elif isinstance(kind, relax.TensorType):
            yield expression

    def _name_of(self, expression: Any) -> Named:
        if isinstance(expression, ir.GenericConst):
            name, entity = self._constants.get(elements_of(expression.value), ("", ""))
            return name or "a constant", "constant", entity
        source = self._calls.source_of_variable(expression)
        if source is not None:
            return self._value(*source)
        name = str(getattr(expression, "name", ""))
        return name, "input", f"relax:main/{name}" if name else ""

    def _value(self, index: int, item: int) -> Named:
        call = self._calls.calls[index]
        origins = self._origins.get(call.binding, ())
        entity = origins[-1] if origins else ""
        name = (entity or call.binding).rpartition("/")[2]
        return f"{name}[{item}]" if call.values > 1 else name, "value", entity

    @cached_property
    def _origins(self) -> Any:
        return inverse(self._stages.transformed.bindings_in_main)

    @cached_property
    def _constants(self) -> dict[Elements, tuple[str, str]]:
        return {
            elements_of(each.data): (
                each.name,
                f"{'param' if each.from_model else 'const'}:{each.name}",
            )
            for each in constants_by_name(self._stages)
        }


def run_step(stages: Stages, kept: KeptCall, call: int, lines: tuple[int, int]) -> RunStep:
    """Return the full record of one call of a run of ``main``.

    Args:
        lines: The first and the last line of the bytecode of ``main`` to include, from 1.
    """
    names = stages.keep(
        "step tensors",
        key_of("step tensors", stages.build_key, stages.lower_key),
        lambda: step_names(stages),
    )[call]
    first, last = lines
    bytecode = bytecode_of(stages.recorded.built.executable.as_text(), "main") if last else ()
    return RunStep(
        call=call,
        tensors=(
            *_described("read", call, kept.read, names.read),
            *_described("written", call, kept.written, names.written),
        ),
        instructions=tuple(line.text for line in bytecode[first - 1 : last]) if last else (),
        first_line=first if last else 0,
    )


def _described(
    side: CallSide, call: int, tensors: Sequence[KeptTensor], names: Sequence[Named]
) -> Iterator[StepTensor]:
    # If a call has other arguments than individual tensors, they do not match the binding's.
    known = names if len(names) == len(tensors) else [_UNKNOWN] * len(tensors)
    for item, (tensor, (name, kind, entity)) in enumerate(zip(tensors, known, strict=True)):
        value = tensor.value
        yield StepTensor(
            place=TensorPlace(call=call, item=item, side=side),
            name=name,
            kind=kind,
            entity=entity,
            shape=tensor.shape,
            dtype=tensor.dtype,
            statistics=tensor.statistics if value is None else statistics_of(value),
            first=() if value is None else first_of(value, FIRST, DIGITS),
        )
