"""Text for sizes, durations, ratios, errors and shapes, as every view and command shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

NONE = "–"
"""Text of an unknown value."""


def bytes_text(count: float) -> str:
    """Return a size in decimal units: ``401 kB``, which is 401,000 bytes."""
    return _scaled(count, ("B", "kB", "MB", "GB", "TB"))


def operations_text(count: float) -> str:
    """Return a number of operations: ``231 MFLOP``."""
    return _scaled(count, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"))


def duration_text(milliseconds: float | None) -> str:
    """Return a duration: ``12.3 µs``, ``1.23 ms``, ``4.5 s``, ``3 min 20 s``, ``1 h 20 min``."""
    if milliseconds is None:
        return NONE
    if milliseconds == 0:
        return "0 ms"
    if milliseconds < 99_950:
        return _scaled(milliseconds * 1e6, ("ns", "µs", "ms", "s"))
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min {seconds} s"


def seconds_text(seconds: float | None) -> str:
    """Return a duration that is given in seconds; see `duration_text`."""
    return duration_text(None if seconds is None else seconds * 1000)


def durations_text(low: float, high: float) -> str:
    """Return a range of durations, the unit once if it is the same: ``1.2 – 1.4 ms``."""
    first, last = duration_text(low), duration_text(high)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} – {last}"


def ratio_text(ratio: float, *, about: bool = False) -> str:
    """Return a ratio with three significant digits: ``1.80×``, or ``≈ 1.80×``."""
    digits = f"{ratio:,.0f}" if ratio >= 999.5 else f"{ratio:#.3g}".rstrip(".")
    return f"≈ {digits}×" if about else f"{digits}×"


def error_text(error: float | None) -> str:
    """Return a numerical error: ``2.1e-07``, ``0.012``; ``∞`` if it is not finite."""
    if error is None:
        return NONE
    if not math.isfinite(error):
        return "∞"
    return f"{error:.2g}"


def tolerance_text(atol: float, rtol: float, reference: str) -> str:
    """Return a tolerance: ``1e-05 + 0.0001 × |torch|``."""
    return f"{atol:g} + {rtol:g} × |{reference}|"


def share_text(share: float) -> str:
    """Return a share of a whole: ``12.3%``; a part is never said to be nothing or all."""
    if 0 < share < 0.0005:
        return "< 0.1%"
    if 0.9995 <= share < 1:
        return "> 99.9%"
    return f"{share:.1%}"


def share_of_text(count: int, whole: int) -> str:
    """Return a count as a share of a whole: ``97 of 100 (97.0%)``."""
    return f"{count:,} of {whole:,} ({share_text(count / whole)})"


def figure_text(value: float | None) -> str:
    """Return a number with three significant digits, and all digits before the decimal point."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def shape_text(shape: Iterable[object] | None, scalar: str = "scalar") -> str:
    """Return a shape: ``1×784``, ``(n + 1)×4``; `scalar` for no dimensions, empty for no shape."""
    if shape is None:
        return ""
    extents = map(str, shape)
    return "×".join(f"({each})" if " " in each else each for each in extents) or scalar


def _scaled(value: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{figure_text(value)} {units[-1]}"
