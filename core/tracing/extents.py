"""Extents as expressions of named sizes, found from the values that they have at some sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from lowerscope.core.model.dimensions import at_sizes, parts_of
from lowerscope.core.tracing.trace_errors import NamedInputs

Sizes = dict[str, int]
Formula = tuple[str, Callable[[Mapping[str, Any]], Any]]
"""An expression of names as text, and what computes it from their sizes."""


def sizes_of(named: NamedInputs, inputs: Sequence[torch.Tensor]) -> Sizes:
    """Return the size of each name in the shapes of inputs."""
    found = {
        name: size
        for shape, value in zip(named.shapes, inputs, strict=True)
        for name, size in zip(shape, value.shape, strict=True)
        if isinstance(name, str)
    }
    for text in found.keys() - named.ranges.keys():
        name, more = parts_of(text)
        found[name] = found.pop(text) - more
    return found


def at_other_sizes(
    named: NamedInputs, inputs: Sequence[torch.Tensor]
) -> Iterator[tuple[Sizes, tuple[torch.Tensor, ...]]]:
    """Yield sizes other than those of the inputs, with inputs of these sizes."""
    for sizes in _others(sizes_of(named, inputs), named):
        shapes = [at_sizes(shape, sizes) for shape in named.shapes]
        yield sizes, tuple(map(_resized, inputs, shapes))


def _others(sizes: Sizes, named: NamedInputs) -> Iterator[Sizes]:
    tried: dict[str, list[int]] = {}
    for name, size in sizes.items():
        low, high = named.ranges[name]
        near = [*range(size + 1, size + 6), *range(size - 1, max(low, 2) - 1, -1)]
        tried[name] = [each for each in near if low <= each <= high][:5]
        yield from ({**sizes, name: each} for each in tried[name])
    if len(sizes) > 1:
        for turn in range(3):
            yield {
                n: (found[turn % len(found)] if (found := tried[n]) else sizes[n]) for n in sizes
            }


def _resized(value: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Return a tensor of another shape, with elements of `value` in turn."""
    for axis, size in enumerate(shape):
        if size != value.shape[axis]:
            value = value.index_select(axis, torch.arange(size) % value.shape[axis])
    return value


def expression_of(found: Sequence[tuple[Sizes, int]]) -> Formula | None:
    """Return a simple expression of the names that gives all the extents that were found."""
    first, extent = found[0]
    if all(each == extent for _sizes, each in found):
        return str(extent), lambda _sizes: extent
    for text, compute in _candidates(found, first, extent):
        if all(compute(sizes) == each for sizes, each in found):
            return text, compute
    return None


def _candidates(
    found: Sequence[tuple[dict[str, int], int]], first: Mapping[str, int], extent: int
) -> Iterator[Formula]:
    """Yield expressions that may give the extent, the plainest first."""
    names = list(first)
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            whole = _product(first, chosen)
            text = "*".join(chosen)
            if extent % whole == 0:
                factor = extent // whole
                yield _times(factor, text), _formula(chosen, factor, 0, 1)
            for factor in range(1, 9):
                yield (
                    _plus(_times(factor, text), extent - factor * whole),
                    _formula(chosen, factor, extent - factor * whole, 1),
                )
    for name in names:
        for divisor in range(2, 65):
            for offset in range(-2 * divisor, 2 * divisor + 1):
                more = extent - (first[name] + offset) // divisor
                inner = f"({_plus(name, offset)})" if offset else name
                formula = _formula((name,), 1, offset, divisor, more)
                yield _plus(f"{inner}//{divisor}", more), formula
    if len(names) > 1:
        # A sum of several, as of a past and a present length.
        for count in range(2, len(names) + 1):
            for chosen in itertools.combinations(names, count):
                more = extent - sum(first[name] for name in chosen)
                yield _plus(" + ".join(chosen), more), _sum(chosen, more)


def _product(sizes: Mapping[str, int], names: Sequence[str]) -> int:
    whole = 1
    for name in names:
        whole *= sizes[name]
    return whole


def _formula(
    names: Sequence[str], factor: int, offset: int, divisor: int, more: int = 0
) -> Callable[[Mapping[str, int]], int]:
    return lambda sizes: (factor * _product(sizes, names) + offset) // divisor + more


def _sum(names: Sequence[str], more: int) -> Callable[[Mapping[str, int]], int]:
    return lambda sizes: sum(sizes[name] for name in names) + more


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"{factor}*{text}"


def _plus(text: str, number: int) -> str:
    if not number:
        return text
    return f"{text} + {number}" if number > 0 else f"{text} - {-number}"
