"""The graphs of a recipe: of its FX nodes, and of the bindings of its module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import fx
from torch.fx.node import _get_qualified_name
from torch.nn import functional
from tvm import IRModule

from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import relax_functions
from lowerscope.core.lowering.torch_operators import callee_name
from lowerscope.core.lowering.types import LoweredModel, NodeLowering, PartLowering
from lowerscope.core.model.graph import GraphName, GraphRecord, TextMetrics
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import GraphQuery, answers
from lowerscope.core.model.snapshot import FxNode, FxPart, SourceLine, Span, TextRecord
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import Matches, is_group
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.stages import Pipeline, Stages, has_module
from lowerscope.core.tracing.tracing import TracedModel
from lowerscope.core.views.graph.boxes import family_of
from lowerscope.core.views.graph.fx_graph import NO_END, Values, fx_graph, label_of
from lowerscope.core.views.graph.hierarchy import Opening
from lowerscope.core.views.graph.relax_graph import FusedGroup, groups_in, relax_graph

# --- Records of the nodes of an FX graph ---

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def fx_nodes(
    graph_module: fx.GraphModule,
    values: Values,
    lines: Mapping[str, SourceLine],
    modules: Mapping[str, str],
    lowered: Mapping[str, NodeLowering],
) -> tuple[FxNode, ...]:
    """Return a record of each node, in order.

    Arguments are written as ``Graph.print_tabular`` writes them, but for the addresses in memory,
    which differ from run to run; so are targets, but for functions, which have their qualified
    names.

    `values`, `lines`, `modules`, `lowered`: the value of each node, its line and dotted module path
        of origin, and its lowering, by node name; nodes may be missing.
    """
    records: list[FxNode] = []
    for node in graph_module.graph.nodes:
        value = values.get(node.name)
        lowering = lowered.get(node.name)
        label = str(label_of(node, graph_module, values))
        records.append(
            FxNode(
                id=f"fx:{node.name}",
                name=node.name,
                opcode=node.op,
                target=target_name(node.target),
                args=_without_ends(_ADDRESS.sub("", str(node.args)), str(node.target)),
                kwargs=_ADDRESS.sub("", str(node.kwargs)),
                shape=None if value is None else value.shape,
                dtype="" if value is None else value.dtype,
                type="" if value is None else value.text,
                label=label,
                family=family_of(label.partition(" · ")[0]) if node.op.startswith("call") else "",
                module=modules.get(node.name, ""),
                line=lines.get(node.name),
                strategy="" if lowering is None else lowering.strategy,
                rule="" if lowering is None else lowering.rule,
                reason="" if lowering is None else lowering.reason,
                random=lowering is not None and lowering.random,
                rule_line=None if lowering is None else lowering.line,
                bindings=() if lowering is None else tuple(lowering.bindings),
                functions=() if lowering is None else tuple(lowering.functions),
                parts=() if lowering is None else _parts(node.name, lowering.parts),
            )
        )
    return tuple(records)


def _without_ends(text: str, target: str) -> str:
    """Return arguments with ``None`` as the end of a ``slice`` that has none, which is the same."""
    return text.replace(str(NO_END), "None") if "slice" in target else text


def target_name(target: Any) -> str:
    """Return the target of a node: a path, an operator, or the qualified name of a function."""
    if isinstance(target, str) or hasattr(target, "_schema"):
        return str(target)
    name = callee_name(target)
    if getattr(functional, name, None) is target:
        # Some are built in, and have the name of a module of torch's own.
        return f"torch.nn.functional.{name}"
    try:
        # The module of ``torch.softmax``, a method of a class without a name, is searched for.
        return str(_get_qualified_name(target)).removeprefix("_")
    except (RuntimeError, AttributeError):
        return name


def _parts(node: str, parts: Sequence[PartLowering]) -> tuple[FxPart, ...]:
    return tuple(
        FxPart(
            id=f"part:{node}/{part.name}",
            name=part.name,
            target=part.target,
            args=_without_ends(_ADDRESS.sub("", part.args), part.target),
            shape=part.shape,
            dtype=part.dtype,
            rule=part.rule,
            bindings=part.bindings,
            functions=part.functions,
        )
        for part in parts
    )


_ASSIGNED = re.compile(r" *(\w+)(?:\s*:[^=]*)? = ")


def fx_code(graph_module: fx.GraphModule) -> TextRecord:
    """Return the ``forward`` of a traced model, as ``GraphModule.code`` has it.

    Spans are ``fx:NODE``: the line that computes a node, and for the result that which returns it.
    """
    lines = graph_module.code.strip("\n").rstrip().split("\n")
    text = "\n".join(_without_ends(line, line) for line in lines)
    return TextRecord(
        text=text, language="python", spans=tuple(_spans(text.split("\n"), graph_module))
    )


def _spans(lines: list[str], graph_module: fx.GraphModule) -> Iterator[Span]:
    names = {node.name for node in graph_module.graph.nodes}
    outputs = [node.name for node in graph_module.graph.nodes if node.op == "output"]
    for number, line in enumerate(lines, start=1):
        match = _ASSIGNED.match(line)
        if match and match[1] in names:
            yield Span(entity=f"fx:{match[1]}", first=number, last=number)
        elif line.strip().startswith("return "):
            for name in outputs:
                yield Span(entity=f"fx:{name}", first=number, last=number)


def draw_graph(
    stages: Stages,
    graph: GraphName,
    moment: Moment | None,
    metrics: TextMetrics,
    opening: Opening,
    check: Callable[[], None],
) -> GraphRecord:
    """Lay out a graph of a recipe.

    `graph`: ``"fx"``, or ``"relax"`` for the module before the passes, or at a `moment`.
    `opening`: Which modules are expanded.
    `check`: called often; may raise to cancel.

    Raises `LowerscopeError` if the FX graph of a source without torch is requested, or there is no
    module at the step.
    """
    traced, lowered = stages.traced, stages.lowered
    kinds = kinds_of(stages.loaded)
    if graph == "fx":
        if traced is None or lowered is None:
            raise LowerscopeError(_("this source builds an IRModule, so there is no FX graph"))
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
    if moment.section == "translate":
        return {}
    transformed = stages.unscheduled if moment.section == "schedule" else stages.transformed
    runs = transformed.runs
    last = moment.index if moment.section == "passes" else len(runs)
    found: dict[str, FusedGroup] = {}
    for number in range(last, 0, -1):
        run = runs[number - 1]
        if run.depth > 0 or run.after is None or run.after.same_as(run.before):
            continue
        if any(is_group(function) for _other, function in relax_functions(run.after)):
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


@answers(GraphQuery, has_module)
def graph(query: GraphQuery, pipeline: Pipeline, job: Progress) -> GraphRecord:
    """Return a graph, laid out: see `draw_graph`.

    Raises `LowerscopeError` if there is none: of a source without torch there is no FX graph.
    """
    stages = pipeline.stages(query.recipe, job)
    moment, opening = query.moment, Opening(query.expanded, query.fits)
    of = stages.lower_key if moment is None else stages.moment_key(moment)
    return stages.keep(
        "graph",
        key_of("graph", of, query.metrics, query.graph, moment, query.expanded, query.fits),
        lambda: draw_graph(stages, query.graph, moment, query.metrics, opening, job.check),
    )
