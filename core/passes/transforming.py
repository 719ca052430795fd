"""The transform stage: a recipe's steps, applied to a lowered module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import tvm

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, Problem, error_of, last_line
from lowerscope.core.passes.bindings import match_bindings
from lowerscope.core.passes.catalogue import CATALOGUE, Values
from lowerscope.core.passes.recording import PassRun, Recorder, Status
from lowerscope.core.recipe import Step
from lowerscope.core.relax_bindings import binding_ids


@dataclass(frozen=True)
class TransformedModel:
    """A module after a recipe's steps, or after those of them before one that failed.

    Attributes
    ----------
    module
        The module after the last step that was applied.
    bindings
        From ids of bindings before the first step to ids of those that they became.
    runs
        The steps and the passes inside of them, in the order in which they began.
    problem
        Why a step failed.
    """

    module: tvm.IRModule
    bindings: Mapping[str, tuple[str, ...]]
    runs: tuple[PassRun, ...] = ()
    problem: Problem | None = None

    def check(self) -> None:
        """Raise what a step failed with, if one did."""
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


def transform(
    module: tvm.IRModule,
    steps: Sequence[Step],
    check: Callable[[], None] = lambda: None,
    values: Values = MappingProxyType({}),
) -> TransformedModel:
    """Apply the steps that are switched on, in order, up to the first that fails.

    Parameters
    ----------
    check
        Called before each step; may raise to cancel.
    values
        Tensors of the parameters that are arguments of ``main``, by name.
    """
    recorder = Recorder()
    problem: Problem | None = None
    became: dict[str, tuple[str, ...]] = {bound.id: (bound.id,) for bound in binding_ids(module)}
    for number, step in enumerate(steps, start=1):
        if not step.on or problem is not None:
            status: Status = "skipped" if step.on else "off"
            after = None if step.on else module
            recorder.runs.append(
                PassRun(step.name, module, step=number, after=after, status=status)
            )
            continue
        check()
        run = recorder.begin(step.name, module, number)
        try:
            after = _apply(module, step, number, values, recorder)
        except LowerscopeError as failed:
            recorder.fail(failed.problem.what)
            problem = failed.problem
            continue
        run.end(after)
        matches = match_bindings(module, after)
        became = {
            entity: tuple(new for old in olds for new in matches.get(old, ()))
            for entity, olds in became.items()
        }
        module = after
    return TransformedModel(module, became, tuple(recorder.runs), problem)


def _apply(
    module: tvm.IRModule, step: Step, number: int, values: Values, recorder: Recorder
) -> tvm.IRModule:
    where = f"step {number} ({step.name})"
    if step.name not in CATALOGUE:
        raise LowerscopeError(
            f"there is no pass {step.name}",
            where=where,
            todo=f"Passes are: {', '.join(sorted(CATALOGUE))}",
        )
    try:
        with tvm.transform.PassContext(opt_level=3, instruments=[recorder.instrument]):
            return CATALOGUE[step.name](values)(module)
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"the pass failed: {last_line(error)}",
            where=where,
            todo="Switch the step off, or choose another lowering",
            details=str(error),
        ) from error
