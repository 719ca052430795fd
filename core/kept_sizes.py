"""What it costs to keep the results of stages, in bytes."""

from __future__ import annotations

import torch
from torch.utils.dlpack import from_dlpack

from lowerscope.core.lowering.translator import LoweredModel

SMALL = 1 << 20
"""What a result without weights of its own is taken to cost, in bytes."""


def weight_bytes(model: torch.nn.Module | None) -> int:
    """Return what the tensors of a model cost; a source may have none."""
    if model is None:
        return SMALL
    tensors = [*model.parameters(), *model.buffers()]
    return SMALL + sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def copied_bytes(lowered: LoweredModel) -> int:
    """Return what a lowering costs: constants that do not share the memory of their tensors."""
    return SMALL + sum(
        value.numel() * value.element_size()
        for tensor, constant in lowered.constants
        if not _shares(tensor, value := from_dlpack(constant.value))
    )


def _shares(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.data_ptr() == value.data_ptr()
