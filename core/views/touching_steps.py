"""The passes that change something of a node: of its bindings, or of the functions they call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import tvm
from tvm import ir

from lowerscope.core.ir.relax import bound_in, callee_of, relax_functions
from lowerscope.core.ir.script import function_text
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import TouchingStepsQuery, answers
from lowerscope.core.stages import Pipeline, Stages


@answers(TouchingStepsQuery)
def touching_steps(query: TouchingStepsQuery, pipeline: Pipeline, job: Progress) -> tuple[int, ...]:
    """Return the numbers of the pipeline's passes that change something of some nodes or bindings.

    The line of a binding counts, the function that it stands in, and the script of what it calls.
    """
    stages = pipeline.stages(query.recipe, job)
    wanted = frozenset(_bindings(stages, query.entities))
    runs = stages.transformed.runs
    found: list[int] = []
    before: frozenset[tuple[str, ...]] | None = None
    for number, run in enumerate(runs, start=1):
        if run.depth or run.after is None:
            continue
        job.check()
        if before is None:
            before = _traces(stages, run.before, _descendants(stages, number - 1, wanted))
        if run.after.same_as(run.before):
            continue
        after = _traces(stages, run.after, _descendants(stages, number, wanted))
        if after != before:
            found.append(number)
        before = after
    return tuple(found)


def _bindings(stages: Stages, entities: Iterable[str]) -> Iterator[str]:
    """Yield the ids, before the first pass, of the bindings of nodes and of bindings."""
    nodes = {} if stages.lowered is None else stages.lowered.nodes
    for entity in entities:
        kind, _, name = entity.partition(":")
        if kind == "fx" and name in nodes:
            yield from (f"relax:main/{binding}" for binding in nodes[name].bindings)
        elif kind == "relax":
            yield entity


def _descendants(stages: Stages, number: int, wanted: frozenset[str]) -> frozenset[str]:
    origins = stages.transformed.origins(number)
    return frozenset(each for each, olds in origins.items() if not wanted.isdisjoint(olds))


def _traces(
    stages: Stages, module: tvm.IRModule, entities: frozenset[str]
) -> frozenset[tuple[str, ...]]:
    """Return what some bindings look like in a module: function, line, and callee's script."""
    found: set[tuple[str, ...]] = set()
    functions = {str(each.name_hint): function for each, function in module.functions_items()}
    for name, function in relax_functions(module):
        own = [bound for bound in bound_in(name, function) if bound.id in entities]
        if not own:
            continue
        record = function_text(module, name)
        lines = record.text.split("\n")
        spans = {span.entity: span for span in record.spans}
        for bound in own:
            span = spans.get(bound.id)
            line = "" if span is None else "\n".join(lines[span.first - 1 : span.last])
            callee = callee_of(getattr(bound.binding, "value", None))
            called = str(callee.name_hint) if isinstance(callee, ir.GlobalVar) else ""
            script = stages.script_of(functions[called], called) if called in functions else ""
            found.add((name, line, script))
    return frozenset(found)
