"""The graphs of a recipe: of its FX nodes, and of the bindings of its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import IRModule

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.lowering.translator import LoweredModel
from lowerscope.core.memo import key_of
from lowerscope.core.model.graph import GraphName, GraphRecord
from lowerscope.core.model.queries import GraphQuery, answers
from lowerscope.core.model.text_metrics import TextMetrics
from lowerscope.core.passes.bindings import Matches, is_group
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.records.steps import Moment
from lowerscope.core.relax_bindings import relax_functions
from lowerscope.core.rendering.fx_nodes import fx_nodes
from lowerscope.core.rendering.graphs.fx_graph import fx_graph
from lowerscope.core.rendering.graphs.hierarchy import Opening
from lowerscope.core.rendering.graphs.relax_graph import FusedGroup, groups_in, relax_graph
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.tracing import TracedModel


def draw_graph(
    stages: Stages,
    graph: GraphName,
    moment: Moment | None,
    metrics: TextMetrics,
    opening: Opening,
    check: Callable[[], None],
) -> GraphRecord:
    """Lay out a graph of a recipe.

    Parameters
    ----------
    graph
        ``"fx"``, or ``"relax"`` for the module before the passes, or at a `moment`.
    opening
        Which modules are expanded.
    check
        Called often; may raise to cancel.

    Raises
    ------
    LowerscopeError
        If the FX graph of a source without torch is requested, or there is no module at the step.
    """
    traced, lowered = stages.traced, stages.lowered
    kinds = kinds_of(stages.loaded)
    if graph == "fx":
        if traced is None or lowered is None:
            raise LowerscopeError("this source builds an IRModule, so there is no FX graph")
        nodes = fx_nodes(
            traced.graph_module, traced.values, traced.lines, traced.modules, lowered.nodes
        )
        return fx_graph(traced.graph_module, nodes, traced.values, metrics, check, kinds, opening)
    module = stages.module if moment is None else stages.module_at(moment)
    paths = {} if traced is None or lowered is None else binding_paths(traced, lowered)
    if moment is None:
        return relax_graph(module, metrics, check, paths=paths, kinds=kinds, opening=opening)
    matches = stages.origins_at(moment)
    paths, origins = _paths_at(paths, matches), with_ends(matches, stages.module)
    fused = groups_before(stages, moment)
    return relax_graph(
        module,
        metrics,
        check,
        paths=paths,
        kinds=kinds,
        opening=opening,
        origins=origins,
        fused=fused,
    )


def groups_before(stages: Stages, moment: Moment) -> Mapping[str, FusedGroup]:
    """Return the groups in the modules before a step, by name, each in its last form.

    ``FuseTIR`` gives a TensorIR function the name of the group that it was.
    """
    if moment.clock == "translate":
        return {}
    transformed = stages.unscheduled if moment.clock == "schedule" else stages.transformed
    runs = transformed.runs
    last = moment.index if moment.clock == "passes" else len(runs)
    found: dict[str, FusedGroup] = {}
    for number in range(last, 0, -1):
        run = runs[number - 1]
        if run.depth > 0 or run.after is None or run.after.same_as(run.before):
            continue
        if any(is_group(function) for _, function in relax_functions(run.after)):
            there = groups_in(run.after, transformed.origins(number))
            found = {**there, **found}
    return found


def with_ends(origins: Matches, lowered: IRModule) -> Matches:
    """Add the parameters and results of the lowered module's functions: they keep their ids."""
    ends = {
        f"relax:{name}/{end}"
        for name, function in relax_functions(lowered)
        for end in (*(str(parameter.name) for parameter in function.params), "return")
    }
    return {**{end: (end,) for end in ends}, **origins}


def kinds_of(loaded: LoadedModel) -> Mapping[str, str]:
    """Return the class of each of the model's modules, by dotted path."""
    model = loaded.model
    if model is None:
        return {}
    return {path: type(module).__name__ for path, module in model.named_modules()}


def binding_paths(traced: TracedModel, lowered: LoweredModel) -> Mapping[str, str]:
    """Return the dotted path of the module that each binding of ``main`` comes from, by its id."""
    return {
        f"relax:main/{binding}": traced.modules.get(node, "")
        for node, lowering in lowered.nodes.items()
        for binding in lowering.bindings
    }


def _paths_at(paths: Mapping[str, str], origins: Matches) -> Mapping[str, str]:
    """Return the module path of each binding at a step: the innermost one of all its origins."""
    known = {
        became: [paths[binding] for binding in bindings if binding in paths]
        for became, bindings in origins.items()
    }
    return {became: _around(found) for became, found in known.items() if found}


def _around(paths: Sequence[str]) -> str:
    """Return the path of the innermost module that contains all of these."""
    first, *others = [path.split(".") for path in paths]
    length = len(first)
    for names in others:
        while names[:length] != first[:length]:
            length -= 1
    return ".".join(first[:length])


def _is_cached(query: GraphQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_module(query.moment)


@answers(GraphQuery, _is_cached)
def graph(query: GraphQuery, pipeline: Pipeline, job: Progress) -> GraphRecord:
    """Return a graph, laid out: see `draw_graph`.

    Raises
    ------
    LowerscopeError
        If there is none: of a source without torch there is no FX graph.
    """
    stages = pipeline.stages(query.recipe, job)
    moment, opening = query.moment, Opening(query.expanded, query.fits)
    of = stages.lower_key if moment is None else stages.moment_key(moment)
    return stages.keep(
        "graph",
        key_of("graph", of, query.metrics, query.graph, moment, query.expanded, query.fits),
        lambda: draw_graph(stages, query.graph, moment, query.metrics, opening, job.check),
    )
