"""Provenance of an FX node's code: its rule, the passes that changed it, and its schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tvm_ffi
from tvm import IRModule, ir

from lowerscope.core.ir.relax import binding_ids, callee_of
from lowerscope.core.model.recipe import Recipe, applies_schedules
from lowerscope.core.model.run_records import NodeProvenance
from lowerscope.core.model.schedule import schedule_for
from lowerscope.core.passes.bindings import inverse
from lowerscope.core.passes.transforming import TransformedModel
from lowerscope.core.stages import Stages


def making_of(stages: Stages, recipe: Recipe, node: str) -> NodeProvenance:
    """Return the provenance of a node's code.

    Args:
        node: Its id.
    """
    lowered = stages.lowered
    assert lowered is not None
    lowering = lowered.nodes[node.removeprefix("fx:")]
    bindings = frozenset(f"relax:main/{each}" for each in lowering.bindings)
    return NodeProvenance(
        rule=lowering.rule,
        passes=tuple(passes_on(stages.transformed, bindings)),
        schedules=tuple(_schedules(stages, recipe, bindings)),
    )


def passes_on(transformed: TransformedModel, bindings: frozenset[str]) -> Iterator[str]:
    """Yield the names of the steps that changed what bindings compute, or how.

    Args:
        bindings: Ids from before the first step.
    """
    for number, run in enumerate(transformed.runs, start=1):
        if run.depth > 0 or run.after is None or run.after.same_as(run.before):
            continue
        before = _code(run.before, _of(transformed.origins_before(number), bindings))
        after = _code(run.after, _of(transformed.origins(number), bindings))
        if not _are_same(before, after):
            yield run.name.removeprefix("relax.")


def _of(origins: Mapping[str, tuple[str, ...]], bindings: frozenset[str]) -> frozenset[str]:
    """Return the descendants of `bindings`."""
    return frozenset(each for each, came in origins.items() if bindings.intersection(came))


def _code(module: IRModule, bindings: frozenset[str]) -> dict[str, tuple[Any, ...]]:
    """Return, by id, the values of bindings and the functions that these call."""
    found = {}
    for bound in binding_ids(module):
        if bound.id in bindings:
            value = getattr(bound.binding, "value", None)
            callee = callee_of(value)
            called = module.functions.get(callee) if isinstance(callee, ir.GlobalVar) else None
            found[bound.id] = (value, called)
    return found


def _are_same(before: Mapping[str, tuple[Any, ...]], after: Mapping[str, tuple[Any, ...]]) -> bool:
    return before.keys() == after.keys() and all(
        tvm_ffi.structural_equal(one, other, map_free_vars=True)
        for name, values in before.items()
        for one, other in zip(values, after[name], strict=True)
    )


def _schedules(stages: Stages, recipe: Recipe, bindings: frozenset[str]) -> Iterator[str]:
    """Yield, for each function that the node has a part in, the steps of its schedule."""
    if not applies_schedules(recipe):
        return
    module, structures = stages.unscheduled.module, stages.functions.structures
    own = _of(inverse(stages.unscheduled.bindings), bindings)
    for bound in binding_ids(module):
        callee = callee_of(getattr(bound.binding, "value", None)) if bound.id in own else None
        name = str(callee.name_hint) if isinstance(callee, ir.GlobalVar) else ""
        structure = structures.get(name)
        if structure is None or schedule_for(recipe.schedules, name, structure) is None:
            continue
        steps = [each.title for each in stages.states(name)[-1].steps if each.status == "done"]
        if steps:
            yield f"{name}: {', '.join(steps)}"
