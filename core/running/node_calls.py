"""Which calls of a run compute which FX nodes and bindings, and which call gives which value."""

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
    """Which calls compute which FX nodes and bindings, and which call gives which value."""

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
        # Another name for a value takes no time.
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
        """Return call and tensor that are the value of a binding before the passes, or why not.

        Parameters
        ----------
        item
            Which of its tensors, where it is a tuple.
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
            # Of what is computed by one call, it gives what others read.
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
        """Return whether what reads a reader reads what that reads: it is a name, or folded."""
        return bool(reader) and (self._is_name(reader) or not self._became.get(reader))


def _places(owners: Sequence[Sequence[str]], calls: int) -> Mapping[str, tuple[int, ...]]:
    """Return, by what is computed, the calls that compute it: one list of all of them, or more."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(owners):
        for entity in dict.fromkeys(each):
            found.setdefault(entity, []).append(place % calls)
    return {entity: tuple(places) for entity, places in found.items()}


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
