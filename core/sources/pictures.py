"""Display of image inputs."""

from __future__ import annotations

import numpy as np
import torch

from lowerscope.core.model.snapshot import Picture

SIDE = 8
"""Smallest side of a picture, in pixels."""


def picture_of(value: torch.Tensor) -> Picture | None:
    """Return `value` as a picture, or ``None`` if it does not look like one.

    A picture is the first of a batch of NCHW with 1 or 3 channels, or 28×28 flattened to (1, 784).
    Values from 0 to 1 become 0 to 255, bytes stay as they are, and other
    values are spread from their least to their greatest.
    """
    shape = _shape_of(value)
    if shape is None or value.dtype.is_complex:
        return None
    values = value[0].detach().cpu()
    if value.dtype == torch.uint8:
        pixels = values.numpy()
    else:
        scaled = values.double().numpy()
        # False for NaN as well.
        if not 0 <= scaled.min() <= scaled.max() <= 1:
            scaled = _spread(scaled)
        pixels = np.rint(scaled * 255).astype(np.uint8)
    channels, height, width = shape
    rows = pixels.reshape(shape).transpose(1, 2, 0)
    return Picture(width=width, height=height, channels=channels, pixels=rows.tobytes())


def _spread(values: np.ndarray) -> np.ndarray:
    """Return values scaled to 0 to 1; NaN and infinities count as 0."""
    finite: np.ndarray = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    least, most = float(finite.min()), float(finite.max())
    if least < 0 or most > 1:
        finite = (finite - least) / ((most - least) or 1)
    return finite


def _shape_of(value: torch.Tensor) -> tuple[int, int, int] | None:
    """Return channels, height and width of the picture in `value`."""
    match tuple(value.shape):
        case (1, 784):
            return 1, 28, 28
        case (count, 1 | 3 as channels, height, width) if count and min(height, width) >= SIDE:
            return channels, height, width
        case _:
            return None
