"""Start of a window that a Python process opens on a model in its memory."""

from __future__ import annotations

import contextlib
import os
import sys

import msgspec

from lowerscope.core.files.console import say
from lowerscope.core.files.in_memory import OPTION, SHOWN, TAKEN, Order, take
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _


def take_model() -> Recipe | None:
    """Read the model described on stdin, before anything else; ``None`` if there is none."""
    try:
        if sys.stdin.isatty():
            raise LowerscopeError(
                _("it is set by the process that holds the model, not by hand"),
                where=OPTION,
                todo=_("Call explore(model, inputs) in Python"),
            )
        order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
        take(order)
    except LowerscopeError as error:
        say(error.problem.line())
        return None
    except UNREADABLE as error:
        say(f"{OPTION}: {error}")
        return None
    _answer(TAKEN)
    return order.recipe


def say_shown() -> None:
    """Report that the window is shown; the parent process stops listening then."""
    _answer(SHOWN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _answer(words: bytes) -> None:
    # The parent process may have exited; the window stays.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, words)
