"""Value differences of a function's constants between the sides of a comparison.

Scripts name constants by number, so that functions with other weights read the same. Constants over
the same memory are the same; the values of others are compared once, and the outcome is cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lowerscope.core.comparing.finding_tensors import constants_by_name
from lowerscope.core.memo import key_of
from lowerscope.core.passes.recording import (
    compared_values,
    constant_tensors,
    paired_constants,
)
from lowerscope.core.records.difference import ConstantDifference
from lowerscope.core.relax_constants import Elements, elements_of
from lowerscope.core.stages import Stages

_Pair = tuple[str, Any, Any]


def constant_differences(
    old: Stages, new: Stages, before: Any, after: Any, *, same_text: bool
) -> tuple[ConstantDifference, ...]:
    """Compare the constants of a Relax function on the two sides.

    Parameters
    ----------
    old, new
        The stages of either side.
    before, after
        The function on either side.
    same_text
        Whether both have the same text: then constants are paired in order, otherwise by name.
    """
    if before.same_as(after):
        return ()
    one, other = _constants(old, before), _constants(new, after)
    olds, news = list(map(elements_of, one)), list(map(elements_of, other))
    if olds == news or (not same_text and set(olds) == set(news)):
        return ()
    names = _names(old), _names(new)
    if same_text and len(one) == len(other):
        pairs = _in_order(one, other, names[1] | names[0])
    else:
        pairs = _by_name(one, other, *names)
    found = (_difference(new, *pair) for pair in pairs)
    return tuple(each for each in found if each is not None)


def _constants(stages: Stages, function: Any) -> Sequence[Any]:
    """Return the tensors of a function's constants in order, cached."""
    # Keep the function with them, so that its address is not reused.
    _, found = stages.keep(
        "function constants",
        key_of("function constants", function.__chandle__()),
        lambda: (function, constant_tensors(function)),
    )
    return found


def _names(stages: Stages) -> dict[Elements, str]:
    return {elements_of(each.data): each.name for each in constants_by_name(stages)}


def _in_order(
    one: Sequence[Any], other: Sequence[Any], names: dict[Elements, str]
) -> Iterator[_Pair]:
    seen: set[tuple[Elements, Elements]] = set()
    for number, a, b in paired_constants(one, other):
        olds, news = elements_of(a), elements_of(b)
        if (olds, news) not in seen:
            seen.add((olds, news))
            yield names.get(olds) or names.get(news) or f"constant {number}", a, b


def _by_name(
    one: Sequence[Any],
    other: Sequence[Any],
    olds: dict[Elements, str],
    news: dict[Elements, str],
) -> Iterator[_Pair]:
    named = {olds[elements_of(each)]: each for each in one if elements_of(each) in olds}
    for each in other:
        there = named.pop(news.get(elements_of(each), ""), None)
        if there is not None and elements_of(there)[1:] == elements_of(each)[1:]:
            yield news[elements_of(each)], there, each


def _difference(stages: Stages, name: str, old: Any, new: Any) -> ConstantDifference | None:
    one, other = elements_of(old), elements_of(new)
    if one == other:
        return None
    # Keep the tensors with the result, so that their addresses are not reused.
    _, _, (different, largest) = stages.keep(
        "constant difference",
        key_of("constant difference", one, other),
        lambda: (old, new, compared_values(old.numpy(), new.numpy())),
        lambda _: old.numpy().nbytes + new.numpy().nbytes,
    )
    if not different:
        return None
    return ConstantDifference(
        name=name,
        shape=tuple(map(int, old.shape)),
        dtype=str(old.dtype),
        count=int(np.prod(old.shape, dtype=np.int64)),
        different=different,
        largest=largest,
    )
