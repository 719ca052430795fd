"""The stages of one recipe, from its source to the executable and its call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import torch
import tvm
from tvm import tirx

from lowerscope.core.build_steps import RecordedBuild, recorded_build
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.building import BuiltModel, register_library
from lowerscope.core.kept_sizes import weight_bytes
from lowerscope.core.lowering.growing import module_after
from lowerscope.core.memo import FileHashes, Memo, key_of
from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.following import compose, inverse
from lowerscope.core.passes.transforming import TransformedModel, transform
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import (
    BIND_PARAMS,
    Recipe,
    applies_schedules,
    binds_params,
    steps_before_schedules,
)
from lowerscope.core.recipe_parts import primitive_text
from lowerscope.core.records.steps import Clock, Moment
from lowerscope.core.relax_bindings import binding_ids
from lowerscope.core.schedules import Primitive, Schedule
from lowerscope.core.scheduling.replaying import Replayed, Replays, state_at
from lowerscope.core.scheduling.whole_model import Functions, WholeModel
from lowerscope.core.stages_before_passes import StagesBeforePasses
from lowerscope.core.target_catalogue import check_runs_here


class Stages(StagesBeforePasses):
    """Results of the stages of a recipe, for one request: each file is checked once."""

    def __init__(
        self,
        recipe: Recipe,
        progress: Progress,
        memo: Memo,
        files: FileHashes,
        replays: Replays,
    ) -> None:
        super().__init__(recipe, progress, memo, files)
        self._replays = replays

    @cached_property
    def unscheduled(self) -> TransformedModel:
        """The module before the first step that applies schedules, which these are made for.

        Raises
        ------
        LowerscopeError
            If parameters are to be bound, and there are none.
        """
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
                    module,
                    steps,
                    self._progress.check,
                    self.parameters,
                    passes,
                    target,
                    begins=self._progress.at_part,
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
            self._recipe.schedules,
            self._replays,
            self.target,
            self._progress.check,
            self._at_primitive,
        )

    def _at_primitive(self, schedule: Schedule, primitive: Primitive | None) -> None:
        schedules = self._recipe.schedules
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
        recipe = self._recipe
        if not self.applies_schedules:
            return self.unscheduled
        start, target, passes = self.unscheduled, self.target, self.passes

        def make() -> TransformedModel:
            self._progress.report("Applying schedules")
            check = self._progress.check
            schedules = recipe.schedules if applies_schedules(recipe) else ()
            scheduled = WholeModel(schedules, self._replays, target, check, self._at_primitive)
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
                    begins=self._progress.at_part,
                )
            applied = tuple(scheduled.applied)
            notes = (*made.notes, *scheduled.notes())
            return replace(made, notes=notes, schedules=applied)

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

    def has_module(self, moment: Moment | None = None) -> bool:
        """Return whether the module at a step, or after all steps, is cached.

        At a step of a schedule, the unscheduled functions count: applying a schedule to one of them
        takes no time.
        """
        if moment is not None and moment.clock == "schedule":
            return self.has_functions()
        return self.is_cached(self.moment_key(moment))

    def has_functions(self) -> bool:
        """Return whether the functions that schedules are made for are cached."""
        return self.is_cached(self.unscheduled_key)

    def module_at(self, moment: Moment) -> tvm.IRModule:
        """Return the module at a step of any timeline.

        Raises
        ------
        LowerscopeError
            If there is no module at that step: it does not exist, or was not applied.
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
        """Return the origins of the bindings at a step: bindings of the lowered module.

        Bindings without origins are left out.
        """
        if moment.clock == "passes":
            return self.transformed.origins(moment.index)
        return self.origins_in(self.module_at(moment), moment.clock)

    def origins_in(self, module: tvm.IRModule, clock: Clock) -> Matches:
        """Return the same for a module of a timeline other than ``"passes"``."""
        if clock == "schedule":
            return inverse(self.unscheduled.bindings)
        if clock == "translate":
            return {bound.id: (bound.id,) for bound in binding_ids(module)}
        matches = match_bindings(self.completed, module)
        return inverse(compose(self.transformed.bindings, matches))

    def check_runs_here(self, what: str) -> None:
        """Reject actions of this machine alone where the recipe is for another one.

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
        # A cached executable finds those of another recipe under the same names.
        register_library({} if self.lowered is None else self.lowered.library)
        return self.recorded.built

    def arguments(
        self, inputs: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | tvm.runtime.Tensor, ...]:
        """Return the arguments of ``main`` after the passes, which may have bound some of them.

        Parameters
        ----------
        inputs
            The values of the inputs, in order.
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
