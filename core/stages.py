"""The stages of one recipe, each kept under the key of what it was made from."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import torch
import tvm
from tvm import tirx

from lowerscope.core.build_steps import RecordedBuild, recorded_build
from lowerscope.core.dimensions import traced_sizes
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.building import BuiltModel, register_library
from lowerscope.core.execution.running import to_tvm
from lowerscope.core.execution.target_catalogue import check_runs_here
from lowerscope.core.extensions import LoadedExtension, load_extension, visiting
from lowerscope.core.kept_sizes import SMALL, copied_bytes, weight_bytes
from lowerscope.core.keys import Keys
from lowerscope.core.lowering.growing import module_after
from lowerscope.core.lowering.parameters import with_parameters_as_inputs
from lowerscope.core.lowering.stock_importers import lower_by_importer, tracer_of
from lowerscope.core.lowering.translator import LoweredModel, lower
from lowerscope.core.memo import FileHashes, Memo, key_of
from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.catalogue import Catalogue, catalogue
from lowerscope.core.passes.following import compose, inverse
from lowerscope.core.passes.transforming import TransformedModel, transform
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import (
    BIND_PARAMS,
    Extension,
    Recipe,
    TracerName,
    applies_schedules,
    binds_params,
    steps_before_schedules,
)
from lowerscope.core.records.steps import Clock, Moment
from lowerscope.core.relax_bindings import binding_ids
from lowerscope.core.schedules import Primitive
from lowerscope.core.scheduling.functions import Functions
from lowerscope.core.scheduling.replaying import Replayed, Replays, state_at
from lowerscope.core.scheduling.whole_model import WholeModel
from lowerscope.core.sources.loading import (
    LoadedModel,
    OpenedModel,
    form_of,
    open_model,
    with_inputs,
)
from lowerscope.core.tracing.tracing import NamedInputs, TracedModel, trace

T = TypeVar("T")


class Stages(Keys):
    """What a recipe leads to, for the length of one request: files are looked at once.

    Attributes
    ----------
    milliseconds
        Time of each stage that had to be run, by name.
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
        self._replays = replays
        super().__init__(recipe, files)
        self._progress = progress
        self._memo = memo

    @cached_property
    def opened(self) -> OpenedModel:
        """The opened source, whatever its inputs are."""
        recipe = self._recipe

        def make() -> OpenedModel:
            self._progress.report("Opening the model")
            return open_model(recipe.source, recipe.seed)

        key = self._open_key()
        kept = self.keep("open", key, make, lambda each: weight_bytes(each.model))
        if kept.spent:
            # What its file registered had to make room for another file's.
            self._memo.forget(key)
            kept = self.keep("open", key, make, lambda each: weight_bytes(each.model))
        read = tuple(path for path in kept.files if path not in self._source_files)
        if self._files.note_read(self._source_key, read):
            # Which files it reads is known now: a change of these makes another key as well.
            self._memo.rename(key, self._open_key())
        return kept

    @cached_property
    def loaded(self) -> LoadedModel:
        """The opened source with its inputs."""
        recipe, opened = self._recipe, self.opened

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
        return tracer_of(self._recipe, exported=self.loaded.exported is not None)

    @cached_property
    def extensions(self) -> tuple[tuple[Extension, LoadedExtension], ...]:
        """The user's own files that are switched on, as they are loaded, in order."""
        return tuple(
            (
                each,
                self.keep("extensions", self._extension_key(each), partial(load_extension, each)),
            )
            for each in self._recipe.extensions
            if each.on
        )

    @cached_property
    def passes(self) -> Catalogue:
        """The passes that steps can name: TVM's, and those of files, a later file's last."""
        own = {
            each.type.name: each for _, extension in self.extensions for each in extension.passes
        }
        return {**catalogue(), **own} if own else catalogue()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the body where the model is called: its file's code and the library files are there.

        Raises
        ------
        LowerscopeError
            See `LoadedModel.environment`.
        """
        # Loaded before: whoever loads one waits for the environment that would be held here.
        extensions = [each for _, each in self.extensions]
        with self.loaded.environment(), visiting(extensions):
            yield

    @cached_property
    def traced(self) -> TracedModel | None:
        """The FX graph; ``None`` for a source without torch."""
        loaded = self.loaded
        model = loaded.model
        if model is None:
            return None

        def make() -> TracedModel:
            self._progress.report("Tracing")
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
                    decomposed=self._recipe.translator == "tvm-export",
                )

        return self.keep("trace", self.trace_key, make)

    @cached_property
    def lowered(self) -> LoweredModel | None:
        """The Relax module with provenance; ``None`` for a source without torch."""
        loaded, traced = self.loaded, self.traced
        if traced is None:
            return None

        def make() -> LoweredModel:
            self._progress.report("Lowering")
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
            recipe = self._recipe
            if recipe.translator == "lowerscope":
                made = lower(traced, inputs, recipe.lowering, recipe.overrides, rules, self.ranges)
            else:
                made = lower_by_importer(traced, inputs, recipe, self.ranges)
            if self._recipe.params_as_inputs:
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

    @cached_property
    def unscheduled(self) -> TransformedModel:
        """The module before the first step that applies schedules: what these are made for."""
        module, steps = self.module, steps_before_schedules(self._recipe)
        target, passes = self.target, self.passes
        if binds_params(self._recipe) and self.loaded.module is not None and not self.parameters:
            raise LowerscopeError(
                "there is nothing to bind: no argument of main has a value from a file",
                where=BIND_PARAMS,
                todo="Give the parameters with --params FILE",
            )

        def make() -> TransformedModel:
            self._progress.report("Applying passes")
            with self.loaded.environment():
                return transform(
                    module, steps, self._progress.check, self.parameters, passes, target
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
            function, self._recipe.schedules, self._replays, self.target, self._progress.check
        )

    def tuned(self, function: tirx.PrimFunc) -> tuple[Primitive, ...] | None:
        """Return the best history that tuning has found of a function, if it was tuned."""
        kept = self.tunings.kept(function)
        if kept is None or (kept.by_rules is None and not kept.primitives):
            # What rules write could not be measured, and is not known to be slower than nothing.
            return None
        return kept.primitives

    @cached_property
    def transformed(self) -> TransformedModel:
        """The module after the recipe's steps, or after those before one that failed."""
        recipe = self._recipe
        if not self.applies_schedules:
            return self.unscheduled
        start, target, passes = self.unscheduled, self.target, self.passes

        def make() -> TransformedModel:
            self._progress.report("Applying schedules")
            check = self._progress.check
            schedules = recipe.schedules if applies_schedules(recipe) else ()
            scheduled = WholeModel(schedules, self._replays, target, check)
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
                )
            applied = tuple(scheduled.applied)
            return replace(made, notes=scheduled.notes(), schedules=applied)

        return self.keep("schedules", self.transform_key, make)

    @property
    def completed(self) -> tvm.IRModule:
        """The module after all of the recipe's steps.

        Raises
        ------
        LowerscopeError
            If one of them failed.
        """
        self.transformed.check()
        return self.transformed.module

    def module_at(self, moment: Moment) -> tvm.IRModule:
        """Return the module at a moment of any clock.

        Raises
        ------
        LowerscopeError
            If there is no module at that moment: there is no such step, or it was not applied.
        """
        if moment.clock == "build":
            return self.recorded.module_after(moment.index)
        if moment.clock == "translate":
            traced, lowered = self.traced, self.lowered
            if traced is None or lowered is None:
                raise LowerscopeError(
                    "this source builds an IRModule, so no node was translated",
                    where="translate",
                )
            return module_after(lowered, traced.graph_module.graph, moment.index)
        if moment.clock == "schedule":
            return self.functions.module_with(state_at(self.states(moment.function), moment.index))
        return self.transformed.module_after(moment.index)

    def origins_at(self, moment: Moment) -> Matches:
        """Return, for bindings at a moment, those of the lowered module that became them.

        Bindings that came from none are not among them.
        """
        if moment.clock == "passes":
            return self.transformed.origins(moment.index)
        return self.origins_in(self.module_at(moment), moment.clock)

    def origins_in(self, module: tvm.IRModule, clock: Clock) -> Matches:
        """Return the same for a module of any other clock than ``"passes"``."""
        if clock == "schedule":
            return inverse(self.unscheduled.bindings)
        if clock == "translate":
            return {bound.id: (bound.id,) for bound in binding_ids(module)}
        matches = match_bindings(self.completed, module)
        return inverse(compose(self.transformed.bindings, matches))

    def check_runs_here(self, what: str) -> None:
        """Refuse what is done on this machine alone where the recipe is for another one.

        Parameters
        ----------
        what
            In words: ``a set of inputs is run``.

        Raises
        ------
        LowerscopeError
            If the target is for another machine, or the recipe has a remote one.
        """
        remote = self._recipe.remote
        if remote is not None:
            raise LowerscopeError(
                f"{what} on this machine only, and the recipe has {remote.title}",
                where=remote.title,
                todo="Leave --tracker and --key out, or choose This machine in the target's menu",
            )
        check_runs_here(self.target)

    @cached_property
    def recorded(self) -> RecordedBuild:
        """The executable for the recipe's target, with the passes of its build."""
        module, loaded = self.completed, self.loaded

        def make() -> RecordedBuild:
            self._progress.report("Compiling")
            with loaded.environment():
                return recorded_build(module, self.target)

        return self.keep("build", self.build_key, make, lambda _: weight_bytes(loaded.model))

    @cached_property
    def built(self) -> BuiltModel:
        """The executable, with its library functions registered."""
        # An executable that was kept finds those of another recipe under the same names.
        register_library({} if self.lowered is None else self.lowered.library)
        return self.recorded.built

    def arguments(
        self, inputs: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | tvm.runtime.Tensor, ...]:
        """Return what ``main`` is called with after the passes, which may have bound some of it.

        Parameters
        ----------
        inputs
            The values of the inputs, in order.
        """
        return self.arguments_of(self.transformed.module, inputs)

    def arguments_of(
        self, module: tvm.IRModule, inputs: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | tvm.runtime.Tensor, ...]:
        """Return what ``main`` of a module is called with, some of which may be bound in it."""
        more = () if self.lowered is None else self.parameters.values()
        before = [variable.name for variable in self.module["main"].params]
        after = [variable.name for variable in module["main"].params]
        known = dict(zip(before, (*inputs, *more), strict=True))
        return (*inputs, *more) if after == before else tuple(known[name] for name in after)

    def _named_inputs(self) -> NamedInputs | None:
        if not self.ranges:
            return None
        return NamedInputs(tuple(each.shape for each in self.loaded.inputs), self.ranges)

    def is_kept(self, key: str) -> bool:
        """Return whether something is kept under `key`."""
        return key in self._memo

    def keep(
        self,
        name: str,
        key: str,
        make: Callable[[], T],
        size: Callable[[T], int] = lambda _: SMALL,
    ) -> T:
        """Return what is kept under `key`, made and timed now if nothing is.

        Parameters
        ----------
        name
            For `milliseconds`.
        size
            Bytes that keeping the value costs.
        """

        def timed() -> T:
            start = time.perf_counter()
            value = make()
            self.milliseconds[name] = (time.perf_counter() - start) * 1000
            return value

        return self._memo.get(key, timed, size)
