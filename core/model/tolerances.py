"""Tolerances of each dtype, and their command-line syntax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _


class Tolerance(msgspec.Struct, frozen=True):
    """Tolerance of values that count as equal: ``|a - b| <= atol + rtol * |b|``."""

    rtol: float
    atol: float


class Tolerances(msgspec.Struct, frozen=True, kw_only=True):
    """The tolerance of each dtype; complex numbers have that of their parts.

    Integers and booleans have none: they must be equal.

    The defaults were measured on the values at all nodes of the samples, in each dtype and by each
    lowering (of ResNet-18, all nodes in float32, and the outputs in the others): the largest
    differences from torch need 5e-14, 2.9e-5, 5.8e-3 and 2.0e-2 as ``rtol``, with a tenth of it as
    ``atol``. That of float64 has room for longer sums, and none for a constant of float32.
    """

    float64: Tolerance = Tolerance(1e-9, 1e-10)
    float32: Tolerance = Tolerance(1e-4, 1e-5)
    float16: Tolerance = Tolerance(1e-2, 1e-3)
    bfloat16: Tolerance = Tolerance(5e-2, 5e-3)


DTYPES: tuple[str, ...] = Tolerances.__struct_fields__
"""Dtypes that have a tolerance, by torch's names."""

EPSILONS: Mapping[str, float] = MappingProxyType(
    {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
)
"""Machine epsilon of each dtype: the distance from 1 to the next larger number."""

EXACT = Tolerance(0.0, 0.0)


def parse_number(text: str, what: str) -> float:
    """Parse a number of a tolerance: ``"rtol"`` or ``"atol"``.

    Raises a `LowerscopeError` if it is no number, negative, not finite, or an rtol that makes
    everything equal to zero.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise LowerscopeError(
            _("{text!r} is not a number", text=text.strip() or "nothing"),
            where=what,
            todo=_("Give for example 1e-4, or 0 for equality"),
        )
    if value < 0 or math.isinf(value):
        raise LowerscopeError(
            _("{text} is not a valid tolerance", text=text.strip()),
            where=what,
            todo=_("Give a number of at least 0"),
        )
    if what == "rtol" and value >= 1:
        raise LowerscopeError(
            _("with {text} a zero would count as equal to any number", text=text.strip()),
            where=what,
            todo=_("Give a number below 1, such as 1e-4"),
        )
    return value


def parse_tolerances(texts: Iterable[str]) -> Tolerances:
    """Parse several ``DTYPE=RTOL,ATOL``; other dtypes keep their defaults.

    Raises a `LowerscopeError` if one cannot be parsed, or its numbers are out of range.
    """
    found = Tolerances()
    for text in texts:
        dtype, _sep, numbers = text.partition("=")
        parts = numbers.split(",")
        where = f"--tolerance {text}"
        if dtype.strip() not in DTYPES or len(parts) != 2:
            raise LowerscopeError(
                _(
                    "it is not DTYPE=RTOL,ATOL with one of the dtypes {dtypes}",
                    dtypes=_(", ").join(DTYPES),
                ),
                where=where,
                todo=_("Write for example float32=1e-4,1e-5; integers must be equal"),
            )
        try:
            rtol, atol = map(parse_number, parts, ("rtol", "atol"))
        except LowerscopeError as error:
            problem = error.problem
            raise LowerscopeError(
                f"{problem.where}: {problem.what}", where=where, todo=problem.todo
            ) from error
        found = msgspec.structs.replace(found, **{dtype.strip(): Tolerance(rtol, atol)})
    return found


def tolerance_texts(tolerances: Tolerances) -> dict[str, str]:
    """Return the text of each tolerance for `parse_tolerances`, by dtype."""
    chosen: dict[str, Tolerance] = msgspec.structs.asdict(tolerances)
    return {dtype: f"{dtype}={each.rtol},{each.atol}" for dtype, each in chosen.items()}


def tolerances_of_one(written: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the tolerances by dtype of an old file with one tolerance for all dtypes.

    That was widened to four units in the last place of the dtype.
    """
    rtol, atol = float(written.get("rtol", 1e-4)), float(written.get("atol", 1e-5))
    if (rtol, atol) == (1e-4, 1e-5):
        return {}
    return {
        dtype: {"rtol": max(rtol, 4 * epsilon), "atol": max(atol, 0.4 * epsilon)}
        for dtype, epsilon in EPSILONS.items()
    }
