"""The transform stage: applies a recipe's steps to a lowered module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import msgspec
import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize

from lowerscope.core.ir.before_build import before_build
from lowerscope.core.ir.relax import Bindings
from lowerscope.core.ir.tensorir import collected, divides_by_data
from lowerscope.core.model.module_steps import BindingEffect
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, Problem, error_of, last_line
from lowerscope.core.model.recipe import Step, step_text
from lowerscope.core.model.schedule import Applied
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import (
    Followed,
    Matches,
    follow,
    inverse,
    match_bindings,
    unchanged,
)
from lowerscope.core.passes.catalogue import Catalogue, Values, arguments_of, catalogue, find, split
from lowerscope.core.passes.fused_blocks import Composed, blocks_after
from lowerscope.core.passes.recording import PassRun, Recorder

LeaveOut = Callable[[str, str], None]
"""Callback with the name of a function that a pass leaves unchanged, and the reason."""


@dataclass(frozen=True)
class Without:
    """A pass that has failed on a module, to be applied with some functions unchanged.

    `error`: why it failed on the whole module; raised again if it fails on no function alone, or on
        the others together as well.
    `leave_out`: called with the functions that are left out, and the reasons; with an empty one for
        a function without blocks.
    `begins`: called before the pass is applied to the others.
    """

    made: Any
    module: tvm.IRModule
    error: Exception
    leave_out: LeaveOut
    check: Callable[[], None]
    begins: Callable[[], None]

    def applied(self) -> tvm.IRModule:
        """Return the module after the pass.

        It is tried on each TensorIR function alone, and then applied to a module of the others.
        """
        failing = self._failing(lambda each, its: tvm.IRModule({each: its}))
        if not failing:
            try:
                return self._with_roots()
            except TVM_ERRORS:
                return self._with_hidden()
        others = self.module.clone()
        for variable in failing:
            del others[variable]
        result = self._after(others)
        names = {str(each.name_hint) for each in result.get_global_vars()}
        if any(str(each.name_hint) in names for each in failing):
            raise self.error
        for variable, reason in failing.items():
            result.update_func(variable, self.module[variable])
            self._leave_out(variable, reason)
        return result

    def _leave_out(self, variable: tvm.ir.GlobalVar, reason: str) -> None:
        """Tell which function is left out, and why.

        A pass fails where it finds no block; it has nothing to do there, nor has the user.
        """
        told = reason if _has_blocks(self._functions[variable]) else ""
        self.leave_out(str(variable.name_hint), told)

    @cached_property
    def _functions(self) -> dict[tvm.ir.GlobalVar, tirx.PrimFunc]:
        """The TensorIR functions of the module."""
        items = self.module.functions_items()
        return {each: its for each, its in items if isinstance(its, tirx.PrimFunc)}

    def _failing(
        self, alone: Callable[[tvm.ir.GlobalVar, tirx.PrimFunc], tvm.IRModule]
    ) -> dict[tvm.ir.GlobalVar, str]:
        """Return the functions on which the pass fails, in a module made for each, and why."""
        failing: dict[tvm.ir.GlobalVar, str] = {}
        with tvm.transform.PassContext(opt_level=3):
            for variable, function in self._functions.items():
                self.check()
                given = alone(variable, function)
                try:
                    self.made(given)
                except TVM_ERRORS as failed:
                    failing[variable] = last_line(failed)
        return failing

    def _after(self, module: tvm.IRModule) -> tvm.IRModule:
        """Return the module after the pass, to be changed; raise `error` if it fails here too."""
        self.begins()
        try:
            return self.made(module).clone()
        except TVM_ERRORS:
            raise self.error from None

    def _with_roots(self) -> tvm.IRModule:
        """Return the module after a pass that reads functions at their calls.

        Functions without a root block get one for the pass, and lose it if they stay unchanged,
        as one without any block has to.
        """
        rooted = {
            variable: function.with_body(_root(function.body))
            for variable, function in self._functions.items()
            if not isinstance(function.body, SBlockRealize)
        }
        if not rooted:
            raise self.error
        result = self._after(_updated(self.module, rooted))
        kept = {str(each.name_hint): result[each] for each in result.get_global_vars()}
        for variable, function in rooted.items():
            if function.same_as(kept.get(str(variable.name_hint))):
                result.update_func(variable, self.module[variable])
                self._leave_out(variable, last_line(self.error))
        return result

    def _with_hidden(self) -> tvm.IRModule:
        """Return the module after a pass that fails on some functions where they are called.

        The bodies of those functions are hidden from it. The result is refused where the pass has
        moved a hidden body.
        """
        hidden = {variable: _hidden(function) for variable, function in self._functions.items()}
        without_bodies = _updated(self.module, hidden)
        try:
            with tvm.transform.PassContext(opt_level=3):
                self.made(without_bodies)
        except TVM_ERRORS:
            # No body is the cause: trying each of them would take long in vain.
            raise self.error from None
        failing = self._failing(lambda each, its: _updated(self.module, {**hidden, each: its}))
        if not failing:
            raise self.error
        result = self._after(_updated(self.module, {each: hidden[each] for each in failing}))
        after = {str(each.name_hint): result[each] for each in result.get_global_vars()}
        for variable, reason in failing.items():
            if not hidden[variable].same_as(after.pop(str(variable.name_hint), None)):
                raise self.error
            result.update_func(variable, self._functions[variable])
            self.leave_out(str(variable.name_hint), reason)
        if any(_HIDDEN in str(each) for each in after.values() if isinstance(each, tirx.PrimFunc)):
            raise self.error
        return result


def _updated(
    module: tvm.IRModule, functions: Mapping[tvm.ir.GlobalVar, tirx.PrimFunc]
) -> tvm.IRModule:
    """Return a copy of a module with other functions."""
    copy = module.clone()
    for variable, function in functions.items():
        copy.update_func(variable, function)
    return copy


_HIDDEN = "lowerscope.hidden"
"""Name of the external function that a hidden body calls."""


def _has_blocks(function: tirx.PrimFunc) -> bool:
    """Return whether a function has a block that computes something, beside its root block."""
    found: list[SBlockRealize] = []
    tvm_ffi.structural_walk(function.body, (SBlockRealize, found.append))
    return any(not each.same_as(function.body) for each in found)


def _hidden(function: tirx.PrimFunc) -> tirx.PrimFunc:
    return function.with_body(_root(tirx.Evaluate(tirx.call_extern("int32", _HIDDEN))))


def _root(body: Any) -> SBlockRealize:
    return SBlockRealize([], True, SBlock([], [], [], "root", body))


Build = Callable[..., Any]

_BUILD = "tirx.build"
"""Name of the function by which TVM compiles a function from C++."""

_TVM: Build = tvm.get_global_func(_BUILD)

_build: ContextVar[Build] = ContextVar("build", default=_TVM)


@contextmanager
def compiled_once(check: Callable[[], None]) -> Iterator[None]:
    """Compile equal functions only once in the body.

    TVM's FoldConstant compiles a function for each call that it folds, and runs it once. Layers of
    one shape call one function. Most functions move data or compute each element by itself: LLVM's
    optimisations make small ones no faster, and take 40 of the 50 ms that a compilation takes.
    """
    before = _build.set(_BuiltOnce(check))
    try:
        yield
    finally:
        _build.reset(before)


class _BuiltOnce:
    """Compiler of functions with a cache."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._known: dict[tuple[int, str], list[tuple[Any, tvm.transform.PassContext, Any]]] = {}

    def __call__(self, function: Any, target: Any = None, *others: Any) -> Any:
        self._check()
        context = tvm.transform.PassContext.current()
        alike = self._known.setdefault((tvm_ffi.structural_hash(function), str(target)), [])
        for known, under, built in alike:
            if under.same_as(context) and tvm_ffi.structural_equal(known, function):
                return built
        if divides_by_data(function):
            # It would be called at once, and kill the process. The pass then leaves the call
            # unfolded, and the run reports which call divides by zero.
            raise RuntimeError("an integer is divided by what may be zero")
        kept = before_build(tvm.IRModule.from_expr(function))
        built = _TVM(kept, target if _reduces(function) else _quick(target), *others)
        alike.append((function, context, built))
        return built


def _reduces(function: tirx.PrimFunc) -> bool:
    """Return whether a function has a block that several iterations write an element of."""
    axes = (axis for each in collected(function.body, SBlock) for axis in each.iter_vars)
    return any(int(axis.iter_type) == tirx.IterVar.CommReduce for axis in axes)


def _quick(target: tvm.target.Target) -> tvm.target.Target:
    """Return a target for which LLVM does not optimise."""
    return tvm.target.Target({**target.export(), "opt-level": 0})


tvm.register_global_func(_BUILD, lambda *given: _build.get()(*given), override=True)


@dataclass(frozen=True)
class TransformedModel:
    """A module after a recipe's steps, or after those before one that failed.

    `module`: the module after the last step that was applied.
    `runs`: the steps and the passes inside of them, in the order in which they began.
    `start`: the result after the first of the steps, which was reused.
    `schedules`: the schedules applied by each scheduling step, in order.
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
    def fates(self) -> Mapping[str, BindingEffect]:
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
        became, _other = self._followed[self._applied(step - 1)].after(
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

        Raises `LowerscopeError` if there is none: the pass failed, or one before it did.
        """
        if number == 0 and self.runs:
            return self.runs[0].before
        if number == 0:
            return self.module
        if not 0 < number <= len(self.runs):
            raise LowerscopeError(
                _("there is no step {number}", number=number),
                where="passes",
                todo=_("Choose a step from 0 to {count}", count=len(self.runs)),
            )
        run = self.runs[number - 1]
        if run.after is None:
            self.check()
            raise LowerscopeError(
                _("{name} returned no module", name=run.name),
                where=_("step {number}", number=number),
            )
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

    `check`: called before each step, and each pass inside of one; may raise to cancel.
    `values`: tensors of the parameters that are arguments of ``main``, by name.
    `start`: the result of the first of the steps, for reuse.
    `begins`: called before each step with its text, and with ``""`` after all.
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
    if why:
        notes.append(Note(text=_("{step} skips it: {why}", step=step, why=why), where=function))


def _where(step: Step, number: int) -> str:
    return _("step {number} ({name})", number=number, name=step.name)


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
        with found.running(_("applying the pass failed")):
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
                    leave_out = given["leave_out"]
                    return Without(
                        made, module, error, leave_out, recorder.check, recorder.again
                    ).applied()
    except TVM_ERRORS as error:
        raise LowerscopeError(
            _("the pass failed: {last_line}", last_line=last_line(error)),
            where=where,
            todo=_("Switch the step off, or choose another lowering"),
            details=str(error),
        ) from error
