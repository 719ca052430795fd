"""Conversion of torch's parameters to Relax constants: each tensor once, uncopied if possible."""

from __future__ import annotations

from typing import Any

import torch
import tvm
from tvm import ir, relax

from lowerscope.core.lowering.relax_values import Value

_ALIGNMENT = 64


class Constants:
    """The constants of one module: equal tensors share one object.

    Two tensors are equal if they are one object under two names, or two objects over the same
    elements: tied weights.

    The constants share the memory of the model's parameters if TVM supports their layout; they are
    values, and nothing writes to either.
    """

    def __init__(self) -> None:
        self._made: dict[Any, tuple[torch.Tensor, Value]] = {}

    @property
    def made(self) -> tuple[tuple[torch.Tensor, Value], ...]:
        """Each tensor with its constant."""
        return tuple(self._made.values())

    def constant(self, tensor: torch.Tensor) -> Value:
        """Return `tensor` as a Relax constant of the same shape and dtype."""
        key = memory_of(tensor)
        kept = self._made.get(key)
        if kept is None:
            kept = (tensor, relax.const(_to_tvm(tensor)))
            self._made[key] = kept
        constant = kept[1]
        assert isinstance(constant, ir.GenericConst)
        return constant


def memory_of(tensor: torch.Tensor) -> Any:
    """Return a key that is equal for tensors over the same elements, while one of them is alive."""
    if tensor.layout is not torch.strided or tensor.is_quantized or not tensor.numel():
        return id(tensor)
    signs = (tensor.is_conj(), tensor.is_neg())
    address = tensor.data_ptr()
    place = (address, tensor.dtype, tensor.shape, tensor.stride())
    return (*place, *signs) if address else id(tensor)


def _to_tvm(tensor: torch.Tensor) -> tvm.runtime.Tensor:
    data = tensor.detach()
    if data.layout != torch.strided or data.is_quantized:
        data = data.to_dense() if data.layout != torch.strided else data.dequantize()
    data = data.cpu().resolve_conj().resolve_neg().contiguous()
    if not data.numel():
        # TVM may interpret its strides as gaps between elements.
        return tvm.runtime.empty(tuple(data.shape), str(data.dtype).removeprefix("torch."))
    if data.data_ptr() % _ALIGNMENT:
        # A fresh allocation is aligned as TVM requires; a view into a larger one need not be.
        data = data.clone(memory_format=torch.contiguous_format)
    return tvm.runtime.from_dlpack(data)
