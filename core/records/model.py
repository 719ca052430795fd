"""Records of the opened model: its modules, its inputs, its parameters and their values.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec

Extent = int | str
"""An extent of a shape; a name or an expression where it is symbolic."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """An 8-bit grey (``channels`` 1) or RGB (3) picture, row by row without padding."""

    width: int
    height: int
    channels: int
    pixels: bytes


class InputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One input of the model as it is used: ``origin`` says where its values come from."""

    name: str
    shape: tuple[Extent, ...]
    dtype: str
    origin: str
    picture: Picture | None = None


class ParameterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter or buffer, or a constant of the Relax module; ``size`` in bytes.

    ``kind`` is ``parameter``, ``buffer`` or ``constant``; ``aliases`` are other names in the model
    for the same tensor.
    """

    id: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    kind: str = "parameter"
    aliases: tuple[str, ...] = ()


class ValuesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the values of a tensor.

    Attributes
    ----------
    size, count
        In bytes, and in elements.
    low, high, mean, deviation
        Of the finite values; ``None`` where there are none.
    nans, infinities, zeros
        Number of each.
    edges, counts
        A histogram of the finite values: one edge more than counts.
    first
        The first values, as text.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    count: int
    low: float | None
    high: float | None
    mean: float | None
    deviation: float | None
    nans: int
    infinities: int
    zeros: int
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    first: tuple[str, ...]


class ModuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One ``nn.Module`` of the model's tree; ``path`` is empty for the root.

    ``parameters`` counts the scalars in the module and below it.
    """

    id: str
    path: str
    kind: str
    parameters: int


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The opened model. ``kind`` is ``"torch"``, or ``"relax"`` for a source without torch."""

    title: str
    path: str
    kind: str
    description: str
    inputs: tuple[InputRecord, ...]
    classes: tuple[str, ...] = ()
    modules: tuple[ModuleRecord, ...] = ()
    parameters: tuple[ParameterRecord, ...] = ()
