"""Edits of an ordered list of steps: each returns a new list. Places count from 0."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

Step = TypeVar("Step", bound=msgspec.Struct)


def inserted(steps: tuple[Step, ...], place: int, step: Step) -> tuple[Step, ...]:
    """Insert a step at a place."""
    return (*steps[:place], step, *steps[place:])


def removed(steps: tuple[Step, ...], place: int) -> tuple[Step, ...]:
    """Remove the step at a place."""
    return tuple(each for at, each in enumerate(steps) if at != place)


def moved(steps: tuple[Step, ...], place: int, to: int) -> tuple[Step, ...]:
    """Move a step to a place of the new list, or to its nearest end."""
    to = max(0, min(to, len(steps) - 1))
    return inserted(removed(steps, place), to, steps[place])


def replaced(steps: tuple[Step, ...], place: int, step: Step) -> tuple[Step, ...]:
    """Replace the step at a place."""
    return tuple(step if at == place else each for at, each in enumerate(steps))


def changed(steps: tuple[Step, ...], place: int, **fields: Any) -> tuple[Step, ...]:
    """Change fields of the step at a place."""
    return tuple(
        msgspec.structs.replace(each, **fields) if at == place else each
        for at, each in enumerate(steps)
    )
