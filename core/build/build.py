"""The build stage: compiles a module, and checks the functions that it calls by name."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.ir.instrument import PassInstrument

from lowerscope.core.ir.cancellations import with_cancellations
from lowerscope.core.ir.relax import bound_in, own_function, relax_functions
from lowerscope.core.ir.script import function_script
from lowerscope.core.model.module_steps import PassRecord
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.passes.recording import (
    FunctionChanges,
    PassRun,
    Recorder,
    ScriptOf,
    pass_labels,
    record_of,
)


@dataclass(frozen=True)
class BuiltModel:
    """An executable and its build time in milliseconds."""

    executable: relax.VMExecutable
    milliseconds: float


def register_library(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Register functions with TVM by name, replacing existing ones.

    A virtual machine looks its functions up when it is created, and keeps them.
    """
    for name, function in functions.items():
        tvm.register_global_func(name, function, override=True)


def build(
    module: tvm.IRModule,
    target: tvm.target.Target,
    instruments: Sequence[PassInstrument] = (),
) -> BuiltModel:
    """Compile `module` with TVM's default pipeline.

    Raises a `LowerscopeError` if TVM fails.
    """
    start = time.perf_counter()
    try:
        with tvm.transform.PassContext(instruments=list(instruments)):
            executable = compiled(module, target)
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"TVM could not compile the module: {last_line(error)}",
            where="build",
            todo="Try the other lowering or the target llvm; the log has TVM's whole message",
            details=str(error),
        ) from error
    return BuiltModel(executable, (time.perf_counter() - start) * 1000)


def compiled(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return TVM's executable of a module; all code is compiled here, for runs and for display."""
    return tvm.compile(with_cancellations(without_kills(module)), target)


def compile_function(name: str, function: tirx.PrimFunc, target: tvm.target.Target) -> Any:
    """Return TVM's executable of a single function: the code that it has in a whole module."""
    variable = tvm.ir.GlobalVar(name)
    return compiled(tvm.IRModule({variable: function.with_attr("global_symbol", name)}), target)


def without_kills(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` without the calls that free values, which TVM's build inserts again.

    If passes have inserted them already, the build would move the shape checks of a tuple's members
    behind them.
    """

    def frees(binding: relax.Binding) -> bool:
        op = getattr(getattr(binding, "value", None), "op", None)
        return isinstance(op, tvm.ir.Op) and ".kill_" in op.name

    changed = {}
    for variable, function in module.functions_items():
        if not isinstance(function, relax.Function):
            continue
        blocks = function.body.blocks
        if any(frees(each) for block in blocks for each in block.bindings):
            kept = [
                type(block)([each for each in block.bindings if not frees(each)])
                for block in blocks
            ]
            body = relax.SeqExpr(kept, function.body.body)
            changed[variable] = relax.Function(
                function.params, body, function.ret_ty, function.is_pure, function.attrs
            )
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)


MISSING = "missing-function"
"""Problem code of a function that is not registered."""


def external_functions(module: tvm.IRModule) -> dict[str, tuple[str, ...]]:
    """Return the callers of each external function of `module` by name: ``lv1 in main``.

    It may be called by a binding, or be anywhere in one, such as in a branch.
    """
    found: dict[str, dict[str, None]] = {}

    def note(expression: relax.Expr, place: str) -> None:
        if isinstance(expression, relax.ExternFunc):
            found.setdefault(str(expression.global_symbol), {})[place] = None

    for name, function in relax_functions(module):
        if not _calls_outside(function):
            continue
        for bound in bound_in(name, function):
            value = getattr(bound.binding, "value", None)
            # Branches and inner functions have bindings of their own.
            if value is not None and not isinstance(value, (relax.If, relax.Function)):
                place = f"{bound.name} in {name}"
                relax.analysis.post_order_visit(value, lambda each, at=place: note(each, at))
        # The body's last value, and expressions outside bindings.
        relax.analysis.post_order_visit(
            function, lambda each, at=name: None if _noted(each, found) else note(each, at)
        )
    return {name: tuple(places) for name, places in sorted(found.items())}


def missing_functions(
    module: tvm.IRModule, known: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the functions that `module` calls and that are not registered, with the callers.

    It may call its own TensorIR functions by name, as well as external ones.
    """
    return {
        name: callers
        for name, callers in external_functions(module).items()
        if name not in known and not is_registered(name) and own_function(module, name) is None
    }


def is_registered(name: str) -> bool:
    """Return whether the virtual machine finds a function of this name."""
    return name.startswith("vm.builtin.") or (
        tvm.get_global_func(name, allow_missing=True) is not None
    )


def missing_text(missing: dict[str, tuple[str, ...]]) -> str:
    """Format missing functions: ``env.relu is not registered; called by lv1 in main``."""
    return "; ".join(
        f"{name} is not registered; called by {', '.join(callers)}"
        for name, callers in missing.items()
    )


def load_text(missing: dict[str, tuple[str, ...]]) -> str:
    """Return the remedy for missing functions."""
    them = "it" if len(missing) == 1 else "them"
    return f"load the file that registers {them} with --library"


def check_registered(module: tvm.IRModule, known: Collection[str] = ()) -> None:
    """Raise unless every function that `module` calls by name is registered, or `known`.

    Raises a `LowerscopeError` with the code `MISSING` and the names.
    """
    missing = missing_functions(module, known)
    if missing:
        raise LowerscopeError(
            missing_text(missing), todo=load_text(missing), code=MISSING, choices=tuple(missing)
        )


def _calls_outside(function: relax.Function) -> bool:
    kinds: set[type] = set()
    relax.analysis.post_order_visit(function, lambda each: kinds.add(type(each)))
    return relax.ExternFunc in kinds


def _noted(expression: relax.Expr, found: dict[str, dict[str, None]]) -> bool:
    return isinstance(expression, relax.ExternFunc) and str(expression.global_symbol) in found


# --- Recorded passes of TVM's own build, to be shown and not edited ---

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

    `built`: the executable.
    `module`: what was built.
    `runs`: the passes in the order in which they began. Those for TensorIR are given a module of
        the TensorIR functions alone.
    """

    built: BuiltModel
    module: tvm.IRModule
    runs: tuple[PassRun, ...]

    def records(self, script: ScriptOf = function_script) -> tuple[PassRecord, ...]:
        """Return the passes, with the functions of the whole module that each of them changed."""
        changes = FunctionChanges(script)
        return tuple(
            record_of(run, number, label, changes.between(before, after), before, after)
            for number, (run, label, (before, after)) in enumerate(
                zip(
                    self.runs,
                    pass_labels(self.runs),
                    ((_by_name(before), _by_name(after)) for before, after in self._wholes),
                    strict=True,
                ),
                start=1,
            )
        )

    def module_after(self, number: int) -> tvm.IRModule:
        """Return the whole module after a pass of `runs`, counted from 1; 0 is before the first.

        Functions that the pass did not receive are unchanged: after a pass for TensorIR, the Relax
        functions are those that went into the bytecode.

        Raises `LowerscopeError` if there is no such pass.
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

        Raises `LowerscopeError` if there is no such pass.
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

    Raises `LowerscopeError` if TVM fails.
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
