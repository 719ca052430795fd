"""Names and marks of strategies, and marks of statuses in a difference."""

STRATEGY_NAMES = {"high-level": "High-level", "te": "TE", "library": "Library"}
STRATEGY_LETTERS = {"high-level": "HL", "te": "TE", "library": "LIB"}
STATUS_MARKS = {"same": "=", "changed": "~", "added": "+", "removed": "−"}
