"""The build stage: compiles a module, and checks the functions that it calls by name."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import tvm
from tvm import ir, relax, tirx
from tvm.ir.instrument import PassInstrument

from lowerscope.core.ir.before_build import CHANGES, before_build
from lowerscope.core.ir.relax import bound_in, operator_of, own_function, relax_functions
from lowerscope.core.ir.script import function_script
from lowerscope.core.ir.tensorir import collected
from lowerscope.core.model.module_steps import PassRecord
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.run_records import MemoryRecord, Storage, StoredTensor
from lowerscope.core.model.texts import _, _n
from lowerscope.core.passes.recording import (
    FunctionChanges,
    PassRun,
    Recorder,
    ScriptOf,
    pass_labels,
    record_of,
)
from lowerscope.core.schedule.block_primitives import intrinsics
from lowerscope.core.schedule.dot_instructions import DOTS


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
    module: tvm.IRModule, target: tvm.target.Target, instruments: Sequence[PassInstrument] = ()
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
            _("TVM could not compile the module: {last_line}", last_line=last_line(error)),
            where="build",
            todo=_("Try another lowering or the target llvm; the log has TVM's whole message"),
            details=str(error),
        ) from error
    return BuiltModel(executable, (time.perf_counter() - start) * 1000)


def compiled(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return TVM's executable of a module; all code is compiled here, for runs and for display."""
    return tvm.compile(before_build(without_kills(module)), target)


def compile_function(name: str, function: tirx.PrimFunc, target: tvm.target.Target) -> Any:
    """Return TVM's executable of a single function: the code that it has in a whole module."""
    variable = tvm.ir.GlobalVar(name)
    return compiled(tvm.IRModule({variable: function.with_attr("global_symbol", name)}), target)


# --- LLVM's work, which is most of a build: by several threads, each with functions of its own ---

_CODEGEN = "target.build.llvm"
_TVM = tvm.get_global_func(_CODEGEN)

_LLVM = Lock()
"""Held while LLVM works, as a target's options of LLVM (``cl-opt``) are set for the process."""

_FEWEST = 4
"""Functions that are worth a thread."""

_NO_ALIAS = "tirx.noalias"
"""Attribute of functions whose buffers do not overlap."""


def _codegen(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return LLVM's module for functions after all passes; it may import others with the rest.

    TVM takes the buffers of all functions of a module to overlap if those of one may: then LLVM
    keeps no sums in registers. Such functions get a module of their own.
    """
    # Those that are alike have similar names, and are spread over the threads.
    functions = sorted(module.functions_items(), key=lambda each: str(each[0].name_hint))
    called = {name for _variable, each in functions for name in _called(each)}
    for name in DOTS.keys() & called - set(intrinsics(target)):
        # LLVM would end the process.
        raise ValueError(_("the target has no instruction {name}", name=name))
    is_alone = "cl-opt" in target.attrs
    if called.intersection(str(each.name_hint) for each, _function in functions):
        parts = [module]
    else:
        apart = [each for each in functions if _NO_ALIAS in (each[1].attrs or {})]
        rest = [each for each in functions if _NO_ALIAS not in (each[1].attrs or {})]
        count = 1 if is_alone else min(MACHINE, len(apart) // _FEWEST) or 1
        groups = [each for each in (*(apart[at::count] for at in range(count)), rest) if each]
        parts = [tvm.IRModule(dict(each), attrs=module.attrs) for each in groups]
    with _LLVM, ThreadPoolExecutor(1 if is_alone else len(parts)) as threads:
        first, *others = threads.map(lambda each: _TVM(each, target), parts)
    for each in others:
        first.import_module(each)
    return first


def _called(function: tirx.PrimFunc) -> Iterator[str]:
    """Yield the names of what a function calls; LLVM links it to those of its module."""
    for call in collected(function.body, tvm.ir.Call):
        by_name = call.args[0] if call.args else None
        if isinstance(call.op, tvm.ir.GlobalVar):
            yield str(call.op.name_hint)
        elif isinstance(by_name, tvm.ir.StringImm):
            yield str(by_name.value)


tvm.register_global_func(_CODEGEN, _codegen, override=True)


def llvm_modules(module: Any) -> list[Any]:
    """Return the modules of LLVM among a compiled module and those that it imports."""
    found = [module] if module.kind == "llvm" else []
    return [*found, *(inner for each in module.imports for inner in llvm_modules(each))]


def make_machine_code(module: Any) -> None:
    """Make the machine code of a compiled module; each of its functions would do so when called."""

    def make(part: Any) -> None:
        # The first function that is asked for makes the code of all.
        symbol = str(part["get_func_names"]()[0])
        part.get_function(symbol.removeprefix("__tvm_ffi_"))

    found = llvm_modules(module)
    if len(found) > 1:
        with _LLVM, ThreadPoolExecutor(len(found)) as threads:
            list(threads.map(make, found))


def without_kills(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` without the calls that free values, which TVM's build inserts again.

    If passes have inserted them already, the build would move the shape checks of a tuple's members
    behind them.
    """

    def frees(binding: relax.Binding) -> bool:
        # Reproductions have this function as it stands, with nothing else of Lowerscope.
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
            value = bound.value
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
    return _("; ").join(
        _("{name} is not registered; called by {callers}", name=name, callers=_(", ").join(callers))
        for name, callers in missing.items()
    )


def load_text(missing: dict[str, tuple[str, ...]]) -> str:
    """Return the remedy for missing functions."""
    return _n(
        "load the file that registers it: --library FILE",
        "load the file that registers them: --library FILE",
        len(missing),
    )


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
                _("there is no step {number}", number=number),
                where="build",
                todo=_("Choose a step from 0 to {count}", count=len(self.runs)),
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
            if not any(isinstance(function, relax.Function) for _other, function in made.values()):
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
    changed = module
    for name, change in {REMOVE_KILLS: without_kills, **CHANGES}.items():
        before, changed = changed, change(changed)
        if not changed.same_as(before):
            recorder.runs.append(PassRun(name, before, after=changed))
    built = build(changed, target, [recorder.instrument])
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
    return {name: function for name, (_other, function) in functions.items()}


def _without(functions: _Functions, others: _Functions) -> _Functions:
    return {name: each for name, each in functions.items() if name not in others}


# --- Memory plan of ``main``, read from the module that is compiled to bytecode ---
#
# ``StaticPlanBlockMemory`` assigns tensors to shared storages, and ``KillAfterLastUse`` frees each
# behind the last call that uses a tensor in it.


AFTER_KILLS = "KillAfterLastUse"
"""The pass after which all allocations and frees are explicit in the module."""

_CALLS = ("relax.vm.call_tir_dyn", "relax.reshape")
# The second of each is where the pipeline itself has lowered the allocations.
_STORAGES = ("relax.memory.alloc_storage", "relax.vm.alloc_storage")
_TENSORS = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")


@dataclass
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    written: int
    last: int


@dataclass
class _Taken:
    size: int
    begin: int
    end: int
    tensors: list[_Tensor] = field(default_factory=list)


class _Unknown(Exception):
    """The memory of a run is unknown before it runs; the argument says why."""


def planned_memory(build: RecordedBuild) -> MemoryRecord:
    """Return the memory that a run of ``main`` allocates, by call; see `run.calls`."""
    module = next(each.after for each in build.runs if each.name == AFTER_KILLS)
    function = dict(relax_functions(module)).get("main") if module is not None else None
    if function is None:
        return MemoryRecord(reason=_("there is no function {name}", name="main"))
    plan = _Plan()
    try:
        for bound in bound_in("main", function):
            plan.take(str(bound.name), bound.binding)
    except _Unknown as reason:
        return MemoryRecord(reason=str(reason))
    returned = plan.roots(function.body.body)
    return plan.record(returned, _constants(function))


class _Plan:
    """The allocations so far; ``call`` is the index of the next call."""

    def __init__(self) -> None:
        self.call = 0
        self._storages: dict[int, _Taken] = {}
        self._tensors: dict[int, _Tensor] = {}
        self._aliases: dict[int, Any] = {}

    def take(self, name: str, binding: Any) -> None:
        """Process the next binding."""
        value: Any = getattr(binding, "value", None)
        if type(value) is relax.If:
            raise _Unknown(_("the branches taken are known only at run time"))
        operator = operator_of(value)
        if operator in _STORAGES:
            size = _extents(value.args[0])[0]
            self._storages[hash(binding.var)] = _Taken(size, self.call, self.call)
        elif operator in _TENSORS:
            self._allocate(name, binding)
        elif type(value) is relax.Call and (
            type(value.op) in (ir.GlobalVar, relax.ExternFunc) or operator in _CALLS
        ):
            self._note_call(binding, value, operator)
        elif value is not None:
            self._aliases[hash(binding.var)] = value

    def _allocate(self, name: str, binding: Any) -> None:
        value = binding.value
        storage = self._storages[hash(value.args[0])]
        shape = _extents(value.args[2])
        dtype = str(value.args[3].value)
        size = _bytes(shape, dtype)
        tensor = _Tensor(name, shape, dtype, size, self.call, self.call)
        self._tensors[hash(binding.var)] = tensor
        storage.tensors.append(tensor)

    def _note_call(self, binding: Any, value: Any, operator: str) -> None:
        for argument in value.args:
            for tensor in self.roots(argument):
                tensor.last = self.call
        if operator == "relax.reshape":
            # Another view of the same memory.
            self._aliases[hash(binding.var)] = value.args[0]
        self.call += 1

    def roots(self, expression: Any) -> Iterator[_Tensor]:
        """Yield the tensors that an expression is or contains."""
        if type(expression) is relax.Tuple:
            for each in expression.fields:
                yield from self.roots(each)
        elif type(expression) is relax.TupleGetItem:
            yield from self.roots(expression.tuple_value)
        elif hash(expression) in self._tensors:
            yield self._tensors[hash(expression)]
        elif hash(expression) in self._aliases:
            yield from self.roots(self._aliases[hash(expression)])

    def record(self, returned: Iterator[_Tensor], constants: int) -> MemoryRecord:
        """Return the record of the plan; `returned` are the tensors of the outputs."""
        outputs = {id(each) for each in returned}
        last = max(self.call - 1, 0)
        storages = []
        for taken in self._storages.values():
            tensors = tuple(
                StoredTensor(
                    name=each.name,
                    shape=each.shape,
                    dtype=each.dtype,
                    size=each.size,
                    written=min(each.written, last),
                    last=last if id(each) in outputs else min(each.last, last),
                    returned=id(each) in outputs,
                )
                for each in taken.tensors
            )
            end = max((each.last for each in tensors), default=taken.end)
            storages.append(
                Storage(size=taken.size, begin=min(taken.begin, last), end=end, tensors=tensors)
            )
        live = [0] * self.call
        for storage in storages:
            for index in range(storage.begin, min(storage.end + 1, self.call)):
                live[index] += storage.size
        return MemoryRecord(storages=tuple(storages), live=tuple(live), constants=constants)


def _extents(shape: Any) -> tuple[int, ...]:
    values = getattr(shape, "values", None)
    if values is None or not all(hasattr(each, "value") for each in values):
        raise _Unknown(_("sizes are known only at run time: a dimension is symbolic"))
    return tuple(int(each.value) for each in values)


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    kind = tvm.DataType(dtype)
    return (math.prod(shape) * int(kind.bits) * int(kind.lanes) + 7) // 8


def _constants(function: Any) -> int:
    """Return the bytes of the constants of a function, each tensor once."""
    found: dict[int, int] = {}

    def note(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst) and isinstance(
            expression.value, tvm.runtime.Tensor
        ):
            tensor = expression.value
            shape = tuple(int(each) for each in tensor.shape)
            found[hash(tensor)] = _bytes(shape, str(tensor.dtype))

    relax.analysis.post_order_visit(function, note)
    return sum(found.values())
