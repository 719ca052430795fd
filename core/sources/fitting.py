"""Conversion of an array, or one sample of many, to the shape and dtype of an input."""

from __future__ import annotations

import math

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.input_option import FLOATS, INTEGERS, MANY_SAMPLES

Shape = tuple[int, ...]

LABELS = ("y", "labels", "label", "targets", "target")
"""Names of the arrays of an archive that hold labels, not inputs."""


def sample_of(value: torch.Tensor, item: int, where: str) -> torch.Tensor:
    """Return a sample of the first axis.

    Raises
    ------
    LowerscopeError
        If the index is out of range.
    """
    count = value.shape[0] if value.ndim else 0
    if not 0 <= item < count:
        raise LowerscopeError(
            f"there is no sample {item}", where=where, todo=f"It has {count}, counted from 0"
        )
    return value[item]


def fitted(value: torch.Tensor, shape: Shape | None, dtype: str | None, where: str) -> torch.Tensor:
    """Return `value` reshaped to as many elements, in a dtype that represents its values.

    Bytes become floats from 0 to 1, as in a picture; floats become floats of another width, and
    integers become integers that represent them. ``None`` leaves shape or dtype unchanged.

    Raises
    ------
    LowerscopeError
        If it does not fit.
    """
    if shape is not None and tuple(value.shape) != shape:
        if value.numel() != math.prod(shape):
            raise _misfit(value, shape, where)
        value = value.reshape(shape)
    kind = str(value.dtype).removeprefix("torch.")
    if dtype is None or kind == dtype:
        return value
    wanted = getattr(torch, dtype)
    if dtype in FLOATS and kind == "uint8":
        return (value.to(torch.float32) / 255).to(wanted)
    if dtype in FLOATS and kind in FLOATS:
        return value.to(wanted)
    if dtype in INTEGERS and kind in INTEGERS:
        converted = value.to(wanted)
        if torch.equal(converted.to(torch.int64), value.to(torch.int64)):
            return converted
    raise LowerscopeError(
        f"its values are of {kind}, and the input takes {dtype}",
        where=where,
        todo=f"Save them as {dtype}" + (", or bytes of a picture" if dtype in FLOATS else ""),
    )


def _misfit(value: torch.Tensor, shape: Shape, where: str) -> LowerscopeError:
    size = math.prod(shape)
    samples = value.shape[0] if value.ndim else 0
    what = f"its shape {tuple(value.shape)} does not fit the input's, {shape}"
    if samples > 1 and value.numel() == samples * size:
        return LowerscopeError(
            f"it holds {samples} samples, and the input takes one",
            where=where,
            todo="Run it as a set of inputs, or name a sample, the first with #0",
            code=MANY_SAMPLES,
        )
    return LowerscopeError(what, where=where, todo=f"Give {size} values")
