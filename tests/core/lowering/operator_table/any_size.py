"""Forms of the operator table with a named dimension, compared with torch at several sizes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
import tvm
from torch.utils import _pytree as pytree

from lowerscope.core.build.build import build, register_library
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.lowering.translator import lower
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import TracerName
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.execution import Execution
from lowerscope.core.schedule.replay import Replays
from lowerscope.core.schedule.whole_model import WholeModel
from lowerscope.core.tracing.trace_errors import NamedInputs
from lowerscope.core.tracing.tracing import trace
from tests.core.lowering.operator_table.checking import FormCall, batches, difference
from tests.core.lowering.operator_table.entries import Drawn, Entry, compile_form, is_tensor

PIPELINES = ("cpu", "default-build", "optimise-cpu")

TRACED = 7
"""The size that forms are traced at."""

SIZES = (2, 3, 5, 12, 16)
"""Other sizes; forms are run at the smallest and the largest that torch takes."""

Axes = frozenset[tuple[int, int]]
"""Dimensions that have the name: indices of tensors, and axes."""


@dataclass
class Findings:
    """Results of forms, by the number of them and in words.

    Attributes
    ----------
    passed
        Forms that gave what torch does at every size.
    fixed
        Forms that torch itself runs at one size alone.
    refused, faults
        Each form with the reason.
    """

    passed: int = 0
    fixed: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class SizedForm:
    """A form with a named dimension.

    Attributes
    ----------
    call
        The form as a model.
    shapes
        Of its inputs, with ``n`` in them.
    inputs
        For each size, the one that is traced first.
    """

    call: FormCall
    shapes: tuple[tuple[int | str, ...], ...]
    inputs: Mapping[int, tuple[torch.Tensor, ...]]

    @property
    def named(self) -> NamedInputs:
        """The inputs as a tracer takes them."""
        return NamedInputs(self.shapes, {"n": (min(self.inputs), max(self.inputs))})


def examine(entry: Entry, pipeline: str, tracer: TracerName, findings: Findings) -> None:
    """Add what becomes of the forms of an entry on an example to `findings`."""
    (examples,) = batches(entry, 1, 1)
    for text in entry.all_forms:
        form = sized_form(entry, text, examples[0])
        if form is None:
            findings.fixed += 1
            continue
        where = form.call.describe()
        try:
            found = _compare(form, entry, pipeline, tracer)
        except LowerscopeError as error:
            what = error.problem.what
            unclear = any(sign in what for sign in _UNCLEAR)
            (findings.faults if unclear else findings.refused).append((where, what))
            continue
        except Exception as error:
            findings.faults.append((where, f"{type(error).__name__}: {str(error)[:300]}"))
            continue
        if found:
            findings.faults.append((where, found))
        else:
            findings.passed += 1


_UNCLEAR = ("Error", "object", "Internal", "Check failed", "int()")
"""Words that no message for users has."""


def sized_form(entry: Entry, text: str, drawn: Drawn) -> SizedForm | None:
    """Return a form with a named dimension; ``None`` if torch runs it at one size alone."""
    if not any(is_tensor(each) for each in drawn.values()):
        return None
    form = compile_form(text, tuple(entry.arguments), drawn)
    call = FormCall(entry, form, drawn, 0).eval()
    if "trained(" in text and call.module is not None:
        call.module.train()
    tensors = [each for each in drawn.values() if is_tensor(each)]
    for axes in _candidates(tensors):
        inputs = {TRACED: _resized(tensors, axes, TRACED)}
        if not _runs(call, inputs[TRACED]):
            continue
        for size in SIZES:
            values = _resized(tensors, axes, size)
            if _runs(call, values):
                inputs[size] = values
            elif size > TRACED:
                break
        else:
            shapes = tuple(
                tuple("n" if (i, axis) in axes else extent for axis, extent in enumerate(x.shape))
                for i, x in enumerate(tensors)
            )
            # A size that torch does not take is not in the range.
            least = max((each for each in SIZES if each not in inputs), default=1)
            return SizedForm(call, shapes, {n: x for n, x in inputs.items() if n > least})
    return None


def _candidates(tensors: Sequence[torch.Tensor]) -> Iterator[Axes]:
    """Yield the dimensions that may have one name, those that most forms take first."""
    first = next((i for i, each in enumerate(tensors) if each.dim()), None)
    if first is None:
        return
    rank = tensors[first].dim()
    for axis in dict.fromkeys((0, rank - 1, *range(rank))):
        size = tensors[first].shape[axis]
        places = [(i, j) for i, each in enumerate(tensors) for j in range(each.dim())]
        same = [(i, j) for i, j in places if tensors[i].shape[j] == size]
        from_end = axis - rank
        yield frozenset({(first, axis), *((i, j) for i, j in same if i != first)})
        yield frozenset((i, j) for i, j in same if j - tensors[i].dim() == from_end)
        yield frozenset({(first, axis), *((i, j) for i, j in same if j == axis)})
        yield frozenset({(first, axis)})
        yield frozenset(same)


def _resized(tensors: Sequence[torch.Tensor], axes: Axes, size: int) -> tuple[torch.Tensor, ...]:
    """Return tensors of another size; values are repeated, those of floats a little smaller."""
    resized = []
    for i, tensor in enumerate(tensors):
        for axis in [axis for j, axis in axes if j == i]:
            places = torch.arange(size)
            old = tensor.shape[axis]
            tensor = tensor.index_select(axis, places % old)
            if tensor.is_floating_point():
                shape = [-1 if each == axis else 1 for each in range(tensor.dim())]
                tensor = tensor * (1 - 0.05 * (places // old)).reshape(shape).to(tensor.dtype)
        resized.append(tensor.contiguous())
    return tuple(resized)


def _expected(call: FormCall, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Statistics of a module in training mode change at each call.
        result = copy.deepcopy(call)(*(each.clone() for each in inputs))
    return [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(result) if leaf is not None]


def _runs(call: FormCall, inputs: Sequence[torch.Tensor]) -> bool:
    try:
        return bool(_expected(call, inputs))
    except Exception:
        return False


def _compare(form: SizedForm, entry: Entry, pipeline: str, tracer: TracerName) -> str:
    """Return how a form that is compiled once differs from torch at some size.

    Raises
    ------
    LowerscopeError
        If it is refused.
    """
    first = form.inputs[TRACED]
    traced = trace(form.call, first, tracer, named=form.named)
    specs = [
        (f"input_{i}", shape, str(value.dtype).removeprefix("torch."))
        for i, (shape, value) in enumerate(zip(form.shapes, first, strict=True))
    ]
    lowered = lower(traced, specs, "high-level", ranges=form.named.ranges)
    for note in lowered.notes:
        if any(sign in note.text for sign in _UNCLEAR):
            return f"unclear note: {note.text.partition(';')[0]}"
    target = tvm.target.Target({"kind": "llvm", "opt-level": 0})
    rules = WholeModel((), Replays(), target, lambda: None).apply_rules
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = transform(lowered.module, find_pipeline(pipeline).steps, target=target, rules=rules)
        made.check()
        executable = build(made.module, target).executable
    register_library(lowered.library)
    for size, inputs in sorted(form.inputs.items()):
        expected = _expected(form.call, inputs)
        actual = Execution(executable, "main", inputs).outputs()
        if len(actual) != len(expected):
            return f"{len(actual)} outputs, not {len(expected)}"
        for ours, theirs in zip(actual, expected, strict=True):
            found = difference(ours, theirs, entry)
            if found:
                return f"another result at n = {size}: {found}"
    return ""
