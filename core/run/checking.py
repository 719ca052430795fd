"""Comparison of a scheduled function with the unscheduled one, run on the same values."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import tvm
from tvm import s_tir, tirx

from lowerscope.core.build.targets import use_threads
from lowerscope.core.ir.tensorir import Parameter, collected
from lowerscope.core.model.formatting import error_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.schedule_records import CHECK_THREAD, Checked, Verdict
from lowerscope.core.model.texts import _
from lowerscope.core.run.standalone import (
    AtSizes,
    Guarded,
    compile_alone,
    draw,
    dtype_of_torch,
    static_parameters,
)

T = TypeVar("T")

_UNITS, _UNITS_A_ROOT = 8.0, 2.0
"""Tolerance in units in the last place, and its growth with the root of the number of terms."""

_VALUES = 4
"""Number of values below which an output may be small by chance, as a single sum may."""


@dataclass(frozen=True)
class Reference:
    """Results of the unscheduled function.

    `inputs`: its arguments; ``None`` for those that it only writes.
    `outputs`: the content of each buffer afterwards; ``None`` for those that it only reads.
    `terms`: maximum number of terms in the sums of an output.
    `scales`: the largest finite absolute value of each output; of one with few values, for other
        inputs as well.
    """

    parameters: tuple[Parameter, ...]
    inputs: tuple[torch.Tensor | None, ...]
    outputs: tuple[torch.Tensor | None, ...]
    terms: int
    scales: tuple[float, ...]

    @property
    def size(self) -> int:
        """Size of all buffers, in bytes."""
        tensors = (each for each in (*self.inputs, *self.outputs) if each is not None)
        return sum(each.numel() * each.element_size() for each in tensors)


Compiler = Callable[[tirx.PrimFunc, tvm.target.Target], Any]
"""Compiles a function to be called with tensors of this machine: `compile_alone`, or its
counterpart for another machine."""


class TookTooLong(Exception):
    """Timeout of a call, which is still running."""


def reference_of(
    sized: AtSizes,
    target: tvm.target.Target,
    seed: int,
    limit: Limit,
    compiler: Compiler = compile_alone,
) -> Reference:
    """Run the unscheduled function on random values.

    Where results are not finite for normally distributed values, positive ones are drawn.

    Raises `LowerscopeError` if it cannot be compiled or run alone. Raises `TookTooLong` if it takes
    longer than there is time.
    """
    function, parameters = sized.static, static_parameters(sized.static)
    compiled = limit.run(lambda: compiler(sized.function, target))

    def run(positive: bool, seed: int = seed) -> Reference:
        inputs = draw(function, parameters, seed, positive)
        given = [_Given(each, value, None) for each, value in zip(parameters, inputs, strict=True)]
        limit.run(lambda: compiled.call([each.guarded.argument for each in given]))
        outputs = tuple(
            None if each.parameter.role == "input" else each.guarded.tensor.clone()
            for each in given
        )
        scales = tuple(map(_largest, outputs))
        return Reference(parameters, inputs, outputs, terms_of(function), scales)

    def is_finite(reference: Reference) -> bool:
        return all(_finite(each) for each in reference.outputs)

    found, positive = run(positive=False), False
    if not is_finite(found):
        again = run(positive=True)
        found, positive = (again, True) if is_finite(again) else (found, False)
    floats = [each for each in found.outputs if each is not None and each.dtype.is_floating_point]
    fewest = min((each.numel() for each in floats if each.numel()), default=_VALUES)
    if found.terms == 1 or fewest >= _VALUES:
        return found
    more = [run(positive, seed + each) for each in range(1, math.ceil(_VALUES / fewest))]
    scales = (each.scales for each in (found, *more))
    return replace(found, scales=tuple(map(max, zip(*scales, strict=True))))


def compare(
    function: tirx.PrimFunc,
    target: tvm.target.Target,
    reference: Reference,
    limit: Limit,
    compiler: Compiler = compile_alone,
) -> Checked:
    """Compare a scheduled function with its reference, on the values of the latter.

    Integers and booleans have to be equal. A floating-point output may be off by
    ``(8 + 2 sqrt(K)) eps s`` everywhere: ``eps`` of the coarsest dtype among the floating-point
    buffers that the function is called with, ``K`` the terms of the sums that it is made of, and
    ``s`` the largest absolute value of the output, or 1 if that is next to nothing; of a few sums,
    of what they are for other inputs as well. The rounding of a sum of ``K`` terms in another order
    is of that size; a term that is left out makes some ``s / sqrt(K)``. Values that are not finite
    must be so at the same places. Before the run, each output holds other values than the
    reference, so that elements that are not written differ.

    Raises `LowerscopeError` if it cannot be compiled or run. Raises `TookTooLong` if it takes
    longer than there is time.
    """
    compiled = limit.run(lambda: compiler(function, target))
    given = [
        _Given(*each)
        for each in zip(
            reference.parameters, reference.inputs, reference.outputs, reference.scales, strict=True
        )
    ]
    limit.run(lambda: compiled.call([each.guarded.argument for each in given]))
    beside = [each.parameter.name for each in given if not each.guarded.intact]
    if beside:
        return Checked(
            verdict="differs",
            reason=_("it writes outside of {beside}", beside=_(", ").join(beside)),
        )
    coarsest = _coarsest(reference.parameters)
    found = [_judged(each, coarsest, reference.terms) for each in given]
    if not any(each.has_output for each in given):
        reason = _("no output has elements to compare")
        found.append(Checked(verdict="inconclusive", reason=reason))
    order: tuple[Verdict, ...] = ("differs", "inconclusive", "same")
    verdict = next(v for v in order if v == "same" or any(each.verdict == v for each in found))
    told = [each for each in found if each.verdict == verdict]
    measured = [each for each in told if each.max_abs_error is not None]
    worst = max(measured, key=_by_tolerance, default=None)
    return Checked(
        verdict=verdict,
        reason=_("; ").join(each.reason for each in told if each.reason),
        max_abs_error=None if worst is None else worst.max_abs_error,
        tolerance=None if worst is None else worst.tolerance,
    )


class _Given:
    """A buffer that a function is called with, and its expected content afterwards."""

    def __init__(
        self,
        parameter: Parameter,
        value: torch.Tensor | None,
        expected: torch.Tensor | None,
        scale: float = 0.0,
    ) -> None:
        if value is None:
            shape, dtype = parameter.shape or (), dtype_of_torch(parameter.dtype)
            value = _other_than(expected, torch.zeros(shape, dtype=dtype))
        elif expected is None:
            expected = value  # buffers that it only reads must not change
        self.parameter = parameter
        self.guarded = Guarded(value)
        self.expected = expected
        self.scale = scale

    @property
    def has_output(self) -> bool:
        """Return whether the buffer holds elements that the function computes."""
        return self.parameter.role != "input" and bool(self.guarded.tensor.numel())


def _other_than(expected: torch.Tensor | None, zeros: torch.Tensor) -> torch.Tensor:
    """Return values that all differ from the expected ones."""
    dtype = zeros.dtype
    if dtype.is_floating_point:
        nan = torch.full_like(zeros, math.nan)
        return nan if expected is None else torch.where(expected.isnan(), zeros, nan)
    if expected is None:
        return zeros
    return ~expected


def _judged(given: _Given, eps: float, terms: int) -> Checked:
    name, actual, expected = given.parameter.name, given.guarded.tensor, given.expected
    assert expected is not None
    if given.parameter.role == "input":
        same = torch.equal(actual.view(torch.uint8), expected.contiguous().view(torch.uint8))
        return Checked(
            verdict="same" if same else "differs",
            reason="" if same else _("it writes into {name}", name=name),
        )
    if not expected.numel():
        return Checked(verdict="same", reason=_("{name} has no elements to compare", name=name))
    if not expected.dtype.is_floating_point:
        outside = int((actual != expected).sum())
        reason = (
            _(
                "{name}: {outside:,} of {numel:,} elements differ",
                name=name,
                outside=outside,
                numel=expected.numel(),
            )
            if outside
            else ""
        )
        return Checked(verdict="differs" if outside else "same", reason=reason)
    a, b = actual.to(torch.float64), expected.to(torch.float64)
    finite = b.isfinite()
    scale = given.scale
    units = _UNITS + _UNITS_A_ROOT * math.sqrt(terms)
    tolerance = units * eps * (scale if scale > 1e-30 else 1.0)
    reason = _not_finite(name, a, b)
    gap = (a - b)[finite & a.isfinite()].abs()
    if not reason and not gap.numel():
        return Checked(
            verdict="inconclusive",
            reason=_("{name}: no element is finite in either function", name=name),
        )
    error = float(gap.max()) if gap.numel() else 0.0
    if not reason and error > tolerance:
        outside = int((gap > tolerance).sum())
        reason = _(
            "{name}: {outside:,} of {numel:,} elements differ, by up to {error}",
            name=name,
            outside=outside,
            numel=b.numel(),
            error=error_text(error),
        )
    strange = a.numel() - gap.numel()
    note = (
        _(
            "{name}: {strange:,} of {numel:,} elements are not finite in both",
            name=name,
            strange=strange,
            numel=a.numel(),
        )
        if strange
        else ""
    )
    return Checked(
        verdict="differs" if reason else "same",
        reason=reason or note,
        max_abs_error=error,
        tolerance=tolerance,
    )


def _not_finite(name: str, a: torch.Tensor, b: torch.Tensor) -> str:
    """Describe a value that is NaN or infinite, and should not be so."""
    strange = (a.isnan() & ~b.isnan(), a.isinf() & (a != b))
    for mask, word in zip(strange, ("NaN", "infinite"), strict=True):
        count = int(mask.sum())
        if count:
            return _(
                "{name}: {count:,} of {numel:,} elements are {word}, or were not written",
                name=name,
                count=count,
                numel=a.numel(),
                word=word,
            )
    missing = int((~b.isfinite() & a.isfinite()).sum())
    if missing:
        return _(
            "{name}: {missing:,} of {numel:,} elements are finite and should not be",
            name=name,
            missing=missing,
            numel=a.numel(),
        )
    return ""


def _largest(value: torch.Tensor | None) -> float:
    """Return the largest finite absolute value; 0 where there is none."""
    if value is None or not value.dtype.is_floating_point:
        return 0.0
    finite = value[value.isfinite()].to(torch.float64).abs()
    return float(finite.max()) if finite.numel() else 0.0


def _by_tolerance(checked: Checked) -> float:
    return (checked.max_abs_error or 0.0) / (checked.tolerance or 1.0)


def _finite(value: torch.Tensor | None) -> bool:
    floating = value is not None and value.dtype.is_floating_point
    return not floating or bool(value.isfinite().all())  # type: ignore[union-attr]


def _coarsest(parameters: Sequence[Parameter]) -> float:
    dtypes = [dtype_of_torch(each.dtype) for each in parameters]
    return max((torch.finfo(each).eps for each in dtypes if each.is_floating_point), default=0.0)


def terms_of(function: Any) -> int:
    """Return how many terms are summed up, over all reductions one after the other."""
    return max(sum(terms for terms, _dtype in reductions_of(function)), 1)


def reductions_of(function: Any) -> Iterator[tuple[int, str]]:
    """Yield the number of terms of each reduction, and the dtype that it accumulates in."""
    for block in collected(function.body, s_tir.SBlock):
        extents = [
            int(getattr(axis.dom.extent, "value", 1))
            for axis in block.iter_vars
            if axis.iter_type == tirx.IterVar.CommReduce
        ]
        if extents:
            yield math.prod(extents), str(block.writes[0].source.dtype) if block.writes else ""


class Limit:
    """Time limit for native code, which nothing can interrupt.

    It runs in a thread of its own, which is left running where it takes too long.

    `threads`: threads that TVM uses; its thread pools belong to the calling threads.
    """

    def __init__(self, seconds: float, threads: int, progress: Progress) -> None:
        self._until = time.monotonic() + seconds
        self._threads = threads
        self._progress = progress

    def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns.

        Raises `TookTooLong` if there is no time left. Raises `Cancelled` if the request was
        cancelled, as soon as the call is over.
        """
        self._progress.check()
        done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                use_threads(self._threads)
                done.put((call(), None))
            except BaseException as error:  # it is raised where it was requested
                done.put((None, error))

        threading.Thread(target=work, name=CHECK_THREAD, daemon=True).start()
        try:
            value, error = done.get(timeout=max(self._until - time.monotonic(), 0.01))
        except queue.Empty:
            raise TookTooLong from None
        if error is not None:
            raise error
        self._progress.check()
        return value  # type: ignore[return-value]


def check(
    function: tirx.PrimFunc,
    target: tvm.target.Target,
    reference: Callable[[Limit], Reference],
    limit: Limit,
    seconds: float,
) -> Checked:
    """Return whether a scheduled function computes the same as its reference.

    `reference`: returns the reference, computed or cached.
    """
    unscheduled = _("the unscheduled function")
    try:
        expected = reference(limit)
    except TookTooLong:
        return Checked(
            verdict="unknown",
            reason=_(
                "{unscheduled} took longer than {seconds:g} s by itself",
                unscheduled=unscheduled,
                seconds=seconds,
            ),
            running=True,
        )
    except LowerscopeError as error:
        return Checked(verdict="unknown", reason=f"{unscheduled}: {error.problem.what}")
    try:
        return compare(function, target, expected, limit)
    except TookTooLong:
        return Checked(
            verdict="unknown",
            reason=_("it took longer than {seconds:g} s", seconds=seconds),
            running=True,
        )
    except LowerscopeError as error:
        return Checked(verdict="differs", reason=error.problem.what)
