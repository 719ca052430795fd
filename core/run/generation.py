"""Generation by a language model: prefill and decode steps in one executable, beside torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import msgspec
import torch
import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from lowerscope.core.build.build import RecordedBuild, recorded_build, register_library
from lowerscope.core.build.targets import use_threads
from lowerscope.core.files.memo import key_of
from lowerscope.core.model.comparison_records import (
    CacheTensor,
    Entry,
    GenerationRecord,
    TokenFault,
    TokenRun,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import GenerationQuery, answers
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, first_difference
from lowerscope.core.model.texts import _, _n
from lowerscope.core.run.execution import Execution, copied, named_results
from lowerscope.core.run.implementations import check_callable, judge_run
from lowerscope.core.run.node_runs import node_runs
from lowerscope.core.sources.decoding import Decoding, greedy
from lowerscope.core.sources.opened_model import in_eval_mode
from lowerscope.core.sources.pytree import is_result, leaves, mapped
from lowerscope.core.sources.user_code import user_code
from lowerscope.core.stages import Pipeline, Stages

PREFILL: Entry = "prefill"
DECODE: Entry = "decode"
"""Names of the functions of the linked module."""


@answers(GenerationQuery)
def generate(query: GenerationQuery, pipeline: Pipeline, job: Progress) -> GenerationRecord:
    """Generate tokens, and compare each call with torch's: see `GenerationRecord`."""
    recipe = query.recipe
    use_threads(recipe.threads)
    prefill, decode = generation_recipes(pipeline, recipe, query.tokens, job)
    stages = pipeline.stages(prefill, job), pipeline.stages(decode, job)
    for each in stages:
        each.check_runs_here(_("the generation of tokens"))
        check_callable(each)
    return _Generation(*stages, job).run(query.tokens)


def generation_recipes(
    pipeline: Pipeline, recipe: Recipe, tokens: int, job: Progress
) -> tuple[Recipe, Recipe]:
    """Return the recipes of the prefill and of the decode step.

    The inputs of the decode step whose sizes change have named dimensions: those of the recipe that
    are not the prefill's, and others by their own names.

    Raises `LowerscopeError` if the source has no decode step.
    """
    replace = msgspec.structs.replace
    source = replace(recipe.source, decode=False)
    given = () if recipe.source.decode else recipe.inputs
    named = {each for spec in given for each in spec.shape or ()}
    own = tuple(each for each in recipe.dimensions if each.name in named)
    prefill = replace(recipe, source=source, inputs=given, dimensions=own)
    source = replace(source, decode=True)
    decode = replace(recipe, source=source, inputs=(), dimensions=())
    job.report(_("Computing the first tokens in torch"))
    stages = pipeline.stages(decode, job)
    decoding = _decoding_of(stages)
    with stages.opened.environment():
        inputs, dimensions = decoding.described(recipe.dimensions, tokens)
    return prefill, replace(decode, inputs=inputs, dimensions=dimensions)


def _decoding_of(stages: Stages) -> Decoding:
    decoding = stages.opened.decoding
    assert decoding is not None
    return decoding


def linked(prefill: Stages, decode: Stages) -> tuple[RecordedBuild, Mapping[str, Any]]:
    """Return one executable with the functions `PREFILL` and `DECODE`, and its library functions.

    TensorIR functions that both have are compiled once.
    """
    one, two = prefill.completed, decode.completed
    libraries = [{} if s.lowered is None else s.lowered.library for s in (prefill, decode)]
    outside = {name: f"{DECODE}.{name}" for name in libraries[1]}
    library = {**libraries[0], **{outside[name]: each for name, each in libraries[1].items()}}

    def make() -> RecordedBuild:
        functions = _renamed(one, {"main": PREFILL}, {}, {})
        known = {str(each.name_hint): (each, function) for each, function in functions.items()}
        taken = {*known, *(str(each.name_hint) for each in two.get_global_vars()), PREFILL, DECODE}
        names: dict[str, str] = {"main": DECODE}
        shared: dict[str, ir.GlobalVar] = {}
        for variable, function in two.functions_items():
            name = str(variable.name_hint)
            held = known.get(name)
            if held is None or name == "main":
                continue
            if isinstance(function, tirx.PrimFunc) and tvm_ffi.structural_equal(function, held[1]):
                shared[name] = held[0]
            else:
                names[name] = _unused(f"{name}_{DECODE}", taken)
                taken.add(names[name])
        functions |= _renamed(two, names, shared, outside)
        return recorded_build(tvm.IRModule(functions, attrs=one.attrs), prefill.target)

    key = key_of("linked", prefill.build_key, decode.build_key)
    return prefill.keep("link", key, make), library


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _renamed(
    module: tvm.IRModule,
    names: Mapping[str, str],
    shared: Mapping[str, ir.GlobalVar],
    outside: Mapping[str, str],
) -> dict[ir.GlobalVar, Any]:
    """Return the functions of a module under other names, without those that are `shared`.

    `outside`: new names of library functions.
    """
    variables = dict(shared)
    for variable in module.get_global_vars():
        name = str(variable.name_hint)
        if name in names:
            variables[name] = ir.GlobalVar(names[name])
            relax.expr._update_type(variables[name], variable.ty)
        elif name not in shared:
            variables[name] = variable

    def of(variable: ir.GlobalVar) -> ir.GlobalVar:
        return variables.get(str(variable.name_hint), variable)

    def external(function: relax.ExternFunc) -> relax.ExternFunc:
        name = str(function.global_symbol)
        return relax.ExternFunc(outside[name]) if name in outside else function

    found = {}
    for variable, function in module.functions_items():
        name = str(variable.name_hint)
        if name in shared:
            continue
        changed = tvm_ffi.structural_map(
            function, ((ir.GlobalVar, of), (relax.ExternFunc, external))
        )
        if name in names and changed.attrs and "global_symbol" in changed.attrs:
            changed = changed.with_attr("global_symbol", names[name])
        found[variables[name]] = changed
    return found


@dataclass(frozen=True)
class _Call:
    """A finished call: the torch model's inputs and outputs, and TVM's outputs in their form."""

    values: tuple[torch.Tensor, ...]
    expected: tuple[tuple[str, torch.Tensor], ...]
    actual: tuple[torch.Tensor, ...]
    returned: Any
    ours: Any


class _Generation:
    """One generation by a linked module."""

    def __init__(self, prefill: Stages, decode: Stages, job: Progress) -> None:
        self._stages: dict[Entry, Stages] = {PREFILL: prefill, DECODE: decode}
        self._decoding = _decoding_of(decode)
        self._job = job
        self._cache: tuple[CacheTensor, ...] = ()

    def run(self, count: int) -> GenerationRecord:
        prefill, decode = self._stages[PREFILL], self._stages[DECODE]
        build, library = linked(prefill, decode)
        register_library(library)
        executable = build.built.executable
        model, step = (_model_of(each) for each in (prefill, decode))
        loaded = prefill.loaded
        tokens: list[TokenRun] = []
        fault: TokenFault | None = None
        with decode.running(), torch.inference_mode():
            values = tuple(each.value for each in loaded.inputs)
            execution = Execution(executable, PREFILL, prefill.arguments(values))
            given = loaded.calling.arguments([each.clone() for each in values])
            entry: Entry = PREFILL
            while True:
                self._job.check()
                self._job.report(_("Token {n} of {count}", n=len(tokens) + 1, count=count))
                args, kwargs = given
                with user_code(loaded.path, _("computing token {n} failed", n=len(tokens) + 1)):
                    called, torch_ms = _timed(step if tokens else model, *args, **kwargs)
                call, tvm_ms = self._call(execution, values, called)
                run = self._judged(entry, call, tvm_ms, torch_ms)
                tokens.append(run)
                if run.verdict in FAILING:
                    fault = self._fault(len(tokens) - 1, entry, call, run)
                if fault is not None or len(tokens) == count:
                    break
                token = greedy(call.returned)
                # A tie within rounding is no fault: both sides go on with torch's token.
                ours = greedy(call.ours) if run.is_same else token
                arguments = self._arguments(self._decoding.inputs(call.ours, ours))
                values = self._arguments(self._decoding.inputs(call.returned, token))
                given = self._decoding.arguments(call.returned, token)
                if entry == PREFILL:
                    execution = Execution(executable, DECODE, decode.arguments(arguments))
                    entry = DECODE
                else:
                    execution.take(decode.arguments(arguments))
        worst = min((each.verdict for each in tokens), key=_WORST.index)
        return GenerationRecord(
            prefill=prefill.recipe,
            decode=decode.recipe,
            verdict=worst,
            tokens=tuple(tokens),
            cache=self._cache,
            fault=fault,
            build_ms=build.built.milliseconds,
        )

    def _call(
        self, execution: Execution, values: tuple[torch.Tensor, ...], returned: Any
    ) -> tuple[_Call, float]:
        actual, milliseconds = _timed(execution.outputs)
        expected = named_results(returned)
        tensors = iter(actual)
        if len(expected) != len(actual):
            raise LowerscopeError(
                _n(
                    "the model returns {count} tensor at this token, and {before} when traced",
                    "the model returns {count} tensors at this token, and {before} when traced",
                    len(expected),
                    before=len(actual),
                ),
                where="decode",
                todo=_("Return the same outputs at each step"),
            )

        def own(leaf: Any) -> Any:
            if not is_result(leaf):
                return leaf
            value = next(tensors)
            return value if isinstance(leaf, torch.Tensor) else type(leaf)(value.item())

        return _Call(values, expected, actual, returned, mapped(returned, own)), milliseconds

    def _arguments(self, named: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the inputs of a decode step in the order of those that were traced."""
        names = [each.name for each in self._stages[DECODE].loaded.inputs]
        if set(names) != set(named):
            raise LowerscopeError(
                _("next_inputs returns other inputs at this token than at the first"),
                where="next_inputs",
                todo=_("Return the same inputs each time: {names}", names=_(", ").join(names)),
            )
        return tuple(named[name].clone() for name in names)

    def _judged(self, entry: Entry, call: _Call, tvm_ms: float, torch_ms: float) -> TokenRun:
        stages = self._stages[entry]
        verdict, _expected = judge_run(
            stages, stages.recipe, call.values, call.actual, call.expected
        )
        ours, theirs = (
            tuple(greedy(each).flatten().tolist()) for each in (call.ours, call.returned)
        )
        found, reason = verdict.verdict, verdict.reason
        if ours != theirs and found == "match":
            found = "rounding"
            reason = _("the scores of two tokens are equal but for rounding")
        self._note_cache(call)
        return TokenRun(
            entry=entry,
            token=ours,
            torch_token=theirs,
            verdict=found,
            reason=reason,
            max_abs_error=verdict.max_abs,
            tvm_ms=tvm_ms,
            torch_ms=torch_ms,
            cache_bytes=sum(each.bytes for each in self._cache),
        )

    def _note_cache(self, call: _Call) -> None:
        """Record the outputs of a call that are inputs of the next one."""
        token = greedy(call.ours)
        args, kwargs = self._decoding.arguments(call.ours, token)
        read = {id(leaf) for _path, leaf in leaves((args, kwargs))}
        results = [leaf for _path, leaf in leaves(call.ours) if is_result(leaf)]
        self._cache = tuple(
            CacheTensor(
                name=name,
                shape=tuple(leaf.shape),
                dtype=str(leaf.dtype).removeprefix("torch."),
                bytes=leaf.numel() * leaf.element_size(),
            )
            for (name, _value), leaf in zip(call.expected, results, strict=True)
            if isinstance(leaf, torch.Tensor) and id(leaf) in read
        )

    def _fault(self, index: int, entry: Entry, call: _Call, run: TokenRun) -> TokenFault:
        """Return the node where a call differs, on torch's inputs."""
        stages = self._stages[entry]
        self._job.report(_("Looking for the node where token {n} differs", n=index + 1))
        found = node_runs(stages, stages.recipe, call.values, self._job, repeats=1)
        node = first_difference(found.nodes)
        fault = TokenFault(token=index, entry=entry, reason=run.reason)
        traced = stages.traced
        if not node or traced is None:
            return fault
        name = node.removeprefix("fx:")
        line = traced.lines.get(name)
        return msgspec.structs.replace(
            fault,
            node=node,
            layer=traced.modules.get(name, ""),
            where="" if line is None else f"{PurePath(line.file).name}:{line.line}",
        )


_WORST = (*FAILING, "rounding", "not-comparable", "no-reference", "match")


def _model_of(stages: Stages) -> torch.nn.Module:
    model = stages.loaded.model
    assert model is not None
    return in_eval_mode(copied(model))


def _timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, float]:
    """Return the result of a call, and its time in milliseconds."""
    start = time.perf_counter()
    value = call(*args, **kwargs)
    return value, (time.perf_counter() - start) * 1000
