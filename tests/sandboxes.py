"""Test for a machine that makes sandboxes."""

from __future__ import annotations

import subprocess
from functools import cache

import pytest

from lowerscope.core.sandbox import bubblewrap


@cache
def reason_without() -> str:
    """Return why there is no sandbox here, or nothing."""
    program = bubblewrap.program()
    if program is None:
        return f"there is no {bubblewrap.PROGRAM}"
    tried = subprocess.run(
        bubblewrap.enclosed(program, ("true",), (), "none"), capture_output=True, text=True
    )
    return tried.stderr.strip()


needs_sandbox = pytest.mark.skipif(bool(reason_without()), reason=reason_without())
