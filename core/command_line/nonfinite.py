"""The option ``--allow-nonfinite``: accepts outputs without a finite value."""

from __future__ import annotations

import argparse

from lowerscope.core.records.run import FAILING


def add_nonfinite_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--allow-nonfinite``."""
    parser.add_argument(
        "--allow-nonfinite",
        action="store_true",
        help="exit with 0 where a verdict is inconclusive: no value is finite on both sides",
    )


def failing_verdicts(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the verdicts for which a command exits with 1."""
    return FAILING[:1] if options.allow_nonfinite else FAILING
