"""Runs with guarded memory for each call, to find out-of-bounds writes.

They are slow, and made only after a crash: memory that one call has corrupted is often read by
another one, much later.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import tvm

from lowerscope.core.build.targets import use_threads
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import GuardQuery, answers
from lowerscope.core.model.run_records import GuardedRun, OutOfBoundsWrite
from lowerscope.core.run.calls import BoundCall
from lowerscope.core.run.execution import Execution
from lowerscope.core.run.implementations import check_callable
from lowerscope.core.run.runs import Follower, NamedCalls, calls_told, named_calls
from lowerscope.core.sandbox.running_call import NO_CALL, place_of
from lowerscope.core.stages import Pipeline

PATTERN = 0xA5
"""Fill byte around a tensor."""

NO_ACCESS = 0
"""Protection flag of ``mprotect``."""

Side = Literal["before", "behind", "inside"]


@dataclass(frozen=True)
class Breach:
    """Illegally changed bytes of a call."""

    argument: int
    written: bool  # whether that is an output of the call, and not a read-only argument
    side: Side  # ``"before"`` or ``"behind"`` the tensor, or ``"inside"`` a read-only one
    count: int
    # Bytes between the tensor and the nearest of them; inside, of the first from its begin.
    distance: int


class _Pages:
    """Memory for a tensor between pages without access::

        | no access | pattern, a page or more | tensor | pattern | no access |

    A write close to the tensor changes the pattern, and is found after the call. A write far from
    it hits pages without access, which kills the process in that very call.
    """

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        # Patterns as large as the tensor, within bounds: an extra row is the usual mistake.
        around = page * max(1, min(16, -(-size // page)))
        self.size = size
        self._start = page + around
        room = around + size + around
        self._length = page + -(-room // page) * page + page
        self.map = mmap.mmap(-1, self._length)
        self._bytes = torch.frombuffer(self.map, dtype=torch.uint8)
        inner = self._bytes[page : self._length - page]
        inner.fill_(PATTERN)
        self.before = self._bytes[page : self._start]
        self.tensor = self._bytes[self._start : self._start + size]
        self.behind = self._bytes[self._start + size : self._length - page]
        address = self._bytes.data_ptr()
        _protect(address, page)
        _protect(address + self._length - page, page)


def _protect(address: int, length: int) -> None:
    """Remove all access to a page, if the system supports it."""
    if sys.platform == "win32":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), NO_ACCESS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class _Guarded:
    """A copy of a tensor of TVM's in guarded pages, passed to a call in its place."""

    def __init__(self, original: tvm.runtime.Tensor) -> None:
        self._original = torch.utils.dlpack.from_dlpack(original)
        plain = self._original.contiguous()
        self._pages = _Pages(plain.numel() * plain.element_size())
        self._copy = self._pages.tensor.view(plain.dtype).view(plain.shape)
        self._copy.copy_(plain)
        self._was = self._pages.tensor.clone()
        self.value = tvm.runtime.from_dlpack(self._copy)

    def breaches(self, argument: int, written: bool) -> list[Breach]:
        """Return the changes around the tensor, and inside it if it is read-only."""
        pages = self._pages
        ahead = (pages.before != PATTERN).nonzero().flatten()
        after = (pages.behind != PATTERN).nonzero().flatten()
        found = []
        if len(ahead):
            distance = len(pages.before) - 1 - int(ahead[-1])
            found.append(Breach(argument, written, "before", len(ahead), distance))
        if len(after):
            found.append(Breach(argument, written, "behind", len(after), int(after[0])))
        if not written:
            changed = (pages.tensor != self._was).nonzero().flatten()
            if len(changed):
                found.append(Breach(argument, written, "inside", len(changed), int(changed[0])))
        return found

    def give_back(self) -> None:
        """Copy the results back to the original tensor."""
        self._original.copy_(self._copy)


def call_guarded(
    function: Callable[..., Any], arguments: Sequence[Any], written: Sequence[int]
) -> tuple[Breach, ...]:
    """Call a function with its tensors in guarded pages, and return its illegal writes.

    Raises `OSError` if the system cannot allocate the pages.

    Args:
        written: The arguments that it writes. The others must stay unchanged.
    """
    guarded: Mapping[int, _Guarded] = {
        index: _Guarded(value)
        for index, value in enumerate(arguments)
        if isinstance(value, tvm.runtime.Tensor) and _size(value)
    }
    function(
        *(
            guarded[index].value if index in guarded else value
            for index, value in enumerate(arguments)
        )
    )
    found = []
    for index, each in guarded.items():
        found += each.breaches(index, index in written)
        if index in written:
            each.give_back()
    return tuple(found)


def _size(value: tvm.runtime.Tensor) -> int:
    size = 1
    for extent in value.shape:
        size *= int(extent)
    return size


SKIP_RUN = 1
"""Return value of an instrument that has made the call itself (``VMInstrumentReturnKind``)."""


@answers(GuardQuery)
def guarded_run(query: GuardQuery, pipeline: Pipeline, progress: Progress) -> GuardedRun:
    """Build and run once on the traced inputs, with guarded memory for each call.

    Raises a `LowerscopeError` if a function is missing, or the build fails.
    """
    use_threads(query.recipe.threads)
    stages = pipeline.stages(query.recipe, progress)
    stages.check_runs_here("memory is guarded")
    check_callable(stages)
    executable = stages.built.executable
    named = named_calls(stages)
    inputs = tuple(each.value for each in stages.loaded.inputs)
    with stages.running(), calls_told(named, progress):
        progress.report("Running with guarded memory")
        execution = Execution(executable, "main", stages.arguments(inputs))
        guard = _Guard(named, progress)
        start = time.perf_counter()
        execution.watch(guard.tell)
        progress.at_call(0, False)
        failure = ""
        try:
            execution.call()
        except LowerscopeError as error:
            failure = guard.failure or error.problem.what
            place = place_of(guard.follower.index, guard.follower.inside, named.names).text
            failure = f"{failure}, {place}" if place else failure
        finally:
            execution.watch(None)
            progress.at_call(NO_CALL, False)
    return GuardedRun(
        calls=guard.made,
        trespasses=tuple(guard.found),
        until=named.names[: guard.found[0].call + 1] if guard.found else (),
        milliseconds=(time.perf_counter() - start) * 1000,
        failure=failure,
    )


class _Guard:
    """Instrument that makes the calls of a run instead of the virtual machine."""

    def __init__(self, named: NamedCalls, progress: Progress) -> None:
        self.follower = Follower(named.calls, progress)
        self.found: list[OutOfBoundsWrite] = []
        self.made = 0
        self.failure = ""
        self._named = named
        self._events = {call.event: call for call in reversed(named.calls)}

    def tell(self, function: Any, name: str, before: bool, _returned: Any, *args: Any) -> int:
        """Make a call that writes its outputs; leave others to the virtual machine."""
        call = self._call(name)
        if call is None or call.gives != "written":
            return self.follower.tell(function, name, before)
        self.follower.move(name, True)
        index = self.follower.index
        end = len(args) - call.sizes_last
        written = range(end - call.values, end)
        try:
            breaches = call_guarded(function, args, written)
        except (*TVM_ERRORS, MemoryError, OSError) as error:
            self.failure = f"the run failed: {last_line(error)}"
            raise
        self.made += 1
        self.found += self._trespasses(index, breaches, args, written)
        self.follower.move(name, False)
        return SKIP_RUN

    def _call(self, name: str) -> BoundCall | None:
        here, calls = self.follower.index, self._named.calls
        if here < len(calls) and calls[here].event == name:
            return calls[here]
        return self._events.get(name)

    def _trespasses(
        self, index: int, breaches: Sequence[Breach], args: Sequence[Any], written: range
    ) -> Iterator[OutOfBoundsWrite]:
        for each in breaches:
            yield OutOfBoundsWrite(
                call=index,
                name=self._named.names[index],
                text=_text(each, args, written),
                nodes=self._named.nodes[index],
            )


def _text(breach: Breach, args: Sequence[Any], written: range) -> str:
    """Describe the illegal write of a call."""
    value = args[breach.argument]
    count = "1 byte" if breach.count == 1 else f"{breach.count} bytes"
    shape = tuple(map(int, value.shape))
    if breach.written:
        number = f" {breach.argument - written.start}" if len(written) > 1 else ""
        what = f"its output{number}"
    else:
        tensors = [each for each, arg in enumerate(args) if isinstance(arg, tvm.runtime.Tensor)]
        what = f"its input {tensors.index(breach.argument)}"
    tensor = f"{what}, {shape} {value.dtype}"
    if breach.side == "inside":
        return f"changed {count} of {tensor}, which it may only read"
    gap = f", {breach.distance} bytes away" if breach.distance else ""
    return f"wrote {count} {breach.side} {tensor}{gap}"
