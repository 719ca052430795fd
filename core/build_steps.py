"""Recorded passes of TVM's own build, to be shown and not edited."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
from tvm import relax, tirx

from lowerscope.core.cancellations import with_cancellations
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.building import BuiltModel, build, without_kills
from lowerscope.core.passes.recording import (
    FunctionChanges,
    PassRun,
    Recorder,
    pass_labels,
    record_of,
)
from lowerscope.core.records.steps import PassRecord

_Functions = dict[str, tuple[tvm.ir.GlobalVar, Any]]

REMOVE_KILLS = "RemoveKills"
"""Lowerscope's own first step of a build whose module frees values: see `without_kills`."""

KEEP_CANCELLATIONS = "KeepCancellations"
"""Lowerscope's own step before a build that would cancel floats: see `with_cancellations`."""

FIRST_FOR_TENSORIR = "tirx.BindTarget"
"""The first pass that runs on the TensorIR functions alone."""


@dataclass(frozen=True)
class RecordedBuild:
    """An executable with the passes that led to it.

    Attributes
    ----------
    built
        The executable.
    module
        What was built.
    runs
        The passes in the order in which they began. Those for TensorIR are given a module of the
        TensorIR functions alone.
    """

    built: BuiltModel
    module: tvm.IRModule
    runs: tuple[PassRun, ...]

    @cached_property
    def records(self) -> tuple[PassRecord, ...]:
        """The passes, with the functions of the whole module that each of them changed."""
        changes = FunctionChanges()
        return tuple(
            record_of(run, number, label, changes.between(_by_name(before), _by_name(after)))
            for number, (run, label, (before, after)) in enumerate(
                zip(self.runs, pass_labels(self.runs), self._wholes, strict=True), start=1
            )
        )

    def module_after(self, number: int) -> tvm.IRModule:
        """Return the whole module after a pass of `runs`, counted from 1; 0 is before the first.

        Functions that the pass did not receive are unchanged: after a pass for TensorIR, the Relax
        functions are those that went into the bytecode.

        Raises
        ------
        LowerscopeError
            If there is no such pass.
        """
        if not 0 <= number <= len(self.runs):
            raise LowerscopeError(
                f"there is no step {number}",
                where="build",
                todo=f"Choose one from 0 to {len(self.runs)}",
            )
        return self.module if number == 0 else self._joined(self._wholes[number - 1][1])

    def module_before(self, number: int) -> tvm.IRModule:
        """Return the whole module that a pass of `runs`, counted from 1, was applied to.

        Raises
        ------
        LowerscopeError
            If there is no such pass.
        """
        self.module_after(number)
        return self._joined(self._wholes[number - 1][0])

    def _joined(self, functions: _Functions) -> tvm.IRModule:
        return tvm.IRModule(dict(functions.values()), attrs=self.module.attrs)

    @cached_property
    def _wholes(self) -> list[tuple[_Functions, _Functions]]:
        """The functions of the whole module before and after each pass."""
        before: dict[int, _Functions] = {0: _functions(self.module)}
        wholes: list[tuple[_Functions, _Functions]] = []
        for number, run in enumerate(self.runs, start=1):
            # Inside of a pass, `before` goes from one to the next of those that it calls.
            given = before[run.parent]
            rest = _without(given, _functions(run.before))
            made = {} if run.after is None else _functions(run.after)
            if not any(isinstance(function, relax.Function) for _, function in made.values()):
                # Relax functions call the others by variables that are not in this module.
                made = {
                    name: (given[name][0] if name in given else variable, function)
                    for name, (variable, function) in made.items()
                }
            before[number] = given
            before[run.parent] = rest | made
            wholes.append((given, rest | made))
        return wholes

    @cached_property
    def tensorir(self) -> Mapping[str, tirx.PrimFunc]:
        """The functions that go into the passes for TensorIR, by name; none where it has none."""
        first = next((run for run in self.runs if run.name == FIRST_FOR_TENSORIR), None)
        if first is None:
            return {}
        return {
            str(variable.name_hint): function
            for variable, function in first.before.functions_items()
            if isinstance(function, tirx.PrimFunc)
        }


def recorded_build(module: tvm.IRModule, target: tvm.target.Target) -> RecordedBuild:
    """Compile `module` with TVM's default pipeline and note its passes.

    Raises
    ------
    LowerscopeError
        If TVM fails.
    """
    recorder = Recorder()
    built_from = without_kills(module)
    if not built_from.same_as(module):
        recorder.runs.append(PassRun(REMOVE_KILLS, module, after=built_from))
    kept = with_cancellations(built_from)
    if not kept.same_as(built_from):
        recorder.runs.append(PassRun(KEEP_CANCELLATIONS, built_from, after=kept))
    built = build(kept, target, [recorder.instrument])
    return RecordedBuild(built, module, tuple(_main_line(recorder.runs)))


def _main_line(runs: Sequence[PassRun]) -> list[PassRun]:
    """Return the passes, with the program unchanged where a pass leaves no functions.

    TVM splits off device code, of which there is none here, and continues with the program as it
    was before.
    """
    return [
        dataclasses.replace(run, after=run.before)
        if run.after is not None and not run.after.functions
        else run
        for run in runs
    ]


def _functions(module: tvm.IRModule) -> _Functions:
    return {str(each.name_hint): (each, function) for each, function in module.functions_items()}


def _by_name(functions: _Functions) -> Mapping[str, Any]:
    return {name: function for name, (_, function) in functions.items()}


def _without(functions: _Functions, others: _Functions) -> _Functions:
    return {name: each for name, each in functions.items() if name not in others}
