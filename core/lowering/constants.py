"""From torch's parameters to Relax constants: each tensor once, and uncopied where possible."""

from __future__ import annotations

import torch
import tvm
from tvm import ir, relax

from lowerscope.core.lowering.relax_values import Value

_ALIGNMENT = 64


class Constants:
    """The constants of one module: the same tensor is the same object wherever it is used.

    The constants share the memory of the model's parameters where TVM can read it as it lies;
    they are values, and nothing writes to either.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[torch.Tensor, Value]] = {}

    def constant(self, tensor: torch.Tensor) -> Value:
        """Return `tensor` as a Relax constant of the same shape and dtype."""
        kept = self._made.get(id(tensor))
        if kept is None:
            kept = (tensor, relax.const(_to_tvm(tensor)))
            self._made[id(tensor)] = kept
        constant = kept[1]
        assert isinstance(constant, ir.GenericConst)
        return constant


def _to_tvm(tensor: torch.Tensor) -> tvm.runtime.Tensor:
    data = tensor.detach()
    if data.layout != torch.strided or data.is_quantized:
        data = data.to_dense() if data.layout != torch.strided else data.dequantize()
    data = data.cpu().resolve_conj().resolve_neg().contiguous()
    if data.numel() == 0 or data.data_ptr() % _ALIGNMENT:
        # A fresh allocation is aligned as TVM wants it; a view into a larger one need not be.
        data = data.clone(memory_format=torch.contiguous_format)
    return tvm.runtime.from_dlpack(data)
