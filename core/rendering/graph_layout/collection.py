"""Work that makes many small values and no garbage of cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Run the body without looking for garbage of cycles, which comes after it.

    Where hundreds of thousands of values are made and all of them are kept, looking through them
    again and again takes a quarter of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
