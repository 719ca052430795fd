"""The command ``run`` in a process of its own: whatever ends it, the call under way is told.

This module imports neither torch nor TVM: the process is forked before they are there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from lowerscope.core import cli
from lowerscope.core.running import running_call

PATIENCE = 1.0
"""Seconds that a run has to stop by itself."""

_DIE_WITH_PARENT = 1
"""Of Linux's ``prctl``: the signal that a process gets when its parent has ended."""


def run_supervised(arguments: Sequence[str]) -> int:
    """Run ``run …`` and return the exit code.

    A run that has crashed is made once more with guarded memory, which names the call that spoils
    it. Where processes cannot be forked, the run ends this one.
    """
    if not hasattr(os, "fork"):
        return cli.leave(cli.main(arguments))
    file = running_call.new_file()
    # Whatever was buffered would be written by both.
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        return _run_in_child(parent, [*arguments, "--calls", str(file)])
    try:
        number = _end_of(child, file)
        if number <= 0:
            return -number
        place = running_call.read(file)
        text = f" {place.text}" if place.text else ""
        _say(f"the run crashed with {signal.Signals(number).name}{text}")
        if "--guarded" in arguments or not place.count:
            return cli.ERROR
        _say("running once more with guarded memory, to see who spoils it")
        return _run_guarded(parent, arguments, file)
    finally:
        os.close(file)


def _run_in_child(parent: int, arguments: Sequence[str]) -> int:
    # A terminal interrupts both. Only the first reads where the run is, and then asks it to stop.
    signal.signal(signal.SIGINT, _fall_silent)
    signal.signal(signal.SIGTERM, _stop)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(cli.ERROR)
    return cli.leave(cli.main(arguments))


def _fall_silent(signum: int, frame: object) -> None:
    """Say no more: what an interrupt looks like to a kernel is no fault of the kernel's.

    `_stopped` says what there is to say.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _stop(signum: int, frame: object) -> NoReturn:
    _fall_silent(signum, frame)
    raise KeyboardInterrupt


def _run_guarded(parent: int, arguments: Sequence[str], file: int) -> int:
    child = os.fork()
    if child == 0:
        return _run_in_child(parent, [*arguments, "--guarded", "--calls", str(file)])
    number = _end_of(child, file)
    if number > 0:
        place = running_call.read(file).text
        _say(f"with guarded memory it crashed with {signal.Signals(number).name} {place}".rstrip())
    return cli.ERROR


def _end_of(child: int, file: int) -> int:
    """Wait for a process; return the signal that it died of, or its exit code as -code."""
    try:
        _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        return _stopped(child, file)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)


def _stopped(child: int, file: int) -> int:
    """Let a process stop, or kill it, and say where it was."""
    place = running_call.read(file).text
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < end:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    elif os.WIFEXITED(status) and os.WEXITSTATUS(status) != cli.ERROR:
        return -os.WEXITSTATUS(status)  # it was over before it could be stopped
    _say(f"stopped {place}".rstrip())
    return -cli.ERROR


def _say(text: str) -> None:
    print(f"lowerscope: {text}", file=sys.stderr, flush=True)
