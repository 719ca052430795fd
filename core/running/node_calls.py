"""Mapping between the calls of a run, FX nodes, bindings and values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tvm import relax

from lowerscope.core.lowering.lowered import LoweredModel
from lowerscope.core.passes.bindings import bindings_by_name
from lowerscope.core.passes.following import inverse
from lowerscope.core.passes.transforming import TransformedModel
from lowerscope.core.relax_bindings import bound_in
from lowerscope.core.running.calls import BoundCall, CallsOf
from lowerscope.core.stages import Stages


class Owners:
    """Mapping between calls, the FX nodes and bindings that they compute, and their values."""

    def __init__(self, stages: Stages, lowered: LoweredModel, calls: CallsOf) -> None:
        self.nodes = lowered.nodes
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
        # An alias takes no time.
        self.bindings_of = [
            tuple(each for each in origins.get(call.binding, ()) if not self._is_name(each))
            for call in self.calls
        ]
        self.nodes_of = [
            tuple(dict.fromkeys(node_of[each] for each in bindings if each in node_of))
            for bindings in self.bindings_of
        ]
        self._calls_for = _places((*self.nodes_of, *self.bindings_of), len(self.calls))
        self._together = {
            found: tuple(each for each in dict.fromkeys(came) if not self._is_name(each))
            for found, came in origins.items()
        }

    def calls_for(self, entity: str) -> tuple[int, ...]:
        """Return the indices of the calls that compute a node or a binding."""
        return self._calls_for.get(entity, ())

    def source_of(self, binding: str, item: int = 0) -> tuple[int, int] | str:
        """Return call and tensor of the value of a binding before the passes, or why there is none.

        Parameters
        ----------
        item
            Index of the tensor, if the value is a tuple.
        """
        binding = self._named(binding)
        fate = self.fates.get(binding)
        if binding in self._made_anew:
            return f"not comparable: changed by {self._made_anew[binding]}"
        found = self._became.get(binding, ())
        if not found:
            return fate.text if fate is not None else "its binding is gone after the passes"
        together = self._together[found[-1]]
        if binding in together and len(together) > 1:
            # Of bindings computed by one call, its value is that of the ones others read.
            given = [each for each in together if self._is_read_outside(each, together)]
            if given != [binding]:
                why = fate.text if fate is not None else "a call computes several bindings"
                return f"it has no value of its own: {why}"
        source = self._source_of(found[-1], item)
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

    def _is_read_outside(self, binding: str, together: Collection[str]) -> bool:
        return any(
            self._is_read_outside(each, together)
            if self._is_passed_by(each)
            else each not in together
            for each in self._readers.get(binding, ("",))
        )

    def _is_passed_by(self, reader: str) -> bool:
        """Return whether the readers of a reader read its input: it is an alias, or folded."""
        return bool(reader) and (self._is_name(reader) or not self._became.get(reader))


def _places(owners: Sequence[Sequence[str]], calls: int) -> Mapping[str, tuple[int, ...]]:
    """Return the calls of each entity; a list of all of them, or several lists."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(owners):
        for entity in dict.fromkeys(each):
            found.setdefault(entity, []).append(place % calls)
    return {entity: tuple(places) for entity, places in found.items()}


def _made_anew(transformed: TransformedModel) -> Mapping[str, str]:
    """Return the step that kept only name and type of a binding, by lowered binding.

    If neither the variable nor the value is kept, the value need not be the same: a pass that folds
    later operators into a convolution gives it other weights, and its name.
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
    """Return the readers of each binding; ``""`` for the return value."""
    readers: dict[str, dict[str, None]] = {}

    def note(expression: Any, reader: str) -> None:
        read = ids.get(hash(expression))
        if read is not None and read != reader:
            readers.setdefault(read, {})[reader] = None

    for name, value in values.items():
        relax.analysis.post_order_visit(value, lambda each, at=name: note(each, at))
    relax.analysis.post_order_visit(main.body.body, lambda each: note(each, ""))
    return {read: tuple(found) for read, found in readers.items()}
