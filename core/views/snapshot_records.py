"""Assembly of a recipe's records from the results of its stages, with externals and notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import msgspec
import torch
import tvm

from lowerscope.core.build.build import (
    MISSING,
    external_functions,
    is_registered,
    load_text,
    missing_functions,
    missing_text,
)
from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import calls_of
from lowerscope.core.ir.script import NameOf, function_script, relax_text
from lowerscope.core.lowering.types import LoweredModel
from lowerscope.core.model.graph import DEFAULT, TextMetrics
from lowerscope.core.model.module_steps import BindingEffect, TranslationRecord
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import LoweredQuery, SnapshotQuery, answers
from lowerscope.core.model.recipe import Recipe, without_steps
from lowerscope.core.model.snapshot import (
    ExtensionRecord,
    FunctionRecord,
    FxNode,
    FxPart,
    InputRecord,
    LibraryOrigin,
    LibraryRecord,
    ModelRecord,
    ModuleRecord,
    Note,
    ParameterRecord,
    RuleRecord,
    Snapshot,
    SourceLine,
)
from lowerscope.core.model.texts import _
from lowerscope.core.passes.extension_files import notes_on
from lowerscope.core.passes.recording import ScriptOf, pass_records
from lowerscope.core.passes.transforming import TransformedModel
from lowerscope.core.run.compare.tensor_values import constant_records
from lowerscope.core.sources.input_values import picture_of
from lowerscope.core.sources.onnx_models import side_of
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.tracing.tracing import TracedModel
from lowerscope.core.views.functions import function_records
from lowerscope.core.views.graph.fx_graph import fx_graph
from lowerscope.core.views.graph_records import fx_nodes, kinds_of
from lowerscope.core.views.source_text import names_of_constants
from lowerscope.core.views.translation import translation_records


def add_externals(snapshot: Snapshot, stages: Stages) -> Snapshot:
    """Return a snapshot with the records of external functions, extension files and notes."""
    return msgspec.structs.replace(
        snapshot,
        library=tuple(_library(stages, snapshot.functions, snapshot.fx)),
        extensions=tuple(_extensions(stages, snapshot.fx)),
        notes=(*notes_of(stages), *_failed_step(stages)),
    )


def notes_of(stages: Stages) -> tuple[Note, ...]:
    """Return the notes on a recipe's model and on its extension files."""
    traced, lowered = stages.traced, stages.lowered
    missing = _missing(stages)
    return (
        *(traced.notes if traced else ()),
        *(lowered.notes if lowered else ()),
        *(note for extension, loaded in stages.extensions for note in notes_on(extension, loaded)),
        *(
            Note(text=missing_text({name: at}), todo=load_text({name: at}), code=MISSING)
            for name, at in missing.items()
        ),
        *stages.transformed.notes,
    )


def _failed_step(stages: Stages) -> Iterator[Note]:
    problem = stages.transformed.problem
    if problem is not None:
        yield Note(text=problem.what, where=problem.where, todo=problem.todo, code="failed-step")


def _missing(stages: Stages) -> dict[str, tuple[str, ...]]:
    # Before the passes, so that a module whose passes fail has its notes as well.
    module, lowered = stages.module, stages.lowered
    known = {} if lowered is None else lowered.library
    if all(name in known for name in external_functions(module)):
        return {}
    with stages.running():
        return missing_functions(module, known)


def _library(
    stages: Stages, functions: tuple[FunctionRecord, ...], nodes: tuple[FxNode, ...]
) -> Iterator[LibraryRecord]:
    """Yield the functions that are called, in the order of their calls, and those that are not."""
    called = {each.name: each for each in functions if each.kind == "external"}
    lines = _registered(stages)
    lowered = stages.lowered
    torch = {} if lowered is None else lowered.library
    found: set[str] = set()
    if not called.keys() <= {*lines, *torch}:
        with stages.running():
            found = {name for name in called if is_registered(name)}
    for name in dict.fromkeys((*called, *lines)):
        origin: LibraryOrigin = "missing"
        if name in lines:
            origin = "file"
        elif name in torch:
            origin = "torch"
        elif name in found:
            origin = "tvm"
        entity = f"ext:{name}"
        yield LibraryRecord(
            id=entity,
            name=name,
            origin=origin,
            line=lines.get(name),
            calls=called[name].calls if name in called else (),
            nodes=tuple(node.id for node in nodes if entity in node.functions),
        )


def _registered(stages: Stages) -> dict[str, SourceLine]:
    """Return where files of the user's register functions, by name; a later file wins."""
    lines = dict(stages.loaded.registered())
    for _other, loaded in stages.extensions:
        lines |= loaded.functions
    return lines


def _extensions(stages: Stages, nodes: tuple[FxNode, ...]) -> Iterator[ExtensionRecord]:
    lowered: dict[tuple[str, int], list[str]] = {}
    for node in nodes:
        if node.rule_line is not None:
            place = (node.rule_line.file, node.rule_line.line)
            lowered.setdefault(place, []).append(node.id)
    for _other, loaded in stages.extensions:
        yield ExtensionRecord(
            path=str(loaded.path),
            rules=tuple(
                RuleRecord(
                    name=rule.name,
                    keys=tuple(map(_key_text, rule.keys)),
                    strategies=rule.strategies,
                    line=rule.line,
                    nodes=tuple(lowered.get((rule.line.file, rule.line.line), ())),
                )
                for rule in loaded.rules
            ),
            functions=tuple(loaded.functions),
        )


def _key_text(key: object) -> str:
    """Return a key of a rule in few words: ``GELU``, ``add``, ``relu``, ``aten.gelu.default``."""
    if isinstance(key, str) or type(key).__name__ == "OpOverload":
        return str(key)
    return str(getattr(key, "__name__", key))


Links = defaultdict[str, dict[str, None]]
"""The ids that belong to each one, in the order in which they were recorded, each once."""


def make_snapshot(
    loaded: LoadedModel,
    module: tvm.IRModule,
    traced: TracedModel | None,
    lowered: LoweredModel | None,
    transformed: TransformedModel,
    metrics: TextMetrics,
    check: Callable[[], None],
    name_of: NameOf | None = None,
    script: ScriptOf = function_script,
) -> Snapshot:
    """Assemble the records of a recipe.

    `module`: as it was lowered, before the passes.
    `traced`, `lowered`: ``None`` for a source without torch.
    `check`: called between the parts; may raise to cancel.
    `name_of`: returns the names of constants.
    `script`: returns the script of a function.
    """
    walked = transformed.walked
    bounds = walked.of(module)
    calls = calls_of(transformed.module, walked.of(transformed.module))
    called = _functions_of_bindings(transformed, calls)
    nodes: tuple[FxNode, ...] = ()
    graph = None
    translation: tuple[TranslationRecord, ...] = ()
    if traced is not None and lowered is not None:
        nodes = tuple(
            _with_functions(node, called, traced.tracer)
            for node in fx_nodes(
                traced.graph_module, traced.values, traced.lines, traced.modules, lowered.nodes
            )
        )
        check()
        graph = fx_graph(
            traced.graph_module, nodes, traced.values, metrics, check, kinds_of(loaded)
        )
        translation = translation_records(lowered, traced.graph_module, bounds)
    model = _model_record(loaded)
    check()
    arguments = {name: each.name for name, each in lowered.arguments.items()} if lowered else {}
    return Snapshot(
        model=model,
        fx=nodes,
        tracer="" if traced is None else traced.tracer,
        fx_graph=graph,
        relax=relax_text(module, bounds, name_of),
        functions=_functions(transformed, calls),
        translation=translation,
        passes=pass_records(transformed.runs, script),
        fates=_fates(nodes, transformed.fates),
        links=tuple(_links(nodes, called, model, arguments)),
    )


def _functions_of_bindings(
    transformed: TransformedModel, calls: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """Map each binding before the passes to the functions that it calls after them."""
    callees: dict[str, str] = {
        binding: function for function, bindings in calls.items() for binding in bindings
    }
    return {
        before: tuple(dict.fromkeys(callees[after] for after in afters if after in callees))
        for before, afters in transformed.bindings.items()
    }


def _with_functions(node: FxNode, called: Mapping[str, tuple[str, ...]], tracer: str) -> FxNode:
    """Turn the node's bindings into ids, and its functions into those after the passes."""
    parts = tuple(
        msgspec.structs.replace(part, **_linked(part.bindings, called)) for part in node.parts
    )
    return msgspec.structs.replace(
        node, tracer=tracer, parts=parts, **_linked(node.bindings, called)
    )


def _linked(
    names: tuple[str, ...], called: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    bindings = tuple(f"relax:main/{name}" for name in names)
    functions = (each for binding in bindings for each in called.get(binding, ()))
    return {"bindings": bindings, "functions": tuple(dict.fromkeys(functions))}


def _functions(
    transformed: TransformedModel, calls: Mapping[str, tuple[str, ...]]
) -> tuple[FunctionRecord, ...]:
    """Return the functions after the passes, called by the bindings that were before them."""
    before = {
        after: binding for binding, afters in transformed.bindings.items() for after in afters
    }
    return tuple(
        msgspec.structs.replace(
            function, calls=tuple(dict.fromkeys(before.get(each, each) for each in function.calls))
        )
        for function in function_records(transformed.module, calls, transformed.composed)
    )


def _fates(
    nodes: tuple[FxNode, ...], fates: Mapping[str, BindingEffect]
) -> dict[str, BindingEffect]:
    """Add the nodes and the parts of nodes all of whose bindings are gone."""
    found = dict(fates)
    for node in nodes:
        entities: list[FxNode | FxPart] = [node, *node.parts]
        for each in entities:
            ends = [fates.get(binding) for binding in each.bindings]
            gone = [end for end in ends if end is not None and end.gone]
            if gone and len(gone) == len(ends):
                found[each.id] = gone[-1]
    return found


def _links(
    nodes: tuple[FxNode, ...],
    called: Mapping[str, tuple[str, ...]],
    model: ModelRecord,
    arguments: Mapping[str, str],
) -> Iterator[tuple[str, ...]]:
    links: Links = defaultdict(dict)
    for binding, functions in called.items():
        for function in functions:
            links[binding][function] = None
    for node in nodes:
        for entity in (*node.bindings, *node.functions):
            links[node.id][entity] = None
        if node.line is not None:
            for entity in (node.id, *node.bindings, *node.functions):
                links[node.line.id][entity] = None
        for part in node.parts:
            for entity in (node.id, *part.bindings, *part.functions):
                links[part.id][entity] = None
    _link_model(nodes, model, links)
    for name, parameter in arguments.items():
        links[f"param:{parameter}"][f"relax:main/{name}"] = None
    return ((first, *others) for first, others in links.items())


def _link_model(nodes: tuple[FxNode, ...], model: ModelRecord, links: Links) -> None:
    """Link the nodes with the modules and parameters that they come from and read."""
    modules = {module.path: module.id for module in model.modules if module.path}
    owned: dict[str, list[str]] = {}
    for parameter in model.parameters:
        for name in (parameter.name, *parameter.aliases):
            owned.setdefault(name.rpartition(".")[0], []).append(parameter.id)
    by_name = {
        name: parameter.id
        for parameter in model.parameters
        for name in (parameter.name, *parameter.aliases)
    }
    for node in nodes:
        path = node.target if node.opcode == "call_module" else node.module
        if path in modules:
            links[node.id][modules[path]] = None
        if node.opcode == "call_module":
            for entity in owned.get(path, ()):
                links[node.id][entity] = None
        elif node.opcode == "get_attr" and node.target in by_name:
            links[node.id][by_name[node.target]] = None


def _model_record(loaded: LoadedModel) -> ModelRecord:
    model = loaded.model
    return ModelRecord(
        title=loaded.title,
        path=str(loaded.path),
        kind="relax" if model is None else "torch",
        engine=side_of(model),
        description=loaded.description,
        inputs=input_records(loaded),
        classes=loaded.classes,
        modules=() if model is None else tuple(_modules(model)),
        parameters=() if model is None else tuple(_parameters(model)),
        generates=model is not None and loaded.next_inputs is not None,
    )


def input_records(loaded: LoadedModel) -> tuple[InputRecord, ...]:
    """Return records of the inputs as they are used."""
    return tuple(
        InputRecord(
            name=each.name,
            shape=each.shape,
            dtype=_dtype(each.value),
            origin=each.origin,
            picture=picture_of(each.value),
        )
        for each in loaded.inputs
    )


def _modules(model: torch.nn.Module) -> Iterator[ModuleRecord]:
    for path, module in model.named_modules():
        if path == "_guards_fn":  # a check of torch.export's, not a part of the model
            continue
        yield ModuleRecord(
            id=f"module:{path}",
            path=path,
            kind=type(module).__name__,
            parameters=sum(parameter.numel() for parameter in module.parameters()),
        )


def _parameters(model: torch.nn.Module) -> Iterator[ParameterRecord]:
    """Yield a record of each parameter and buffer; a tensor under two names is one."""
    named: dict[int, list[tuple[str, str, torch.Tensor]]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        named.setdefault(id(parameter), []).append((name, "parameter", parameter))
    for name, buffer in model.named_buffers(remove_duplicate=False):
        named.setdefault(id(buffer), []).append((name, "buffer", buffer))
    for (name, kind, tensor), *others in named.values():
        yield ParameterRecord(
            id=f"param:{name}",
            name=name,
            shape=tuple(tensor.shape),
            dtype=_dtype(tensor),
            size=tensor.numel() * tensor.element_size(),
            kind=kind,
            aliases=tuple(other for other, *_rest in others),
        )


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


@answers(SnapshotQuery)
def snapshot(query: SnapshotQuery, pipeline: Pipeline, job: Progress) -> Snapshot:
    """Return all that the window shows of a recipe."""
    recipe, metrics = query.recipe, query.metrics
    stages = pipeline.stages(recipe, job)
    # Resolve the target now, so that a bad one fails on selection, not on Run.
    _other = stages.target
    loaded, traced, lowered = stages.loaded, stages.traced, stages.lowered
    module, transformed = stages.module, stages.transformed

    def make() -> Snapshot:
        job.report(_("Drawing"))
        made = make_snapshot(
            loaded,
            module,
            traced,
            lowered,
            transformed,
            metrics,
            job.check,
            names_of_constants(stages),
            stages.script_of,
        )
        return add_externals(
            msgspec.structs.replace(made, constants=constant_records(stages)), stages
        )

    # Input values do not affect the cached records; add them afterwards.
    key = key_of("snapshot", stages.shown_key, metrics)
    made = stages.keep("records", key, make)
    model = msgspec.structs.replace(made.model, inputs=input_records(loaded))
    return msgspec.structs.replace(
        made,
        model=model,
        key=stages.run_key,
        milliseconds=stages.milliseconds,
        structures=stages.functions.structures if recipe.schedules else {},
    )


def _is_lowered(query: LoweredQuery, pipeline: Pipeline, job: Progress) -> bool:
    stages = pipeline.stages(query.recipe, job)
    return stages.is_cached(stages.lower_key)


@answers(LoweredQuery, _is_lowered)
def lowered_snapshot(query: LoweredQuery, pipeline: Pipeline, job: Progress) -> Snapshot:
    """Return all that the window shows of a recipe before its passes."""
    made = snapshot(SnapshotQuery(without_steps(query.recipe), query.metrics), pipeline, job)
    return msgspec.structs.replace(made, milliseconds={})


def fx_nodes_of(pipeline: Pipeline, recipe: Recipe) -> tuple[FxNode, ...]:
    """Return the FX nodes of a recipe.

    Raises `LowerscopeError` if the source has no torch side.
    """
    if pipeline.stages(recipe).loaded.model is None:
        raise LowerscopeError(
            _("this source builds an IRModule, so there is no FX graph"),
            where=recipe.source.spec,
            todo=_("Show the stage relax or tensorir"),
        )
    return pipeline.answer(SnapshotQuery(recipe, DEFAULT)).fx
