"""Observation of copies at the boundary from the virtual machine to library functions.

A tensor is passed through DLPack. Whether torch works on that memory or on a copy is observed: in a
separate run, the torch operators that access the memory are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import torch
import tvm
from torch.utils._python_dispatch import TorchDispatchMode

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.running import Execution
from lowerscope.core.records.run import CallRun, Hand, HandOver
from lowerscope.core.running.calls import BoundCall, CallsOf
from lowerscope.core.stages import Stages

_COPIES = frozenset({"clone", "copy_", "copy", "_to_copy", "lift_fresh_copy"})
"""Torch operators that only copy."""


def with_hand_overs(
    stages: Stages, inputs: Sequence[torch.Tensor], runs: tuple[CallRun, ...]
) -> tuple[CallRun, ...]:
    """Run once more if library functions were called, and add the observed copies of their tensors.

    Parameters
    ----------
    runs
        The calls of a run, as they were recorded.
    """
    if not any(each.entity.startswith("ext:") for each in runs):
        return runs
    calls = CallsOf(stages.recorded, "main").calls
    outside = [index for index, each in enumerate(runs) if each.entity.startswith("ext:")]
    execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
    watch = _Watch([calls[index] for index in outside])
    execution.watch(watch.tell)
    try:
        execution.call()
    except LowerscopeError:
        # Every other run succeeded; omit what was not observed.
        return runs
    finally:
        watch.end()
        execution.watch(None)
    found = dict(zip(outside, watch.found, strict=False))
    return tuple(
        msgspec.structs.replace(each, hand_over=found[index]) if index in found else each
        for index, each in enumerate(runs)
    )


class _Watch:
    """Observer of the library calls in one run, in sequence."""

    def __init__(self, calls: Sequence[BoundCall]) -> None:
        self.found: list[HandOver] = []
        self._calls = calls
        self._names = frozenset(each.event for each in calls)
        self._depth = 0
        self._touched: _Touched | None = None

    def tell(self, _function: Any, name: str, before: bool, returned: Any, *args: Any) -> int:
        self._depth += 1 if before else -1
        if self._depth != (1 if before else 0) or name not in self._names:
            return 0
        place = len(self.found)
        if place >= len(self._calls) or self._calls[place].event != name:
            return 0
        if before:
            tensors = [each for each in args if isinstance(each, tvm.runtime.Tensor)]
            self._touched = _Touched(tensors)
            self._touched.__enter__()  # type: ignore[no-untyped-call]
        elif self._touched is not None:
            touched = self._touched
            self.end()
            self.found.append(touched.hand_over(self._calls[place], returned))
        return 0

    def end(self) -> None:
        """Stop observing."""
        if self._touched is not None:
            touched, self._touched = self._touched, None
            touched.__exit__(None, None, None)  # type: ignore[no-untyped-call]


class _Touched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode that records the torch operators that read and write the memory of some TVM tensors."""

    def __init__(self, tensors: Sequence[tvm.runtime.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tensors = tensors
        self._read: dict[int, list[str]] = {}
        self._written: dict[int, list[str]] = {}
        self._made: dict[int, str] = {}
        self._bytes = [_size(each) for each in tensors]
        self._starts = [each.data_ptr() for each in tensors]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            # A view is another name; only its uses count.
            self._note(func, args, kwargs or {}, result)
        return result

    def _note(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        name = func.overloadpacket.__name__
        read: list[int] = []
        written: list[int] = []
        for place, argument in enumerate(func._schema.arguments):
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            writes = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in _tensors(value):
                (written if writes else read).extend(self._places(tensor.data_ptr()))
        for index in written:
            self._written.setdefault(index, []).append(name)
        for index in read:
            # A copy within TVM's memory is a use of it.
            self._read.setdefault(index, []).append("" if written else name)
        for tensor in _tensors(result):
            self._made[tensor.data_ptr()] = name

    def _places(self, address: int) -> Iterator[int]:
        for index, (start, size) in enumerate(zip(self._starts, self._bytes, strict=True)):
            if start <= address < start + size:
                yield index

    def hand_over(self, call: BoundCall, returned: Any) -> HandOver:
        """Return how the tensors of a call were passed."""
        count = len(self._tensors)
        first = count - call.values if call.gives == "written" else count
        hands = [self._hand(index, written=index >= first) for index in range(count)]
        sizes = list(self._bytes)
        if call.gives == "returned":
            results = [returned] if isinstance(returned, tvm.runtime.Tensor) else [*returned]
            made = [self._made.get(each.data_ptr(), "") for each in results]
            hands += [_hand_of([each] if each else []) for each in made]
            sizes += [_size(each) for each in results]
        return HandOver(
            inputs=tuple(hands[:first]),
            results=tuple(hands[first:]),
            copied_bytes=sum(
                size for hand, size in zip(hands, sizes, strict=True) if hand == "copied"
            ),
        )

    def _hand(self, index: int, *, written: bool) -> Hand:
        if written:
            # The last write counts: a result may be cleared, or accumulated, before.
            return _hand_of(self._written.get(index, [])[-1:])
        return _hand_of(self._read.get(index, self._written.get(index, [])))


def _hand_of(operators: Sequence[str]) -> Hand:
    if not operators:
        return "unseen"
    return "copied" if all(each in _COPIES for each in operators) else "in place"


def _size(tensor: tvm.runtime.Tensor) -> int:
    return int(tensor.numel()) * int(tensor.dtype.itemsize)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
