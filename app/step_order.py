"""Changes of a list of steps: each takes the list and returns another one."""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import OptionValue, Step

Steps = tuple[Step, ...]


def inserted(steps: Steps, place: int, step: Step) -> Steps:
    """Return the steps with another one at `place`, from 0."""
    return (*steps[:place], step, *steps[place:])


def removed(steps: Steps, place: int) -> Steps:
    """Return the steps without the one at `place`."""
    return (*steps[:place], *steps[place + 1 :])


def moved(steps: Steps, place: int, to: int) -> Steps:
    """Return the steps with the one at `place` at `to`, counted in the list that comes out."""
    to = max(0, min(to, len(steps) - 1))
    return inserted(removed(steps, place), to, steps[place])


def duplicated(steps: Steps, place: int) -> Steps:
    """Return the steps with the one at `place` twice, one after the other."""
    return inserted(steps, place, steps[place])


def switched(steps: Steps, place: int) -> Steps:
    """Return the steps with the one at `place` off, if it was on, or on."""
    step = msgspec.structs.replace(steps[place], on=not steps[place].on)
    return (*steps[:place], step, *steps[place + 1 :])


def with_options(steps: Steps, place: int, options: dict[str, OptionValue]) -> Steps:
    """Return the steps with other options for the one at `place`."""
    step = msgspec.structs.replace(steps[place], options=options)
    return (*steps[:place], step, *steps[place + 1 :])
