"""Which part of a stretch of time is shown over a width: zoomed about a place, and panned."""

import math
from collections.abc import Callable, Iterator

_PAD = 12.0
_MOST_ZOOM = 5000.0
_TICK_WIDTH = 90.0


class TimeScale:
    """Milliseconds from 0 to `whole`, over a width of pixels with a margin at both ends.

    Parameters
    ----------
    width
        Returns the pixels that there are now, margins included.

    Attributes
    ----------
    whole
        The length of all, in milliseconds.
    """

    def __init__(self, width: Callable[[], float]) -> None:
        self.whole = 0.0
        self._width = width
        self._left = 0.0
        self._zoom = 1.0

    @property
    def shown(self) -> tuple[float, float]:
        """The milliseconds at the left and at the right edge."""
        return self._left, self._left + self.whole / self._zoom

    def x(self, time: float) -> float:
        """Return where a time stands."""
        return _PAD + (time - self._left) / (self.whole or 1.0) * self._zoom * self._inner()

    def time_at(self, x: float) -> float:
        """Return the time that stands at a place."""
        return self._left + self._times(x - _PAD)

    def right(self) -> float:
        """Return where the margin at the right begins."""
        return self._width() - _PAD

    def show_all(self) -> None:
        """Zoom out to the whole."""
        self._left, self._zoom = 0.0, 1.0

    def zoom_by(self, factor: float, x: float) -> None:
        """Zoom, so that what stands at `x` stays there."""
        at = self.time_at(x)
        self._zoom = min(_MOST_ZOOM, max(1.0, self._zoom * factor))
        self._pan_to(at - self._times(x - _PAD))

    def pan_by(self, pixels: float) -> None:
        """Move what is shown to the right."""
        self._pan_to(self._left - self._times(pixels))

    def reveal(self, start: float, end: float) -> None:
        """Pan so far that all of a span can be seen, or where it begins."""
        first, last = self.shown
        if end - start > last - first:
            self._pan_to(start)
        elif start < first or end > last:
            self._pan_to((start + end - (last - first)) / 2)

    def ticks(self) -> Iterator[float]:
        """Yield round times that can be seen, about as far apart as a figure is wide."""
        first, last = self.shown
        step = _round_step((last - first) * _TICK_WIDTH / self._inner())
        for number in range(math.ceil(first / step), math.floor(last / step) + 1):
            yield number * step

    def _inner(self) -> float:
        return max(1.0, self._width() - 2 * _PAD)

    def _times(self, pixels: float) -> float:
        return pixels / self._inner() * self.whole / self._zoom

    def _pan_to(self, left: float) -> None:
        self._left = min(max(0.0, left), max(0.0, self.whole - self.whole / self._zoom))


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not less than `least`."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= least * (1 - 1e-9))
