"""Amounts of memory: parsed from text, and the default limit of a worker."""

from __future__ import annotations

import os
import re
import sys

from lowerscope.core.model.formatting import bytes_text

SHARE = 0.75
"""Default share of the machine's memory that a worker may use."""


LEAST = 1_000_000_000
"""Memory that torch and TVM need to start, in bytes."""


_MOST = 10**15


_TEXT = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kmgt]?)(?P<kind>i?b)?", re.IGNORECASE)


def usual_limit() -> int:
    """Return the default memory limit of a worker, in bytes.

    Windows has no such limit.
    """
    if sys.platform == "win32":
        return LEAST
    return max(LEAST, int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE))


def parse_bytes(text: str) -> int:
    """Return the bytes of a text such as ``3GB``, ``800 MB``, ``4 GiB`` or ``4000000000``.

    Raises:
        ValueError: If it stands for none.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no amount of memory, such as 3GB")
    step = 1024 if (found["kind"] or "").lower() == "ib" else 1000
    number = float(found["number"]) * step ** " kmgt".index(found["unit"].lower() or " ")
    if number > _MOST:
        raise ValueError(f"{text.strip()[:40]} is more than any machine has")
    return int(number)


def parse_limit(text: str) -> int:
    """Return the bytes that a text stands for, as a limit of the worker.

    Raises:
        ValueError: If it stands for none, or for less than torch and TVM need to start.
    """
    number = parse_bytes(text)
    if number < LEAST:
        raise ValueError(f"torch and TVM need {bytes_text(LEAST)} at least")
    return number
