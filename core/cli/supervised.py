"""Supervision of commands that run a user's code in a child process, to report how it ended.

This module imports neither torch nor TVM: the process is forked before they are loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from lowerscope.core.cli import main
from lowerscope.core.cli.tune import PATIENCE, ended_soon
from lowerscope.core.files import console
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _
from lowerscope.core.sandbox import running_call

if TYPE_CHECKING:
    from lowerscope.core.export.folder import Painter

_DIE_WITH_PARENT = 1
"""Option of Linux's ``prctl`` that sets the signal a process gets when its parent ends."""

_MOST = 1024
"""Size limit of the name of a file and its line, in bytes."""

_OWN_CODE = Path(__file__).parents[1]


class _Outcome(ctypes.Structure):
    """Outcome of a command in memory shared with its supervisor.

    Pipes and files would be lost with the descriptors that a user's code closes.

    Attributes:
        silent: Whether an interrupt has discarded further messages.
        left_at: The line of a user's code that has called ``os._exit``; empty if none has.
    """

    _fields_ = (
        ("finished", ctypes.c_bool),
        ("code", ctypes.c_ubyte),
        ("lost", ctypes.c_bool),
        ("silent", ctypes.c_bool),
        ("stopping", ctypes.c_bool),
        ("left_at", ctypes.c_char * _MOST),
    )

    def finish(self, code: int) -> None:
        """Record the exit code."""
        self.code = code & 255
        self.finished = True


def run_supervised(arguments: Sequence[str], painter: Callable[[], Painter] | None = None) -> int:
    """Run a command of `cli.COMMANDS` in a child process and return the exit code.

    Where processes cannot be forked, the command ends this one.
    """
    if not hasattr(os, "fork"):
        with ended_soon("stopped", console.ERROR):
            return main.leave(main.main(arguments, painter))
    if arguments[0] != "run":
        return _Supervised(arguments, painter).code
    file = running_call.new_file()
    try:
        return _Supervised([*arguments, "--calls", str(file)], painter, file).code
    finally:
        os.close(file)


class _Supervised:
    """A child process that runs a command.

    Args:
        file: Descriptor of the file in which a ``run`` writes its current call; ``None`` for other
            commands.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        painter: Callable[[], Painter] | None,
        file: int | None = None,
    ) -> None:
        self._arguments, self._file = arguments, file
        self._outcome = _Outcome.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
        # Both processes would write buffered output.
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            _run_in_child(parent, self._outcome, arguments, painter)
        self.code = self._wait()

    def _wait(self) -> int:
        try:
            _other, status = os.waitpid(self._child, 0)
        except KeyboardInterrupt:
            return self._stop()
        outcome = self._outcome
        if outcome.finished and not (outcome.silent and outcome.code == console.ERROR):
            return int(outcome.code)
        self._explain(status)
        return console.ERROR

    def _stop(self) -> int:
        """Stop the process, or kill it, and report the current call."""
        place = self._place()
        outcome = self._outcome
        outcome.stopping = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGINT)
        # The process itself reports that it has stopped, and its partial results; a run cannot.
        end = time.monotonic() + PATIENCE * (2 if self._file is None else 1)
        with contextlib.suppress(KeyboardInterrupt):
            while time.monotonic() < end and not os.waitpid(self._child, os.WNOHANG)[0]:
                time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        if outcome.finished and (self._file is None or outcome.code != console.ERROR):
            return int(outcome.code)
        console.say(_("stopped ({place})", place=place) if place else _("stopped"))
        return console.ERROR

    def _place(self) -> str:
        """Return a description of the current call of a ``run``; empty if it is in none."""
        return "" if self._file is None else running_call.read(self._file).text

    def _explain(self, status: int) -> None:
        """Print one line on why the process has ended before the command was done."""
        where = _source(self._arguments)
        todo = _("Raise an error that describes the fault instead")
        if self._outcome.lost:
            what = _("the code has closed or replaced standard output or standard error")
            todo = _("Close only files that the code itself opened")
        elif os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = signal.Signals(number).name
            crashed, command = number in _CRASHES, self._arguments[0]
            if self._file is None:
                what = (
                    _("the command {command} crashed with {signal}", command=command, signal=name)
                    if crashed
                    else _(
                        "the command {command} was terminated by {signal}",
                        command=command,
                        signal=name,
                    )
                )
            elif crashed:
                what = _("the run crashed with {signal}", signal=name)
            else:
                what = _("the run was terminated by {signal}", signal=name)
            if place := self._place():
                what = _("{event} ({place})", event=what, place=place)
            todo = _ADVICE.get(name, _("Look for faulty native code or a faulty kernel"))
        elif self._outcome.silent:
            what = _("the code interrupts its own process")
        else:
            code, left_at = os.WEXITSTATUS(status), self._outcome.left_at.decode(errors="replace")
            where = left_at or where
            if left_at:
                what = _("the code ends its process by os._exit, with exit code {code}", code=code)
            else:
                what = _(
                    "the code ends its process before the command is done, with exit code {code}",
                    code=code,
                )
        console.say(LowerscopeError(what, where=where, todo=todo).problem.line())


_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE)
"""Signals of code that is at fault."""

_ADVICE = {
    "SIGFPE": _("Check the divisors: an integer is divided by zero"),
    "SIGTERM": _("Raise an error that describes the fault, if the code sends it"),
    "SIGKILL": _("The memory may have run out: make the inputs smaller, or give --memory-limit"),
    "SIGXCPU": _("Allow it more time"),
    "SIGXFSZ": _("Allow larger files"),
}


def _source(arguments: Sequence[str]) -> str:
    with contextlib.suppress(LowerscopeError):
        return str(getattr(main.parse(arguments), "source", None) or "")
    return ""


def _run_in_child(
    parent: int, outcome: _Outcome, arguments: Sequence[str], painter: Callable[[], Painter] | None
) -> NoReturn:
    """Run a command, record its exit code and end the process."""
    _take_interrupts(outcome, is_run=arguments[0] == "run")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # the parent has already ended
            os._exit(console.ERROR)
    console.watch_streams()
    _watch_exits(outcome)
    code, process, lost = console.ERROR, os.getpid(), False
    try:
        code = main.main(arguments, painter)
    except SystemExit as end:  # of --help
        code = end.code if isinstance(end.code, int) else code
    except console.Lost:
        lost = True
    if os.getpid() != process:  # a fork made by the user's code
        os._exit(code)
    if lost:
        outcome.lost = True
    else:
        outcome.finish(code)
    main.leave(code)


def _take_interrupts(outcome: _Outcome, *, is_run: bool) -> None:
    """Leave interrupts to the supervisor, which reads the current call and then stops this process.

    A terminal sends them to both processes.
    """
    stopped = False

    def interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal stopped
        if is_run:
            # An interrupt in a kernel looks like a fault of the kernel.
            outcome.silent = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)
            console.watch_streams()
        if outcome.stopping and not stopped:
            stopped = True
            signal.default_int_handler(signum, frame)

    signal.signal(signal.SIGINT, interrupt)


def _watch_exits(outcome: _Outcome) -> None:
    """Record which line of a user's code ends this process by ``os._exit``."""
    leave, process = os._exit, os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() == process and not (outcome.finished or outcome.lost):
            caller = sys._getframe(1)
            if Path(caller.f_code.co_filename).is_relative_to(_OWN_CODE):
                outcome.finish(status)
            else:
                place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
                outcome.left_at = place.encode(errors="replace")[-_MOST:]
        leave(status)

    os._exit = _exit
