"""The model compiled by ``torch.compile``, if supported."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lowerscope.core.calling import Calling
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.running import Reference

_UNHELPFUL = "Set TORCHDYNAMO_VERBOSE"
"""Prefix of dynamo's own advice, which is the last line of its errors."""


@dataclass(frozen=True)
class CompiledTorch:
    """The compiled model and its compile time, or the reason why there is none."""

    reference: Reference | None
    milliseconds: float | None = None
    problem: str = ""


class _Compiled(Reference):
    """A copy of the model that is compiled on its first call."""

    def __init__(
        self,
        model: torch.nn.Module,
        inputs: Sequence[torch.Tensor],
        seed: int,
        calling: Calling | None,
    ) -> None:
        super().__init__(model, inputs, seed, calling, "torch.compile")
        self._model = torch.compile(self._model, dynamic=False)


def compile_torch(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], seed: int, calling: Calling | None
) -> CompiledTorch:
    """Compile a copy of the model for these inputs, and call it once."""
    from torch._inductor import config

    # Each call compiles another copy: after some of them, dynamo would silently not compile.
    torch._dynamo.reset()
    start = time.perf_counter()
    # The process pool would outlive a worker that is killed.
    with config.patch(compile_threads=1), warnings.catch_warnings():
        # Torch's own parts use deprecated ones.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            reference = _Compiled(model, inputs, seed, calling)
            reference.call()
        except LowerscopeError as error:
            return CompiledTorch(None, problem=_reason(error))
    return CompiledTorch(reference, (time.perf_counter() - start) * 1000)


def _reason(error: LowerscopeError) -> str:
    """Return why the model could not be compiled, in one line."""
    cause: BaseException = error.__cause__ or error
    # Dynamo wraps the exceptions of a backend.
    cause = getattr(cause, "inner_exception", None) or cause
    if type(cause).__name__ == "InvalidCxxCompiler":
        return "it needs a C++ compiler, and there is none (g++, or what CXX names)"
    lines = [each.strip() for each in str(cause).splitlines() if each.strip()]
    told = [each for each in lines if not each.startswith(_UNHELPFUL)]
    return f"{type(cause).__name__}: {told[0]}" if told else type(cause).__name__
