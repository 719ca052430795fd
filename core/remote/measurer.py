"""Who measures the candidates of a tuning: a process of this machine's, or one that asks another.

This module imports neither torch nor TVM before it measures.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.progress import Progress
from lowerscope.core.records.remote import Remote
from lowerscope.core.remote.tracker import Tracker
from lowerscope.core.tuning.measuring import PATIENCE, LocalMeasurer

CANDIDATE = 20.0
"""Seconds that one answer about a candidate may take at most: it is one of many."""


def measurer_of(remote: Remote | None, threads: int, progress: Progress) -> LocalMeasurer:
    """Return what measures here, or on another machine.

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
    # What takes too long is cut there, before the process here is given up.
    return LocalMeasurer(progress.check, PATIENCE + 3 * limited.timeout, words)
