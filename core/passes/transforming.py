"""The transform stage: applies a recipe's steps to a lowered module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import msgspec
import tvm

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, Problem, error_of, last_line
from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.blocks import Composed, blocks_after
from lowerscope.core.passes.by_function import apply_without
from lowerscope.core.passes.catalogue import Catalogue, Values, catalogue, find
from lowerscope.core.passes.compiled_once import compiled_once
from lowerscope.core.passes.context_options import split
from lowerscope.core.passes.following import Followed, follow, inverse, unchanged
from lowerscope.core.passes.options import arguments_of
from lowerscope.core.passes.recording import PassRun, Recorder
from lowerscope.core.recipe import Step
from lowerscope.core.recipe_parts import step_text
from lowerscope.core.records.snapshot import Note
from lowerscope.core.records.steps import Fate
from lowerscope.core.relax_bindings import Bindings
from lowerscope.core.schedules import Applied


@dataclass(frozen=True)
class TransformedModel:
    """A module after a recipe's steps, or after those before one that failed.

    Attributes
    ----------
    module
        The module after the last step that was applied.
    runs
        The steps and the passes inside of them, in the order in which they began.
    problem
        Why a step failed.
    start
        The result after the first of the steps, which was reused.
    notes
        For the user.
    schedules
        The schedules applied by each scheduling step, in order.
    """

    module: tvm.IRModule
    runs: tuple[PassRun, ...] = ()
    problem: Problem | None = None
    start: TransformedModel | None = None
    notes: tuple[Note, ...] = ()
    schedules: tuple[tuple[Applied, ...], ...] = ()

    @property
    def bindings(self) -> Matches:
        """From ids of bindings before the first step to ids of their descendants."""
        return self._followed[-1].became

    @property
    def bindings_in_main(self) -> Matches:
        """As `bindings`, within ``main`` only: see `Followed.in_main`."""
        return self._followed[-1].in_main

    @property
    def composed(self) -> Mapping[str, Composed]:
        """The fused functions after the last step, with the owners of their blocks."""
        return self._composed[-1]

    @property
    def fates(self) -> Mapping[str, Fate]:
        """Effects on the bindings before the first step that are not separate any more."""
        return self._followed[-1].fates

    @cached_property
    def walked(self) -> Bindings:
        """The bindings of its modules."""
        return Bindings() if self.start is None else self.start.walked

    @cached_property
    def _followed(self) -> tuple[Followed, ...]:
        if self.start is not None:
            known = self.start._followed
            return (*known, *follow(self._steps[len(known) - 1 :], known[-1], self.walked))
        bounds = self.walked.of(self.module_after(0))
        first = unchanged({bound.id: (bound.id,) for bound in bounds})
        return (first, *follow(self._steps, first, self.walked))

    @cached_property
    def _steps(self) -> tuple[PassRun, ...]:
        return tuple(run for run in self.runs if run.depth == 0 and run.after is not None)

    def origins(self, number: int) -> Matches:
        """Return the origins before the first pass of the bindings after a pass of `runs`.

        Bindings without origins, and those of a separate module, such as one inside
        ``FoldConstant``, are absent.
        """
        run = self.runs[number - 1] if number else None
        if run is not None and run.depth > 0 and run.after is not None:
            return inverse(self._became_inside(number, run.after))
        return inverse(self._followed[self._applied(number)].became)

    def origins_before(self, number: int) -> Matches:
        """Return the same for the bindings of a pass's input module."""
        run = self.runs[number - 1]
        if run.depth > 0:
            return inverse(self._became_inside(number, run.before))
        return inverse(self._followed[self._applied(number - 1)].became)

    def composed_at(self, number: int) -> Mapping[str, Composed]:
        """Return the fused functions after a pass of `runs`."""
        run = self.runs[number - 1] if number else None
        if run is None or run.depth == 0 or run.after is None:
            return self._composed[self._applied(number)]
        step = self._step_around(number)
        applied, before = self._applied(step - 1), self.runs[step - 1].before
        return blocks_after(
            before,
            run.after,
            self._matches_inside(step, run.after),
            inverse(self._followed[applied].became),
            self._composed[applied],
            run.name,
        )

    @cached_property
    def _composed(self) -> tuple[Mapping[str, Composed], ...]:
        """Fused functions before the first step, and after each step."""
        found: list[Mapping[str, Composed]] = list(self.start._composed) if self.start else [{}]
        done = len(found) - 1
        for run, (before, after) in zip(
            self._steps[done:], pairwise(self._followed[done:]), strict=True
        ):
            assert run.after is not None
            origins = inverse(before.became)
            found.append(
                blocks_after(run.before, run.after, after.step, origins, found[-1], run.name)
            )
        return tuple(found)

    def _step_around(self, number: int) -> int:
        return max(place for place, run in enumerate(self.runs[:number], start=1) if run.depth == 0)

    def _applied(self, number: int) -> int:
        """Return the number of steps that have been applied after `number` passes of `runs`."""
        return sum(run.depth == 0 and run.after is not None for run in self.runs[:number])

    def _became_inside(self, number: int, module: tvm.IRModule) -> Matches:
        """Return the descendants of bindings in a module inside a step, at a pass of `runs`."""
        step = self._step_around(number)
        became, _ = self._followed[self._applied(step - 1)].after(
            self._matches_inside(step, module)
        )
        return became

    def _matches_inside(self, step: int, module: tvm.IRModule) -> Matches:
        """Return the descendants of the bindings before a step in a module inside it."""
        # The text, the functions and the graph at a moment each query it.
        place = step, module.__chandle__()
        known = self._inside.get(place)
        if known is None:
            known = match_bindings(self.runs[step - 1].before, module, self.walked)
            self._inside[place] = known
        return known

    @cached_property
    def _inside(self) -> dict[tuple[int, int], Matches]:
        """Cache by step and module, both of which `runs` keeps alive."""
        return {}

    def check(self) -> None:
        """Raise the error of a failed step, if any."""
        if self.problem is not None:
            raise error_of(self.problem)

    def module_after(self, number: int) -> tvm.IRModule:
        """Return the module after a pass of `runs`, counted from 1; 0 is before the first.

        Raises
        ------
        LowerscopeError
            If there is none: the pass failed, or one before it did.
        """
        if number == 0 and self.runs:
            return self.runs[0].before
        if number == 0:
            return self.module
        if not 0 < number <= len(self.runs):
            raise LowerscopeError(
                f"there is no step {number}",
                where="passes",
                todo=f"Choose one from 0 to {len(self.runs)}",
            )
        run = self.runs[number - 1]
        if run.after is None:
            self.check()
            raise LowerscopeError(f"{run.name} made no module", where=f"step {number}")
        return run.after

    def module_before(self, number: int) -> tvm.IRModule:
        """Return the input module of a pass of `runs`, counted from 1."""
        self.module_after(number)
        return self.runs[number - 1].before


def transform(
    module: tvm.IRModule,
    steps: Sequence[Step],
    check: Callable[[], None] = lambda: None,
    values: Values = MappingProxyType({}),
    passes: Catalogue | None = None,
    target: tvm.target.Target | None = None,
    start: TransformedModel | None = None,
    schedule: Callable[[tvm.IRModule], tvm.IRModule] = lambda module: module,
    rules: Callable[[tvm.IRModule], tvm.IRModule] = lambda module: module,
    tuned: Callable[[tvm.IRModule], tvm.IRModule] = lambda module: module,
    begins: Callable[[str], None] = lambda text: None,
) -> TransformedModel:
    """Apply the steps that are switched on, in order, up to the first that fails.

    Parameters
    ----------
    check
        Called before each step, and each pass inside of one; may raise to cancel.
    values
        Tensors of the parameters that are arguments of ``main``, by name.
    passes
        Those that steps can name; by default TVM's own.
    target
        The target that they are applied for; none by default.
    start
        The result of the first of the steps, for reuse.
    schedule
        Applies the recipe's schedules.
    rules
        Schedules the other functions by rules.
    tuned
        Schedules them by tuning results.
    begins
        Called before each step with its text, and with ``""`` after all.
    """
    passes = catalogue() if passes is None else passes
    given = {"params": dict(values), "schedule": schedule, "rules": rules, "tuned": tuned}
    recorder = Recorder(check)
    given["check"] = recorder.check
    problem: Problem | None = None
    done = 0
    notes: list[Note] = []
    if start is not None:
        module, problem = start.module, start.problem
        notes += start.notes
        recorder.runs += start.runs
        done = sum(run.depth == 0 for run in start.runs)
    for number, step in enumerate(steps[done:], start=done + 1):
        if not step.on or problem is not None:
            recorder.runs.append(_not_applied(step, module, number))
            continue
        check()
        begins(step_text(number, step))
        run = recorder.begin(step.name, module, number)
        given["leave_out"] = partial(_leave_out, run, notes, _where(step, number))
        try:
            with target or nullcontext():
                after = _apply(module, step, number, given, passes, recorder)
            if recorder.stopped is not None:
                raise recorder.stopped
        except LowerscopeError as failed:
            if recorder.stopped is not None:
                raise recorder.stopped from None
            recorder.fail(failed.problem.what)
            problem = _of_step(failed.problem, step, number)
            continue
        run.end(after)
        module = after
    begins("")
    return TransformedModel(module, tuple(recorder.runs), problem, start, tuple(notes))


def _leave_out(run: PassRun, notes: list[Note], step: str, function: str, why: str) -> None:
    """Record that a step leaves a function unchanged."""
    run.left_out = {**run.left_out, function: why}
    notes.append(Note(text=f"{step} leaves it out: {why}", where=function))


def _where(step: Step, number: int) -> str:
    return f"step {number} ({step.name})"


def _of_step(problem: Problem, step: Step, number: int) -> Problem:
    """Return a problem with the name of its step, if its place is a line of a file."""
    where = _where(step, number)
    if problem.where == where:
        return problem
    return msgspec.structs.replace(problem, what=f"{where}: {problem.what}")


def _not_applied(step: Step, module: tvm.IRModule, number: int) -> PassRun:
    """Return the entry of a step that is switched off, or comes after one that failed."""
    if step.on:
        return PassRun(step.name, module, step=number, status="skipped")
    return PassRun(step.name, module, step=number, after=module, status="off")


def _apply(
    module: tvm.IRModule,
    step: Step,
    number: int,
    given: Mapping[str, Any],
    passes: Catalogue,
    recorder: Recorder,
) -> tvm.IRModule:
    where = _where(step, number)
    found = find(step.name, passes, where)
    arguments = arguments_of(found.options, step.options, where)
    if found.given:
        arguments[found.given] = given[found.given]
    try:
        with found.running("is applied"):
            own, config = split(found.options, arguments)
            made = found.make(**own)
            context = tvm.transform.PassContext(
                opt_level=3, instruments=[recorder.instrument], config=config
            )
            with context, compiled_once(recorder.check):
                try:
                    return made(module)
                except TVM_ERRORS as error:
                    if recorder.stopped is not None or found.type.line is not None:
                        raise
                    return apply_without(
                        made, module, error, given["leave_out"], recorder.check, recorder.again
                    )
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"the pass failed: {last_line(error)}",
            where=where,
            todo="Switch the step off, or choose another lowering",
            details=str(error),
        ) from error
