"""The problem that a call ends with, which a user is shown as one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lowerscope.core.model.problems import LowerscopeError, Problem


def problem_of(call: Callable[..., Any], *args: Any, **named: Any) -> Problem:
    """Make a call that fails, and return the problem."""
    with pytest.raises(LowerscopeError) as caught:
        call(*args, **named)
    assert "\n" not in caught.value.problem.line()
    return caught.value.problem
