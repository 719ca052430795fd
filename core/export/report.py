"""Report on runs: one HTML file, which opens without a network.

This module imports neither torch nor TVM, so that the window can write reports.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.report_values import report_values
from lowerscope.core.files.atomic_write import atomic_write, destination
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.variant import Variant
from lowerscope.core.sources.spec import source_label
from lowerscope.core.user_paths import user_path
from lowerscope.resources import REPORT


def report_html(variants: Sequence[Variant], made: datetime) -> str:
    """Return a report on one run, or on several variants side by side.

    Parameters
    ----------
    made
        The local time.
    """
    # Imported here since few commands write a report.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    when = made.strftime("%Y-%m-%d %H:%M %Z").strip()
    environment = Environment(
        loader=FileSystemLoader(REPORT),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html").render(
        title=source_name(variants[0].recipe),
        subtitle=f"{len(variants)} variants · {when}" if len(variants) > 1 else when,
        **report_values(variants),
    )


def write_report(file: str, variants: Sequence[Variant]) -> Path:
    """Write a report atomically, replacing an existing file; return its path.

    Raises
    ------
    LowerscopeError
        If the file cannot be written.
    """
    path = user_path(file).absolute()
    page = report_html(variants, datetime.now().astimezone())
    try:
        atomic_write(path, page)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    return path


def check_report(file: str) -> None:
    """Reject a file that a report cannot be written to, before anything is run.

    Raises
    ------
    LowerscopeError
        If its folder does not exist, or it is a folder itself.
    """
    path = user_path(file).absolute()
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    if path.is_dir():
        raise _cannot_write(path, "it is a folder")
    if not path.parent.is_dir():
        raise _cannot_write(path, "there is no such folder")
    if not os.access(destination(path).parent, os.W_OK):
        raise _cannot_write(path, "Permission denied")


def _cannot_write(path: Path, why: str) -> LowerscopeError:
    return LowerscopeError(
        f"the report cannot be written ({why})",
        where=str(path),
        todo="Choose a file in a folder that you may write to",
    )


def source_name(recipe: Recipe) -> str:
    """Return the name of a recipe's source, without its folder."""
    spec, entry = recipe.source.spec, recipe.source.entry
    name = source_label(spec)
    return f"{name}:{entry}" if entry else name
