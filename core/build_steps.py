"""The passes of TVM's own build, "to the metal": what they made, to look at and not to edit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import tvm
from tvm import relax

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.building import BuiltModel, build
from lowerscope.core.passes.recording import PassRun, Recorder, pass_records
from lowerscope.core.step_records import PassRecord


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
        """The passes, with the functions that each of them changed."""
        return pass_records(self.runs)

    def module_after(self, number: int) -> tvm.IRModule:
        """Return the whole module after a pass of `runs`, counted from 1; 0 is before the first.

        After a pass for TensorIR, the Relax functions are as they went into the bytecode.

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
        if number == 0:
            return self.module
        after = self._after(number)
        if _has_relax(after):
            return after
        for earlier in range(number - 1, 0, -1):
            module = self._after(earlier)
            if _has_relax(module):
                return _joined(module, after)
        return _joined(self.module, after)

    def before_llvm(self) -> tvm.IRModule | None:
        """Return the TensorIR functions that LLVM was given; ``None`` if there are none."""
        if not self.runs or _has_relax(self._after(len(self.runs))):
            return None
        return self._after(len(self.runs))

    def _after(self, number: int) -> tvm.IRModule:
        after = self.runs[number - 1].after
        assert after is not None, "a build that failed has no record"
        return after


def recorded_build(module: tvm.IRModule, target: tvm.target.Target) -> RecordedBuild:
    """Compile `module` with TVM's default pipeline and note its passes.

    Raises
    ------
    LowerscopeError
        If TVM fails.
    """
    recorder = Recorder()
    built = build(module, target, [recorder.instrument])
    return RecordedBuild(built, module, tuple(_main_line(recorder.runs)))


def _main_line(runs: Sequence[PassRun]) -> list[PassRun]:
    """Return the passes so that each one leaves the program.

    TVM splits off what is for another device, which is nothing here, and the program goes on as it
    was before that.
    """
    return [
        dataclasses.replace(run, after=run.before)
        if run.after is not None and not run.after.functions
        else run
        for run in runs
    ]


def _has_relax(module: tvm.IRModule) -> bool:
    return any(isinstance(each, relax.Function) for each in module.functions.values())


def _joined(relax_module: tvm.IRModule, tensorir: tvm.IRModule) -> tvm.IRModule:
    """Return the Relax functions of one module with the TensorIR functions of another."""
    names = {str(each.name_hint): each for each in relax_module.get_global_vars()}
    functions = {
        variable: function
        for variable, function in relax_module.functions_items()
        if isinstance(function, relax.Function)
    }
    for variable, function in tensorir.functions_items():
        functions[names.get(str(variable.name_hint), variable)] = function
    return tvm.IRModule(functions, attrs=relax_module.attrs)
