"""The stages of a recipe, from its source to the executable, and the pipeline that caches them."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil
import torch
import tvm
from torch.nn.parameter import is_lazy
from torch.utils.dlpack import from_dlpack
from tvm import tirx

from lowerscope.core.build.build import BuiltModel, RecordedBuild, recorded_build, register_library
from lowerscope.core.build.targets import check_runs_here, make_target
from lowerscope.core.files.idle_tensors import Block, move_to_files
from lowerscope.core.files.memo import FileHashes, Memo, cached_property, key_of
from lowerscope.core.files.sources import input_files, source_files
from lowerscope.core.ir.relax import binding_ids, relax_functions
from lowerscope.core.ir.script import function_script, text_key
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.lowering.partial_module import (
    constants_of,
    module_prefix,
    with_parameters_as_inputs,
)
from lowerscope.core.lowering.translator import lower
from lowerscope.core.lowering.tvm_importers import lower_by_importer, tracer_of
from lowerscope.core.lowering.types import LoweredModel
from lowerscope.core.model.dimensions import dimensions_of, traced_sizes
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.progress import SILENT, Progress
from lowerscope.core.model.queries import ANSWERING, Query
from lowerscope.core.model.recipe import (
    BIND_PARAMS,
    VERSIONS,
    Extension,
    Override,
    Recipe,
    Step,
    TracerName,
    applies_schedules,
    applies_tuned,
    binds_params,
    override_text,
    primitive_text,
    schedules_functions,
    steps_before_schedules,
)
from lowerscope.core.model.schedule import APPLY_SCHEDULES, Primitive, Schedule
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import Matches, compose, inverse, match_bindings
from lowerscope.core.passes.catalogue import Catalogue, catalogue
from lowerscope.core.passes.extension_files import (
    LoadedExtension,
    extension_files,
    load_extension,
    visiting,
)
from lowerscope.core.passes.transforming import TransformedModel, transform
from lowerscope.core.run.execution import to_tvm
from lowerscope.core.run.tuning.database import Database
from lowerscope.core.schedule.primitive_table import check_schedules
from lowerscope.core.schedule.replay import Replayed, Replays, state_at
from lowerscope.core.schedule.whole_model import Functions, WholeModel
from lowerscope.core.sources.decoding import decode_step, with_state
from lowerscope.core.sources.loading import open_model, with_inputs
from lowerscope.core.sources.opened_model import LoadedModel, OpenedModel, form_of
from lowerscope.core.tracing.trace_errors import NamedInputs
from lowerscope.core.tracing.tracing import TracedModel, trace

_DERIVED = (
    "load_key",
    "form_key",
    "trace_key",
    "lower_key",
    "unscheduled_key",
    "transform_key",
    "build_key",
    "shown_key",
    "run_key",
)
"""The keys that depend on what is known of the inputs."""


# --- Cost of caching the results of stages, in bytes ---

SMALL = 1 << 20
"""Assumed cost of a result without weights of its own, in bytes."""


def weight_bytes(model: torch.nn.Module | None) -> int:
    """Return the size of a model's tensors, in bytes; a source may have none."""
    if model is None:
        return SMALL
    tensors = [*model.parameters(), *model.buffers()]
    return SMALL + sum(
        tensor.numel() * tensor.element_size() for tensor in tensors if not is_lazy(tensor)
    )


def copied_bytes(lowered: LoweredModel) -> int:
    """Return the size of a lowering's constants that do not share the memory of their tensors."""
    return SMALL + sum(
        value.numel() * value.element_size()
        for tensor, constant in lowered.constants
        if not _shares(tensor, value := from_dlpack(constant.value))
    )


LARGE_MODEL = 512 << 20
"""Size of a model's tensors from which they are not kept in memory while nothing is asked."""


def _blocks_of_model(model: torch.nn.Module | None) -> Iterator[Block]:
    """Yield the memory of a model's tensors, but for those of other kinds."""
    for tensor in () if model is None else itertools.chain(model.parameters(), model.buffers()):
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        if plain and tensor.layout is torch.strided and tensor.device.type == "cpu":
            storage = tensor.untyped_storage()
            yield storage.data_ptr(), storage.nbytes()


def _blocks_of_module(module: tvm.IRModule) -> Iterator[Block]:
    """Yield the memory of the constants of a module."""
    for _name, function in relax_functions(module):
        for constant in constants_of(function):
            tensor = constant.value
            bits = int(tvm.DataType(str(tensor.dtype)).bits) * math.prod(map(int, tensor.shape))
            yield int(tensor.data_ptr()), bits // 8


def _shares(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.data_ptr() == value.data_ptr()


T = TypeVar("T")


class _StepProgress:
    """Progress of the steps of a recipe, of which the first `skipped` were applied before."""

    def __init__(self, progress: Progress, steps: Sequence[Step], skipped: int) -> None:
        self._progress = progress
        self._steps = [step.name for step in steps if step.on]
        self._place = sum(step.on for step in steps[:skipped]) - 1

    def begins(self, text: str) -> None:
        """Report the next step, by its text; the empty text is the end."""
        self._progress.at_part(text)
        if text:
            self._place += 1
            self._report(_("Applying {step}", step=self._steps[self._place]), 0.0)

    def at_function(self, name: str, index: int, count: int) -> None:
        """Report a function within the current step."""
        self._report(_("Scheduling {name}", name=name), index / count)

    def _report(self, text: str, share: float) -> None:
        self._progress.report(text, min(1.0, (self._place + share) / len(self._steps)))


class Stages:
    """Results of the stages of a recipe, for one request: each file is checked once.

    `milliseconds`: time of each stage that had to be run, by name.
    `recipe`: the recipe.
    """

    def __init__(
        self,
        recipe: Recipe,
        progress: Progress,
        memo: Memo,
        files: FileHashes,
        replays: Replays,
    ) -> None:
        self.milliseconds: dict[str, float] = {}
        self.recipe = recipe
        self._progress = progress
        self._memo = memo
        self._files = files
        self._replays = replays

    # Keys: each is made of the part of the recipe that the stage reads, of the content of the files
    # behind it, of the versions, and of its parent's key: a change re-runs its stage and those that
    # follow, and nothing before it.

    @cached_property
    def target(self) -> tvm.target.Target:
        """The recipe's target."""
        return make_target(self.recipe.target, self.recipe.threads)

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The smallest and the largest size of each named dimension."""
        return {each.name: (each.low, each.high) for each in dimensions_of(self.recipe)}

    @property
    def usual_sizes(self) -> dict[str, int]:
        """A size in the middle of the range of each named dimension, for estimates of the work."""
        return {name: (low + high) // 2 for name, (low, high) in self.ranges.items()}

    @cached_property
    def load_key(self) -> str:
        """Key of the source, the inputs, the seed, the files behind them and the versions."""
        return self._load_key()

    @cached_property
    def _source_files(self) -> tuple[Path, ...]:
        """Files of the source that can be found without opening it."""
        return source_files(self.recipe.source, ())

    @cached_property
    def _source_key(self) -> str:
        """The key of the model as far as it can be known before the source is opened."""
        recipe = self.recipe
        files = self._files.all_of(self._source_files)
        return key_of("open", recipe.source, recipe.seed, files, VERSIONS)

    @cached_property
    def _inputs_key(self) -> str:
        """The load key as far as it can be known before the inputs are there."""
        recipe = self.recipe
        files = self._files.all_of(input_files(recipe.inputs))
        return key_of("inputs", self._source_key, recipe.inputs, traced_sizes(recipe), files)

    def _open_key(self) -> str:
        """Key of the model: of the source, the seed, the files behind it and the versions."""
        read = self._files.all_of(self._files.read_for(self._source_key))
        return key_of("open", self._source_key, read)

    def _load_key(self) -> str:
        read = self._files.all_of(self._files.read_for(self._inputs_key))
        return key_of("load", self._open_key(), self._inputs_key, read)

    @cached_property
    def form_key(self) -> str:
        """Key of the model and of the form of its inputs: everything but their values.

        As long as the form is not known, the values stand for it.
        """
        form = self._files.form_of(self.load_key)
        return self.load_key if form is None else key_of("form", self._open_key(), form)

    def _forget_keys(self) -> None:
        """Discard keys, since more is known of what they depend on."""
        for name in _DERIVED:
            self.__dict__.pop(name, None)

    @cached_property
    def trace_key(self) -> str:
        """Key of the tracer, of its input, and of the importer that it may trace for."""
        recipe, ranges = self.recipe, sorted(self.ranges.items())
        return key_of("trace", self.form_key, recipe.tracer, recipe.translator, ranges)

    @cached_property
    def lower_key(self) -> str:
        """Key of the strategies and the rules, and of their input."""
        recipe = self.recipe
        rules = [
            self._extension_key(each)
            for each in recipe.extensions
            if each.on and each.kind == "rules"
        ]
        return key_of(
            "lower",
            self.trace_key,
            recipe.lowering,
            recipe.overrides,
            rules,
            recipe.params_as_inputs,
        )

    @property
    def applies_schedules(self) -> bool:
        """Return whether one of the steps schedules functions of the model."""
        return schedules_functions(self.recipe)

    @cached_property
    def unscheduled_key(self) -> str:
        """Key of the steps before the first that applies schedules; of all, where none does."""
        files = [
            self._extension_key(each)
            for each in self.recipe.extensions
            if each.on and each.kind == "passes"
        ]
        steps = steps_before_schedules(self.recipe)
        return key_of("transform", self.lower_key, steps, str(self.target), files)

    @cached_property
    def transform_key(self) -> str:
        """Key of the steps, of their input, and of the target."""
        recipe = self.recipe
        if not self.applies_schedules:
            return self.unscheduled_key
        found = self.tunings.state if applies_tuned(recipe) else None
        return key_of("scheduled", self.unscheduled_key, recipe.steps, self._schedules, found)

    @cached_property
    def tunings(self) -> Database:
        """Tuning results for the target, the threads and the machine of the recipe."""
        remote = self.recipe.remote
        threads = min(self.recipe.threads or MACHINE, MACHINE)
        return Database(self.target, threads, "" if remote is None else remote.where)

    @property
    def _schedules(self) -> list[Schedule]:
        # One without primitives counts: a function has it in place of what others have.
        return [each for each in self.recipe.schedules if each.on]

    def moment_key(self, moment: Moment | None) -> str:
        """Return the key of the module at a step, or after all steps."""
        if moment is not None and moment.section == "build":
            return self.build_key
        if moment is not None and moment.section == "schedule":
            return key_of("schedule", self.unscheduled_key, self._schedules)
        return self.transform_key

    @cached_property
    def build_key(self) -> str:
        """Key of the transformed module and of the target that it is built for."""
        return key_of("build", self.transform_key, str(self.target))

    @cached_property
    def shown_key(self) -> str:
        """Key of the transformed module and of the library files that it is run with."""
        files = [self._extension_key(each) for each in self.recipe.extensions if each.on]
        return key_of("shown", self.transform_key, files)

    @cached_property
    def run_key(self) -> str:
        """Key of the run: of the module, its library files, the inputs' values and the machine."""
        remote = self.recipe.remote
        where = () if remote is None else (remote.where,)
        return key_of("run", self.shown_key, self.load_key, *where)

    def _extension_key(self, extension: Extension) -> str:
        files = self._files.all_of(extension_files(extension))
        return key_of("extension", extension.path, extension.kind, files, VERSIONS)

    # The stages before the passes: opening, tracing, and lowering to Relax.

    @cached_property
    def opened(self) -> OpenedModel:
        """The opened source, without its inputs."""
        recipe = self.recipe

        def make() -> OpenedModel:
            if recipe.source.decode:
                return decode_step(self._prefill.opened, recipe.seed, recipe.source.after)
            self._progress.report(_("Opening the model"))
            return with_state(open_model(recipe.source, recipe.seed), recipe.seed)

        def size(made: OpenedModel) -> int:
            # The decode step shares its parameters.
            return SMALL if recipe.source.decode else weight_bytes(made.model)

        key = self._open_key()
        kept = self.keep("open", key, make, size)
        if kept.spent:
            # The registrations of its file were replaced by another file's.
            self._memo.forget(key)
            kept = self.keep("open", key, make, size)
        read = tuple(path for path in kept.files if path not in self._source_files)
        if self._files.note_read(self._source_key, read):
            # The files that it reads are known now: the key depends on them as well.
            self._memo.rename(key, self._open_key())
        return kept

    @property
    def _prefill(self) -> Stages:
        """The stages of the model whose decode step this is."""
        source = msgspec.structs.replace(self.recipe.source, decode=False, after=0)
        recipe = msgspec.structs.replace(self.recipe, source=source, inputs=(), dimensions=())
        return Stages(recipe, self._progress, self._memo, self._files, self._replays)

    @cached_property
    def loaded(self) -> LoadedModel:
        """The opened source with its inputs."""
        recipe, opened = self.recipe, self.opened

        def make() -> LoadedModel:
            return with_inputs(opened, recipe.inputs, recipe.seed, traced_sizes(recipe))

        key = self._load_key()
        kept = self.keep("load", key, make)
        if kept.home is not opened.home:
            # It was opened again since.
            self._memo.forget(key)
            kept = self.keep("load", key, make)
        read = tuple(path for path in kept.files if path not in opened.files)
        if self._files.note_read(self._inputs_key, read):
            self._memo.rename(key, self._load_key())
        self._files.note_form(self._load_key(), form_of(kept))
        self._forget_keys()
        return kept

    @cached_property
    def tracer(self) -> TracerName:
        """The recipe's tracer, or its importer's; an exported program is traced already."""
        return tracer_of(self.recipe, exported=self.loaded.exported is not None)

    @cached_property
    def extensions(self) -> tuple[tuple[Extension, LoadedExtension], ...]:
        """The user's extension files that are switched on, loaded, in order."""
        return tuple(
            (
                each,
                self.keep("extensions", self._extension_key(each), partial(load_extension, each)),
            )
            for each in self.recipe.extensions
            if each.on
        )

    @cached_property
    def passes(self) -> Catalogue:
        """The passes that steps can name: TVM's, and those of files, a later file's last."""
        own = {
            each.type.name: each
            for _other, extension in self.extensions
            for each in extension.passes
        }
        return {**catalogue(), **own} if own else catalogue()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the body in the model's environment, with its file's code and the library files.

        Raises:
            LowerscopeError: See `LoadedModel.environment`.
        """
        # Loaded before: loading one waits for the environment that would be held here.
        extensions = [each for _other, each in self.extensions]
        with self.loaded.environment(), visiting(extensions):
            yield

    def _at_nodes(self, count: int) -> Callable[[Override | None], None]:
        """Return the callback for each of `count` nodes before it is lowered, and for the end."""
        done = itertools.count()

        def begins(override: Override | None) -> None:
            self._progress.report(_("Lowering"), min(1.0, next(done) / count))
            text = "" if override is None else override_text(self.recipe.overrides, override)
            self._progress.at_part(text)

        return begins

    @cached_property
    def traced(self) -> TracedModel | None:
        """The FX graph; ``None`` for a source without torch."""
        loaded = self.loaded
        model = loaded.model
        if model is None:
            return None

        def make() -> TracedModel:
            self._progress.report(_("Tracing"))
            values = tuple(each.value for each in loaded.inputs)
            with loaded.environment():
                named = self._named_inputs()
                return trace(
                    model,
                    values,
                    self.tracer,
                    loaded.exported,
                    loaded.calling,
                    named,
                    decomposed=self.recipe.translator == "tvm-export",
                )

        return self.keep("trace", self.trace_key, make)

    @cached_property
    def lowered(self) -> LoweredModel | None:
        """The Relax module with provenance; ``None`` for a source without torch."""
        loaded, traced = self.loaded, self.traced
        if traced is None:
            return None

        def make() -> LoweredModel:
            self._progress.report(_("Lowering"))
            inputs = [
                (each.name, each.shape, str(each.value.dtype).removeprefix("torch."))
                for each in loaded.inputs
            ]
            rules = [
                rule
                for extension, each in self.extensions
                if extension.kind == "rules"
                for rule in each.rules
            ]
            recipe = self.recipe
            if recipe.translator == "lowerscope":
                made = lower(
                    traced,
                    inputs,
                    recipe.lowering,
                    recipe.overrides,
                    rules,
                    self.ranges,
                    self._at_nodes(len(traced.graph_module.graph.nodes)),
                )
            else:
                made = lower_by_importer(traced, inputs, recipe, self.ranges)
            if self.recipe.params_as_inputs:
                made = with_parameters_as_inputs(made, traced.graph_module)
            return made

        return self.keep("lower", self.lower_key, make, copied_bytes)

    @cached_property
    def module(self) -> tvm.IRModule:
        """The module before the passes."""
        if self.loaded.module is not None:
            return self.loaded.module
        lowered = self.lowered
        assert lowered is not None
        return lowered.module

    @cached_property
    def parameters(self) -> Mapping[str, tvm.runtime.Tensor]:
        """The parameters that are arguments of ``main`` by name: the model's, or a file's."""
        if self.lowered is not None:
            return {name: each.data for name, each in self.lowered.arguments.items()}
        loaded = self.loaded
        return {
            each.name: to_tvm(each.value)
            for each in loaded.inputs
            if each.name in loaded.parameters
        }

    def _named_inputs(self) -> NamedInputs | None:
        if not self.ranges:
            return None
        return NamedInputs(tuple(each.shape for each in self.loaded.inputs), self.ranges)

    def is_cached(self, key: str) -> bool:
        """Return whether a result is cached under `key`."""
        return key in self._memo

    def keep(
        self,
        name: str,
        key: str,
        make: Callable[[], T],
        size: Callable[[T], int] = lambda _unused: SMALL,
    ) -> T:
        """Return the result under `key`; compute and time it if it is not cached.

        `name`: for `milliseconds`.
        `size`: Cost of caching the value, in bytes.
        """

        def timed() -> T:
            start = time.perf_counter()
            value = make()
            self.milliseconds[name] = (time.perf_counter() - start) * 1000
            return value

        return self._memo.get(key, timed, size)

    def script_of(self, function: Any, name: str) -> str:
        """Return the script of a function, cached for all modules that share it."""
        # Keep the function with its text, so that its address is not reused.
        _other, text = self._memo.get(
            key_of("function text", text_key(function), name),
            lambda: (function, function_script(function, name)),
            lambda kept: 2 * len(kept[1]),
        )
        return text

    # Passes, schedules, build and call.

    @cached_property
    def unscheduled(self) -> TransformedModel:
        """The module before the first step that applies schedules, which these are made for.

        Raises `LowerscopeError` if parameters are to be bound, and there are none.
        """
        module, steps = self.module, steps_before_schedules(self.recipe)
        target, passes, recipe_steps = self.target, self.passes, self.recipe.steps
        if binds_params(self.recipe) and self.loaded.module is not None and not self.parameters:
            raise LowerscopeError(
                _("there is nothing to bind: no argument of main has a value from a file"),
                where=BIND_PARAMS,
                todo=_("Load the parameters: --params FILE"),
            )

        def make() -> TransformedModel:
            told = _StepProgress(self._progress, recipe_steps, 0)
            # Without steps, nothing has to wait for the passes of another recipe.
            with self.loaded.environment() if steps else contextlib.nullcontext():
                return transform(
                    module,
                    steps,
                    self._progress.check,
                    self.parameters,
                    passes,
                    target,
                    begins=told.begins,
                )

        return self.keep("passes", self.unscheduled_key, make)

    @cached_property
    def functions(self) -> Functions:
        """The functions that schedules are made for."""
        module = self.unscheduled.module
        key = key_of("functions", self.unscheduled_key)
        return self.keep("functions", key, lambda: Functions(module))

    def states(self, function: str) -> list[Replayed]:
        """Return a function before its schedule, and after each primitive: see `Functions`."""
        return self.functions.states(
            function,
            self.recipe.schedules,
            self._replays,
            self.target,
            self._progress.check,
            self._at_primitive,
        )

    def _at_primitive(self, schedule: Schedule, primitive: Primitive | None) -> None:
        schedules = self.recipe.schedules
        text = "" if primitive is None else primitive_text(schedules, schedule, primitive)
        self._progress.at_part(text)

    def tuned(self, function: tirx.PrimFunc) -> tuple[Primitive, ...] | None:
        """Return the best primitives that tuning has found for a function, if it was tuned."""
        kept = self.tunings.kept(function)
        if kept is None or (kept.by_rules is None and not kept.primitives):
            # What rules write could not be measured, and is not known to be slower than nothing.
            return None
        return kept.primitives

    @cached_property
    def transformed(self) -> TransformedModel:
        """The module after the recipe's steps, or after those before one that failed."""
        recipe = self.recipe
        if not self.applies_schedules:
            return self.unscheduled
        start, target, passes = self.unscheduled, self.target, self.passes

        def make() -> TransformedModel:
            told = _StepProgress(self._progress, recipe.steps, len(steps_before_schedules(recipe)))
            check = self._progress.check
            schedules = recipe.schedules if applies_schedules(recipe) else ()
            scheduled = WholeModel(
                schedules,
                self._replays,
                target,
                check,
                self._at_primitive,
                told.at_function,
                self.usual_sizes,
            )
            with self.loaded.environment():
                made = transform(
                    start.module,
                    recipe.steps,
                    check,
                    self.parameters,
                    passes,
                    target,
                    start=start,
                    schedule=scheduled.apply,
                    rules=scheduled.apply_rules,
                    tuned=partial(scheduled.apply_tuned, self.tuned),
                    begins=told.begins,
                )
            applied = tuple(scheduled.applied)
            notes = (*made.notes, *scheduled.notes())
            return replace(made, notes=notes, schedules=applied)

        return self.keep("schedules", self.transform_key, make)

    @property
    def completed(self) -> tvm.IRModule:
        """The module after all of the recipe's steps.

        Raises `LowerscopeError` if one of them failed.
        """
        self.transformed.check()
        return self.transformed.module

    def has_module(self, moment: Moment | None = None) -> bool:
        """Return whether the module at a step, or after all steps, is cached.

        At a step of a schedule, the unscheduled functions count: applying a schedule to one of them
        takes no time.
        """
        if moment is not None and moment.section == "schedule":
            return self.has_functions()
        return self.is_cached(self.moment_key(moment))

    def has_functions(self) -> bool:
        """Return whether the functions that schedules are made for are cached."""
        return self.is_cached(self.unscheduled_key)

    def module_at(self, moment: Moment) -> tvm.IRModule:
        """Return the module at a step of any timeline.

        Raises `LowerscopeError` if there is no module at that step: it does not exist, or was not
        applied.
        """
        if moment.section == "build":
            return self.recorded.module_after(moment.index)
        if moment.section == "translate":
            traced, lowered = self.traced, self.lowered
            if traced is None or lowered is None:
                raise LowerscopeError(
                    _("this source builds an IRModule, so there are no translated nodes"),
                    where="translate",
                )
            return module_prefix(lowered, traced.graph_module.graph, moment.index)
        if moment.section == "schedule":
            return self.functions.module_with(state_at(self.states(moment.function), moment.index))
        return self.transformed.module_after(moment.index)

    def origins_at(self, moment: Moment) -> Matches:
        """Return the origins of the bindings at a step: bindings of the lowered module.

        Bindings without origins are left out.
        """
        if moment.section == "passes":
            return self.transformed.origins(moment.index)
        return self.origins_in(self.module_at(moment), moment.section)

    def origins_in(self, module: tvm.IRModule, section: Section) -> Matches:
        """Return the same for a module of a timeline other than ``"passes"``."""
        if section == "schedule":
            return inverse(self.unscheduled.bindings)
        if section == "translate":
            return {bound.id: (bound.id,) for bound in binding_ids(module)}
        matches = self.matches(self.completed, module)
        return inverse(compose(self.transformed.bindings, matches))

    def matches(self, before: tvm.IRModule, after: tvm.IRModule) -> Matches:
        """Return what `match_bindings` does, cached for modules of the same Relax functions."""
        modules = before, after
        relax = [dict(relax_functions(each)) for each in modules]
        facts = [
            [(name, each.__chandle__()) for name, each in functions.items()] for functions in relax
        ]
        key = key_of("matches", *facts, sorted(prim_funcs_of(after)))
        # Keep the functions with it, so that their addresses are not reused.
        _other, found = self.keep("matches", key, lambda: (relax, match_bindings(before, after)))
        return found

    def check_schedules(self) -> None:
        """Reject schedules that do not fit the model: see `primitive_table.check_schedules`."""
        # Where several steps apply schedules, the functions of one may be made after the first.
        if sum(step.name == APPLY_SCHEDULES and step.on for step in self.recipe.steps) == 1:
            check_schedules(self.recipe.schedules, self.functions.structures, "--schedule")

    def check_runs_here(self, what: str) -> None:
        """Reject actions of this machine alone where the recipe is for another one.

        `what`: the action, as a noun phrase: ``the generation of tokens``.

        Raises `LowerscopeError` if the target is for another machine, or the recipe has a remote
        one.
        """
        remote = self.recipe.remote
        if remote is not None:
            raise LowerscopeError(
                _(
                    "{what} is possible on this machine only, and the recipe runs on {title}",
                    what=what,
                    title=remote.title,
                ),
                where=remote.title,
                todo=_("Run it on this machine instead"),
            )
        check_runs_here(self.target)

    @cached_property
    def recorded(self) -> RecordedBuild:
        """The executable for the recipe's target, with the passes of its build."""
        module, loaded = self.completed, self.loaded

        def make() -> RecordedBuild:
            self._progress.report(_("Compiling"))
            with loaded.environment():
                return recorded_build(module, self.target)

        return self.keep("build", self.build_key, make, lambda _unused: weight_bytes(loaded.model))

    @cached_property
    def built(self) -> BuiltModel:
        """The executable, with its library functions registered."""
        # A cached executable finds those of another recipe under the same names.
        register_library({} if self.lowered is None else self.lowered.library)
        return self.recorded.built

    def arguments(
        self, inputs: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | tvm.runtime.Tensor, ...]:
        """Return the arguments of ``main`` after the passes, which may have bound some of them.

        `inputs`: the values of the inputs, in order.
        """
        return self.arguments_of(self.transformed.module, inputs)

    def arguments_of(
        self, module: tvm.IRModule, inputs: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | tvm.runtime.Tensor, ...]:
        """Return the arguments of ``main`` of a module, in which some may be bound."""
        more = () if self.lowered is None else self.parameters.values()
        before = [variable.name for variable in self.module["main"].params]
        after = [variable.name for variable in module["main"].params]
        known = dict(zip(before, (*inputs, *more), strict=True))
        return (*inputs, *more) if after == before else tuple(known[name] for name in after)


def has_module(query: Any, pipeline: Pipeline, job: Progress) -> bool:
    """Return whether the module of a query is cached: that at its moment, or after all steps."""
    return pipeline.stages(query.recipe, job).has_module(getattr(query, "moment", None))


def has_functions(query: Any, pipeline: Pipeline, job: Progress) -> bool:
    """Return whether the functions that the schedules of a query are made for are cached."""
    return pipeline.stages(query.recipe, job).has_functions()


KEPT_BYTES = max(2 << 30, psutil.virtual_memory().total // 4)
"""Bound on the size of a pipeline's cached results, in bytes."""

_ANSWERING = (
    "bisect.answering",
    "build.targets",
    "export.folder",
    "export.rule_files",
    "remote.running",
    "run.compare.agreement",
    "run.compare.tensor_values",
    "run.compare.variants",
    "run.function_metrics",
    "run.generation",
    "run.kept_run",
    "run.tuning.tuning",
    "views.explanations",
    "views.functions",
    "views.fusion",
    "views.graph_records",
    "views.module_difference",
    "views.snapshot_records",
    "views.source_text",
    "views.translation",
    "views.workbench",
)
"""The modules of `core` with functions that answer queries."""

A = TypeVar("A")


class Pipeline:
    """The stages of recipes, with results cached for recipes that share them.

    `limit`: bound on the size of these results, in bytes.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._memo = Memo(limit)
        self._files = FileHashes()
        self.replays = Replays()
        self._parts: dict[type, Any] = {}
        for name in _ANSWERING:
            import_module(f"lowerscope.core.{name}")

    def stages(self, recipe: Recipe, progress: Progress = SILENT) -> Stages:
        """Return the stages of a recipe, each of which runs when its result is first needed."""
        return Stages(recipe, progress, self._memo, self._files, self.replays)

    def part(self, kind: type[T]) -> T:
        """Return the pipeline's single object of a class, such as the values of the last run."""
        part: T = self._parts.setdefault(kind, kind())
        return part

    def answer(self, query: Query[A], progress: Progress = SILENT) -> A:
        """Return the answer to a query; compute what is not cached.

        Raises `LowerscopeError` if there is none; see the function that answers.
        Raises `Cancelled` if the progress says so.
        """
        answer: A = ANSWERING[type(query).__name__].answer(query, self, progress)
        return answer

    def rest(self, is_wanted: Callable[[], bool]) -> None:
        """Move the tensors of large models to files: another process needs the memory."""
        values = self._memo.values()
        models = [each.model for each in values if isinstance(each, OpenedModel)]
        if max(map(weight_bytes, models), default=0) < LARGE_MODEL:
            return
        blocks = [block for model in models for block in _blocks_of_model(model)]
        for value in values:
            if isinstance(value, TransformedModel):
                blocks += _blocks_of_module(value.module)
        move_to_files(blocks, is_wanted)

    def is_cached(self, query: Query[Any], progress: Progress = SILENT) -> bool:
        """Return whether a query that is ``cached_first`` can be answered without deriving."""
        is_cached = ANSWERING[type(query).__name__].is_cached
        assert is_cached is not None
        try:
            return is_cached(query, self, progress)
        except LowerscopeError:
            # The derivation reports the problem.
            return False
