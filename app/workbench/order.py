"""Ids and positions of schedule primitives."""

from __future__ import annotations

import re

from lowerscope.core.schedules import Made, Primitive, references_of

_NUMBERED = re.compile(r"s([0-9]{1,9})")
"""The ids assigned here; a file may have any others."""

Primitives = tuple[Primitive, ...]


def new_id(primitives: Primitives) -> str:
    """Return an unused id, which none had before that a later step refers to."""
    known = [each.id for each in primitives]
    references = (each for step in primitives for each in references_of(step))
    known += [each.step for each in references if isinstance(each, Made)]
    found = (_NUMBERED.fullmatch(each) for each in known)
    return f"s{max((int(each[1]) for each in found if each is not None), default=0) + 1}"


def place_of(primitives: Primitives, step: str) -> int:
    """Return the index of a step; -1 if it does not exist."""
    return next((at for at, each in enumerate(primitives) if each.id == step), -1)
