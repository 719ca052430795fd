"""Functions of a module at a step, and passes by name or by the nodes that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import tvm
from tvm import IRModule, relax, tirx

from lowerscope.core.build.build import FIRST_FOR_TENSORIR
from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import (
    bound_in,
    called_name,
    calls_of,
    elements_of,
    relax_functions,
)
from lowerscope.core.ir.script import function_text
from lowerscope.core.ir.tensorir import allocated_ids, blocks_in, count_parts, parts_of
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    BuildStepsQuery,
    CatalogueQuery,
    FunctionsQuery,
    TouchingStepsQuery,
    answers,
)
from lowerscope.core.model.snapshot import FunctionRecord, PassType, PieceRecord
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import Matches, inverse
from lowerscope.core.passes.fused_blocks import Composed, Owner, blocks_after
from lowerscope.core.stages import Pipeline, Stages, has_module


def function_records(
    module: IRModule,
    calls: Mapping[str, tuple[str, ...]],
    composed: Mapping[str, Composed] = MappingProxyType({}),
) -> tuple[FunctionRecord, ...]:
    """Return a record of each function of `module`, and of each external one that it calls.

    Relax functions come first, ``main`` before the others; then the TensorIR functions, and the
    external ones, each in the order of their first calls. Functions that nothing calls come last
    among their kind.

    `composed`: the functions that are made of several, by name, with the bindings of their blocks.
    """
    records: list[FunctionRecord] = []
    for variable, function in module.functions_items():
        name = str(variable.name_hint)
        if isinstance(function, relax.Function):
            entity = f"relax:{name}"
            records.append(
                FunctionRecord(
                    id=entity,
                    name=name,
                    kind="relax",
                    calls=calls.get(entity, ()),
                    parameters=tuple(str(parameter.name) for parameter in function.params),
                )
            )
        elif isinstance(function, tirx.PrimFunc):
            entity = f"tir:{name}"
            blocks, loops, runs = count_parts(function)
            made = composed.get(name)
            records.append(
                FunctionRecord(
                    id=entity,
                    name=name,
                    kind="tensorir",
                    calls=calls.get(entity, ()),
                    blocks=blocks,
                    loops=loops,
                    runs=runs,
                    pieces=() if made is None else pieces_of(name, function, made),
                    untied="" if made is None else made.reason,
                )
            )
    records.extend(
        FunctionRecord(id=entity, name=entity.removeprefix("ext:"), kind="external", calls=callers)
        for entity, callers in calls.items()
        if entity.startswith("ext:")
    )
    kind_order = ("relax", "tensorir", "external")
    first_call = {entity: index for index, entity in enumerate(calls)}
    return tuple(
        sorted(
            records,
            key=lambda record: (
                kind_order.index(record.kind),
                record.name != "main",
                first_call.get(record.id, len(first_call)),
                record.name,
            ),
        )
    )


def pieces_of(name: str, function: Any, composed: Composed) -> tuple[PieceRecord, ...]:
    """Return the parts of a function by the bindings that they compute.

    A loop belongs to what its blocks belong to, and a buffer to the blocks that write it.
    """
    parts = parts_of(name, function)
    blocks = [part.statement for part in parts if part.kind == "block"]
    owners = dict(zip(map(hash, blocks), composed.owners, strict=True))
    pieces: dict[tuple[str, ...], list[str]] = {}
    for part in parts:
        inside = [part.statement] if part.kind == "block" else blocks_in(part.statement)
        owner = _all_of(owners.get(hash(block)) for block in inside)
        if owner:
            pieces.setdefault(owner, []).append(part.id)
    writers: dict[int, list[Owner]] = {}
    for block, owner in zip(blocks, composed.owners, strict=True):
        for region in block.writes:
            writers.setdefault(hash(region.source), []).append(owner)
    for entity, buffer in allocated_ids(name, function):
        owner = _all_of(writers.get(hash(buffer), ()))
        if owner:
            pieces.setdefault(owner, []).append(entity)
    return tuple(PieceRecord(parts=tuple(each), bindings=owner) for owner, each in pieces.items())


def _all_of(owners: Iterable[Owner]) -> Owner:
    """Return all bindings of some blocks; ``None`` where those of one are not known."""
    found: dict[str, None] = {}
    for owner in owners:
        if owner is None:
            return None
        found.update(dict.fromkeys(owner))
    return tuple(found)


def functions_at(stages: Stages, moment: Moment) -> tuple[FunctionRecord, ...]:
    """Return the functions of the module at a step.

    The bindings that call them are those of the lowered module that became these calls.

    Raises `LowerscopeError` if there is no module at that step.
    """
    module, origins = stages.module_at(moment), stages.origins_at(moment)
    earlier = _with_blocks(stages, moment)
    composed = _composed_at(stages, moment) if earlier is None else {}
    records = tuple(
        msgspec.structs.replace(each, calls=tuple(_origins(each.calls, origins)))
        for each in function_records(module, calls_of(module), composed)
    )
    if earlier is None:
        return records
    # Loops whose blocks were removed have the ids of the original loops.
    key = key_of("functions with blocks", stages.build_key)
    found = stages.keep("functions with blocks", key, lambda: functions_at(stages, earlier))
    made = {each.id: each for each in found}
    return tuple(
        msgspec.structs.replace(each, pieces=made[each.id].pieces, untied=made[each.id].untied)
        if each.id in made
        else each
        for each in records
    )


def _with_blocks(stages: Stages, moment: Moment) -> Moment | None:
    """Return the last step of the build at which functions have blocks, if that was before."""
    if moment.section != "build":
        return None
    names = [run.name for run in stages.recorded.runs]
    if FIRST_FOR_TENSORIR not in names[: moment.index]:
        return None
    return msgspec.structs.replace(moment, index=names.index(FIRST_FOR_TENSORIR))


def _composed_at(stages: Stages, moment: Moment) -> Mapping[str, Composed]:
    if moment.section == "passes":
        return stages.transformed.composed_at(moment.index)
    if moment.section == "translate":
        return {}
    scheduled = moment.section == "schedule"
    transformed = stages.unscheduled if scheduled else stages.transformed
    before = transformed.module if scheduled else stages.completed
    after = stages.module_at(moment)
    return blocks_after(
        before,
        after,
        stages.matches(before, after),
        inverse(transformed.bindings),
        transformed.composed,
        _("the schedule") if scheduled else _("the build"),
    )


def _origins(bindings: tuple[str, ...], origins: Matches) -> Iterator[str]:
    yield from dict.fromkeys(before for each in bindings for before in origins.get(each, ()))


@answers(CatalogueQuery)
def catalogue(query: CatalogueQuery, pipeline: Pipeline, job: Progress) -> tuple[PassType, ...]:
    """Return the passes that a recipe's steps can name: TVM's, and those of its files."""
    return tuple(each.type for each in pipeline.stages(query.recipe, job).passes.values())


@answers(FunctionsQuery, has_module)
def functions(
    query: FunctionsQuery, pipeline: Pipeline, job: Progress
) -> tuple[FunctionRecord, ...]:
    """Return the functions of the module at a step: see `functions_at`."""
    return functions_at(pipeline.stages(query.recipe, job), query.moment)


@answers(BuildStepsQuery)
def build_steps(
    query: BuildStepsQuery, pipeline: Pipeline, job: Progress
) -> tuple[PassRecord, ...]:
    """Return the passes of TVM's own build, in the order in which they began.

    Raises `LowerscopeError` if the build fails.
    """
    stages = pipeline.stages(query.recipe, job)
    build, key = stages.recorded, key_of("build steps", stages.build_key)
    return stages.keep("build steps", key, lambda: build.records(stages.script_of))


# --- The passes that change something of a node: of its bindings, or of the functions they call ---


@answers(TouchingStepsQuery)
def touching_steps(query: TouchingStepsQuery, pipeline: Pipeline, job: Progress) -> tuple[int, ...]:
    """Return the numbers of the pipeline's passes that change something of some nodes or bindings.

    The line of a binding counts, with its constants, the function that it stands in, and the script
    of what it calls.
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
        # Constants are printed with numbers: others may have the same ones.
        record = function_text(module, name, name_of=lambda each: str(elements_of(each.value)))
        lines = record.text.split("\n")
        spans = {span.entity: span for span in record.spans}
        for bound in own:
            span = spans.get(bound.id)
            line = "" if span is None else "\n".join(lines[span.first - 1 : span.last])
            for printed, elements in record.constants.items():
                line = line.replace(printed, elements)
            called = called_name(bound.value)
            script = stages.script_of(functions[called], called) if called in functions else ""
            found.add((name, line, script))
    return frozenset(found)
