"""A float64 run of a torch model, to tell rounding from other differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from lowerscope.core.calling import Calling
from lowerscope.core.errors import is_interrupt
from lowerscope.core.execution.running import Reference
from lowerscope.core.nesting import mapped

MOST_BYTES = 2 << 30
"""Limit on the parameters of a model run in float64, in bytes."""

_WIDE = {
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}

_CASTS: Mapping[Any, torch.dtype] = {
    torch.Tensor.float: torch.float32,
    torch.Tensor.half: torch.float16,
    torch.Tensor.bfloat16: torch.bfloat16,
}


@dataclass(frozen=True)
class PreciseRun:
    """The outputs in float64, and the coarsest of the dtypes that the model itself computes in."""

    outputs: tuple[torch.Tensor, ...]
    coarsest: torch.dtype


def precise_run(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], seed: int, calling: Calling
) -> PreciseRun | None:
    """Run a model in float64 instead of each narrower dtype; return ``None`` if that fails."""
    parts = dict(itertools.chain(model.named_parameters(), model.named_buffers()))
    if sum(each.numel() for each in parts.values()) * torch.float64.itemsize > MOST_BYTES:
        return None
    widened = _Widened([*parts.values(), *inputs])
    wide = _Wide(model, {name: _wide(each) for name, each in parts.items()})
    usual = torch.get_default_dtype()
    try:
        reference = Reference(wide, [_wide(each) for each in inputs], seed, calling)
        torch.set_default_dtype(torch.float64)
        with widened:
            outputs = reference.outputs()
    except BaseException as error:
        if is_interrupt(error):
            raise
        # The model requires its own dtypes: its rounding is unknown.
        return None
    finally:
        torch.set_default_dtype(usual)
    return PreciseRun(outputs, widened.coarsest)


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.detach().to(_WIDE.get(value.dtype, value.dtype), copy=True)


class _Wide(torch.nn.Module):
    """A model with replaced parameters and buffers."""

    def __init__(self, model: torch.nn.Module, parts: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._model, self._parts = model, dict(parts)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return functional_call(self._model, self._parts, args, kwargs)


class _Widened(TorchFunctionMode):
    """Mode that computes in float64 instead of narrower dtypes, and records the coarsest."""

    def __init__(self, values: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.coarsest = torch.float64
        for each in values:
            self._note(each.dtype)

    def _note(self, dtype: torch.dtype) -> None:
        if dtype in _WIDE and torch.finfo(dtype).eps > torch.finfo(self.coarsest).eps:
            self.coarsest = dtype

    def _dtype(self, value: Any) -> Any:
        if not isinstance(value, torch.dtype):
            return value
        self._note(value)
        return _WIDE.get(value, value)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.is_autocast_enabled("cpu"):
            # Autocast casts float32 only, and leaves float64 unchanged.
            self._note(torch.get_autocast_dtype("cpu"))
        if func in _CASTS:
            self._note(_CASTS[func])
            return args[0].to(_WIDE.get(args[0].dtype, torch.float64))
        kwargs = {name: mapped(each, self._dtype) for name, each in (kwargs or {}).items()}
        return func(*(mapped(each, self._dtype) for each in args), **kwargs)
