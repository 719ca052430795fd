"""Verdicts in words, each with the role of its colour, for the window and reports.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowerscope.core.records.run import VERDICT_OF, NodeStatus, OutputVerdict

_WORDS: Mapping[OutputVerdict, tuple[str, str, str]] = {
    "match": ("✓ matches", "", "right"),
    "differ": ("✕ differs", "from ", "wrong"),
    "inconclusive": ("? inconclusive", "", "unsure"),
    "not-comparable": ("– not comparable", "", "quiet"),
    "no-reference": ("– no reference", "", "quiet"),
}
"""Mark and word, the preposition before the reference, and the role."""


def verdict_words(verdict: OutputVerdict, reference: str = "") -> tuple[str, str]:
    """Return words and role: ``("✓ matches", "right")``, or ``✕ differs from torch``."""
    words, link, role = _WORDS[verdict]
    is_named = reference and verdict in ("match", "differ")
    return f"{words} {link}{reference}" if is_named else words, role


def status_words(status: NodeStatus) -> tuple[str, str]:
    """Return words and role of the verdict on a node."""
    return verdict_words(VERDICT_OF[status])


def not_finite_text(count: int) -> str:
    """Return how many elements are NaN or infinite: ``3 not finite``; empty for none."""
    return f"{count:,} not finite" if count else ""
