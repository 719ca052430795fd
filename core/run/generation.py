"""Generation by a language model: prefill and decode steps in one executable, beside torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from lowerscope.core.model.dimensions import at_sizes, parts_of
from lowerscope.core.model.generation_records import (
    CacheTensor,
    Entry,
    GenerationRecord,
    TokenFault,
    TokenRun,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import GenerationQuery, answers
from lowerscope.core.model.recipe import InputSpec, Recipe
from lowerscope.core.model.run_records import FAILING, first_difference
from lowerscope.core.model.texts import _, _n
from lowerscope.core.run.compare.causes import cause_of, is_wrong_as_translated
from lowerscope.core.run.compare.choices import hidden_reason
from lowerscope.core.run.execution import Execution, copied, named_results
from lowerscope.core.run.implementations import check_callable, judge_run
from lowerscope.core.run.node_runs import NodeRuns, node_runs
from lowerscope.core.sources.decoding import Decoding, Growing, greedy
from lowerscope.core.sources.opened_model import in_eval_mode
from lowerscope.core.sources.pytree import is_result, leaves, mapped
from lowerscope.core.sources.user_code import user_code
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.tracing.trace_errors import narrowed

PREFILL: Entry = "prefill"
DECODE: Entry = "decode"
"""Names of functions of the linked module; further decode steps have a number behind it."""


@answers(GenerationQuery)
def generate(query: GenerationQuery, pipeline: Pipeline, job: Progress) -> GenerationRecord:
    """Generate tokens, and compare each call with torch's: see `GenerationRecord`."""
    recipe = query.recipe
    use_threads(recipe.threads)
    prefill, *steps = (
        pipeline.stages(each, job)
        for each in generation_recipes(pipeline, recipe, query.tokens, job)
    )
    for each in (prefill, *steps):
        each.check_runs_here(_("the generation of tokens"))
        check_callable(each)
    return _Generation(prefill, steps, job).run(query.tokens)


def generation_recipes(
    pipeline: Pipeline, recipe: Recipe, tokens: int, job: Progress
) -> Iterator[Recipe]:
    """Yield the recipes of the prefill and of the decode step.

    The inputs of the decode step whose sizes change have named dimensions: those of the recipe that
    are not the prefill's, and others by their own names. Where one graph does not take all sizes
    that `tokens` need, as with a cache whose window gets full, there are several steps.

    Raises `LowerscopeError` if the source has no decode step, or if it needs more than a few
    """
    replace = msgspec.structs.replace
    source = replace(recipe.source, decode=False, after=0)
    given = () if recipe.source.decode else recipe.inputs
    named = {each for spec in given for each in spec.shape or ()}
    own = tuple(each for each in recipe.dimensions if each.name in named)
    yield replace(recipe, source=source, inputs=given, dimensions=own)
    job.report(_("Computing the first tokens in torch"))
    after = 0
    for part in range(_MOST_STEPS):
        source = replace(source, decode=True, after=after)
        decode = replace(recipe, source=source, inputs=(), dimensions=())
        stages = pipeline.stages(decode, job)
        with stages.opened.environment():
            inputs, growing = _decoding_of(stages).described(recipe.dimensions, tokens)
        is_last = part == _MOST_STEPS - 1
        decode = replace(decode, inputs=inputs)
        made = _traceable(pipeline, decode, growing, tokens, job, is_last=is_last)
        if made is None:
            break
        decode, steps = made
        yield decode
        after += steps
        if after >= tokens - 1:
            return
    raise LowerscopeError(
        _("the decode step needs more than {count} functions for its sizes", count=_MOST_STEPS),
        where="next_inputs",
        todo=_("Generate at most {count} tokens", count=after + 1),
    )


_MOST_STEPS = 8
"""Most functions for the decode step of one model."""


def _traceable(
    pipeline: Pipeline,
    decode: Recipe,
    growing: Mapping[str, Growing],
    tokens: int,
    job: Progress,
    *,
    is_last: bool,
) -> tuple[Recipe, int] | None:
    """Return a decode step for the sizes that one graph takes, and for how many steps that is.

    ``None`` if the last one does not take all that are left. Raises the `LowerscopeError` of the
    tracer if it takes none.
    """
    while True:
        fixed = {name: each.size for name, each in growing.items() if each.is_fixed}
        recipe = msgspec.structs.replace(
            decode,
            inputs=tuple(filter(None, (_with_sizes(each, fixed) for each in decode.inputs))),
            dimensions=tuple(each.dimension for name, each in growing.items() if name not in fixed),
        )
        try:
            # The graph of the model, with all sizes of the dimensions.
            pipeline.stages(recipe, job).traced  # noqa: B018
        except LowerscopeError as error:
            ranges = {each.name: (each.low, each.high) for each in recipe.dimensions}
            sizes = {name: each.size for name, each in growing.items()}
            found = narrowed(error.problem, ranges, sizes)
            if found is None and ranges and decode.source.after:
                # The sizes that it was traced with may be none that the model gets to.
                found = {}
            if found is None:
                raise
            if is_last:
                return None
            growing = {
                name: each.within(*found.get(name, (each.size, each.size)))
                for name, each in growing.items()
            }
            continue
        return recipe, min((each.steps for each in growing.values()), default=tokens)


def _with_sizes(spec: InputSpec, sizes: Mapping[str, int]) -> InputSpec | None:
    """Return an input with sizes in place of names; ``None`` where that leaves no name."""
    shape = tuple(
        at_sizes([each], sizes)[0] if parts_of(str(each))[0] in sizes else each
        for each in spec.shape or ()
    )
    has_names = any(isinstance(n, str) for n in shape)
    return msgspec.structs.replace(spec, shape=shape) if has_names else None


def _decoding_of(stages: Stages) -> Decoding:
    decoding = stages.opened.decoding
    assert decoding is not None
    return decoding


def linked(parts: Mapping[str, Stages]) -> tuple[RecordedBuild, Mapping[str, Any]]:
    """Return one executable with a function for each part, by name, and its library functions.

    TensorIR functions that several have are compiled once.
    """
    first = next(iter(parts.values()))
    library: dict[str, Any] = {}
    outside: dict[str, dict[str, str]] = {}
    for part, stages in parts.items():
        own = {} if stages.lowered is None else stages.lowered.library
        outside[part] = {name: f"{part}.{name}" for name in own if name in library}
        library |= {outside[part].get(name, name): each for name, each in own.items()}

    def make() -> RecordedBuild:
        functions: dict[ir.GlobalVar, Any] = {}
        taken = set(parts)
        for part, stages in parts.items():
            functions |= _joined(functions, stages.completed, part, taken, outside[part])
        return recorded_build(tvm.IRModule(functions, attrs=first.completed.attrs), first.target)

    key = key_of("linked", *(each.build_key for each in parts.values()))
    return first.keep("link", key, make), library


def _joined(
    functions: Mapping[ir.GlobalVar, Any],
    module: tvm.IRModule,
    part: str,
    taken: set[str],
    outside: Mapping[str, str],
) -> dict[ir.GlobalVar, Any]:
    """Return the functions of a part that are not among others, under names that are not `taken`.

    Its ``main`` has the name of the part; the new names are added to `taken`.
    """
    known = {str(each.name_hint): (each, function) for each, function in functions.items()}
    own = {str(each.name_hint) for each in module.get_global_vars()}
    names = {"main": part}
    shared: dict[str, ir.GlobalVar] = {}
    for variable, function in module.functions_items():
        name = str(variable.name_hint)
        if name == "main":
            continue
        held = known.get(name)
        if held is None and name not in taken:
            taken.add(name)
        elif (
            held is not None
            and isinstance(function, tirx.PrimFunc)
            and tvm_ffi.structural_equal(function, held[1])
        ):
            shared[name] = held[0]
        else:
            names[name] = _unused(f"{name}_{part}", taken | own)
            taken.add(names[name])
    return _renamed(module, names, shared, outside)


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

    def __init__(self, prefill: Stages, steps: Sequence[Stages], job: Progress) -> None:
        self._prefill = prefill
        self._steps = {each.recipe.source.after: each for each in steps}
        self._decoding = _decoding_of(steps[0])
        self._job = job
        self._cache: tuple[CacheTensor, ...] = ()

    def run(self, count: int) -> GenerationRecord:
        prefill, *steps = self._prefill, *self._steps.values()
        names = [PREFILL, DECODE, *(f"{DECODE}_{n}" for n in range(2, len(steps) + 1))]
        parts = dict(zip(names, (prefill, *steps), strict=True))
        build, library = linked(parts)
        register_library(library)
        executable = build.built.executable
        model, step = (_model_of(each) for each in (prefill, steps[0]))
        loaded = prefill.loaded
        tokens: list[TokenRun] = []
        fault: TokenFault | None = None
        with steps[0].running(), torch.inference_mode():
            values = tuple(each.value for each in loaded.inputs)
            stages, arguments = prefill, values
            given = loaded.calling.arguments([each.clone() for each in values])
            execution: Execution | None = None
            while True:
                self._job.check()
                n = len(tokens)
                self._job.report(_("Token {n} of {count}", n=n + 1, count=count), n / count)
                if execution is None:
                    name = next(name for name, each in parts.items() if each is stages)
                    execution = Execution(executable, name, stages.arguments(arguments))
                else:
                    execution.take(stages.arguments(arguments))
                args, kwargs = given
                with user_code(loaded.path, _("computing token {n} failed", n=len(tokens) + 1)):
                    called, torch_ms = _timed(step if tokens else model, *args, **kwargs)
                call, tvm_ms = self._call(execution, values, called)
                run = self._judged(stages, call, tvm_ms, torch_ms)
                tokens.append(run)
                if run.verdict in FAILING:
                    fault = self._fault(len(tokens) - 1, stages, call, run)
                if fault is not None or len(tokens) == count:
                    break
                token = greedy(call.returned)
                # A tie within rounding is no fault: both sides go on with torch's token.
                ours = greedy(call.ours) if run.is_same else token
                # The function of this step, which begins with the one that it was traced for.
                following = self._steps.get(len(tokens) - 1, stages)
                if following is not stages:
                    stages, execution = following, None
                arguments = _arguments(stages, call.ours, ours)
                values = _arguments(stages, call.returned, token)
                given = self._decoding.arguments(call.returned, token)
            if fault is None:
                fault = self._hidden_fault(tokens, stages, call)
        if fault is not None:
            run = tokens[fault.token]
            tokens[fault.token :] = [
                msgspec.structs.replace(run, verdict="differ", reason=fault.reason)
            ]
        worst = min((each.verdict for each in tokens), key=_WORST.index)
        return GenerationRecord(
            prefill=prefill.recipe,
            decode=steps[0].recipe,
            later=tuple(each.recipe for each in steps[1:]),
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

    def _judged(self, stages: Stages, call: _Call, tvm_ms: float, torch_ms: float) -> TokenRun:
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
            entry=_entry(stages),
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

    def _fault(self, index: int, stages: Stages, call: _Call, run: TokenRun) -> TokenFault:
        """Return the node where a call differs, on torch's inputs."""
        found = self._nodes(index, stages, call.values)
        first = first_difference(found.nodes).removeprefix("fx:")
        cause = self._cause(stages, found, first, is_differing=True)
        return _fault_at(index, stages, cause or first, run.reason)

    def _hidden_fault(
        self, tokens: Sequence[TokenRun], last_stages: Stages, last_call: _Call
    ) -> TokenFault | None:
        """Return the first call with a wrong node that its outputs do not tell; ``None`` if none.

        The prefill and the last call of each decode step are compared node by node. A fault begins
        at a token, and is there from then on.
        """
        last = len(tokens) - 1
        ends = sorted({last, *(each for each in self._steps if 0 < each < last)})
        begin = 0
        for end in dict.fromkeys((0, *ends)):
            stages, values = (
                (last_stages, last_call.values) if end == last else self._call_in_torch(end)
            )
            found = self._nodes(end, stages, values)
            node = self._cause(stages, found, "", is_differing=False)
            if node:
                first = self._first_wrong(begin, end, found, node)
                run = tokens[first]
                reason = hidden_reason(run.verdict, run.reason, node)
                return _fault_at(first, stages, node, reason)
            begin = end + 1
        return None

    def _first_wrong(self, low: int, high: int, found: NodeRuns, node: str) -> int:
        """Return the first of some calls of one function in which a node is wrong.

        Args:
            found: The nodes of the last call, which has it.
        """
        assert found.kept is not None
        stages, _values = self._call_in_torch(high)
        tolerances = stages.recipe.tolerances
        is_translation = is_wrong_as_translated(stages, tolerances, found.kept, node)
        middle = low
        while low < high:
            _stages, values = self._call_in_torch(middle)
            if is_translation:
                kept = replace(found.kept, inputs=values)
                is_wrong = is_wrong_as_translated(stages, tolerances, kept, node)
            else:
                other = self._nodes(middle, stages, values)
                is_wrong = bool(self._cause(stages, other, "", is_differing=False))
            low, high = (low, middle) if is_wrong else (middle + 1, high)
            middle = (low + high) // 2
        return high

    def _call_in_torch(self, index: int) -> tuple[Stages, tuple[torch.Tensor, ...]]:
        """Return the function that makes a call, and torch's inputs of it."""
        stages, loaded = self._prefill, self._prefill.loaded
        values = tuple(each.value for each in loaded.inputs)
        args, kwargs = loaded.calling.arguments([each.clone() for each in values])
        models = [_model_of(self._prefill)]
        if index:
            models.append(_model_of(next(iter(self._steps.values()))))
        for place in range(index):
            self._job.check()
            with user_code(loaded.path, _("computing token {n} failed", n=place + 1)):
                returned = models[min(place, 1)](*args, **kwargs)
            stages = self._steps.get(place, stages)
            token = greedy(returned)
            values = _arguments(stages, returned, token)
            args, kwargs = self._decoding.arguments(returned, token)
        return stages, values

    def _nodes(self, index: int, stages: Stages, values: tuple[torch.Tensor, ...]) -> NodeRuns:
        self._job.report(_("Looking for the node where token {n} differs", n=index + 1))
        return node_runs(stages, stages.recipe, values, self._job, repeats=1)

    def _cause(self, stages: Stages, found: NodeRuns, first: str, *, is_differing: bool) -> str:
        """Return the node where a difference starts; empty if it is not known better."""
        if found.kept is None or found.kept.parts is None:
            return ""
        tolerances = stages.recipe.tolerances
        cause = cause_of(
            *(stages, tolerances, self._job, found.kept, found.nodes, first),
            is_differing=is_differing,
        )
        return "" if cause is None else cause.node


def _fault_at(index: int, stages: Stages, node: str, reason: str) -> TokenFault:
    fault = TokenFault(token=index, entry=_entry(stages), reason=reason)
    traced = stages.traced
    if not node or traced is None:
        return fault
    line = traced.lines.get(node)
    return msgspec.structs.replace(
        fault,
        node=f"fx:{node}",
        layer=traced.modules.get(node, ""),
        where="" if line is None else f"{PurePath(line.file).name}:{line.line}",
    )


def _entry(stages: Stages) -> Entry:
    return DECODE if stages.recipe.source.decode else PREFILL


def _arguments(stages: Stages, returned: Any, token: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the inputs of a decode step in the order of those that were traced."""
    named = _decoding_of(stages).inputs(returned, token)
    names = [each.name for each in stages.loaded.inputs]
    if set(names) != set(named):
        raise LowerscopeError(
            _("next_inputs returns other inputs at this token than at the first"),
            where="next_inputs",
            todo=_("Return the same inputs each time: {names}", names=_(", ").join(names)),
        )
    return tuple(named[name].clone() for name in names)


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
