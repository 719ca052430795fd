"""Implementations compared in a run at one size of each named dimension, and their timing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import torch

from lowerscope.core.comparing.numpy_reference import NumpyReference
from lowerscope.core.comparing.tolerances import EPSILONS
from lowerscope.core.dimensions import Sizes, runs_of, sizes_text, traced_sizes
from lowerscope.core.execution.compiled_torch import CompiledTorch, compile_torch
from lowerscope.core.execution.precise_running import PreciseRun, precise_run
from lowerscope.core.execution.running import Execution, Reference
from lowerscope.core.execution.threads import threads_of_tvm
from lowerscope.core.execution.timing import Side, measure
from lowerscope.core.measuring import BUDGET, MEASURING, REPEATS, Measuring
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.times import RunTimes
from lowerscope.core.sources.examples import ExampleInput
from lowerscope.core.sources.inputs import drawn_at
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.running_once import dtypes_of


def inputs_at(sizes: Sizes, stages: Stages, recipe: Recipe) -> tuple[ExampleInput, ...]:
    """Return the inputs at these sizes of the named dimensions."""
    inputs = stages.loaded.inputs
    return inputs if sizes == traced_sizes(recipe) else drawn_at(inputs, sizes, recipe.seed)


def reference_of(
    loaded: LoadedModel, values: tuple[torch.Tensor, ...], seed: int
) -> tuple[str, Reference | None]:
    """Return the reference of the outputs, and its name."""
    if loaded.model is not None:
        return "torch", Reference(loaded.model, values, seed, loaded.calling)
    if loaded.reference is not None:
        numpy = NumpyReference(loaded.reference)
        return "NumPy", Reference(numpy, values, seed, loaded.calling, "NumPy")
    return "torch", None


def precise_of(
    stages: Stages,
    values: tuple[torch.Tensor, ...],
    seed: int,
    expected: Sequence[torch.Tensor] | None,
) -> Callable[[], PreciseRun | None] | None:
    """Return a run of the model in float64, for `judge`.

    ``None`` if all floats have one dtype of more than 16 bits, and for a source without torch.
    """
    loaded, traced = stages.loaded, stages.traced
    if loaded.model is None:
        return None
    parts = (*loaded.model.parameters(), *loaded.model.buffers(), *values, *(expected or ()))
    dtypes = {str(each.dtype).removeprefix("torch.") for each in parts}
    if traced is not None:
        dtypes.update(each for info in traced.values.values() for each in dtypes_of(info))
    floats = dtypes.intersection(EPSILONS)
    if len(floats) < 2 and floats.isdisjoint(("float16", "bfloat16")):
        return None
    return partial(precise_run, loaded.model, values, seed, loaded.calling)


def measure_run(
    stages: Stages,
    recipe: Recipe,
    sizes: Sizes,
    execution: Execution,
    reference: Reference | None,
    progress: Progress,
    *,
    quick: bool = False,
) -> RunTimes:
    """Time the executable beside its reference and, if requested, ``torch.compile``.

    A quick one measures one call of each implementation.
    """
    measuring = Measuring(warm_up=1, repeats=1) if quick else recipe.measuring
    (times,) = measure_by_turns(
        (stages,), recipe, sizes, (execution,), reference, measuring, progress
    )
    return times


def measure_by_turns(
    stages: Sequence[Stages],
    recipe: Recipe,
    sizes: Sizes,
    executions: Sequence[Execution],
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> tuple[RunTimes, ...]:
    """Time executables of one source by turns, all beside the same reference.

    Parameters
    ----------
    stages
        Of each executable.
    recipe
        That of the first; of the others, source, inputs and sizes are the same.

    Returns
    -------
    tuple[RunTimes, ...]
        Of each executable, with the reference and, if requested, ``torch.compile``.
    """
    others, compiled = _reference_sides(stages[0], recipe, sizes, reference, measuring, progress)
    progress.report(f"{MEASURING} at {sizes_text(sizes)}" if sizes else MEASURING)
    # Side effects of a function occur once a call.
    pure = all(each.transformed.module["main"].is_pure for each in stages)
    ours = [Side("TVM", each.call, threads_of_tvm()) for each in executions]
    budget = BUDGET * len(ours) / len(runs_of(recipe))
    found = measure([*ours, *others], measuring, progress.check, REPEATS if pure else 0, budget)
    beside = found.sides[len(ours) :]
    return tuple(
        msgspec.structs.replace(
            found,
            sides=(each, *beside),
            compile_ms=compiled.milliseconds,
            compile_problem=compiled.problem,
        )
        for each in found.sides[: len(ours)]
    )


def measure_reference(
    stages: Stages,
    recipe: Recipe,
    sizes: Sizes,
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> RunTimes:
    """Time the reference and, if requested, ``torch.compile``, on their own."""
    others, compiled = _reference_sides(stages, recipe, sizes, reference, measuring, progress)
    if not others:
        return RunTimes(sides=(), warm_up=measuring.warm_up)
    progress.report(MEASURING)
    found = measure(others, measuring, progress.check, REPEATS, BUDGET / len(runs_of(recipe)))
    return msgspec.structs.replace(
        found, compile_ms=compiled.milliseconds, compile_problem=compiled.problem
    )


def _reference_sides(
    stages: Stages,
    recipe: Recipe,
    sizes: Sizes,
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> tuple[list[Side], CompiledTorch]:
    """Return the references timed beside an executable, and the outcome of ``torch.compile``."""
    loaded, threads = stages.loaded, torch.get_num_threads()
    others = []
    if reference is not None:
        known = threads if reference.side == "torch" else None
        others.append(_torch_side(reference, known))
    compiled = CompiledTorch(None)
    if measuring.torch_compile and loaded.model is not None and sizes == runs_of(recipe)[0]:
        progress.report("Compiling with torch.compile")
        values = tuple(each.value for each in inputs_at(sizes, stages, recipe))
        compiled = compile_torch(loaded.model, values, recipe.seed, loaded.calling)
        if compiled.reference is not None:
            others.append(_torch_side(compiled.reference, threads))
    return others, compiled


def _torch_side(reference: Reference, threads: int | None) -> Side:
    return Side(reference.side, reference.infer, threads, reference.refresh, torch.inference_mode)
