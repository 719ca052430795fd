"""One TensorIR function, compiled by itself and called with tensors of torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import tvm
from tvm import tirx

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.building import compile_function

_ENTRY = "alone"
_GUARD = 4096
"""Bytes on either side of a guarded buffer."""
_MARK = 0xA5


@dataclass(frozen=True)
class Compiled:
    """A compiled function, with the time of its compilation in milliseconds."""

    module: Any
    milliseconds: float

    def call(self, arguments: Sequence[Any]) -> None:
        """Call it once.

        Raises
        ------
        LowerscopeError
            If it fails.
        """
        try:
            self.module[_ENTRY](*arguments)
        except TVM_ERRORS as error:
            raise LowerscopeError(
                f"the function failed: {last_line(error)}", where="schedule", details=str(error)
            ) from error

    def seconds(self, arguments: Sequence[Any], number: int) -> float:
        """Return the mean time of `number` calls one after the other, after one more."""
        evaluator = self.module.time_evaluator(_ENTRY, tvm.cpu(), number=number, repeat=1)
        return float(evaluator(*arguments).mean)


def compile_alone(function: tirx.PrimFunc, target: tvm.target.Target) -> Compiled:
    """Compile a function by itself.

    Raises
    ------
    LowerscopeError
        If TVM fails.
    """
    start = time.perf_counter()
    try:
        built = compile_function(_ENTRY, function, target).jit()
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"TVM could not compile the function: {last_line(error)}",
            where="schedule",
            todo="Take back the last step; the log has TVM's whole message",
            details=str(error),
        ) from error
    return Compiled(built, (time.perf_counter() - start) * 1000)


class Guarded:
    """A tensor with marked bytes on both sides, which show out-of-bounds writes.

    Attributes
    ----------
    tensor
        For torch.
    argument
        The same memory for TVM.
    """

    def __init__(self, value: torch.Tensor) -> None:
        size = value.numel() * value.element_size()
        self._memory = torch.full((size + 2 * _GUARD + 64,), _MARK, dtype=torch.uint8)
        # TVM needs aligned tensors, and torch does not guarantee alignment.
        self._begin = _GUARD + -self._memory.data_ptr() % 64
        self._end = self._begin + size
        self.tensor = self._memory[self._begin : self._end].view(value.dtype).view(value.shape)
        self.tensor.copy_(value)
        self.argument = tvm.runtime.from_dlpack(self.tensor)

    @property
    def intact(self) -> bool:
        """Return whether nothing was written beside the tensor."""
        beside = (self._memory[: self._begin], self._memory[self._end :])
        return all(bool((each == _MARK).all()) for each in beside)
