"""Findings of the comparison of a node's value with torch's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lowerscope.core.records.run import COMPARED, VERDICT_OF, NodeStatus, OutputVerdict


@dataclass(frozen=True)
class Found:
    """Distance of a node's value from torch's, over its tensors.

    ``together`` has the names of other nodes that had to be run with it.
    """

    status: NodeStatus
    reason: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    not_finite: str = ""
    together: tuple[str, ...] = ()

    @property
    def verdict(self) -> OutputVerdict | None:
        """The verdict on the value; ``None`` if it was not compared."""
        return VERDICT_OF[self.status] if self.status in COMPARED else None

    @property
    def matches(self) -> bool | None:
        """Return whether it matches; ``None`` if it was not compared or is inconclusive."""
        return {"matches": True, "differs": False}.get(self.status)


class NotCompared(Exception):
    """A value cannot be compared; ``found`` says why."""

    def __init__(self, reason: str, status: NodeStatus = "not comparable") -> None:
        super().__init__(reason)
        self.found = Found(status, reason)


def fields_of(found: Found | None, own: Found | None) -> dict[str, Any]:
    """Return the fields of a `NodeRun` that are about its value."""
    found = found or Found("no reference")
    own = own or Found("no reference")
    return {
        "status": found.status,
        "matches": found.matches,
        "reason": found.reason,
        "max_abs_error": found.max_abs,
        "max_rel_error": found.max_rel,
        "not_finite": found.not_finite,
        "own_status": own.status,
        "own_abs_error": own.max_abs,
        "own_matches": own.matches,
        "own_reason": own.reason,
        "own_with": tuple(f"fx:{each}" for each in own.together),
    }
