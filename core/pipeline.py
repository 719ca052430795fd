"""The pipeline: a recipe's stages, one after the other, each kept under what it was made from.

The engine, the worker, the command line, the tests and a notebook call the same methods.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

import msgspec
import tvm

from lowerscope.core.execution.building import BuiltModel, build
from lowerscope.core.execution.comparing import judge
from lowerscope.core.execution.prediction import predict
from lowerscope.core.execution.running import Execution, Reference, measure
from lowerscope.core.execution.targets import make_target
from lowerscope.core.execution.threads import use_threads
from lowerscope.core.lowering.translator import LoweredModel, lower
from lowerscope.core.memo import FileHashes, Memo, key_of
from lowerscope.core.passes.transforming import TransformedModel, transform
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records import RunRecord, Snapshot, TextRecord
from lowerscope.core.rendering.metrics import TextMetrics
from lowerscope.core.rendering.script import function_text
from lowerscope.core.snapshot import make_snapshot
from lowerscope.core.sources.files import source_files
from lowerscope.core.sources.loading import LoadedModel, load
from lowerscope.core.tracing.tracing import TracedModel, trace

T = TypeVar("T")

KEPT_BYTES = 2 << 30
"""Bound on what the pipeline keeps of earlier results, in bytes."""

SMALL = 1 << 20
"""What a result without weights of its own is taken to cost, in bytes."""

VERSIONS = tuple(version(name) for name in ("torch", "apache-tvm", "lowerscope"))


@dataclass(frozen=True)
class Prepared:
    """A source after the stages up to lowering; ``traced`` and ``lowered`` only with torch."""

    loaded: LoadedModel
    module: tvm.IRModule
    traced: TracedModel | None
    lowered: LoweredModel | None


class _Times(threading.local):
    """Milliseconds of the stages that this thread ran, by name."""

    def __init__(self) -> None:
        self.by_stage: dict[str, float] = {}


class Pipeline:
    """The stages of recipes, with what they made kept for the next recipe that shares them."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._memo = Memo(limit)
        self._files = FileHashes()
        self._times = _Times()

    # Stages

    def loaded(self, recipe: Recipe, progress: Progress) -> LoadedModel:
        """Open the source and draw its inputs."""

        def make() -> LoadedModel:
            progress.report("Opening the model")
            return load(recipe.source, recipe.inputs, recipe.seed)

        return self._stage("load", self._load_key(recipe), make, _weight_bytes)

    def traced(self, recipe: Recipe, progress: Progress) -> TracedModel:
        """Trace the model into an FX graph. Only for sources with a torch side."""
        loaded = self.loaded(recipe, progress)
        assert loaded.model is not None
        model = loaded.model

        def make() -> TracedModel:
            progress.report("Tracing")
            values = tuple(each.value for each in loaded.inputs)
            return trace(model, values, recipe.tracer, loaded.exported)

        return self._stage("trace", self._trace_key(recipe), make, _small)

    def lowered(self, recipe: Recipe, progress: Progress) -> LoweredModel:
        """Translate the FX graph to Relax. Only for sources with a torch side."""
        loaded = self.loaded(recipe, progress)
        traced = self.traced(recipe, progress)

        def make() -> LoweredModel:
            progress.report("Lowering")
            inputs = [
                (each.name, tuple(each.value.shape), str(each.value.dtype).removeprefix("torch."))
                for each in loaded.inputs
            ]
            return lower(traced, inputs, recipe.lowering)

        return self._stage("lower", self._lower_key(recipe), make, lambda _: _weight_bytes(loaded))

    def prepared(self, recipe: Recipe, progress: Progress) -> Prepared:
        """Return the module before the passes, with what led to it."""
        loaded = self.loaded(recipe, progress)
        if loaded.module is not None:
            return Prepared(loaded, loaded.module, None, None)
        lowered = self.lowered(recipe, progress)
        return Prepared(loaded, lowered.module, self.traced(recipe, progress), lowered)

    def transformed(self, recipe: Recipe, progress: Progress) -> TransformedModel:
        """Apply the recipe's steps."""
        prepared = self.prepared(recipe, progress)

        def make() -> TransformedModel:
            progress.report("Applying passes")
            return transform(prepared.module, recipe.steps, progress.check)

        return self._stage("passes", self._transform_key(recipe), make, _small)

    def built(self, recipe: Recipe, progress: Progress) -> BuiltModel:
        """Compile the transformed module for the recipe's target."""
        transformed = self.transformed(recipe, progress)
        loaded = self.loaded(recipe, progress)
        target = make_target(recipe.target, recipe.threads)

        def make() -> BuiltModel:
            progress.report("Compiling")
            return build(transformed.module, target)

        key = key_of(self._transform_key(recipe), str(target))
        return self._stage("build", key, make, lambda _: _weight_bytes(loaded))

    # Requests of the window and of the command line

    def snapshot(self, recipe: Recipe, metrics: TextMetrics, progress: Progress) -> Snapshot:
        """Return all that the window shows of a recipe."""
        self._times.by_stage = {}
        prepared = self.prepared(recipe, progress)
        transformed = self.transformed(recipe, progress)

        def make() -> Snapshot:
            progress.report("Drawing")
            return make_snapshot(
                prepared.loaded,
                prepared.module,
                prepared.traced,
                prepared.lowered,
                transformed,
                metrics,
                progress.check,
            )

        key = key_of("snapshot", self._transform_key(recipe), metrics)
        snapshot = self._stage("records", key, make, _small)
        return msgspec.structs.replace(snapshot, milliseconds=self._times.by_stage)

    def function_text(self, recipe: Recipe, name: str, progress: Progress) -> TextRecord:
        """Return the script of one function after the passes."""
        transformed = self.transformed(recipe, progress)
        key = key_of("function", self._transform_key(recipe), name)
        return self._stage(
            "text",
            key,
            lambda: function_text(transformed.module, name),
            lambda text: 2 * len(text.text),
        )

    def run(self, recipe: Recipe, progress: Progress) -> RunRecord:
        """Build, run on the CPU, compare with torch, and time both."""
        use_threads(recipe.threads)
        loaded = self.loaded(recipe, progress)
        transformed = self.transformed(recipe, progress)
        built = self.built(recipe, progress)
        values = tuple(each.value for each in loaded.inputs)
        progress.report("Running")
        execution = Execution(built.executable, entry_name(transformed.module), values)
        actual = execution.outputs()
        reference = None if loaded.model is None else Reference(loaded.model, values, recipe.seed)
        progress.report("Comparing with torch")
        expected = None if reference is None else reference.outputs()
        verdict = judge(actual, expected, recipe.tolerances)
        progress.report("Measuring")
        times = measure(execution, reference, progress.check)
        return RunRecord(
            verdict=verdict.verdict,
            reason=verdict.reason,
            max_abs_error=verdict.max_abs,
            max_rel_error=verdict.max_rel,
            rtol=verdict.tolerances.rtol,
            atol=verdict.tolerances.atol,
            torch_ms=times.torch_ms,
            tvm_ms=times.tvm_ms,
            build_ms=built.milliseconds,
            functions=sum(
                isinstance(function, tvm.tirx.PrimFunc)
                for function in transformed.module.functions.values()
            ),
            outputs=verdict.outputs,
            prediction=predict(loaded.classes, actual, expected),
        )

    # Keys: each is made of the part of the recipe that its stage reads, and of its parent's.

    def _load_key(self, recipe: Recipe) -> str:
        files = tuple(
            (str(path), self._files.of(path)) for path in source_files(recipe.source, recipe.inputs)
        )
        return key_of("load", recipe.source, recipe.inputs, recipe.seed, files, VERSIONS)

    def _trace_key(self, recipe: Recipe) -> str:
        return key_of("trace", self._load_key(recipe), recipe.tracer)

    def _lower_key(self, recipe: Recipe) -> str:
        return key_of("lower", self._trace_key(recipe), recipe.lowering)

    def _transform_key(self, recipe: Recipe) -> str:
        return key_of("transform", self._lower_key(recipe), recipe.steps)

    def _stage(self, name: str, key: str, make: Callable[[], T], size: Callable[[T], int]) -> T:
        def timed() -> T:
            start = time.perf_counter()
            value = make()
            self._times.by_stage[name] = (time.perf_counter() - start) * 1000
            return value

        return self._memo.get(key, timed, size)


def entry_name(module: tvm.IRModule) -> str:
    """Return the name of the Relax function to run: ``main``, or the only one."""
    names = [
        variable.name_hint
        for variable, function in module.functions_items()
        if isinstance(function, tvm.relax.Function)
    ]
    return "main" if "main" in names or not names else names[0]


def _weight_bytes(loaded: LoadedModel) -> int:
    if loaded.model is None:
        return SMALL
    tensors = [*loaded.model.parameters(), *loaded.model.buffers()]
    return SMALL + sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _small(_: object) -> int:
    return SMALL
