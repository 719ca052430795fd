"""A child process, from start to end: frames, log, and diagnosis of its end."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Qt, QTimer, Signal

from lowerscope.app.engine.messages import REASON_CHARACTERS, Incoming, printable, shortened
from lowerscope.core.engine.protocol import (
    VERSION,
    Hello,
    ProtocolError,
    Ready,
    ToChild,
    ToWindow,
    encode_frame,
)
from lowerscope.core.files.in_memory import first_other_descriptor
from lowerscope.core.files.paths import cache_folder
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _
from lowerscope.core.sandbox import bubblewrap, running_call, temporary_files
from lowerscope.core.sandbox.running_call import RunningCall
from lowerscope.core.sandbox.supervisor import SAYS
from lowerscope.core.sandbox.temporary_files import COMPILED

LOG_INTERVAL_MS = 30
LOG_LIMIT = 2**18
"""Maximum characters of the log passed on in one interval; the rest is left out."""

LOG_TAIL = 16_000
"""Characters of the log kept for the diagnosis of a crash."""

CLOSE_MS = 300
KILL_MS = 5000
"""The kernel may be slow to free the memory of a killed process."""

_OF_SIGNAL = 128
"""Exit codes above this mean, in a shell's convention, that a signal killed the process."""

_SAYS_SANDBOX = re.compile(rf"^(?:{bubblewrap.PROGRAM}|{SAYS}): (.+)$", re.MULTILINE)

How = Literal["signal", "exit", "garbage", "start", "memory", "processes", "sandbox"]


ROLES = {"engine": _("engine"), "worker": _("worker")}
"""Names of the children in texts."""

_KILLED = (
    _("The {role} was killed; the memory may have run out"),
    _("The {role} was killed while {doing}; the memory may have run out"),
)
_STOPPED = (
    _("The {role} was stopped: {reason}"),
    _("The {role} was stopped while {doing}: {reason}"),
)
_ENDINGS: Mapping[How, tuple[str, str]] = {
    "signal": (
        _("The {role} crashed with {signal_name}"),
        _("The {role} crashed with {signal_name} while {doing}"),
    ),
    "exit": (
        _("The {role} exited with code {exit_code}"),
        _("The {role} exited with code {exit_code} while {doing}"),
    ),
    "garbage": (
        _("The {role} sent an invalid message: {reason}"),
        _("The {role} sent an invalid message while {doing}: {reason}"),
    ),
    "start": (_("The {role} could not be started: {reason}"), ""),
    "memory": _STOPPED,
    "processes": _STOPPED,
    "sandbox": (_("There is no sandbox for the {role}: {reason}"), ""),
}
"""Descriptions of endings, for an idle child and for one at work."""


@dataclass(frozen=True)
class Ending:
    """The unrequested end of a child."""

    role: str  # ``"engine"`` or ``"worker"``.
    # ``"signal"``: killed by one; ``"exit"``: exited by itself; ``"garbage"``: killed after it sent
    # an invalid message; ``"start"``: it could not be started; ``"memory"``: killed with its
    # subprocesses for exceeding the memory limit; ``"processes"``: killed with its subprocesses,
    # which were too many; ``"sandbox"``: the system could not create its sandbox.
    how: How
    exit_code: int = 0  # Exit code of an exit; 0 otherwise.
    signal_name: str = ""  # Name such as ``SIGSEGV``; empty for none.
    # Description of its current work, in words that follow "while"; empty if idle.
    during: str = ""
    # The call of a run that it was executing.
    call: RunningCall = field(default_factory=RunningCall)
    # Why its message was invalid, why it could not be started, or how much memory it used.
    reason: str = ""
    log_tail: str = ""  # The last lines of its log.

    def __str__(self) -> str:
        """Return one sentence without a full stop."""
        doing = self.during
        if doing and self.call.text:
            doing = _("{activity} ({place})", activity=doing, place=self.call.text)
        is_killed = self.how == "signal" and self.signal_name == "SIGKILL"
        idle, busy = _KILLED if is_killed else _ENDINGS[self.how]
        return (busy if doing and busy else idle).format(
            role=ROLES[self.role],
            doing=doing,
            signal_name=self.signal_name,
            exit_code=self.exit_code,
            reason=self.reason,
        )

    def problem(self) -> Problem:
        """Return the problem of a request that was lost with the child."""
        if self.how == "memory":
            return Problem(
                what=str(self),
                todo=_(
                    "Allow more memory (Tools → Memory limit of the worker…), or make the "
                    "inputs smaller"
                ),
                code="memory",
                details=self.log_tail,
                calls=self.call.names,
            )
        if self.how == "processes":
            return Problem(
                what=str(self),
                todo=_(
                    "Make the code start fewer processes and threads: look for a fork or a "
                    "thread in a loop"
                ),
                code="processes",
                details=self.log_tail,
                calls=self.call.names,
            )
        return Problem(
            what=str(self),
            todo=_(
                "The {role} restarts by itself; undo what led to this, or try again",
                role=ROLES[self.role],
            ),
            code="crashed",
            details=self.log_tail,
            calls=self.call.names,
        )

    def start_problem(self) -> Problem:
        """Return the problem shown once the child is no longer restarted."""
        return Problem(
            what=_("The {role} does not start. {reason}", role=ROLES[self.role], reason=self),
            todo=_("Read the log, correct the cause, and restart it"),
            code="crashed",
            details=self.log_tail,
        )


class ChildProcess(QObject):
    """A child that leads a session of its own, and thus a process group.

    Args:
        role: ``"engine"`` or ``"worker"``, for the diagnosis of its end.
        command: Program and arguments.
        number: Distinguishes this child's messages from those of previous ones.
        calls_file: The descriptor of the file in which the child records the current call of a run;
            closed when the child has ended; ``None`` for none.
        enclosed: Whether `command` runs it in a sandbox.
    """

    received = Signal(int, object)  # The child's number and a message; `Hello` comes first.
    # Text that the child wrote to stderr, at most `LOG_LIMIT` characters in an interval.
    log = Signal(str)
    printed = Signal(object)  # Everything that the child wrote to stderr, as bytes.
    # The child's number and its `Ending`. Not sent after `close` or `abandon`.
    ended = Signal(int, object)

    def __init__(
        self,
        role: str,
        command: Sequence[str],
        number: int,
        parent: QObject | None = None,
        *,
        calls_file: int | None = None,
        enclosed: bool = False,
    ) -> None:
        super().__init__(parent)
        self.enclosed = enclosed
        self._role = role
        self._calls = calls_file
        self._number = number
        self._incoming = Incoming()
        self._greeted = self._is_ready = False
        self._given_up = False
        self._violation = ""
        self._group: int | None = None
        # In a sandbox they are in memory, and vanish with it.
        self._temporary = "" if enclosed else temporary_files.new_folder()

        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._log_waiting = ""
        self._log_left_out = 0
        self._log_tail = ""
        self._read_on = QTimer(self, singleShot=True, interval=0)
        self._read_on.timeout.connect(self._read_messages)
        self._log_timer = QTimer(self, singleShot=True, interval=LOG_INTERVAL_MS)
        self._log_timer.timeout.connect(self._pass_log_on)

        self._process = QProcess(self)
        self._process.setProgram(command[0])
        self._process.setArguments(list(command[1:]))
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        environment.insert("PYTHONIOENCODING", "utf-8:backslashreplace")
        # torch's compilation cache is shared with the next child.
        compiled = environment.value(COMPILED, str(cache_folder() / temporary_files.TORCH))
        environment.insert(COMPILED, compiled)
        if self._temporary:
            environment.insert("TMPDIR", self._temporary)
        self._process.setProcessEnvironment(environment)
        if sys.platform != "win32":
            flags = QProcess.UnixProcessFlag
            parameters = QProcess.UnixProcessParameters()
            parameters.flags = (
                flags.CreateNewSession | flags.CloseFileDescriptors | flags.ResetSignalHandlers
            )
            kept = first_other_descriptor()
            parameters.lowestFileDescriptorToClose = max(kept, (calls_file or 0) + 1)
            self._process.setUnixProcessParameters(parameters)
        self._process.readyReadStandardOutput.connect(self._read_messages)
        self._process.readyReadStandardError.connect(self._read_log)
        self._process.errorOccurred.connect(self._report_failed_start)
        self._process.finished.connect(self._finish)

    @property
    def pid(self) -> int | None:
        """Process id, which is also the process group; ``None`` if it does not run."""
        return self._group

    @property
    def call(self) -> RunningCall:
        """The current call of a run, or the one in which the process ended."""
        return RunningCall() if self._calls is None else running_call.read(self._calls)

    def start(self) -> None:
        if self._calls is not None:
            os.set_inheritable(self._calls, True)
        self._process.start()
        if self._calls is not None:
            # No other child of the window inherits it.
            os.set_inheritable(self._calls, False)
        self._group = self._process.processId() or None

    def send(self, message: ToChild) -> None:
        """Write `message`, now or as soon as the pipe takes it.

        Raises:
            ProtocolError: If the message is too long.
        """
        self._process.write(encode_frame(message))

    def close(self) -> None:
        """End the process and its subprocesses: request it, wait briefly, then kill them."""
        self._hear_no_more()
        self._process.closeWriteChannel()
        self._process.waitForFinished(CLOSE_MS)
        self._kill()
        self._process.waitForFinished(KILL_MS)
        self._forget()

    def abandon(self) -> None:
        """Kill the process and its subprocesses at once, without further signals."""
        self._hear_no_more()
        running = self._process.state() != QProcess.ProcessState.NotRunning
        self._kill()
        if not running:
            self._forget()

    def _hear_no_more(self) -> None:
        self._pass_log_on()
        self._given_up = True
        for channel in (
            QProcess.ProcessChannel.StandardOutput,
            QProcess.ProcessChannel.StandardError,
        ):
            # Otherwise all output until its end would be buffered.
            self._process.closeReadChannel(channel)

    def _kill(self) -> None:
        if sys.platform != "win32" and self._group is not None:
            # Neither is an error: the process group has ended or (macOS) is ending.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)
            self._group = None
        self._process.kill()

    def _forget(self) -> None:
        """Clean up: the process has ended and is no longer used."""
        if self._calls is not None:
            os.close(self._calls)
            self._calls = None
        if self._temporary:
            folder, self._temporary = self._temporary, ""
            # No daemon thread: a window that is closed meanwhile exits when it is done.
            remove = temporary_files.remove_folder
            threading.Thread(target=remove, args=(folder,), name="temporary files").start()
        self.deleteLater()

    def _read_messages(self) -> None:
        data = bytes(self._process.readAllStandardOutput().data())
        if self._given_up or self._violation:
            return
        try:
            for message in self._incoming.read(data):
                self._check_order(message)
                self.received.emit(self._number, message)
        except ProtocolError as error:
            self._violation = shortened(str(error), REASON_CHARACTERS)
            self._kill()
        if self._incoming.has_more:
            self._read_on.start()

    def _check_order(self, message: ToWindow) -> None:
        """Raise `ProtocolError` unless `Hello` comes first and only once, and `Ready` once."""
        if isinstance(message, Hello) and message.version != VERSION:
            raise ProtocolError(f"it speaks version {message.version}, and not {VERSION}")
        if isinstance(message, Hello) and message.role != self._role:
            raise ProtocolError(f"it says that it is {message.role!r}")
        if isinstance(message, Hello) == self._greeted:
            raise ProtocolError(f"unexpected message {type(message).__name__}")
        if isinstance(message, Ready) and self._is_ready:
            raise ProtocolError("it is ready for a second time")
        self._greeted = True
        self._is_ready = self._is_ready or isinstance(message, Ready)

    def _read_log(self) -> None:
        data = bytes(self._process.readAllStandardError().data())
        if self._given_up or not data:
            return
        self.printed.emit(data)
        self._take_log(self._decode(data))

    def _take_log(self, text: str) -> None:
        room = LOG_LIMIT - len(self._log_waiting)
        self._log_left_out += max(0, len(text) - room)
        self._log_waiting += text[:room]
        self._log_tail = (self._log_tail + text)[-LOG_TAIL:]
        if not self._log_timer.isActive():
            self._log_timer.start()

    def _pass_log_on(self) -> None:
        text = self._log_waiting
        if self._log_left_out:
            text += f"\n… {self._log_left_out} characters left out here, not in the whole log\n"
        self._log_waiting = ""
        self._log_left_out = 0
        if text and not self._given_up:
            self.log.emit(text)

    def _report_failed_start(self, error: QProcess.ProcessError) -> None:
        # Every other error is followed by `finished`.
        if error != QProcess.ProcessError.FailedToStart:
            return
        if self._given_up:
            self._forget()
            return
        how: How = "sandbox" if self.enclosed else "start"
        reason = self._process.errorString()
        self.ended.emit(self._number, Ending(self._role, how, reason=reason))

    def _finish(self, code: int, status: QProcess.ExitStatus) -> None:
        self._read_messages()
        self._read_log()
        self._take_log(self._decode(b"", True))
        self._pass_log_on()
        self._kill()  # its subprocesses may still be running
        if self._given_up:
            self._forget()
            return
        self.ended.emit(self._number, self._ending(code, status))

    def _ending(self, code: int, status: QProcess.ExitStatus) -> Ending:
        call, tail = self.call, printable(self._log_tail).strip()
        if self._violation:
            return Ending(self._role, "garbage", reason=self._violation, log_tail=tail)
        if call.too_much:
            held = _(
                "it and its children used {too_much} of memory",
                too_much=bytes_text(call.too_much),
            )
            return Ending(self._role, "memory", call=call, reason=held, log_tail=tail)
        if call.too_many:
            tasks = _(
                "it and its children had {too_many} processes and threads",
                too_many=call.too_many,
            )
            return Ending(self._role, "processes", call=call, reason=tasks, log_tail=tail)
        if self.enclosed and code > _OF_SIGNAL:
            # The program that makes the sandbox exits normally, with the signal in its exit code.
            status, code = QProcess.ExitStatus.CrashExit, code - _OF_SIGNAL
        elif self.enclosed and not self._greeted and (said := _SAYS_SANDBOX.search(tail)):
            return Ending(self._role, "sandbox", reason=said[1], log_tail=tail)
        if status == QProcess.ExitStatus.NormalExit:
            return Ending(self._role, "exit", exit_code=code, call=call, log_tail=tail)
        try:
            name = signal.Signals(code).name
        except ValueError:
            name = f"signal {code}"
        return Ending(self._role, "signal", signal_name=name, call=call, log_tail=tail)


QUEUED = Qt.ConnectionType.QueuedConnection
"""Connection type for a child's messages: a slot that opens a dialog must not block the next."""
