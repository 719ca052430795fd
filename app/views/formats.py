"""Figures and shapes, as the window writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

STATUS_MARKS = {"same": "=", "changed": "~", "added": "+", "removed": "−"}
TRANSLATOR_NAMES = {
    "lowerscope": "Lowerscope's rules",
    "tvm-fx": "TVM from_fx",
    "tvm-export": "TVM from_exported_program",
}


def shape_text(shape: Sequence[int | str] | None) -> str:
    """Return ``1×784``; ``scalar`` for no dimensions, nothing where there is no shape."""
    if shape is None:
        return ""
    return "×".join(_factor(extent) for extent in shape) or "scalar"


def _factor(extent: int | str) -> str:
    return f"({extent})" if " " in str(extent) else str(extent)


def milliseconds_text(value: float) -> str:
    """Return a time in ms with three significant digits or so."""
    digits = 3 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} ms"


def duration_text(value: float) -> str:
    """Return a time in ms with three digits or more, in µs where it is short."""
    if value == 0:
        return "0 ms"
    if value >= 1000:
        return f"{value:,.0f} ms"
    return f"{value:,.3g} ms" if value >= 1 else f"{value * 1000:.3g} µs"


def error_text(value: float | None) -> str:
    """Return an error such as ``2.1e-7``; a dash where there is none."""
    if value is None:
        return "–"
    if math.isinf(value) or math.isnan(value):
        return "∞"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def tolerance_text(atol: float, rtol: float, reference: str) -> str:
    """Return what values may be off by: ``1e-5 + 1e-4 × |torch|``."""
    return f"{number_text(atol)} + {number_text(rtol)} × |{reference}|"


def number_text(value: float) -> str:
    """Return a number with all of its digits, as it is typed: ``1e-4``."""
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent and 0 < value < 0.01:
        mantissa, exponent = f"{Decimal(mantissa):e}".split("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa.removesuffix(".0")


def count_text(count: int) -> str:
    """Return a count with thousands apart, millions in short: ``101,770``, ``11.7 M``."""
    return f"{count / 1e6:.3g} M" if count >= 1_000_000 else f"{count:,}"
