"""Requests to a child that have no answer yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from lowerscope.core.errors import Problem

OnResult = Callable[[Any], None]
OnProblem = Callable[[Problem], None]
OnProgress = Callable[[str, float | None], None]


@dataclass
class Outstanding:
    """A request that has no answer yet; it is `settled` when its problem is about to be told."""

    id: int
    method: str
    params: msgspec.Struct
    on_result: OnResult
    on_problem: OnProblem
    on_progress: OnProgress | None
    sent: bool = False
    cancelled: bool = False
    dropped: bool = False
    settled: bool = False
    at: str = ""
