"""The option ``--sandbox``: a command runs its file's code as the window does, in a sandbox.

This module imports neither torch nor TVM: the process becomes another one before they are there.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lowerscope.core import sandbox
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.user_cache import cache_folder
from lowerscope.core.user_paths import user_path

OPTION = "--sandbox"

_FILES = ("output", "save", "html")
"""Options that name a file that is written."""

WITHOUT = f"leave {OPTION} out"


def add_sandbox_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--sandbox``."""
    parser.add_argument(
        OPTION,
        action="store_true",
        help="run in a sandbox: without network, and code may write to the cache and to the folder"
        " of what the command writes, and nowhere else",
    )


def enter_sandbox(
    arguments: Sequence[str], parse: Callable[[Sequence[str]], argparse.Namespace]
) -> None:
    """Become the same command in a sandbox, if it asks for one and is in none.

    Parameters
    ----------
    arguments
        Of the command.
    parse
        Reads them.

    Raises
    ------
    LowerscopeError
        If there is no sandbox here.
    """
    if sandbox.is_inside():
        sandbox.enter()
        # Who made the sandbox waits for what comes of an interrupt: see below.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    elif any(each.startswith("--s") for each in arguments):
        options = parse(arguments)
        if getattr(options, "sandbox", False):
            command = _enclosed(arguments, options)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.execv(command[0], command)


def _enclosed(arguments: Sequence[str], options: argparse.Namespace) -> tuple[str, ...]:
    program = sandbox.program()
    if program is None:
        raise _refused("bwrap is not there", "Install bubblewrap (bwrap)")
    command = (sys.executable, "-P", "-m", "lowerscope.app", *arguments)
    network: sandbox.Network = "open" if getattr(options, "tracker", "") else "none"
    folders = tuple(_writable(options))
    # What it says where the system lets nobody make one must not pass for an answer.
    tried = sandbox.enclosed(program, ("true",), folders, network)
    said = subprocess.run(tried, capture_output=True, text=True, check=False)
    if said.returncode:
        reason = said.stderr.strip().splitlines()
        raise _refused(f"the system makes none ({reason[-1] if reason else 'it does not say why'})")
    return sandbox.enclosed(program, command, folders, network)


def _writable(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the folders that a command writes to; they are there then."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        yield cache
        for path in _written(options):
            path.mkdir(parents=True, exist_ok=True)
            yield path
    except OSError as error:
        raise LowerscopeError(
            f"it cannot be written: {error.strerror or error}",
            where=str(error.filename),
            todo="Choose a folder that you may write to",
        ) from None


def _written(options: argparse.Namespace) -> Iterator[Path]:
    if options.command == "export":
        yield user_path(options.output).absolute()
        return
    for name in _FILES:
        file = getattr(options, name, "")
        if file:
            yield user_path(file).absolute().parent


def _refused(reason: str, todo: str = "") -> LowerscopeError:
    way = f"{todo}, or {WITHOUT}" if todo else WITHOUT[0].upper() + WITHOUT[1:]
    return LowerscopeError(f"there is no sandbox: {reason}", where=OPTION, todo=way)
