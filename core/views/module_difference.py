"""Difference between the modules at two moments, of one recipe or of two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec
import numpy as np
import tvm

from lowerscope.core.files.memo import key_of
from lowerscope.core.files.sources import is_file, source_label
from lowerscope.core.ir.relax import Elements, calls_of, elements_of, relax_functions
from lowerscope.core.ir.script import function_text
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.line_difference import FunctionText, append_run, function_differences
from lowerscope.core.model.module_steps import (
    ComparedModule,
    ConstantDifference,
    DifferenceRecord,
    FunctionDifference,
    GraphDifference,
    LineStatus,
    Moment,
    Run,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    CodeDifferenceQuery,
    DifferenceQuery,
    GraphDifferenceQuery,
    answers,
)
from lowerscope.core.model.recipe import Recipe, overrides_on
from lowerscope.core.model.schedule import Schedule, shown_name
from lowerscope.core.model.snapshot import Span, TextRecord
from lowerscope.core.model.texts import _, _n, capitalized, english, joined
from lowerscope.core.passes.bindings import Matches, inverse, match_bindings
from lowerscope.core.passes.recording import (
    compared_values,
    constant_tensors,
    paired_constants,
    pass_labels,
)
from lowerscope.core.run.compare.tensor_values import constants_by_name
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.views.codegen_text import code_alone
from lowerscope.core.views.graph.relax_graph import FunctionGraph, function_graph, graph_difference
from lowerscope.core.views.graph_records import with_ends
from lowerscope.core.views.moved_lines import sources_of, with_moved_lines
from lowerscope.core.views.step_sentences import (
    Effect,
    code,
    fused_pair,
    general_words,
    listed,
    step_sentence,
)

T = TypeVar("T")


def module_difference(
    old: Stages, new: Stages, sides: tuple[ComparedModule, ComparedModule]
) -> DifferenceRecord:
    """Compare two modules, function by function.

    Raises a `LowerscopeError` if there is no module at one of the moments.
    """
    labels = labels_of(old, new, sides)
    before, after = side_module(old, sides[0]), side_module(new, sides[1])

    @cache
    def matches() -> Matches:
        return match_bindings(before, after, new.transformed.walked)

    functions = _differences(old, new, before, after)
    if old.lower_key == new.lower_key:
        functions = with_moved_lines(before, after, functions, matches)
    effect = Effect(before, after, functions, matches)
    sentence, moment = _sentence(new, sides, effect), sides[1].moment
    fused: tuple[str, ...] = ()
    if sentence and moment is not None and moment.section == "passes":
        fused = fused_pair(new.transformed.runs[moment.index - 1].name, effect)
    return DifferenceRecord(
        old_label=labels[0],
        new_label=labels[1],
        functions=functions,
        sentence=sentence,
        english=(english(labels[0]), english(labels[1]), english(sentence)),
        fused=fused,
    )


def _named(
    function: FunctionDifference,
    old: Stages,
    new: Stages,
    before: tvm.IRModule,
    after: tvm.IRModule,
) -> FunctionDifference:
    """Add the names of the constants of a Relax function that differs.

    Constants are printed with their numbers: lines that name others by them are changed.
    """
    if function.status == "same":
        return function
    olds = _constant_names(old, before, function.name)
    news = _constant_names(new, after, function.name)
    renamed = {each for each, name in olds.items() if news.get(each, name) != name}
    runs = _with_renamed(function, renamed) if renamed else list(function.runs)
    return msgspec.structs.replace(
        function,
        runs=tuple(runs),
        changed=sum(each.length for each in runs if each.status == "changed"),
        old_names=olds,
        new_names=news,
    )


def _with_renamed(function: FunctionDifference, renamed: Collection[str]) -> list[Run]:
    """Return the runs, where lines with constants that have other names are changed."""
    old = function.old.split("\n")
    runs: list[Run] = []
    for run in function.runs:
        if run.status != "same":
            append_run(runs, run)
            continue
        done = 0
        lines = old[run.old - 1 : run.old - 1 + run.length]
        for changed, group in groupby(lines, lambda line: any(each in line for each in renamed)):
            length = len(list(group))
            status: LineStatus = "changed" if changed else "same"
            append_run(runs, Run(status, run.old + done, run.new + done, length))
            done += length
    return runs


def _constant_names(stages: Stages, module: tvm.IRModule, name: str) -> Mapping[str, str]:
    """Return the names of the constants in the script of a Relax function, cached."""
    function = dict(relax_functions(module)).get(name)
    if function is None:
        return {}

    def make() -> tuple[Any, Mapping[str, str]]:
        known = {elements_of(each): title for title, each in stages.parameters.items()}
        known |= _names(stages)

        def name_of(constant: Any) -> str:
            return known.get(elements_of(constant.value), "")

        # Keep the function with them, so that its address is not reused.
        return function, function_text(module, name, name_of=name_of).constants

    key = key_of("names of constants", function.__chandle__(), name, stages.load_key)
    return stages.keep("names of constants", key, make)[1]


def _sentence(stages: Stages, sides: tuple[ComparedModule, ComparedModule], effect: Effect) -> str:
    """Return what the step between the two sides did; empty if they are not its two ends."""
    old, new = sides
    moment = new.moment
    if old.recipe != new.recipe or new.before:
        return ""
    if moment is None:
        is_start = old.moment == Moment(section="passes", index=0)
        return general_words(_("The pipeline"), effect) if is_start else ""
    if moment.index == 0 or old.moment != moment or not old.before:
        return ""
    if moment.section == "translate":
        return _translated(stages, moment.index)
    if moment.section == "schedule":
        title = stages.states(moment.function)[-1].steps[moment.index - 1].title
        return _("{step}, in {function}.", step=capitalized(title), function=code(moment.function))
    runs = stages.recorded.runs if moment.section == "build" else stages.transformed.runs
    return step_sentence(runs[moment.index - 1].name, effect)


def _translated(stages: Stages, index: int) -> str:
    """Return what an FX node became."""
    assert stages.traced is not None
    assert stages.lowered is not None
    node = list(stages.traced.graph_module.graph.nodes)[index - 1]
    lowering = stages.lowered.nodes.get(node.name)
    bindings = () if lowering is None else tuple(lowering.bindings)
    if not bindings:
        return _("{node} ({op}) became no binding.", node=code(node.name), op=node.op)
    return _n(
        "{node} ({op}) became the binding {names}.",
        "{node} ({op}) became {count} bindings: {names}.",
        len(bindings),
        node=code(node.name),
        op=node.op,
        names=listed(bindings),
    )


def changed_lines(stages: Stages, moment: Moment, record: TextRecord) -> tuple[int, ...]:
    """Return the lines, from 1, of a script at a moment that its step changed or added.

    They are those of the difference. If a step only removed lines of a function, or only changed
    the values of its constants, the line behind them is marked, or the first one. Primitives of a
    schedule reindent loops: lines that differ in indentation only are left out if others differ as
    well.

    `record`: the script of the Relax functions, or of a function, at the moment.
    """
    if moment.index == 0:
        return ()
    before = _module_at(stages, moment, before=True)
    after = _module_at(stages, moment, before=False)
    names = {span.entity.partition(":")[2] for span in record.spans}
    differences = _differences(stages, stages, _only(before, names), _only(after, names))
    changed = {each.name: each for each in differences if each.status != "same"}
    found: set[int] = set()
    for span in record.spans:
        function = changed.get(span.entity.partition(":")[2])
        if function is not None:
            lines = _new_lines(function, span, indented=moment.section != "schedule")
            found.update(span.first + each - 1 for each in lines)
    return tuple(sorted(found))


def _only(module: tvm.IRModule, names: set[str]) -> tvm.IRModule:
    """Return a module of the named functions."""
    functions = module.functions_items()
    return tvm.IRModule(
        {each: function for each, function in functions if str(each.name_hint) in names}
    )


def _new_lines(function: FunctionDifference, span: Span, *, indented: bool) -> set[int]:
    """Return the changed or added lines of a function, from 1."""
    count = span.last - span.first + 1
    old, new = function.old.split("\n"), function.new.split("\n")
    # The script of a function begins with its decorators, which a span may leave out.
    ahead = len(new) - count
    found, gone = set[int](), set[int]()
    for run in function.runs:
        first = run.new - ahead
        if run.status == "added" or (run.status == "changed" and indented):
            found.update(range(first, first + run.length))
        elif run.status == "changed":
            found.update(
                first + place
                for place in range(run.length)
                if old[run.old - 1 + place].strip() != new[run.new - 1 + place].strip()
            )
        elif run.status == "removed":
            gone.add(first)
    inside = {each for each in found if 1 <= each <= count}
    return inside or {min(max(each, 1), count) for each in gone} or {1}


def _differences(
    old: Stages, new: Stages, before: tvm.IRModule, after: tvm.IRModule
) -> tuple[FunctionDifference, ...]:
    functions = function_differences(_texts(old, before), _texts(new, after))
    olds, news = dict(relax_functions(before)), dict(relax_functions(after))
    valued = (
        _with_values(each, old, new, olds[each.name], news[each.name])
        if each.name in olds and each.name in news
        else each
        for each in functions
    )
    return tuple(_named(each, old, new, before, after) for each in valued)


def _with_values(
    function: FunctionDifference, old: Stages, new: Stages, before: Any, after: Any
) -> FunctionDifference:
    """Add the constants of a function whose values differ."""
    same = function.status == "same"
    constants = constant_differences(old, new, before, after, same_text=same)
    if not constants:
        return function
    text = function.old if same else function.new
    return msgspec.structs.replace(function, status="changed", new=text, constants=constants)


def _are_cached(
    query: DifferenceQuery | GraphDifferenceQuery, pipeline: Pipeline, job: Progress
) -> bool:
    sides = query.old, query.new
    return all(pipeline.stages(each.recipe, job).has_module(each.moment) for each in sides)


@answers(DifferenceQuery, _are_cached)
def difference(query: DifferenceQuery, pipeline: Pipeline, job: Progress) -> DifferenceRecord:
    """Return the difference of two modules: see `module_difference`."""
    old, new = (pipeline.stages(each.recipe, job) for each in (query.old, query.new))
    return module_difference(old, new, (query.old, query.new))


@answers(CodeDifferenceQuery)
def code_difference(
    query: CodeDifferenceQuery, pipeline: Pipeline, job: Progress
) -> DifferenceRecord:
    """Compare the code of a TensorIR function before and after a step, compiled by itself.

    A function that took the place of one other is compared with that.

    Raises a `LowerscopeError` if there is no such function, or TVM cannot compile it.
    """
    sides = query.old, query.new
    old, new = (pipeline.stages(each.recipe, job) for each in sides)
    before, after = side_module(old, sides[0]), side_module(new, sides[1])
    names = [query.name, query.name]
    if query.name not in prim_funcs_of(before):
        sources = sources_of(before, after, match_bindings(before, after)).get(query.name, [])
        names[0] = sources[0] if len(sources) == 1 else query.name
    texts: list[dict[str, FunctionText]] = []
    for stages, module, name in ((old, before, names[0]), (new, after, names[1])):
        function = prim_funcs_of(module).get(name)
        if function is None:
            texts.append({})
            continue
        job.report(f"Compiling {name}")
        script = stages.script_of(function, name)
        key = key_of("alone at a step", script, name, str(stages.target))
        code = code_alone(stages, key, name, function, query.view)
        texts.append({query.name: FunctionText("", code)})
    if not any(texts):
        raise LowerscopeError(
            _("there is no TensorIR function {name} on either side", name=query.name),
            todo=_("Choose a TensorIR function that the step changed"),
        )
    labels = labels_of(old, new, sides)
    return DifferenceRecord(
        old_label=labels[0],
        new_label=labels[1],
        functions=function_differences(*texts),
        language=query.view,
        english=(english(labels[0]), english(labels[1]), ""),
    )


@answers(GraphDifferenceQuery, _are_cached)
def graphs_difference(
    query: GraphDifferenceQuery, pipeline: Pipeline, job: Progress
) -> GraphDifference:
    """Compare the data flow of a Relax function on both sides, laid out.

    The boxes stand for bindings of the module that the new side was lowered to.

    Raises a `LowerscopeError` if there is no module at one of the moments.
    """
    sides, function = (query.old, query.new), query.function
    old, new = (pipeline.stages(each.recipe, job) for each in sides)
    labels = labels_of(old, new, sides)
    before = function_graph(side_module(old, sides[0]), function, _side_origins(old, sides[0]))
    after = function_graph(side_module(new, sides[1]), function, _side_origins(new, sides[1]))
    if old.lower_key != new.lower_key:
        if _same_nodes(old, new):
            before, after = _with_nodes(before, old), _with_nodes(after, new)
        # Names do not identify bindings across modules: only the new side's can be selected.
        boxes = [msgspec.structs.replace(box, origins=()) for box in before.boxes]
        before = replace(before, boxes=boxes)
    graph, nodes = graph_difference(before, after, query.metrics, job.check, whole=query.whole)
    return GraphDifference(
        old_label=labels[0], new_label=labels[1], function=function, graph=graph, nodes=nodes
    )


def _same_nodes(old: Stages, new: Stages) -> bool:
    """Return whether both sides were lowered from FX graphs of the same nodes."""
    if old.traced is None or new.traced is None:
        return False
    one, other = (
        [(node.name, node.op, str(node.target)) for node in each.graph_module.graph.nodes]
        for each in (old.traced, new.traced)
    )
    return one == other


def _with_nodes(graph: FunctionGraph, stages: Stages) -> FunctionGraph:
    """Add the FX node of the value of each box: of fused ones, the last."""
    assert stages.lowered is not None
    order: dict[str, tuple[int, str]] = {}
    for name, lowering in stages.lowered.nodes.items():
        for binding in lowering.bindings:
            order[f"relax:main/{binding}"] = len(order), name
    nodes: dict[str, str] = {}
    for box in graph.boxes:
        found = [order[each] for each in box.origins or () if each in order]
        if found:
            nodes[box.id] = max(found)[1]
    return replace(graph, nodes=nodes)


def side_module(stages: Stages, side: ComparedModule) -> tvm.IRModule:
    if side.moment is None:
        return stages.completed
    return _module_at(stages, side.moment, before=side.before)


def _module_at(stages: Stages, moment: Moment, *, before: bool) -> tvm.IRModule:
    """Return the module at a moment, or the input of its step."""
    if not before or moment.index == 0:
        return stages.module_at(moment)
    if moment.section in ("translate", "schedule"):
        return stages.module_at(msgspec.structs.replace(moment, index=moment.index - 1))
    if moment.section == "build":
        return stages.recorded.module_before(moment.index)
    return stages.transformed.module_before(moment.index)


def _side_origins(stages: Stages, side: ComparedModule) -> Matches:
    """Return the origins of a side's bindings, parameters and results."""
    moment = side.moment
    if moment is None:
        origins = inverse(stages.transformed.bindings)
    elif not side.before or moment.index == 0:
        origins = stages.origins_at(moment)
    elif moment.section == "passes":
        origins = stages.transformed.origins_before(moment.index)
    else:
        origins = stages.origins_in(side_module(stages, side), moment.section)
    return with_ends(origins, stages.module)


def _step(stages: Stages, side: ComparedModule) -> str:
    """Return number and name of the step before a moment; empty if there is none."""
    moment = side.moment
    if moment is None or moment.index == 0:
        return ""
    if moment.section == "translate":
        traced = stages.traced
        nodes = [] if traced is None else list(traced.graph_module.graph.nodes)
        names = [f"{number} {node.name}" for number, node in enumerate(nodes, start=1)]
    elif moment.section == "schedule":
        steps = stages.states(moment.function)[-1].steps
        names = [f"{number} {step.title}" for number, step in enumerate(steps, start=1)]
    else:
        runs = stages.recorded.runs if moment.section == "build" else stages.transformed.runs
        names = [f"{label} {run.name}" for label, run in zip(pass_labels(runs), runs, strict=True)]
    return names[moment.index - 1] if moment.index <= len(names) else str(moment.index)


def _texts(stages: Stages, module: tvm.IRModule) -> dict[str, FunctionText]:
    """Return the functions in listing order: ``main``, Relax, then TensorIR, in call order."""
    order = _kept(
        stages,
        "call order",
        module,
        lambda: {each.partition(":")[2]: place for place, each in enumerate(calls_of(module))},
    )
    found = sorted(relax_functions(module), key=lambda each: order.get(each[0], -1))
    kernels = prim_funcs_of(module).items()
    last = len(order)
    called = sorted(kernels, key=lambda each: (order.get(each[0], last), each[0]))
    texts = {
        name: FunctionText("relax", stages.script_of(function, name)) for name, function in found
    }
    for name, function in called:
        texts[name] = FunctionText("tensorir", stages.script_of(function, name))
    return texts


def _kept(stages: Stages, title: str, key: Any, make: Callable[[], T]) -> T:
    """Return a value that is made of an object of TVM, cached by the address of that."""
    # Keep the object with it, so that its address is not reused.
    found: tuple[Any, T] = stages.keep(
        title, key_of(title, key.__chandle__()), lambda: (key, make())
    )
    return found[1]


def constant_differences(
    old: Stages, new: Stages, before: Any, after: Any, *, same_text: bool
) -> tuple[ConstantDifference, ...]:
    """Compare the constants of a Relax function on the two sides.

    Scripts name constants by number, so that functions with other weights read the same. Constants
    over the same memory are the same; the values of others are compared once, and cached.

    `same_text`: whether both have the same text: then constants are paired in order, otherwise by
        name.
    """
    if before.same_as(after):
        return ()
    one, other = (
        _kept(stages, "function constants", function, partial(constant_tensors, function))
        for stages, function in ((old, before), (new, after))
    )
    olds, news = list(map(elements_of, one)), list(map(elements_of, other))
    if olds == news or (not same_text and set(olds) == set(news)):
        return ()
    names = _names(old), _names(new)
    if same_text and len(one) == len(other):
        pairs = _in_order(one, other, names[1] | names[0])
    else:
        pairs = _by_name(one, other, *names)
    found = (_difference(new, *pair) for pair in pairs)
    return tuple(each for each in found if each is not None)


def _names(stages: Stages) -> dict[Elements, str]:
    return {elements_of(each.data): each.name for each in constants_by_name(stages)}


def _in_order(
    one: Sequence[Any], other: Sequence[Any], names: dict[Elements, str]
) -> Iterator[tuple[str, Any, Any]]:
    seen: set[tuple[Elements, Elements]] = set()
    for number, a, b in paired_constants(one, other):
        olds, news = elements_of(a), elements_of(b)
        if (olds, news) not in seen:
            seen.add((olds, news))
            yield names.get(olds) or names.get(news) or f"constant {number}", a, b


def _by_name(
    one: Sequence[Any], other: Sequence[Any], olds: dict[Elements, str], news: dict[Elements, str]
) -> Iterator[tuple[str, Any, Any]]:
    named = {olds[elements_of(each)]: each for each in one if elements_of(each) in olds}
    for each in other:
        there = named.pop(news.get(elements_of(each), ""), None)
        if there is not None and elements_of(there)[1:] == elements_of(each)[1:]:
            yield news[elements_of(each)], there, each


def _difference(stages: Stages, name: str, old: Any, new: Any) -> ConstantDifference | None:
    one, other = elements_of(old), elements_of(new)
    if one == other:
        return None
    # Keep the tensors with the result, so that their addresses are not reused.
    _other, _other, (different, largest) = stages.keep(
        "constant difference",
        key_of("constant difference", one, other),
        lambda: (old, new, compared_values(old.numpy(), new.numpy())),
        lambda _unused: old.numpy().nbytes + new.numpy().nbytes,
    )
    if not different:
        return None
    return ConstantDifference(
        name=name,
        shape=tuple(map(int, old.shape)),
        dtype=str(old.dtype),
        count=int(np.prod(old.shape, dtype=np.int64)),
        different=different,
        largest=largest,
    )


_SAID = ("source", "lowering", "overrides", "version")


def labels_of(
    old: Stages, new: Stages, sides: tuple[ComparedModule, ComparedModule]
) -> tuple[str, str]:
    """Return the labels of both sides: the source, the lowering, the moment.

    Other differences of the recipes are added to both labels.
    """
    one, other = sides
    fields = [
        name
        for name in Recipe.__struct_fields__
        if name not in _SAID and getattr(one.recipe, name) != getattr(other.recipe, name)
    ]
    return _label(one, _step(old, one), fields), _label(other, _step(new, other), fields)


_MOMENTS = {
    "passes": (_("before all passes"), _("before {step}"), _("after {step}")),
    "translate": (
        _("before the translation"),
        _("before {step} of the translation"),
        _("after {step} of the translation"),
    ),
    "schedule": (
        _("before the schedule of {function}"),
        _("before {step} of the schedule of {function}"),
        _("after {step} of the schedule of {function}"),
    ),
    "build": (
        _("before the build"),
        _("before {step} of the build"),
        _("after {step} of the build"),
    ),
}
"""Labels of the start of a timeline, and of the moments before and after a step of it."""


def moment_label(moment: Moment | None, step: str, before: bool = False) -> str:
    """Return ``after 15 FuseOps``; ``step`` is number and name of the step before it."""
    if moment is None:
        return _("after all passes")
    start, ahead, behind = _MOMENTS[moment.section]
    words = start if moment.index == 0 else ahead if before else behind
    return words.format(step=step, function=moment.function)


def _label(side: ComparedModule, step: str, fields: list[str]) -> str:
    recipe = side.recipe
    parts = [_source(recipe), _lowering(recipe), moment_label(side.moment, step, side.before)]
    parts += [joined(": ", (name.replace("_", " "), _written(recipe, name))) for name in fields]
    return joined(" · ", parts)


def _source(recipe: Recipe) -> str:
    spec = recipe.source.spec
    name = PurePath(source_label(spec)).stem if is_file(spec) else source_label(spec)
    return f"{name}:{recipe.source.entry}" if recipe.source.entry else name


def _lowering(recipe: Recipe) -> str:
    count = len(overrides_on(recipe))
    name = STRATEGY_NAMES[recipe.lowering]
    if not count:
        return name
    return _n("{name} + {count} override", "{name} + {count} overrides", count, name=name)


def _written(recipe: Recipe, name: str) -> str:
    if name == "steps":
        on = [step.name for step in recipe.steps if step.on]
        return " → ".join(on) if on else _("none")
    if name == "schedules":
        schedules = [_schedule(each) for each in recipe.schedules if each.on]
        return joined(_(", "), schedules) if schedules else _("none")
    return msgspec.json.encode(getattr(recipe, name)).decode().strip('"')


def _schedule(schedule: Schedule) -> str:
    count = sum(primitive.on for primitive in schedule.primitives)
    names = (schedule.function, *([shown_name(schedule.variant)] if schedule.variant else []))
    return _n(
        "{schedule} in {count} step",
        "{schedule} in {count} steps",
        count,
        schedule=joined(" ", names),
    )
