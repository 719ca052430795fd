"""Ctrl+C in the terminal closes the window, as it does with other programs, and so does a log-out.

What is open is saved then, as always when a window is closed."""

from __future__ import annotations

import signal
import socket
import sys

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication

_CLOSED = () if sys.platform == "win32" else (signal.SIGHUP,)


def end_on_interrupt(application: QApplication) -> None:
    """Close the windows when the process gets SIGINT or SIGTERM, or its terminal is closed.

    Python runs its signal handlers between two steps of its own, and there are none while Qt
    waits. So the signal also writes to a socket that Qt watches.
    """
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read, application)

    def wake() -> None:
        reader.recv(64)

    notifier.activated.connect(wake)
    # Both ends live as long as the notifier.
    notifier.setProperty("sockets", (reader, writer))
    signal.set_wakeup_fd(writer.fileno())

    def end(_number: int, _frame: object) -> None:
        application.closeAllWindows()

    for number in (signal.SIGINT, signal.SIGTERM, *_CLOSED):
        signal.signal(number, end)
