"""Client of the engine or the worker: requests with answers by callback.

No call blocks on the child: it sends or queues a request, and the answer arrives later.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.queries import CANCEL_MS, OnProblem, OnProgress
from lowerscope.app.engine.child_process import QUEUED, ChildProcess, Ending
from lowerscope.app.engine.pending import (
    CANCELLED,
    Outstanding,
    Unanswered,
    doing,
)
from lowerscope.core.engine.protocol import (
    Approved,
    Cancel,
    Failure,
    Hello,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    Request,
    ToWindow,
    to_raw,
)
from lowerscope.core.files.approved import CODE
from lowerscope.core.model.machines import Remote, usual_limit
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, Role
from lowerscope.core.model.texts import _, english, keep_english
from lowerscope.core.sandbox import running_call
from lowerscope.core.sandbox.bubblewrap import NoSandbox
from lowerscope.core.sandbox.running_call import RunningCall

if TYPE_CHECKING:
    from lowerscope.app.engine.sandboxing import Sandboxing


# --- Restart policy of a child that crashed ---

FAILED_STARTS = 3
FAILED_STARTS_SECONDS = 30.0
"""A child that crashes this often within this many seconds, never ready, is not restarted."""

RESTART_DELAYS_MS = (0, 500, 1500)
"""Delay before a restart, by the number of crashes since it was last ready."""


class Restarting:
    """Counts crashes of a child before it was ready."""

    def __init__(self) -> None:
        self._deaths: list[float] = []

    def forget(self) -> None:
        """Reset the count: the child is ready, or the user has requested it."""
        self._deaths.clear()

    def note_death(self, was_ready: bool) -> int | None:
        """Return the milliseconds to wait before the next start; ``None`` to not restart it."""
        now = time.monotonic()
        self._deaths = [each for each in self._deaths if now - each < FAILED_STARTS_SECONDS]
        if not was_ready:
            self._deaths.append(now)
        count = len(self._deaths)
        return RESTART_DELAYS_MS[count] if count < FAILED_STARTS else None


# --- Start of the engine or the worker on this machine: its command and its sandbox ---


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

    Args:
        number: Number of the child among its client's.
        command: Program and arguments; ``None`` for this installation's own server, within
            `memory_limit`, which is in bytes.
        sandbox: The sandbox that it runs in, if enabled.

    Raises:
        NoSandbox: If it is enabled and cannot be created.
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


A = TypeVar("A")
State = Literal["starting", "ready", "busy", "stopped", "failed"]


class EngineClient(QObject):
    """A child process of the window, restarted whenever it crashes.

    Args:
        role: Role of the child.
        command: Program and arguments; by default this installation's own server, within
            `memory_limit`.
    """

    state_changed = Signal(str)  # The new `state`.
    log = Signal(str)  # Text that the child printed, as much of it as a window can show.
    printed = Signal(object)  # Everything that the child printed, as bytes.
    # The `Problem` of a request that would run an unapproved file; emitted before the request's own
    # callback.
    unseen = Signal(object)
    # The child was killed because it did not respond to a cancellation; the next one is starting,
    # with empty caches.
    killed = Signal()
    # The `Ending` of a child that crashed. It is being restarted, unless the state is ``"failed"``.
    crashed = Signal(object)

    def __init__(
        self,
        role: Role,
        *,
        command: Sequence[str] | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.role = role  # ``"engine"`` or ``"worker"``.
        # ``"starting"``: not yet ready for requests; ``"ready"``: idle; ``"busy"``: handling a
        # request; ``"stopped"``: not started, or stopped, or held until the user has decided what
        # happens without a sandbox; ``"failed"``: crashed too often, or kept stopped by the user;
        # `failure` says why, and `restart` tries again.
        self.state: State = "stopped"
        self.failure: Problem | None = None  # Why the state is ``"failed"``; ``None`` otherwise.
        # Bytes that the next child and its subprocesses may use in total; ``None`` for no limit. It
        # applies to the engine too, since opening a file can exhaust memory.
        self.memory_limit: int | None = usual_limit()
        # Returns the table of files that may run, sent to the child before a request; the same
        # object as long as its content is the same. ``None`` if any file may run.
        self.approved: Callable[[], Mapping[str, str] | None] | None = None
        # The sandbox that the next child runs in, if enabled; ``None`` for none.
        self.sandbox: Sandboxing | None = None
        self._told: Mapping[str, str] | None = None
        """The table of approved files that the child has."""
        self._command = command
        self._child: ChildProcess | None = None
        self._children = 0
        self._ready = False
        self._fatal: Problem | None = None
        self._outstanding = Unanswered(role, self)
        self._outstanding.answered.connect(self._update_state)
        # Whether the start is on hold: there is no sandbox, and the user has not decided yet.
        self._held = False
        self._decisions = 0
        self._restarting = Restarting()
        self._restart_timer = QTimer(self, singleShot=True)
        self._restart_timer.timeout.connect(self._start_child)

    @property
    def pid(self) -> int | None:
        """Process id of the child, which is also its process group; ``None`` if there is none."""
        return None if self._child is None else self._child.pid

    @property
    def call(self) -> RunningCall:
        """The call of a run that the child is executing."""
        return RunningCall() if self._child is None else self._child.call

    @property
    def part(self) -> str:
        """The part of the recipe that the child is applying: see `recipe.part_of`."""
        return self.call.part

    @property
    def hands_over(self) -> bool:
        """Return whether the child cannot write to user folders: see `engine.file_broker`."""
        return self.sandbox is not None and self.sandbox.is_on

    def reach(self, remote: Remote, go: Callable[[], None]) -> None:
        """Call `go` as soon as the child may reach a remote machine, once the user allows it."""
        if self.sandbox is None:
            go()
        else:
            self.sandbox.ask(remote, go)

    # --- the child ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the child, unless it runs or the user has to decide about its sandbox."""
        if self.state in ("stopped", "failed") and not self._held:
            self._restarting.forget()
            self._start_child()

    def stop(self) -> None:
        """Stop the child and its subprocesses within half a second; drop all requests."""
        self._restart_timer.stop()
        self._outstanding.clear()
        # Killed ones that have not ended yet are waited for, too: Qt must not destroy them before.
        for child in self.findChildren(ChildProcess):
            child.close()
        self._child = None
        self._ready = False
        self._let_go()
        self._set_state("stopped")

    def dismiss(self) -> None:
        """Kill the child and its subprocesses without waiting; drop all requests."""
        self._restart_timer.stop()
        self._outstanding.clear()
        if self._child is not None:
            # It outlives this object until it has ended.
            self._child.setParent(self.parent())
        self._abandon_child()
        self._let_go()
        self._set_state("stopped")

    def restart(self) -> None:
        """Restart the child; requests that were sent are reported as cancelled."""
        self._restart_timer.stop()
        self._restarting.forget()
        self._abandon_child()
        for each in self._outstanding.sent():
            self._outstanding.fail_soon(each, CANCELLED)
        self._start_child()

    def _start_child(self) -> None:
        self._abandon_child()
        self._children += 1
        self._told = None
        self._fatal = None
        self.failure = None
        if self.sandbox is not None and self.sandbox.waits:
            self._hold()
            return
        self._decisions = 0 if self.sandbox is None else self.sandbox.decisions
        try:
            child = new_child(
                self.role,
                self._children,
                self,
                command=self._command,
                memory_limit=self.memory_limit,
                sandbox=self.sandbox,
            )
        except NoSandbox as error:
            self._hold(str(error))
            return
        child.log.connect(self.log)
        child.printed.connect(self.printed)
        child.received.connect(self._receive, QUEUED)
        child.ended.connect(self._account_for_end, QUEUED)
        self._child = child
        self._set_state("starting")
        child.start()

    def _hold(self, reason: str = "") -> None:
        """Hold the start until the user has decided: there is no sandbox, for `reason`.

        Requests wait until then.
        """
        assert self.sandbox is not None
        if not self._held:
            self._held = True
            self.sandbox.decided.connect(self._go_on)
        self._set_state("stopped")
        if reason:
            self.sandbox.hold(reason)

    def _go_on(self) -> None:
        """Start the child as the user decided, or fail."""
        assert self.sandbox is not None
        self._let_go()
        if self.sandbox.state != "held":
            self._start_child()
            return
        self.failure = self.sandbox.problem
        for request in self._outstanding.all():
            self._outstanding.fail_soon(request, self.failure)
        self._set_state("failed")

    def _let_go(self) -> None:
        """Stop waiting for a decision."""
        if self._held:
            self._held = False
            assert self.sandbox is not None
            self.sandbox.decided.disconnect(self._go_on)

    def _abandon_child(self) -> None:
        self._ready = False
        if self._child is not None:
            self._child.abandon()
            self._child = None

    # --- requests -------------------------------------------------------------------------------

    def request(
        self,
        query: Query[A],
        on_result: Callable[[A], None],
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Send a query; it is queued until a child is ready for it.

        Args:
            on_result: Called with the answer.
            on_problem: Called instead, with the problem; its code is ``"cancelled"`` after a cancel
                and ``"crashed"`` when the child crashed. If the child was killed in a call of a
                run, ``where`` of the cancelled problem is that call. Neither is ever called before
                this returns.
            on_progress: Called with a description of the current work and the fraction done, or
                ``None``.

        Returns:
            The request's id, for `cancel` and `drop`.
        """
        assert query.child == self.role
        request = self._outstanding.add(query, on_result, on_problem, on_progress)
        if self.failure is not None:
            self._outstanding.fail_soon(request, self.failure)
        elif self._ready:
            self._send(request)
        return request.id

    def cancel(self, request_id: int, grace_ms: int = CANCEL_MS) -> None:
        """Cancel a request: its problem, with the code ``"cancelled"``, arrives within a second.

        A child that does not stop in time is killed; the other requests are sent to the next.
        Nothing happens if the request has been answered, cancelled or dropped.

        Args:
            grace_ms: Time for the child to stop by itself.
        """
        request = self._outstanding.get(request_id)
        if request is None or request.cancelled or request.dropped:
            return
        request.cancelled = True
        if not request.sent:
            self._outstanding.fail_soon(request, CANCELLED)
            return
        self._ask_to_stop(request)
        QTimer.singleShot(grace_ms, self, lambda: self._kill_for(request))

    @property
    def received_bytes(self) -> int:
        """Encoded size of the answer that is being delivered, in bytes."""
        return self._outstanding.received_bytes

    def under_way(self) -> dict[int, Query[Any]]:
        """Return the pending queries by request id."""
        return {
            each.id: each.query
            for each in self._outstanding.all()
            if not (each.cancelled or each.dropped or each.settled)
        }

    def drop(self, request_id: int) -> None:
        """Drop a request: none of its callbacks is called any more.

        The child is sent a cancellation, but is not killed if it does not stop.
        """
        request = self._outstanding.get(request_id)
        if request is None or request.dropped:
            return
        request.dropped = True
        if not request.sent:
            self._outstanding.forget(request)
        elif not request.cancelled:
            self._ask_to_stop(request)

    def abandon(self, request_id: int, grace_ms: int) -> None:
        """Drop a request and kill a child that does not stop: no callback is called any more.

        A child that is still handling it after `grace_ms` is killed.
        """
        # In this order: a dropped request can no longer be cancelled.
        self.cancel(request_id, grace_ms)
        self.drop(request_id)

    def _send_waiting(self) -> None:
        for request in self._outstanding.all():
            # A slot connected to the state change may have sent some, or stopped the child.
            if self._ready and not (request.sent or request.settled):
                self._send(request)
        self._update_state()

    def _send(self, request: Outstanding) -> None:
        assert self._child is not None
        request.at = ""
        approved = None if self.approved is None else self.approved()
        try:
            if approved is not self._told:
                self._child.send(Approved(None if approved is None else dict(approved)))
                self._told = approved
            self._child.send(
                Request(request.id, type(request.query).__name__, to_raw(request.query))
            )
        except ProtocolError as error:
            self._outstanding.fail_soon(
                request, Problem(what=_("The request cannot be sent: {error}", error=error))
            )
            return
        request.sent = True
        self._set_state("busy")

    def _ask_to_stop(self, request: Outstanding) -> None:
        assert self._child is not None
        self._child.send(Cancel(request.id))

    def _kill_for(self, request: Outstanding) -> None:
        """Kill the child if it is still handling the cancelled request."""
        if self._outstanding.get(request.id) is not request or not request.sent:
            return
        call = self.call
        for each in self._outstanding.all():
            if each.sent and (each.cancelled or each.dropped):
                stopped = msgspec.structs.replace(CANCELLED, where=call.text, calls=call.names)
                self._outstanding.fail_soon(each, stopped)
            each.sent = False  # resend to the next child what was not cancelled
        doing = english(request.query.doing)
        text = (
            f"Cancelled: {doing}. The {self.role} did not stop by itself and was killed. It is "
            "started anew, and what is open is derived once more.\n"
        )
        self.printed.emit(text.encode())
        self.log.emit(text)
        self._start_child()
        self.killed.emit()

    # --- answers --------------------------------------------------------------------------------

    def _receive(self, child: int, message: ToWindow) -> None:
        if self._child is None or child != self._children:
            return
        match message:
            case Hello():
                pass
            case Ready():
                self._ready = True
                self._restarting.forget()
                self._send_waiting()
            case Progress():
                self._outstanding.tell(message)
            case Reply():
                keep_english(message.english)
                self._outstanding.take(message)
            case Failure(id=0):
                self._fatal = message.problem
            case Failure():
                keep_english(message.english)
                failed = self._outstanding.get(message.id)
                if failed is not None:
                    if message.problem.code == CODE and not (failed.cancelled or failed.dropped):
                        self.unseen.emit(message.problem)
                    self._outstanding.fail(failed, message.problem)

    def _update_state(self) -> None:
        if self._ready:
            self._set_state("busy" if self._outstanding.sent() else "ready")

    # --- its end --------------------------------------------------------------------------------

    def _account_for_end(self, child: int, ending: Ending) -> None:
        if self._child is None or child != self._children:
            return
        if ending.how == "sandbox" and self.sandbox is not None:
            self._abandon_child()
            if self._decisions == self.sandbox.decisions:
                self._hold(ending.reason)
            else:
                self._go_on()  # the user has decided since it was started
            return
        lost = self._outstanding.sent()
        ending = dataclasses.replace(ending, during=doing(lost, ready=self._ready))
        was_ready = self._ready
        self._abandon_child()
        delay = self._restarting.note_death(was_ready)
        if self._fatal is not None or delay is None:
            self.failure = self._fatal or ending.start_problem()
            lost = self._outstanding.all()
        else:
            self._restart_timer.start(delay)
        for request in lost:
            self._outstanding.fail_soon(request, self.failure or ending.problem())
        self._set_state("starting" if self.failure is None else "failed")
        self.crashed.emit(ending)

    def _set_state(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)
