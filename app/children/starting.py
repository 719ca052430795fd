"""Start of the engine or the worker on this machine: its command and its sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowerscope.app.children.child_process import ChildProcess
from lowerscope.core.model.queries import Role
from lowerscope.core.running import running_call
from lowerscope.core.sandbox import NoSandbox

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from lowerscope.app.children.sandboxing import Sandboxing


def server_command(
    role: Role, calls_file: int | None = None, memory_limit: int | None = None
) -> tuple[str, ...]:
    """Return program and arguments; see `core.engine.server.serve`."""
    # -P: the model's folder, possibly the current one, must not shadow packages.
    command = (sys.executable, "-P", "-m", "lowerscope.core.engine.server", "--role", role)
    calls = () if calls_file is None else ("--calls", str(calls_file))
    memory = () if memory_limit is None else ("--memory-limit", str(memory_limit))
    return (*command, *calls, *memory)


def new_child(
    role: Role,
    number: int,
    parent: QObject,
    *,
    command: Sequence[str] | None,
    memory_limit: int | None,
    sandbox: Sandboxing | None,
) -> ChildProcess:
    """Return a new child, not yet started.

    Parameters
    ----------
    number
        Number of the child among its client's.
    command
        Program and arguments; ``None`` for this installation's own server, within `memory_limit`,
        which is in bytes.
    sandbox
        The sandbox that it runs in, if enabled.

    Raises
    ------
    NoSandbox
        If it is enabled and cannot be created.
    """
    calls_file = running_call.new_file() if command is None else None
    command = command or server_command(role, calls_file, memory_limit)
    enclosed = None
    if sandbox is not None:
        try:
            enclosed = sandbox.enclose(role, command, calls_file, memory_limit)
        except NoSandbox:
            if calls_file is not None:
                os.close(calls_file)
            raise
    return ChildProcess(
        role,
        enclosed or command,
        number,
        parent,
        calls_file=calls_file,
        enclosed=enclosed is not None,
    )
