"""Named dimensions: their ranges, the sizes that a model is traced at, and those of its runs.

=====================================  ========================================================
``--dim batch=1..64``                  any size from 1 to 64
``--dim batch=2..``, ``batch=..64``    one end of the range; the other is that of `Dimension`
``--sizes batch=1,7,64``               the sizes of the first, second and third run
``--input mask=1,length+1``            an extent that is another one and a number
=====================================  ========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe
from lowerscope.core.model.texts import _

Sizes = Mapping[str, int]
"""A size for each dimension, by name."""

LARGEST = 2**31 - 1

ELEMENTS = 1 << 16
"""Limit on the total elements of the inputs of a default run, unless the trace has more."""

MOST_RUNS = 16

EXTENT = re.compile(r"[^\W\d]\w*")
"""The name of a dimension."""

_DERIVED = re.compile(r"([^\W\d]\w*) \+ (\d+)")

_RANGE = re.compile(r"\s*([^\W\d]\w*)\s*=\s*(\S*?)\s*\.\.\s*(\S*)\s*")
_SIZES = re.compile(r"\s*([^\W\d]\w*)\s*=\s*(.*)")

_FORM = _("Write NAME=LOW..HIGH, for example batch=1..64")


def parse_dimension(text: str) -> Dimension:
    """Read one ``--dim``.

    Raises a `LowerscopeError` if it is not a range.
    """
    where = f"--dim {text}"
    match = _RANGE.fullmatch(text)
    if match is None:
        raise LowerscopeError(_("this is not a name with a range"), where=where, todo=_FORM)
    name, low, high = match.groups()
    standard = Dimension(name=name)
    least = _number(low, where) if low else standard.low
    most = standard.high if least < standard.high else least + standard.high
    if high:
        most = _number(high, where)
    dimension = Dimension(name=name, low=least, high=most)
    _check_range(dimension, where)
    return dimension


def parse_sizes(text: str) -> tuple[str, tuple[int, ...]]:
    """Read one ``--sizes``: a name, and the sizes to run at.

    Raises a `LowerscopeError` if they are not sizes.
    """
    where = f"--sizes {text}"
    match = _SIZES.fullmatch(text)
    parts = [part for part in match[2].split(",") if part.strip()] if match else []
    if match is None or not parts:
        raise LowerscopeError(
            _("this is not a name with sizes"),
            where=where,
            todo=_("Write NAME=SIZE,SIZE, for example batch=1,7,64"),
        )
    return match[1], tuple(_number(part, where) for part in parts)


def with_sizes(
    dimensions: Iterable[Dimension], sizes: Iterable[tuple[str, tuple[int, ...]]]
) -> tuple[Dimension, ...]:
    """Return `dimensions` with the sizes to run at, those of names that are not among them too.

    Raises a `LowerscopeError` if a name is given twice.
    """
    found: dict[str, Dimension] = {}
    for dimension in dimensions:
        if dimension.name in found:
            raise _twice(dimension.name, "--dim")
        found[dimension.name] = dimension
    for name, each in sizes:
        dimension = found.get(name) or Dimension(name=name)
        if dimension.sizes:
            raise _twice(name, "--sizes")
        found[name] = msgspec.structs.replace(dimension, sizes=each)
    return tuple(found.values())


def dimensions_of(recipe: Recipe) -> tuple[Dimension, ...]:
    """Return the dimensions that the inputs of `recipe` name, in the order of their first use.

    Raises:
        LowerscopeError: See `check_dimensions`.
    """
    return check_dimensions(recipe.inputs, recipe.dimensions)


def check_dimensions(
    inputs: Sequence[InputSpec], dimensions: Sequence[Dimension]
) -> tuple[Dimension, ...]:
    """Return the dimensions that `inputs` name, in the order of their first use.

    Raises a `LowerscopeError` if a range or a size to run at is wrong, or is that of a name that no
    input has.
    """
    names = dict.fromkeys(
        parts_of(extent)[0]
        for spec in inputs
        for extent in spec.shape or ()
        if isinstance(extent, str)
    )
    extents = {extent for spec in inputs for extent in spec.shape or ()}
    for name in names:
        if name not in extents:
            raise LowerscopeError(
                _("no input has an extent that is {name} alone", name=name),
                where=f"--dim {name}",
                todo=_("Give it to an input: --input x={name},784:float32", name=name),
            )
    said: dict[str, Dimension] = {}
    for dimension in dimensions:
        where = f"--dim {dimension.name}"
        if dimension.name in said:
            raise _twice(dimension.name, where)
        if dimension.name not in names:
            raise LowerscopeError(
                _("no input has a dimension called {name}", name=dimension.name),
                where=f"--sizes {dimension.name}" if dimension.sizes else where,
                todo=_("The named dimensions are {names}", names=_(", ").join(names))
                if names
                else _(
                    "Name it in the shape of an input: --input x={name},784:float32",
                    name=dimension.name,
                ),
            )
        _check_range(dimension, where)
        for size in dimension.sizes:
            check_size(dimension, size, f"--sizes {dimension.name}")
        said[dimension.name] = dimension
    found = tuple(said.get(name) or Dimension(name=name) for name in names)
    _check_runs(found)
    return found


def check_size(dimension: Dimension, size: int, where: str) -> None:
    """Raise a `LowerscopeError` if `size` is outside of the range of `dimension`."""
    if not dimension.low <= size <= dimension.high:
        raise LowerscopeError(
            _(
                "{name} = {size} is outside {low}..{high}",
                name=dimension.name,
                size=size,
                low=dimension.low,
                high=dimension.high,
            ),
            where=where,
            todo=_("Give a size in the range, or widen the range"),
        )


def traced_sizes(recipe: Recipe) -> dict[str, int]:
    """Return the size of each dimension that the model is traced at.

    It is small, none that something else in the shapes has, and neither 0 nor 1, so that two
    extents are not equal by accident.

    Raises:
        LowerscopeError: See `dimensions_of`.
    """
    taken = {
        extent for spec in recipe.inputs for extent in spec.shape or () if isinstance(extent, int)
    }
    sizes: dict[str, int] = {}
    for dimension in dimensions_of(recipe):
        low = max(2, dimension.low)
        # A model may take some sizes alone, such as multiples of 4: those of the runs are such.
        wanted = [size for size in dimension.sizes if size >= 2 and size not in taken]
        sizes[dimension.name] = min(
            wanted or range(low, min(dimension.high, low + 500) + 1),
            key=lambda size: (size in taken, size < 5, not _is_prime(size), abs(size - 5)),
        )
        taken.add(sizes[dimension.name])
    return sizes


def runs_of(recipe: Recipe) -> tuple[dict[str, int], ...]:
    """Return the sizes of each run: those that the user chose, or a few by default.

    By default they are those that the model is traced at, and the ends of the ranges; the upper
    ends are lowered, all by one factor, until the inputs have no more than `ELEMENTS` together.

    Raises:
        LowerscopeError: See `dimensions_of`.
    """
    dimensions, traced = dimensions_of(recipe), traced_sizes(recipe)
    if not dimensions:
        return ({},)
    if any(dimension.sizes for dimension in dimensions):
        count = max(len(dimension.sizes) for dimension in dimensions)
        runs = [
            {
                each.name: each.sizes[index]
                if len(each.sizes) > 1
                else (*each.sizes, traced[each.name])[0]
                for each in dimensions
            }
            for index in range(count)
        ]
    else:
        runs = [traced, {each.name: each.low for each in dimensions}, _large(recipe, dimensions)]
    return tuple(dict(items) for items in dict.fromkeys(tuple(run.items()) for run in runs))


def parts_of(extent: str) -> tuple[str, int]:
    """Return the name in an extent and what is added to it: 1 in ``length + 1``, mostly 0."""
    match = _DERIVED.fullmatch(extent)
    return (extent, 0) if match is None else (match[1], int(match[2]))


def at_sizes(shape: Sequence[int | str], sizes: Sizes) -> tuple[int, ...]:
    """Return `shape` with numbers in place of names."""
    parts = [(extent, 0) if isinstance(extent, int) else parts_of(extent) for extent in shape]
    return tuple(
        each + more if isinstance(each, int) else sizes[each] + more for each, more in parts
    )


def sizes_text(sizes: Sizes) -> str:
    """Return ``batch = 7, seq = 11``."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def doing_at(activity: str, sizes: Sizes) -> str:
    """Return an activity with the sizes at which it is done, if there are any."""
    if not sizes:
        return activity
    return _("{activity} at {sizes}", activity=activity, sizes=sizes_text(sizes))


def _large(recipe: Recipe, dimensions: Sequence[Dimension]) -> dict[str, int]:
    traced = traced_sizes(recipe)
    shapes = [spec.shape for spec in recipe.inputs if spec.shape is not None]
    limit = max(ELEMENTS, _elements(shapes, traced))
    sizes = {each.name: each.high for each in dimensions}
    while _elements(shapes, sizes) > limit and sizes != traced:
        sizes = {name: max(traced[name], size // 2) for name, size in sizes.items()}
    return sizes


def _elements(shapes: Iterable[Sequence[int | str]], sizes: Sizes) -> int:
    total = 0
    for shape in shapes:
        count = 1
        for extent in at_sizes(shape, sizes):
            count *= extent
        total += count
    return total


def _check_runs(dimensions: Sequence[Dimension]) -> None:
    several = [each for each in dimensions if len(each.sizes) > 1]
    for each in several:
        if len(each.sizes) > MOST_RUNS:
            raise LowerscopeError(
                _(
                    "{count} sizes exceed the limit of {most_runs}",
                    count=len(each.sizes),
                    most_runs=MOST_RUNS,
                ),
                where=f"--sizes {each.name}",
                todo=_("Run at fewer of them at once"),
            )
        if len(each.sizes) != len(several[0].sizes):
            raise LowerscopeError(
                _(
                    "{name} has {count} sizes to run at, and {name2} has {sizes}",
                    name=each.name,
                    count=len(each.sizes),
                    name2=several[0].name,
                    sizes=len(several[0].sizes),
                ),
                where="--sizes",
                todo=_("Give as many for each, or a single size for all runs"),
            )


def _check_range(dimension: Dimension, where: str) -> None:
    name, low, high = dimension.name, dimension.low, dimension.high
    if not EXTENT.fullmatch(name):
        raise LowerscopeError(_("{name!r} is not a valid name", name=name), where=where, todo=_FORM)
    if low < 1 or high > LARGEST:
        raise LowerscopeError(
            _("{low}..{high} is not within 1..{largest}", low=low, high=high, largest=LARGEST),
            where=where,
            todo=_("Sizes start at 1"),
        )
    if low > high:
        raise LowerscopeError(
            _("{low} is more than {high}", low=low, high=high),
            where=where,
            todo=_("Give the smaller size first"),
        )
    if low == high:
        raise LowerscopeError(
            _("the range has one size, {low}", low=low),
            where=where,
            todo=_("Give {low} in the shape in place of {name}", low=low, name=name),
        )


def _number(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise LowerscopeError(
            _("{text!r} is not a number", text=text.strip()),
            where=where,
            todo=_("Give whole numbers"),
        ) from None


def _twice(name: str, where: str) -> LowerscopeError:
    return LowerscopeError(
        _("the dimension {name} is given twice", name=name),
        where=where,
        todo=_("Leave one of them out"),
    )


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))
