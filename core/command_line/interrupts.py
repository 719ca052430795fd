"""Ctrl+C in the terminal ends a command in time, whatever it is at."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from lowerscope.core.command_line import console

PATIENCE = 1.0
"""Seconds until an interrupt ends the process, if it has not stopped by itself."""


@contextlib.contextmanager
def ended_soon(text: str, code: int) -> Iterator[None]:
    """End this process where an interrupt in the body is not heard of in time.

    Python hears of it between two calls, and a call of TVM may take many seconds. What the process
    has started ends with it; what it leaves, the next start removes.

    Parameters
    ----------
    text
        What is said then.
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
        # One byte for each signal; none where the other end is closed.
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
