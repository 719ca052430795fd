"""The command that starts the engine, or the worker, on this machine."""

from __future__ import annotations

import sys

from lowerscope.core.engine.protocol import Role


def server_command(
    role: Role, calls_file: str = "", memory_limit: int | None = None
) -> tuple[str, ...]:
    """Return program and arguments; see `core.engine.server.serve`."""
    # -P: a model's folder, where the window may have been started, must not shadow packages.
    command = (sys.executable, "-P", "-m", "lowerscope.core.engine.server", "--role", role)
    calls = ("--calls", calls_file) if calls_file else ()
    memory = () if memory_limit is None else ("--memory-limit", str(memory_limit))
    return (*command, *calls, *memory)
