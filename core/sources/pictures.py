"""Showing an input that is a picture."""

from __future__ import annotations

import torch

from lowerscope.core.model_records import Picture

SIDE = 8
"""Fewer pixels than this on a side are not taken for a picture."""


def picture_of(value: torch.Tensor) -> Picture | None:
    """Return `value` as a picture, or ``None`` if it does not look like one.

    A picture is the first of a batch of NCHW with 1 or 3 channels, or 28×28 flattened to (1, 784).
    Values from 0 to 1 become 0 to 255, bytes stay as they are, and other
    values are spread from their least to their greatest.
    """
    planes = _planes(value)
    if planes is None or planes.dtype.is_complex:
        return None
    channels, height, width = planes.shape
    if planes.dtype == torch.uint8:
        pixels = planes
    else:
        scaled = planes.detach().double().nan_to_num(0.0, 0.0, 0.0)
        least, most = float(scaled.min()), float(scaled.max())
        if least < 0 or most > 1:
            scaled = (scaled - least) / ((most - least) or 1)
        pixels = (scaled * 255).round().clamp(0, 255).to(torch.uint8)
    rows = pixels.permute(1, 2, 0).contiguous().cpu()
    return Picture(width=width, height=height, channels=channels, pixels=rows.numpy().tobytes())


def _planes(value: torch.Tensor) -> torch.Tensor | None:
    """Return the picture in `value` as CHW."""
    match tuple(value.shape):
        case (1, 784):
            return value.reshape(1, 28, 28)
        case (count, 1 | 3, height, width) if count >= 1 and min(height, width) >= SIDE:
            return value[0]
        case _:
            return None
