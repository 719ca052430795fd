"""Cost of caching the results of stages, in bytes."""

from __future__ import annotations

import torch
from torch.utils.dlpack import from_dlpack

from lowerscope.core.lowering.translator import LoweredModel

SMALL = 1 << 20
"""Assumed cost of a result without weights of its own, in bytes."""


def weight_bytes(model: torch.nn.Module | None) -> int:
    """Return the size of a model's tensors, in bytes; a source may have none."""
    if model is None:
        return SMALL
    tensors = [*model.parameters(), *model.buffers()]
    return SMALL + sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def copied_bytes(lowered: LoweredModel) -> int:
    """Return the size of a lowering's constants that do not share the memory of their tensors."""
    return SMALL + sum(
        value.numel() * value.element_size()
        for tensor, constant in lowered.constants
        if not _shares(tensor, value := from_dlpack(constant.value))
    )


def _shares(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.data_ptr() == value.data_ptr()
