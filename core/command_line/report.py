"""The option ``--html`` of ``run`` and ``compare``: an HTML report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.report import check_report, write_report
from lowerscope.core.records.variant import Variant


def add_report_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--html``."""
    parser.add_argument(
        "--html",
        default="",
        metavar="FILE",
        help="write a report as well: one file, which opens without a network",
    )


def check_report_option(options: argparse.Namespace) -> None:
    """Check that the report can be written, before anything is run.

    Raises
    ------
    LowerscopeError
        If it cannot, or this kind of run has no report.
    """
    if options.html and getattr(options, "inputs_set", ""):
        raise LowerscopeError(
            "there is no report on a set of inputs",
            where=f"--html {options.html}",
            todo="Run one input of it, or leave the option out",
        )
    if options.html:
        check_report(options.html)


def write_wanted_report(options: argparse.Namespace, variants: Sequence[Variant]) -> list[str]:
    """Write the report if one is requested; return a line on it.

    Raises
    ------
    LowerscopeError
        If it cannot be written.
    """
    if not options.html:
        return []
    return [f"Report: {write_report(options.html, variants)}"]
