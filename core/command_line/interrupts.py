"""Prompt termination of long-running commands by Ctrl+C."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from lowerscope.core.command_line import console

PATIENCE = 1.0
"""Time that an interrupted process has to stop by itself, in seconds."""


@contextlib.contextmanager
def ended_soon(text: str, code: int) -> Iterator[None]:
    """End this process if an interrupt in the body is not handled in time.

    Python handles an interrupt between two calls, and a call of TVM may take many seconds. Child
    processes end with it; leftover files are removed at the next start.

    Parameters
    ----------
    text
        Message printed then.
    code
        The exit code.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    over = threading.Event()

    def watch() -> None:
        # One byte for each signal; none if the other end is closed.
        received = os.read(source, 1)
        while received and received[0] != signal.SIGINT:
            received = os.read(source, 1)
        if received and not over.wait(PATIENCE):
            console.say(text)
            os._exit(code)

    before = signal.set_wakeup_fd(sink)
    watching = threading.Thread(target=watch, name="interrupts", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(sink)
        watching.join()
        os.close(source)
