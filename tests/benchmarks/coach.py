"""The coach: its predictions beside measured times, and functions that it schedules."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from lowerscope.core.build.targets import use_threads
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, with_pipeline
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.run.function_metrics import kept_peaks, peaks_key
from lowerscope.core.run.standalone import (
    at_sizes,
    compile_alone,
    draw_arguments,
    static_parameters,
)
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.coach import advice, with_cures
from lowerscope.core.schedule.nests import caches_here
from lowerscope.core.schedule.price import Rates, predicted_ms, rates_here
from lowerscope.core.schedule.references import first_outputs, function_of, references
from lowerscope.core.schedule.rules.by_rule import written_by_rule
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.workbench import moves
from tests.benchmarks.figures import Figure, benchmark, within
from tests.benchmarks.stages import sample

SAMPLES = (
    *("matmul", "matmul_relu", "fashion_mlp", "conv_net", "transformer_block", "depthwise_net"),
    "resnet18",
)
PRIMITIVES, ROUNDS, SUGGESTIONS = 200, 5, 10
COACHED = {"matmul": "matmul", "resnet18": "conv2d1", "transformer_block": "softmax layer_norm"}
"""Functions that the coach schedules, by sample."""


def functions_of(name: str) -> dict[str, tirx.PrimFunc]:
    """Return one function of each structure of a sample after fusion."""
    recipe = with_pipeline(sample(name, target="native"), find_pipeline("fuse").steps)
    functions = Pipeline().stages(recipe).functions
    found = {functions.structures[each]: each for each in reversed(functions.by_name)}
    return {each: functions.by_name[each] for each in found.values()}


def timed(function: tirx.PrimFunc, target: tvm.target.Target) -> Callable[[], float]:
    """Return a measurement of a function: the time of one call among several, in milliseconds."""
    sized = at_sizes(function, None)
    compiled = compile_alone(sized.function, target)
    arguments = draw_arguments(sized.static, static_parameters(sized.static), 0)
    compiled.seconds(arguments, 1)
    once = min(compiled.seconds(arguments, 1) for _turn in range(2))
    number = max(1, int(2e-3 / max(once, 1e-7)))
    return lambda: compiled.seconds(arguments, number) * 1000


def ranks(values: list[float]) -> Any:
    """Return the ranks of values; equal ones share the mean of theirs."""
    _unique, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def rates() -> tuple[tvm.target.Target, Rates]:
    """Return the target of the benchmarks, with the rates of this machine."""
    target = Pipeline().stages(sample("matmul", target="native")).target
    use_threads(MACHINE)
    return target, rates_here(target, kept_peaks(peaks_key("native", MACHINE)))


@benchmark("prices")
def prices() -> Iterator[Figure]:
    """Hold predicted times of random legal primitives against measured ones, by their ranks."""
    target, here = rates()
    draw = random.Random(0)
    functions = {each: functions_of(each) for each in SAMPLES}
    took, predicted, measured = [], [], []
    while len(measured) < PRIMITIVES:
        function = draw.choice(list(functions[draw.choice(SAMPLES)].values()))
        sch = Schedule(tvm.IRModule({"main": function}))
        outputs = first_outputs(sch)
        chosen = draw.choice(list(references(sch, outputs).values()))
        start = time.process_time()
        plain = moves(sch, (chosen,), outputs, target)
        between = time.process_time()
        found = moves(sch, (chosen,), outputs, target, rates=here)
        took.append(max(0.0, time.process_time() - between - (between - start)) * 1000)
        assert len(found) == len(plain)
        legal = [each for each in found if each.legal and each.predicted_ms is not None]
        if legal:
            move = draw.choice(legal)
            after = function_of(apply(sch, move.primitive, outputs, target).sch)
            measure = timed(after, target)
            predicted.append(move.predicted_ms or 0.0)
            measured.append(min(measure() for _turn in range(ROUNDS)))
    yield within("predictions for a selection, the longest", [max(took)], 500)
    rank = float(np.corrcoef(ranks(predicted), ranks(measured))[0, 1])
    note = f"; rank correlation {rank:.2f} over {len(measured)} primitives"
    yield Figure("one less the rank correlation", [1 - rank], [0.3], "the limit", 1.0, note)


def coached(function: tirx.PrimFunc, target: tvm.target.Target, here: Rates) -> tuple[Any, int]:
    """Return a function after the coach's best cures, and their number."""
    for count in range(SUGGESTIONS):
        warnings = advice(function, here.machine, caches_here())
        cures = with_cures(warnings, function, target, here, lambda: None)
        steps = [each for each in cures if each.predicted_ms is not None]
        if not steps:
            return function, count
        best = min(steps, key=lambda each: each.predicted_ms or 0.0)
        sch = Schedule(tvm.IRModule({"main": function}))
        outputs = first_outputs(sch)
        for primitive in best.steps:
            sch = apply(sch, primitive, outputs, target).sch
        function = function_of(sch)
    return function, SUGGESTIONS


@benchmark("coach")
def coach() -> Iterator[Figure]:
    """Hold functions after the coach's cures against those of the rules, in pairs."""
    target, here = rates()
    for name, wanted in COACHED.items():
        functions = functions_of(name)
        for each in wanted.split():
            function = functions[each]
            scheduled, count = coached(function, target, here)
            _rule, writing, _reason = written_by_rule(function, target, {})
            assert writing is not None
            both = [timed(one, target) for one in (scheduled, function_of(writing.sch))]
            pairs = [[measure() for measure in both] for _turn in range(12)]
            ours, theirs = (sorted(times)[:3] for times in zip(*pairs, strict=True))
            note = f"; {count} cures, predicted {predicted_ms(scheduled, here):.3g} ms"
            yield Figure(f"{name}.{each} by the coach", ours, theirs, "by rule", 1.5, note)
