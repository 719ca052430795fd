"""Ids of entities: ``fx:linear0``, ``relax:main/lv1``, ``tir:dense``."""

from __future__ import annotations

from pathlib import Path


def name_of(entity: str) -> str:
    """Return an id without its kind: ``linear0`` of ``fx:linear0``, ``lv1`` of a binding."""
    kind, _, name = entity.partition(":")
    if kind == "torch":
        return Path(name).name
    return name.partition("/")[2] or name if kind == "relax" else name


# --- Names and marks of strategies, and marks of statuses in a difference ---

STRATEGY_NAMES = {"high-level": "High-level", "te": "TE", "library": "Library"}
STRATEGY_LETTERS = {"high-level": "HL", "te": "TE", "library": "LIB"}
STATUS_MARKS = {"same": "=", "changed": "~", "added": "+", "removed": "−"}
