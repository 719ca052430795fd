"""Window on a model in memory: a separate process, which outlives the one that opened it."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
import tempfile
import threading
from typing import IO

import msgspec

from lowerscope.core.errors import LowerscopeError, last_line
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.handed_over import Order, Parcel, private_file
from lowerscope.core.sources.spec import source_label

OPTION = "--handed-over"
"""Command-line option of the window; its order is read from stdin."""

TAKEN, SHOWN = b"taken\n", b"shown\n"
"""The window's answers on stdout: the file has been taken, and the window was painted."""

PATIENCE_S = 120.0
"""Time limit of the window's start, in seconds; the machine may be busy."""


def open_window(parcel: Parcel, recipe: Recipe) -> None:
    """Open a window on a model, and return once it is shown.

    Raises a `LowerscopeError` if it does not start.
    """
    # -P: the current folder must not shadow packages.
    command = (sys.executable, "-P", "-m", "lowerscope.app", OPTION)
    title = source_label(parcel.spec)
    with tempfile.TemporaryFile() as log:
        try:
            with private_file(parcel) as (file, token):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # An interrupt of the notebook must not reach the window.
                    start_new_session=True,
                )
                try:
                    order = Order(file=file, token=token, recipe=recipe)
                    _give(process, msgspec.json.encode(order))
                    _wait_for(TAKEN, process, log, title)
                except BaseException:
                    process.kill()
                    process.wait()
                    raise
            _wait_for(SHOWN, process, log, title)
        except OSError as error:
            raise LowerscopeError(
                f"the window cannot be opened: {error.strerror or error}", where=title
            ) from None
    assert process.stdout is not None
    process.stdout.close()
    # Reap the process once it has ended.
    threading.Thread(target=process.wait, name="lowerscope window", daemon=True).start()


def _give(process: subprocess.Popen[bytes], order: bytes) -> None:
    assert process.stdin is not None
    # If it has already ended, its output is in the log.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(order)
        process.stdin.close()


def _wait_for(answer: bytes, process: subprocess.Popen[bytes], log: IO[bytes], title: str) -> None:
    """Wait for an answer of the window."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        came = selector.select(PATIENCE_S)
    if came and process.stdout.read(len(answer)) == answer:
        return
    process.kill()
    process.wait()
    process.stdout.close()
    log.seek(0)
    words = log.read().decode("utf-8", "replace")
    reason = last_line(RuntimeError(words)) if words.strip() else "it does not answer"
    raise LowerscopeError(
        f"the window does not open: {reason}",
        where=title,
        todo="Without a display, explore(…, window=False) gives records and scripts",
        details=words,
    )
