"""Benchmarks beside other runtimes, with two threads; `lowerscope[rivals]` installs them.

Each side measures in a process of its own, by turns; its best round counts.
"""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.benchmarks.figures import Figure, benchmark

THREADS = 2
ROUNDS = 3
SECONDS = 2.0
"""Time for which a side repeats its calls in a round."""

GOALS = {
    "resnet18": {"openvino": 1.3, "torch.compile": 0.8},
    "depthwise_net": {"openvino": 1.2, "torch.compile": 0.8},
    "transformer_block": {"openvino": 1.0, "torch.compile": 0.8},
    "conv_net": {"onnxruntime": 1.2, "torch.compile": 0.8},
}
"""By model and rival: the ratio of the times that is to be reached."""


@benchmark("rivals")
def rivals() -> Iterator[Figure]:
    """Measure *Optimise for CPU* beside other runtimes; those that are not installed are left out.

    Raises `subprocess.CalledProcessError` if a side fails.
    """
    for model, goals in GOALS.items():
        there = [each for each in goals if importlib.util.find_spec(each.partition(".")[0])]
        best: dict[str, float] = {}
        for _round in range(ROUNDS):
            for side in ("lowerscope", *there):
                command = [sys.executable, "-m", "tests.benchmarks.rivals", side, model]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                best[side] = min(float(said.split()[-1]), best.get(side, float("inf")))
        for side in there:
            yield Figure(model, [best["lowerscope"]], [best[side]], side, goals[side])


def best_of(side: str, model: str) -> float:
    """Return the shortest time of a call in a process of its own, in milliseconds."""
    import torch

    from lowerscope.core.files.pipelines_and_schedules import find_pipeline
    from lowerscope.core.model.recipe import Recipe, Source
    from lowerscope.core.stages import Pipeline

    torch.set_num_threads(THREADS)
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(
        source=Source(spec=f"sample:{model}"), steps=steps, target="native", threads=THREADS
    )
    stages = Pipeline().stages(recipe)
    inputs = tuple(each.value for each in stages.loaded.inputs)
    call = SIDES[side](stages, inputs)
    end = time.perf_counter() + SECONDS
    times = []
    with torch.inference_mode():
        while len(times) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return min(times) * 1000


def _lowerscope(stages: Any, inputs: tuple[Any, ...]) -> Callable[[], object]:
    from lowerscope.core.build.targets import use_threads
    from lowerscope.core.run.execution import Execution

    use_threads(THREADS)
    return Execution(stages.built.executable, "main", stages.arguments(inputs)).call


def _openvino(stages: Any, inputs: tuple[Any, ...]) -> Callable[[], object]:
    import openvino

    model = openvino.convert_model(stages.loaded.model, example_input=inputs)
    options = {
        "INFERENCE_NUM_THREADS": THREADS,
        "PERFORMANCE_HINT": "LATENCY",
        # Where the processor has bfloat16, it would compute with that, and not as the model says.
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = openvino.compile_model(model, "CPU", options).create_infer_request()
    for index, each in enumerate(inputs):
        request.set_input_tensor(index, openvino.Tensor(each.numpy()))
    return request.infer  # type: ignore[no-any-return]


def _onnxruntime(stages: Any, inputs: tuple[Any, ...]) -> Callable[[], object]:
    import onnxruntime
    import torch

    written = io.BytesIO()
    torch.onnx.export(stages.loaded.model, inputs, written, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        written.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    named = zip(session.get_inputs(), inputs, strict=True)
    return partial(session.run, None, {each.name: value.numpy() for each, value in named})


def _torch_compile(stages: Any, inputs: tuple[Any, ...]) -> Callable[[], object]:
    import torch

    return partial(torch.compile(stages.loaded.model, dynamic=False), *inputs)


SIDES = {
    "lowerscope": _lowerscope,
    "openvino": _openvino,
    "onnxruntime": _onnxruntime,
    "torch.compile": _torch_compile,
}

if __name__ == "__main__":
    print(best_of(*sys.argv[1:]))
