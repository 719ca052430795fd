"""Measurer of tuning candidates: a local process, or one that uses another machine.

This module imports neither torch nor TVM before it measures.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.progress import Progress
from lowerscope.core.records.remote import Remote
from lowerscope.core.remote.tracker import Tracker
from lowerscope.core.tuning.measuring import PATIENCE, LocalMeasurer

CANDIDATE = 20.0
"""Time limit of one answer about a candidate, in seconds: it is one of many."""


def measurer_of(remote: Remote | None, threads: int, progress: Progress) -> LocalMeasurer:
    """Return the measurer for this machine, or for another one.

    Parameters
    ----------
    threads
        As in a recipe.

    Raises
    ------
    LowerscopeError
        If there is no tracker, or no server with the key.
    """
    if remote is None:
        return LocalMeasurer(progress.check)
    with Tracker(remote) as tracker:
        tracker.check_known(progress)
    limited = msgspec.structs.replace(remote, timeout=min(remote.timeout, CANDIDATE))
    words = (msgspec.json.encode(limited).decode(), str(threads))
    # A slow candidate is stopped on the server before the process here is killed.
    return LocalMeasurer(progress.check, PATIENCE + 3 * limited.timeout, words)
