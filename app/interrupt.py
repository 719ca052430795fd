"""Closing the window on Ctrl+C in the terminal and on log-out.

The document is saved then, as always when a window is closed.
"""

from __future__ import annotations

import signal
import socket
import sys

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication

_CLOSED = () if sys.platform == "win32" else (signal.SIGHUP,)
_ENDING = (signal.SIGINT, signal.SIGTERM, *_CLOSED)


def end_on_interrupt(application: QApplication) -> None:
    """Close the windows when the process gets SIGINT or SIGTERM, or its terminal is closed.

    Python runs its signal handlers between two bytecode instructions, whatever is running, and not
    while Qt waits. So the signal only writes to a socket that Qt watches.
    """
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read, application)

    def end() -> None:
        if set(reader.recv(64)) & set(_ENDING):
            application.closeAllWindows()

    notifier.activated.connect(end)
    # Both ends must live as long as the notifier.
    notifier.setProperty("sockets", (reader, writer))
    signal.set_wakeup_fd(writer.fileno())

    def leave_to_qt(_number: int, _frame: object) -> None:
        """Do nothing: the wakeup socket carries the signal."""

    for number in _ENDING:
        signal.signal(number, leave_to_qt)
