"""The command ``lowerscope cache``: shows the cache, sets its limit, and clears it."""

from __future__ import annotations

import argparse

from lowerscope.core.cache_limit import (
    Cleared,
    cache_limit,
    cache_size,
    clear_cache,
    set_cache_limit,
)
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.memory_limit import parse_bytes
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.user_cache import cache_folder


def add_cache_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``lowerscope cache``."""
    parser.add_argument(
        "--limit", default="", metavar="BYTES", help="what it may have from now on, such as 500MB"
    )
    parser.add_argument("--clear", action="store_true", help="remove all that it has")


def cache(options: argparse.Namespace) -> str:
    """Apply the options to the cache; return its folder, the removed files, its size and its limit.

    Raises
    ------
    LowerscopeError
        If the limit is no amount of memory, or the folder cannot be written.
    """
    lines = [str(cache_folder())]
    try:
        if options.limit:
            lines += _said(set_cache_limit(parse_bytes(options.limit)))
        if options.clear:
            lines += _said(clear_cache())
    except ValueError as error:
        raise LowerscopeError(str(error), where="--limit") from None
    except OSError as error:
        raise LowerscopeError(
            f"the cache cannot be changed: {error.strerror or error}", where=str(cache_folder())
        ) from error
    return "\n".join([*lines, f"{bytes_text(cache_size())} of {bytes_text(cache_limit())}"])


def _said(cleared: Cleared) -> list[str]:
    said = [f"removed {bytes_text(cleared.freed)}"] if cleared.freed else []
    if cleared.in_use:
        said.append(f"kept {bytes_text(cleared.in_use)}, which a tuning under way adds to")
    return said
