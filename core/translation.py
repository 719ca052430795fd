"""Translation of one FX node: its rules with their source, and the work of ``emit_te``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import fx

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.lowering.builder import te_name
from lowerscope.core.lowering.library import LibraryFunction
from lowerscope.core.lowering.lowered import LoweredModel, NodeLowering, UsedRule
from lowerscope.core.memo import key_of
from lowerscope.core.model.queries import TranslationQuery, answers
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.records.translation import NodeTranslation, RuleSource
from lowerscope.core.relax_bindings import binding_ids
from lowerscope.core.rendering.function_source import (
    called_by,
    function_source,
    functions_in,
    library_call_text,
    name_of_called,
)
from lowerscope.core.rendering.te_steps import ValueNames, te_records
from lowerscope.core.stages import Stages


def node_translation(stages: Stages, node: str) -> NodeTranslation:
    """Return the translation of one node.

    Parameters
    ----------
    node
        Its name, or its id; the id of one of its parts stands for the node.

    Raises
    ------
    LowerscopeError
        If there is no such node; the error lists some nodes.
    """
    traced, lowered = stages.traced, stages.lowered
    if traced is None or lowered is None:
        raise LowerscopeError(
            "this source builds an IRModule, so no node was translated",
            where="translation",
            todo="Show the stage relax or tensorir",
        )
    name = node.removeprefix("fx:").removeprefix("part:").partition("/")[0]
    found = next((each for each in traced.graph_module.graph.nodes if each.name == name), None)
    if found is None:
        raise _no_such_node(node, list(lowered.nodes))
    known = lowered.nodes[name]
    names = ValueNames(lowered, traced.graph_module, binding_ids(lowered.module))
    return NodeTranslation(
        node=f"fx:{name}",
        number=list(lowered.nodes).index(name) + 1,
        summary=_summary(known, found, names),
        sources=tuple(_sources(known, lowered)),
        calls=te_records(known, lowered, names),
    )


def _no_such_node(node: str, names: list[str]) -> LowerscopeError:
    return LowerscopeError(
        f"there is no node {node}",
        where="--node",
        todo=f"There are {listed(names)}",
        choices=tuple(names),
    )


def _summary(known: NodeLowering, node: fx.Node, names: ValueNames) -> str:
    """Summarise the translation of a node in a sentence."""
    value = names.text(known.value)
    if node.op == "placeholder":
        return f"An input: it stands for the argument {value} of main."
    if node.op == "output":
        return f"What main returns: {value}."
    if not known.bindings:
        return f"It makes no code: it stands for {value}." if value else "It makes no code."
    if known.strategy == "library":
        why = f", since {known.reason}" if known.reason else ""
        return f"It runs in torch{why}."
    if known.parts:
        return f"No rule covers it as a whole: it was lowered in {len(known.parts)} parts."
    made = "tensor expressions" if known.strategy == "te" else "Relax operators"
    return f"Lowered to {made} by {known.rule}."


def _sources(known: NodeLowering, lowered: LoweredModel) -> Iterator[RuleSource]:
    for used in known.used:
        yield from _source(used)
    parts: dict[Callable[..., Any], list[str]] = {}
    rules: dict[Callable[..., Any], UsedRule] = {}
    for part in known.parts:
        parts.setdefault(part.used.function, []).append(part.name)
        rules.setdefault(part.used.function, part.used)
    for function, names in parts.items():
        rule = rules[function]
        yield function_source(function, rule.kind, rule.name, f"for {listed(names, most=4)}")
    functions = {
        call.function: te_name(call.function)
        for name in known.bindings
        if (call := lowered.te_calls.get(name)) is not None and call.function is not None
    }
    for function, title in functions.items():
        yield function_source(function, "te", title)


def _source(used: UsedRule) -> Iterator[RuleSource]:
    if not isinstance(used.function, LibraryFunction):
        yield function_source(used.function, used.kind, used.name)
        for inner in functions_in(used.function):
            remark = f"called on the way of {used.name}"
            yield function_source(inner, used.kind, inner.__name__, remark)
        return
    wraps = f"calls {name_of_called(used.function)}"
    text = library_call_text(used.function)
    yield RuleSource(kind="library", name=used.name, remark=wraps, text=text)
    called: Any = called_by(used.function)
    if isinstance(called, type):
        called = called.forward  # type: ignore[attr-defined]
    if callable(called):
        yield function_source(called, "torch", name_of_called(used.function))


def _is_cached(query: TranslationQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_module()


@answers(TranslationQuery, _is_cached)
def translation(query: TranslationQuery, pipeline: Pipeline, job: Progress) -> NodeTranslation:
    """Return the translation of a node: see `node_translation`."""
    stages = pipeline.stages(query.recipe, job)
    key = key_of("translation", stages.lower_key, query.node)
    return stages.keep("translation", key, lambda: node_translation(stages, query.node))
