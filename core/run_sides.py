"""The sides of a run at one size of each named dimension, and how they are timed."""

from __future__ import annotations

import msgspec
import torch

from lowerscope.core.dimensions import Sizes, runs_of, sizes_text, traced_sizes
from lowerscope.core.execution.compiled_torch import CompiledTorch, compile_torch
from lowerscope.core.execution.numpy_reference import NumpyReference
from lowerscope.core.execution.running import Execution, Reference
from lowerscope.core.execution.threads import threads_of_tvm
from lowerscope.core.execution.timing import Side, measure
from lowerscope.core.measuring import BUDGET, LEAST, MEASURING, REPEATS, Measuring
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.examples import ExampleInput
from lowerscope.core.sources.inputs import drawn_at
from lowerscope.core.sources.loading import LoadedModel
from lowerscope.core.stages import Stages
from lowerscope.core.time_records import RunTimes


def inputs_at(sizes: Sizes, stages: Stages, recipe: Recipe) -> tuple[ExampleInput, ...]:
    """Return the inputs at these sizes of the named dimensions."""
    inputs = stages.loaded.inputs
    return inputs if sizes == traced_sizes(recipe) else drawn_at(inputs, sizes, recipe.seed)


def reference_of(
    loaded: LoadedModel, values: tuple[torch.Tensor, ...], seed: int
) -> tuple[str, Reference | None]:
    """Return what the outputs are compared with, and its name."""
    if loaded.model is not None:
        return "torch", Reference(loaded.model, values, seed, loaded.calling)
    if loaded.reference is not None:
        numpy = NumpyReference(loaded.reference)
        return "NumPy", Reference(numpy, values, seed, loaded.calling, "NumPy")
    return "torch", None


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
    """Time the executable beside its reference and, where that is wanted, ``torch.compile``.

    A quick one measures no more often than it takes to have times at all.
    """
    measuring = Measuring(warm_up=1, repeats=LEAST) if quick else recipe.measuring
    runs = runs_of(recipe)
    threads = torch.get_num_threads()
    sides = [Side("TVM", execution.call, threads_of_tvm())]
    if reference is not None:
        known = threads if reference.side == "torch" else None
        sides.append(_torch_side(reference, known))
    compiled = CompiledTorch(None)
    model = stages.loaded.model
    if measuring.torch_compile and model is not None and sizes == runs[0]:
        progress.report("Compiling with torch.compile")
        values = tuple(each.value for each in inputs_at(sizes, stages, recipe))
        compiled = compile_torch(model, values, recipe.seed, stages.loaded.calling)
        if compiled.reference is not None:
            sides.append(_torch_side(compiled.reference, threads))
    progress.report(f"{MEASURING} at {sizes_text(sizes)}" if sizes else MEASURING)
    # What a function prints or counts, it does once a call.
    most = REPEATS if stages.transformed.module["main"].is_pure else 0
    times = measure(sides, measuring, progress.check, most, BUDGET / len(runs))
    return msgspec.structs.replace(
        times, compile_ms=compiled.milliseconds, compile_problem=compiled.problem
    )


def _torch_side(reference: Reference, threads: int | None) -> Side:
    return Side(reference.side, reference.infer, threads, reference.refresh, torch.inference_mode)
