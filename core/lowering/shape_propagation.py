"""Shapes of torch's results for extents that are known only when the model runs.

Importing it takes seconds: it loads sympy and parts of torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from tvm_ffi import structural_equal

from lowerscope.core.lowering.values import LARGEST_OF_DATA
from lowerscope.core.sources.opened_model import without_logs
from lowerscope.core.sources.symbolic_extents import SymbolicMode, new_extent

Run = Callable[[list[torch.Tensor], tuple[Any, ...]], Any]
Shapes = list[list[Any]]

_HINTS = (107, 127, 149, 173, 197, 223, 251, 277)
"""Sizes in place of the extents: distinct, and such that no operator treats them specially."""


def shapes_of(
    run: Run, tensors: Sequence[tuple[Sequence[Any], torch.dtype]], sizes: Sequence[Any]
) -> Shapes:
    """Return the shapes of the tensors that `run` gives; none if torch cannot tell.

    An extent is a number, one of those that are given, or ``None`` for another.

    `tensors`: the shapes and dtypes of the tensors that it is given, with extents of Relax.
    `sizes`: the sizes that it is given.
    """
    given = [*itertools.chain.from_iterable(shape for shape, _dtype in tensors), *sizes]
    unknown = _distinct(each for each in given if not isinstance(each, int))
    if len(unknown) > len(_HINTS):
        return []
    environment = ShapeEnv()
    mode = SymbolicMode(shape_env=environment, allow_non_fake_inputs=True)
    symbols = [
        new_extent(environment, f"extent{index}", _HINTS[index], (0, LARGEST_OF_DATA))
        for index in range(len(unknown))
    ]
    numbers = sorted({each for each in given if isinstance(each, int) and each > 1})
    # For operators that take equal extents alone, they are equal to one another, or to a number.
    alike: list[Sequence[Any]] = [[each] * len(unknown) for each in (*symbols[:1], *numbers)]
    logs = without_logs("torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")
    with logs, torch.no_grad(), torch.random.fork_rng(devices=[]), mode:
        for values in (symbols, *alike):

            def sized(extent: Any, values: Sequence[Any] = values) -> Any:
                if isinstance(extent, int):
                    return extent
                return values[next(i for i, each in enumerate(unknown) if _equal(each, extent))]

            try:
                made = run(
                    [torch.empty([*map(sized, shape)], dtype=dtype) for shape, dtype in tensors],
                    tuple(map(sized, sizes)),
                )
            except Exception:  # operators raise any type for what they do not take
                continue
            results = [each for each in pytree.tree_leaves(made) if isinstance(each, torch.Tensor)]
            known = unknown if values is symbols else [None] * len(unknown)
            return [[_extent(size, values, known) for size in each.shape] for each in results]
    return []


def _distinct(extents: Iterator[Any]) -> list[Any]:
    found: list[Any] = []
    for extent in extents:
        if not any(_equal(each, extent) for each in found):
            found.append(extent)
    return found


def _equal(one: Any, other: Any) -> bool:
    return bool(structural_equal(one, other))


def _extent(size: Any, values: Sequence[Any], extents: Sequence[Any]) -> Any:
    """Return the extent that has a value; the size itself for a number that is none of them."""
    for value, extent in zip(values, extents, strict=True):
        if isinstance(value, torch.SymInt) and isinstance(size, torch.SymInt):
            if value.node.expr == size.node.expr:
                return extent
        elif value is size or (isinstance(size, int) and value == size):
            return extent
    return size if isinstance(size, int) else None
