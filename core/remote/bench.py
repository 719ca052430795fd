"""Measurement of tuning candidates, here or on another machine."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
import tvm
from tvm import tirx

from lowerscope.core.build.build import compile_function
from lowerscope.core.model.machines import Remote
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, Problem, last_line
from lowerscope.core.model.progress import SILENT, Progress
from lowerscope.core.model.texts import _
from lowerscope.core.remote.running import check_runs_there, machine_of_server, use_threads_there
from lowerscope.core.remote.session import LOST, WAIT, Session, Tracker, sent_to, ship_function
from lowerscope.core.run.tuning.measurers import (
    PATIENCE,
    Bench,
    LocalMeasurer,
    Message,
    Outcome,
    Subject,
)

_ENTRY = "alone"


class RemoteBench(Bench):
    """Bench with a session on a server; a lost server is replaced by another one.

    A candidate may have killed the server that was lost with it: it is not retried.
    """

    is_here = False

    def __init__(self, remote: Remote, threads: int) -> None:
        super().__init__()
        self._remote = remote
        self._threads = threads
        self._session: Session | None = None
        self._sent: dict[int, tuple[Sequence[Any], list[Any]]] = {}

    def take(self, message: Message) -> Outcome:
        """See `Bench`; returns a problem if no server is left."""
        problem = self._connected(message)
        if problem is not None:
            return Outcome(reason=problem.what, problem=problem)
        outcome = super().take(message)
        if isinstance(message, Subject) and self._lost:
            self.forget(message.number)
            problem = self._connected(message)
            if problem is not None:
                return Outcome(reason=problem.what, problem=problem)
            outcome = super().take(message)
        return outcome

    @property
    def _lost(self) -> bool:
        return self._session is not None and self._session.is_over

    def _connected(self, message: Message) -> Problem | None:
        """Connect if there is no connection; return the problem if that fails."""
        if self._session is not None and not self._session.is_over:
            return None
        self._sent.clear()
        try:
            opened = Session(self._remote, SILENT, WAIT)
            machine = machine_of_server(opened)
            if isinstance(message, Subject):
                check_runs_there(tvm.target.Target(message.target), machine, opened.where)
            use_threads_there(opened, self._threads, machine.threads)
        except LowerscopeError as error:
            if error.problem.code == LOST:
                return self._connected(message)
            return error.problem
        self._session = opened
        return None

    def compiled(self, function: tirx.PrimFunc, target: tvm.target.Target) -> Any:
        """Compile here, and upload the result.

        Raises a `LowerscopeError` if TVM cannot compile it.
        """
        assert self._session is not None, "it connects before it is asked to measure"
        try:
            built = compile_function(_ENTRY, function, target)
        except TVM_ERRORS as error:
            raise LowerscopeError(
                _("TVM could not compile the function: {last_line}", last_line=last_line(error)),
                where="tune",
            ) from error
        return _There(self._session, ship_function(self._session, built))

    def seconds(self, compiled: Any, arguments: Sequence[Any], number: int) -> float:
        """Return the time measured by the server's clock; the tensors are sent once."""
        key = id(arguments)
        if key not in self._sent:
            self._sent[key] = arguments, compiled.sent(arguments)
        return float(compiled.timed(self._sent[key][1], number))


class _There:
    """A function on a server."""

    def __init__(self, session: Session, module: Any) -> None:
        self._session = session
        self._module = module
        self._device = session.device()

    def sent(self, arguments: Sequence[Any]) -> list[Any]:
        """Return copies of tensors on the server."""
        return self._session.call(
            _("sending tensors"), lambda: [sent_to(self._device, each) for each in arguments]
        )

    def call(self, arguments: Sequence[Any]) -> None:
        """Call it once with local tensors, and copy the results back to them."""
        sent = self.sent(arguments)
        self._session.call(_("running a function"), lambda: self._module[_ENTRY](*sent))

        def fetch() -> None:
            for ours, theirs in zip(arguments, sent, strict=True):
                if all(ours.shape):
                    theirs.copyto(ours)

        self._session.call(_("fetching tensors"), fetch)

    def timed(self, sent: Sequence[Any], number: int) -> float:
        """Return the mean time of `number` calls, after a warm-up call."""

        def measure() -> float:
            evaluator = self._module.time_evaluator(_ENTRY, self._device, number=number, repeat=1)
            return float(evaluator(*sent).mean)

        return self._session.call(_("measuring a function"), measure)


CANDIDATE = 20.0
"""Time limit of one answer about a candidate, in seconds: it is one of many."""


def measurer_of(remote: Remote | None, threads: int, progress: Progress) -> LocalMeasurer:
    """Return the measurer for this machine, or for another one.

    Raises a `LowerscopeError` if there is no tracker, or no server with the key.
    """
    if remote is None:
        return LocalMeasurer(progress.check)
    with contextlib.closing(Tracker(remote)) as tracker:
        tracker.check_known(progress)
    limited = msgspec.structs.replace(remote, timeout=min(remote.timeout, CANDIDATE))
    words = (msgspec.json.encode(limited).decode(), str(threads))
    # A slow candidate is stopped on the server before the process here is killed.
    return LocalMeasurer(progress.check, PATIENCE + 3 * limited.timeout, words)
