"""Recording of passes while they run: by reference, so that it costs next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import tvm
from tvm import ir, relax
from tvm.ir.instrument import PassInstrument, pass_instrument
from tvm_ffi import Tensor

from lowerscope.core.ir.relax import elements_of
from lowerscope.core.ir.script import function_script, text_key
from lowerscope.core.model.module_steps import PassRecord

_AT_ONCE = 1 << 20
"""Number of values compared at once, to bound the memory for a large constant."""


def is_same(one: Any, other: Any, script: Callable[[Any], str]) -> bool:
    """Return whether two functions of one name have the same text and the same constants."""
    if one.same_as(other) or text_key(one) == text_key(other):
        return True
    if script(one) != script(other):
        return False
    return not isinstance(one, relax.Function) or _has_same_constants(one, other)


def constant_tensors(function: Any) -> list[Any]:
    """Return the tensors of constants; dtypes and shapes are also constants, but are printed."""
    found: list[Any] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst) and isinstance(expression.value, Tensor):
            found.append(expression.value)

    relax.analysis.post_order_visit(function, visit)
    return found


def compared_values(old: np.ndarray, new: np.ndarray) -> tuple[int, float | None]:
    """Return the number of values that differ, and the largest difference, if it is a number."""
    one, other = old.reshape(-1), new.reshape(-1)
    wide = np.complex128 if np.iscomplexobj(old) else np.float64
    different, largest = 0, None
    for start in range(0, one.size, _AT_ONCE):
        a, b = one[start : start + _AT_ONCE], other[start : start + _AT_ONCE]
        if a.tobytes() == b.tobytes():
            continue
        a, b = a.astype(wide), b.astype(wide)
        apart = (a != b) & ~(np.isnan(a) & np.isnan(b))
        different += int(np.count_nonzero(apart))
        with np.errstate(invalid="ignore"):
            distances = np.abs(a[apart] - b[apart])
        finite = distances[np.isfinite(distances)]
        if finite.size:
            largest = max(largest or 0.0, float(finite.max()))
    return different, largest


def paired_constants(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, Any, Any]]:
    """Return the number, from 1, and both tensors of constants that may have other values.

    They are paired in order, as the script numbers them. Those over the same memory are the same;
    those of another shape or dtype cannot be compared, and change the text of their users.
    """
    found: list[tuple[int, Any, Any]] = []
    for number, (a, b) in enumerate(zip(one, other, strict=False), start=1):
        olds, news = elements_of(a), elements_of(b)
        if olds != news and olds[1:] == news[1:]:
            found.append((number, a, b))
    return found


def _has_same_constants(one: Any, other: Any) -> bool:
    pairs = paired_constants(constant_tensors(one), constant_tensors(other))
    return not any(compared_values(a.numpy(), b.numpy())[0] for _, a, b in pairs)


Status = Literal["done", "failed", "skipped", "off"]


@dataclass(slots=True, eq=False)
class PassRun:
    """One pass that ran, or was to run.

    `name`, `depth`, `parent`, `step`, `milliseconds`, `status`, `error`: as in `PassRecord`.
    `before`, `after`: the module before and after it; ``after`` is ``None`` if it produced nothing.
    `left_out`: names of the functions that it has left unchanged, since it cannot handle them, with
        the reasons; with an empty one for a function that has nothing for it to change.
    """

    name: str
    before: tvm.IRModule
    depth: int = 0
    parent: int = 0
    step: int = 0
    after: tvm.IRModule | None = None
    milliseconds: float = 0.0
    status: Status = "done"
    error: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    _started: float = field(default_factory=time.perf_counter)

    def end(self, after: tvm.IRModule | None) -> None:
        """Record its result, and the time that it took."""
        self.after = after
        self.milliseconds = (time.perf_counter() - self._started) * 1000


class Recorder:
    """Recorder of the passes that run in a ``PassContext`` with its `instrument`.

    Its references make TVM copy functions that it would change in place, one by one.

    `check`: called before each pass; may raise to cancel.

    `runs`: the passes in the order in which they began.
    `stopped`: the exception that `check` has raised.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self.stopped: BaseException | None = None
        self.runs: list[PassRun] = []
        # Running passes: positions in the list from 1, or 0 for one that is not listed.
        self._open: list[int] = []
        self._begun = False
        self.instrument: PassInstrument = _Instrument(self)

    def begin(self, name: str, module: tvm.IRModule, step: int) -> PassRun:
        """Add the pass that is about to run on `module` as `step`, under a name of its own."""
        self._open.clear()
        self._begun = True
        return self._add(name, module, step)

    def again(self) -> None:
        """Drop the passes inside the running step, which starts again."""
        number = max(place for place, run in enumerate(self.runs, start=1) if run.depth == 0)
        del self.runs[number:]
        self._open = [number]
        self._begun = True

    def enter(self, name: str, module: tvm.IRModule) -> None:
        """Record that a pass begins, unless it is not to be listed."""
        self.check()
        if self._begun:
            self._begun = False
            self._open.append(0)
        else:
            self._add(name, module, self.runs[-1].step if self._open else 0)

    def check(self) -> None:
        """Raise the error that cancels the running pass."""
        try:
            self._check()
        except BaseException as error:
            # FoldConstant continues after a failed compilation, whatever the reason.
            self.stopped = error
            raise

    def leave(self, module: tvm.IRModule) -> None:
        """Record that the pass that began last ends."""
        number = self._open.pop()
        if number:
            self.runs[number - 1].end(module)

    def fail(self, error: str) -> None:
        """Record that the running passes have failed."""
        for number in filter(None, self._open):
            run = self.runs[number - 1]
            run.end(None)
            run.status, run.error = "failed", error
        self._open.clear()

    def _add(self, name: str, module: tvm.IRModule, step: int) -> PassRun:
        listed = [number for number in self._open if number]
        run = PassRun(name, module, len(listed), listed[-1] if listed else 0, step)
        self.runs.append(run)
        self._open.append(len(self.runs))
        return run


@pass_instrument
class _Instrument:
    """Pass instrument called by TVM around each pass."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def run_before_pass(self, module: tvm.IRModule, info: Any) -> None:
        self._recorder.enter(str(info.name), module)

    def run_after_pass(self, module: tvm.IRModule, info: Any) -> None:
        self._recorder.leave(module)


ScriptOf = Callable[[Any, str], str]
"""Function that returns the script of a function under a name."""


def pass_records(
    runs: Sequence[PassRun], script: ScriptOf = function_script
) -> tuple[PassRecord, ...]:
    """Return the records of passes in order, with the functions that each of them changed."""
    changes = FunctionChanges(script)
    return tuple(
        record_of(run, number, label, *changes.of_modules(run.before, run.after))
        for number, (run, label) in enumerate(zip(runs, pass_labels(runs), strict=True), start=1)
    )


def record_of(
    run: PassRun,
    number: int,
    label: str,
    changed: tuple[str, ...],
    before: Collection[str],
    after: Collection[str],
) -> PassRecord:
    """Return the record of a pass that changed some functions.

    `before`, `after`: the names of all functions on either side.
    """
    changed = changed if run.after is not None else ()
    return PassRecord(
        number=number,
        name=run.name,
        label=label,
        depth=run.depth,
        parent=run.parent,
        step=run.step,
        milliseconds=run.milliseconds,
        changed=changed,
        added=sum(name not in before for name in changed),
        removed=sum(name not in after for name in changed),
        status=run.status,
        error=run.error,
        left_out=tuple(f"{function}: {why}" for function, why in run.left_out.items() if why),
    )


def pass_labels(runs: Sequence[PassRun]) -> Iterator[str]:
    outer, inner = 0, 0
    for run in runs:
        outer, inner = (outer, inner + 1) if run.depth else (outer + 1, 0)
        yield f"{outer}.{inner}" if inner else str(outer)


class FunctionChanges:
    """The functions that differ between modules, each printed once."""

    def __init__(self, script: ScriptOf = function_script) -> None:
        self._script_of = script
        self._known: dict[int, tuple[tvm.IRModule, Mapping[str, Any]]] = {}
        # Keep a function with its script, so that its address is not reused.
        self._scripts: dict[tuple[str, tuple[int, ...]], tuple[Any, str]] = {}

    def between_modules(self, before: tvm.IRModule, after: tvm.IRModule | None) -> tuple[str, ...]:
        """Return the names of the functions that were changed or added, then those removed."""
        if after is None or before.same_as(after):
            return ()
        return self.between(self._of(before), self._of(after))

    def of_modules(
        self, before: tvm.IRModule, after: tvm.IRModule | None
    ) -> tuple[tuple[str, ...], Collection[str], Collection[str]]:
        """Return the same, and the names of all functions of both modules."""
        changed = self.between_modules(before, after)
        if after is None or not changed:
            return (), (), ()
        return changed, self._of(before), self._of(after)

    def between(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the same for the functions of two modules by name."""
        changed = (name for name, each in new.items() if self._is_changed(name, old, each))
        return (*changed, *(name for name in old if name not in new))

    def _is_changed(self, name: str, old: Mapping[str, Any], function: Any) -> bool:
        if name not in old:
            return True
        return not is_same(old[name], function, lambda each: self._script(name, each))

    def _script(self, name: str, function: Any) -> str:
        key = (name, text_key(function))
        if key not in self._scripts:
            self._scripts[key] = (function, self._script_of(function, name))
        return self._scripts[key][1]

    def _of(self, module: tvm.IRModule) -> Mapping[str, Any]:
        # Keep the module with its functions, so that its address is not reused.
        address = module.__chandle__()
        if address not in self._known:
            items = {str(each.name_hint): function for each, function in module.functions_items()}
            self._known[address] = (module, items)
        return self._known[address][1]
