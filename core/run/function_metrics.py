"""Metrics of a scheduled function: its work, its speed, its correctness, and this machine's peaks.

Each peak is the best of many short tries in rounds some tenths of a second apart: another process
that takes a processor for as long as a round does not count:

- *Multiply-adds*: a TensorIR kernel of independent chains ``x = x * 0.5 + 1`` whose values stay in
  vector registers, in every thread at once. It is built for the recipe's target, and for this
  machine's own processor: the generic target has no fused multiply-add, and the share of a peak
  that leaves out most of the machine says little. torch's product of two matrices counts as well,
  if it is faster.
- *Memory*: torch's ``x = y + 2 z`` and ``x = y``, and its sum of ``y``, on tensors that are several
  times as large as the last-level cache. The fetch before a write is not counted, as in STREAM.
- *Caches*: a TensorIR kernel of ``x = y + 2 z`` on arrays of which each thread has some 100 kB.

Peaks are cached in a file, by processor, target, threads and versions.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch
import tvm
from tvm import ir, relax, s_tir, tirx

from lowerscope.core.build.build import compile_function
from lowerscope.core.build.targets import ProcessorUse, check_runs_here, make_target, use_threads
from lowerscope.core.files.cache import read_kept, write_kept
from lowerscope.core.files.memo import key_of
from lowerscope.core.files.paths import cache_folder
from lowerscope.core.ir.relax import bound_in, callee_of, entity_of, relax_functions
from lowerscope.core.ir.tensorir import dtype_of, operator_name, parameters_of, prim_funcs_of
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.machines import processor_name
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.processors import MACHINE, cache_sizes
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    CheckQuery,
    MeasureQuery,
    PeaksQuery,
    RunEstimateQuery,
    WorkQuery,
    answers,
)
from lowerscope.core.model.recipe import VERSIONS
from lowerscope.core.model.run_records import RunEstimate
from lowerscope.core.model.schedule_records import Checked, Measured, Peaks, Work
from lowerscope.core.model.texts import _
from lowerscope.core.run.checking import Limit, Reference, reference_of
from lowerscope.core.run.checking import check as check_function
from lowerscope.core.run.standalone import Given, at_sizes, is_symbolic, sizes_at_calls, time_alone
from lowerscope.core.run.torch_interpreter import nodes_of, torch_ms
from lowerscope.core.schedule.replay import state_at
from lowerscope.core.stages import Pipeline, Stages, has_functions, has_module

_SECONDS = 0.1
"""Seconds of each kind of attempt in a round."""

_TURNS = 4
"""Number of rounds."""

_LANES, _CHAINS, _DEPTH, _STEPS = 16, 12, 8, 5000
_ELEMENTS, _ROUNDS = 8192, 50
_MATRIX = 768

_MULTIPLY_ADD = f"""
@T.prim_func(s_tir=True)
def main(x: T.Buffer(({{threads}}, {_CHAINS}, {_LANES}), "float32")):
    T.func_attr({{{{"global_symbol": "main", "tirx.noalias": True}}}})
    for p in T.parallel({{threads}}):
        for k in range({_STEPS}):
            for c in T.unroll({_CHAINS}):
                for lane in T.vectorized({_LANES}):
                    x[p, c, lane] = {{chain}}
"""

_TRIAD = f"""
@T.prim_func(s_tir=True)
def main(
    x: T.Buffer(({{threads}}, {_ELEMENTS}), "float32"),
    y: T.Buffer(({{threads}}, {_ELEMENTS}), "float32"),
    z: T.Buffer(({{threads}}, {_ELEMENTS}), "float32"),
):
    T.func_attr({{{{"global_symbol": "main", "tirx.noalias": True}}}})
    for p in T.parallel({{threads}}):
        for k in range({_ROUNDS}):
            for i in range({_ELEMENTS // _LANES}):
                for lane in T.vectorized({_LANES}):
                    x[p, i * {_LANES} + lane] = (
                        y[p, i * {_LANES} + lane] + z[p, i * {_LANES} + lane] * T.float32(2)
                    )
"""


def measure_peaks(text: str, threads: int, progress: Progress) -> Peaks:
    """Measure the peaks of this machine; it takes some three seconds.

    Raises `Cancelled` between two tries.
    """
    progress.report(_("Measuring the peak rates of this machine"), 0.0)
    native = make_target("native", threads)
    targets = {str(each): each for each in (make_target(text, threads), native)}.values()
    kernels = {
        "gflops": list(_multiply_add_kernels(targets, threads)),
        "cache": [_cache_kernel(native, threads)],
        "memory": list(_memory_kernels(cache_bytes())),
    }
    best = dict.fromkeys(kernels, 0.0)
    for turn in range(_TURNS):
        for name, tried in kernels.items():
            progress.report(_("Measuring the peak rates of this machine"), turn / _TURNS)
            for amount, call in tried:
                best[name] = max(best[name], amount / _best(call, progress) / 1e9)
    return Peaks(
        gflops=best["gflops"],
        gbytes_per_second=best["memory"],
        threads=threads,
        target=text,
        cache_bytes=cache_bytes(),
        cache_gbytes_per_second=max(best["cache"], best["memory"]),
    )


Kernel = tuple[float, Callable[[], Any]]
"""Amount that is computed or moved, and the function that does it."""


def _multiply_add_kernels(targets: Iterable[tvm.target.Target], threads: int) -> Iterator[Kernel]:
    operations = 2.0 * threads * _CHAINS * _LANES * _DEPTH * _STEPS
    for target in targets:
        kernel = _built(_multiply_add_text(threads), target)
        yield operations, partial(kernel, _zeros(threads, _CHAINS, _LANES))
    a, b = torch.ones(_MATRIX, _MATRIX), torch.ones(_MATRIX, _MATRIX)
    yield 2.0 * _MATRIX**3, partial(torch.mm, a, b, out=torch.empty_like(a))


def _multiply_add_text(threads: int) -> str:
    chain = "x[p, c, lane]"
    for _turn in range(_DEPTH):
        chain = f"({chain} * T.float32(0.5) + T.float32(1))"
    return _MULTIPLY_ADD.format(threads=threads, chain=chain)


def _built(text: str, target: tvm.target.Target) -> Callable[..., Any]:
    function = tvm.script.from_source(text)
    built: Callable[..., Any] = compile_function("main", function, target).jit()["main"]
    return built


def _zeros(*shape: int) -> tvm.runtime.Tensor:
    values = tvm.runtime.empty(shape, "float32")
    torch.utils.dlpack.from_dlpack(values).zero_()
    return values


def _cache_kernel(target: tvm.target.Target, threads: int) -> Kernel:
    triad = _built(_TRIAD.format(threads=threads), target)
    arrays = [_zeros(threads, _ELEMENTS) for _turn in range(3)]
    return 3.0 * 4 * threads * _ELEMENTS * _ROUNDS, partial(triad, *arrays)


def _memory_kernels(cache: int) -> Iterator[Kernel]:
    elements = min(max(2 * cache, 64 << 20), 256 << 20) // 4
    size = 4.0 * elements
    x, y, z = (torch.ones(elements) for _turn in range(3))
    yield 3 * size, lambda: torch.add(y, z, alpha=2.0, out=x)
    yield 2 * size, lambda: x.copy_(y)
    yield size, lambda: y.sum()


def _best(call: Callable[[], Any], progress: Progress) -> float:
    """Return the time of the fastest call, in seconds."""
    call()
    best, until = math.inf, time.perf_counter() + _SECONDS
    while time.perf_counter() < until or best is math.inf:
        progress.check()
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def cache_bytes() -> int:
    """Return the size of the last-level cache, or a usual one where it is not known."""
    return max(cache_sizes().values(), default=8 << 20)


# --- kept ---------------------------------------------------------------------------------------


def peaks_key(text: str, threads: int) -> str:
    """Return the cache key of measured peaks."""
    versions = (torch.__version__, tvm.__version__)
    return key_of("peaks", 3, processor_name(), MACHINE, text, threads, *versions)


def kept_peaks(key: str) -> Peaks | None:
    """Return the cached peaks, if there are any."""
    try:
        return msgspec.json.decode(read_kept(_file(key)), type=Peaks)
    except (OSError, *UNREADABLE):
        # Nothing was measured yet, or by a version with another format, or the file is damaged.
        return None


def keep_peaks(key: str, peaks: Peaks) -> Peaks:
    """Cache peaks that exceed the cached ones; return the best of both."""
    old = kept_peaks(key)
    if old is not None:
        peaks = msgspec.structs.replace(
            peaks,
            gflops=max(peaks.gflops, old.gflops),
            gbytes_per_second=max(peaks.gbytes_per_second, old.gbytes_per_second),
            cache_gbytes_per_second=max(peaks.cache_gbytes_per_second, old.cache_gbytes_per_second),
        )
    if peaks != old:
        write_kept(_file(key), msgspec.json.encode(peaks))
    return peaks


def _file(key: str) -> Path:
    return cache_folder() / f"peaks-{key}.json"


def work_of(function: tirx.PrimFunc, calls: int, at: str = "") -> Work:
    """Return the work of one call of a function.

    `function`: before it is scheduled: a schedule may compute something twice, or elsewhere. `at`:
    the size, of a function with symbolic extents.
    """
    flops, read, written = flops_of(function), None, None
    parameters = parameters_of(function)
    if parameters is not None and all(each.size is not None for each in parameters):
        read = sum(each.read or 0 for each in parameters)
        written = sum(each.written or 0 for each in parameters)
    moved = (read or 0) + (written or 0)
    return Work(
        calls=calls,
        at=at,
        flops=flops,
        read=read,
        written=written,
        intensity=flops / moved if flops is not None and moved else None,
    )


def calls_from_main(module: tvm.IRModule) -> dict[str, int]:
    """Return the number of calls of each TensorIR function in one call of ``main``, by name.

    Of a branch, both sides count.
    """
    functions = dict(relax_functions(module))
    called = {name: _called(name, function, module) for name, function in functions.items()}
    totals: Counter[str] = Counter()

    def run(name: str, times: int, around: tuple[str, ...]) -> None:
        for entity, count in called.get(name, {}).items():
            kind, _sep, callee = entity.partition(":")
            if kind == "tir":
                totals[callee] += times * count
            elif kind == "relax" and callee not in around:
                run(callee, times * count, (*around, callee))

    run("main", 1, ("main",))
    return dict(totals)


def _called(name: str, function: relax.Function, module: tvm.IRModule) -> Counter[str]:
    found: Counter[str] = Counter()
    for bound in bound_in(name, function):
        callee: Any = callee_of(bound.value)
        if callee is not None:
            found[entity_of(callee, module)] += 1
    return found


_ONE_EACH = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.Mod, tirx.FloorMod)
_BETWEEN_TWO = (*_ONE_EACH, tirx.Min, tirx.Max)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
_LOGIC = (tirx.And, tirx.Or)

_FREE_CALLS = frozenset(
    (
        *("reinterpret", "large_uint_imm", "infinity", "min_value", "max_value"),
        *("likely", "assume", "undef", "ret"),
    )
)
"""Operators that compute nothing."""

_CODE_OUTSIDE = frozenset(
    (
        *("call_extern", "call_pure_extern", "call_packed", "tvm_call_packed", "tvm_call_cpacked"),
        *("call_llvm_intrin", "call_llvm_pure_intrin", "call_ffi_kernel"),
    )
)
"""Calls of code outside of the function, whose operations are not known."""


class _Unknown(Exception):
    """The number of operations depends on values that are known at run time alone."""


def flops_of(function: Any) -> float | None:
    """Return the operations on floating-point numbers that one call of a function does.

    Each addition, multiplication, division, minimum, maximum and comparison is one, as is each
    mathematical function, such as ``exp``; a fused multiply-add is two. Conversions, moves and the
    arithmetic of indices are none. Of two branches, the longer one counts. The initialisation of a
    block is counted once per reduction.

    ``None`` where an extent is symbolic, or the function calls code outside of it.
    """
    try:
        return _in_statement(function.body)
    except _Unknown:
        return None


def _in_statement(statement: Any) -> float:
    count = _STATEMENTS.get(type(statement))
    if count is None:
        raise _Unknown
    return count(statement)


def _in_loop(loop: Any) -> float:
    each = _in_statement(loop.body)
    # A loop that computes nothing may have an unknown extent.
    return each * _constant(loop.extent) if each else 0.0


def _in_realize(realize: Any) -> float:
    block = realize.block
    total = _in_expression(realize.predicate) + _in_statement(block.body)
    if block.init is not None:
        reductions = 1.0
        for axis in block.iter_vars:
            if axis.iter_type == tirx.IterVar.CommReduce:
                reductions *= _constant(axis.dom.extent)
        start = _in_statement(block.init)
        total += start / reductions if start else 0.0
    return total


def _in_branches(choice: Any) -> float:
    otherwise = 0.0 if choice.else_case is None else _in_statement(choice.else_case)
    return _in_expression(choice.condition) + max(_in_statement(choice.then_case), otherwise)


_STATEMENTS: dict[type, Callable[[Any], float]] = {
    tirx.SeqStmt: lambda each: sum(map(_in_statement, each.seq)),
    tirx.For: _in_loop,
    s_tir.SBlockRealize: _in_realize,
    tirx.BufferStore: lambda each: _in_expression(each.value),
    tirx.IfThenElse: _in_branches,
    tirx.Bind: lambda each: _in_expression(each.value),
    tirx.AllocBuffer: lambda _unused: 0.0,
    tirx.DeclBuffer: lambda _unused: 0.0,
    tirx.Evaluate: lambda each: _in_expression(each.value),
    tirx.AttrStmt: lambda each: _in_statement(each.body),
    tirx.AssertStmt: lambda each: _in_expression(each.condition),
}


def _in_expression(expression: Any) -> float:
    kind = type(expression)
    if kind in _BETWEEN_TWO:
        inner = _in_expression(expression.a) + _in_expression(expression.b)
        return inner + _lanes(expression)
    if kind in _COMPARISONS or kind in _LOGIC:
        inner = _in_expression(expression.a) + _in_expression(expression.b)
        return inner + (_lanes(expression.a) if kind in _COMPARISONS else 0.0)
    if kind is tirx.Select:
        branches = (expression.true_value, expression.false_value)
        return _in_expression(expression.condition) + max(map(_in_expression, branches))
    if kind in (tirx.Cast, tirx.Broadcast):
        return _in_expression(expression.value)
    if kind is tirx.Not:
        return _in_expression(expression.a)
    if kind is tirx.Let:
        return _in_expression(expression.value) + _in_expression(expression.body)
    if isinstance(expression, ir.Call):
        return _in_call(expression)
    return 0.0


def _in_call(call: Any) -> float:
    name = operator_name(call)
    if name in _CODE_OUTSIDE:
        raise _Unknown
    if name == "if_then_else":
        condition, *branches = call.args
        return _in_expression(condition) + max(map(_in_expression, branches))
    inner = sum(map(_in_expression, call.args))
    if name in _FREE_CALLS:
        return inner
    return inner + _lanes(call) * (2 if name == "fma" else 1)


def _lanes(expression: Any) -> float:
    """Return the number of floating-point values in an expression; 0 for other types."""
    dtype = dtype_of(expression)
    if not dtype.startswith(("float", "bfloat")):
        return 0.0
    lanes = dtype.rpartition("x")[2]
    return float(lanes) if "x" in dtype and lanes.isdigit() else 1.0


def _constant(extent: Any) -> float:
    if not isinstance(extent, tirx.IntImm):
        raise _Unknown
    return float(int(extent.value))


BEYOND = 4.0
"""Multiple of the peaks beyond which a function did less than was counted: neither noise nor the
smallest cache, which is faster than the one that was measured, reaches it."""


@answers(WorkQuery, has_functions)
def work(query: WorkQuery, pipeline: Pipeline, job: Progress) -> Work:
    """Return the work of one call of a function before it is scheduled.

    Raises `LowerscopeError` if there is no such function.
    """
    return _work(pipeline.stages(query.recipe, job), query.function)


UNSCHEDULED_RATE = 1e9
"""Operations a second of loops without a schedule, on one thread; 0.4 to 2.2 billion were measured
for matrix products, convolutions and exponentials."""


@answers(RunEstimateQuery, has_module)
def estimate(query: RunEstimateQuery, pipeline: Pipeline, job: Progress) -> RunEstimate:
    """Return the estimated time of a run; functions whose work is not known count as none.

    Raises `LowerscopeError` if a step of the recipe failed.
    """
    stages = pipeline.stages(query.recipe, job)
    stages.transformed.check()
    scheduled = {each.schedule.function for step in stages.transformed.schedules for each in step}
    with stages.target:
        # As the build does with operators that are left.
        legal = relax.transform.LegalizeOps()(stages.unscheduled.module)
    calls = calls_from_main(legal)
    functions = prim_funcs_of(legal)
    left = [name for name in functions if name not in scheduled]
    work = sum((flops_of(functions[name]) or 0.0) * calls.get(name, 0) for name in left)
    return RunEstimate(
        seconds=work / UNSCHEDULED_RATE, unscheduled=len(left), functions=len(functions)
    )


@answers(PeaksQuery)
def peaks(query: PeaksQuery, pipeline: Pipeline, job: Progress) -> Peaks:
    """Return the peaks of this machine, measured if they never were, or again.

    Raises `LowerscopeError` if the recipe is for another machine.
    """
    recipe = query.recipe
    pipeline.stages(recipe, job).check_runs_here(_("a measurement of peak rates"))
    threads = use_threads(recipe.threads)
    key = peaks_key(recipe.target, threads)
    kept = None if query.again else kept_peaks(key)
    return kept or keep_peaks(key, measure_peaks(recipe.target, threads, job))


@answers(MeasureQuery)
def measure(query: MeasureQuery, pipeline: Pipeline, job: Progress) -> Measured:
    """Measure a function after the first primitives of its schedule, and torch's nodes.

    Raises `LowerscopeError` if there is no such function, or it cannot be compiled or run alone.
    """
    recipe, function = query.recipe, query.function
    stages = pipeline.stages(recipe, job)
    stages.check_runs_here(_("a measurement of a single function"))
    found = pipeline.answer(PeaksQuery(recipe), job)
    states = stages.states(function)
    scheduled = at_sizes(state_at(states, query.index).function, given_of(stages, function))
    use = ProcessorUse()
    timing = time_alone(scheduled, stages.target, recipe.seed, job)
    disturbed = use.was_short(found.threads)
    counted = _work(stages, function)
    nodes = nodes_of(stages, function)
    key = key_of("torch_ms", stages.unscheduled_key, nodes.names, found.threads, recipe.seed)
    kept: list[float | None] = stages.keep("torch", key, list)
    use, torch_disturbed = ProcessorUse(), False
    torch = kept[0] if kept else torch_ms(stages, nodes.names, recipe.seed, job)
    if not kept and torch is not None:
        torch_disturbed = use.was_short(found.threads)
    if not kept and not torch_disturbed:
        # A time that is unreliable is measured once more the next time.
        kept.append(torch)
    measured = _measured(timing, counted, found)
    return msgspec.structs.replace(
        measured,
        torch_ms=torch,
        torch_nodes=nodes.names if torch is not None else (),
        torch_does_more=nodes.does_more,
        disturbed=disturbed or torch_disturbed,
    )


@answers(CheckQuery)
def check(query: CheckQuery, pipeline: Pipeline, job: Progress) -> Checked:
    """Compare a function after the first primitives of its schedule with the unscheduled one.

    The output of the unscheduled one is cached.

    Raises `LowerscopeError` if there is no such function, or the target is for another machine.
    """
    recipe, function, seconds = query.recipe, query.function, query.seconds
    threads = use_threads(recipe.threads)
    stages = pipeline.stages(recipe, job)
    check_runs_here(stages.target)
    states = stages.states(function)
    given = given_of(stages, function)
    try:
        base = at_sizes(states[0].function, given)
        scheduled = at_sizes(state_at(states, query.index).function, given)
    except LowerscopeError as error:
        return Checked(verdict="unknown", reason=error.problem.what)
    structure = stages.functions.structures[function]
    key = key_of("reference", structure, base.text, str(stages.target), recipe.seed, VERSIONS)

    def reference(limit: Limit) -> Reference:
        job.report(_("Running the unscheduled function"))
        return stages.keep(
            "reference",
            key,
            lambda: reference_of(base, stages.target, recipe.seed, limit),
            lambda made: made.size,
        )

    limit = Limit(seconds, threads, job)
    checked = check_function(scheduled.function, stages.target, reference, limit, seconds)
    return msgspec.structs.replace(checked, at=base.text)


def _work(stages: Stages, function: str) -> Work:
    base = stages.states(function)[0].function

    def make() -> Work:
        calls = calls_from_main(stages.unscheduled.module).get(function, 0)
        try:
            sized = at_sizes(base, given_of(stages, function))
        except LowerscopeError:
            return work_of(base, calls)
        return work_of(sized.static, calls, sized.text)

    return stages.keep("work", key_of("work", stages.unscheduled_key, function), make)


def given_of(stages: Stages, function: str) -> Given | None:
    """Return the arguments that the model calls a function with at the traced size, if known."""
    if not is_symbolic(stages.functions.by_name[function]):
        return None

    def make() -> dict[str, Given]:
        inputs = [each.value for each in stages.loaded.inputs]
        module = stages.unscheduled.module
        shapes = [_shape(each) for each in stages.arguments_of(module, inputs)]
        return sizes_at_calls(module, shapes)

    return stages.keep("sizes", key_of("sizes", stages.unscheduled_key), make).get(function)


def _shape(value: object) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(int(each) for each in shape)


def _measured(timing: Measured, work: Work, peaks: Peaks) -> Measured:
    """Return the rates of a timing, and their share of the machine's peaks."""
    moved = None if work.read is None else work.read + (work.written or 0)
    flops = work.flops
    per_second = timing.milliseconds * 1e6
    gflops = None if flops is None else flops / per_second
    gbytes = None if moved is None else moved / per_second
    share = None
    if flops is not None and moved:
        found = peaks.best_ms(flops, moved) / timing.milliseconds
        share = min(found, 1.0) if found < BEYOND else None
    return msgspec.structs.replace(timing, gflops=gflops, gbytes_per_second=gbytes, share=share)
