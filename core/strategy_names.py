"""What strategies are called, in words and in letters; without torch or TVM, for the window."""

STRATEGY_NAMES = {"high-level": "High-level", "te": "TE", "library": "Library"}
STRATEGY_LETTERS = {"high-level": "HL", "te": "TE", "library": "LIB"}
