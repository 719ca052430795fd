"""The engine, or the worker, as the window knows it: requests with answers by callback.

Nothing here waits for the child: a call sends or queues, and what comes of it comes later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.children.child_process import QUEUED, ChildProcess, Ending
from lowerscope.app.children.outstanding import (
    CANCELLED,
    OnProblem,
    OnProgress,
    OnResult,
    Outstanding,
    Unanswered,
    doing,
)
from lowerscope.app.children.restarting import Restarting
from lowerscope.app.children.starting import new_child
from lowerscope.core.engine.methods import METHODS, MethodType
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
    Role,
    ToWindow,
    to_raw,
)
from lowerscope.core.errors import Problem
from lowerscope.core.memory_limit import usual_limit
from lowerscope.core.running.running_call import RunningCall
from lowerscope.core.sandbox import NoSandbox
from lowerscope.core.sources.approved_files import CODE

if TYPE_CHECKING:
    from lowerscope.app.children.sandboxing import Sandboxing

CANCEL_MS = 700
"""A child that has not answered a cancel by then is killed."""

State = Literal["starting", "ready", "busy", "stopped", "failed"]


class EngineClient(QObject):
    """One child of the window, started anew whenever it dies.

    Signals
    -------
    state_changed(str)
        The new `state`.
    log(str)
        Text that the child printed, as much of it as a window can show.
    printed(object)
        All that the child printed, as bytes.
    unseen(object)
        The `Problem` of a request that would run a file that is not approved; the request is told
        next.
    killed()
        The child was killed because it did not stop for a cancel; the next one is starting, and
        has nothing of what this one kept.
    crashed(object)
        The `Ending` of a child that died by itself. It is being started anew, unless the state is
        ``"failed"``.

    Attributes
    ----------
    role
        ``"engine"`` or ``"worker"``.
    state
        ``"starting"``: not yet ready for requests; ``"ready"``: idle; ``"busy"``: at work;
        ``"stopped"``: not started, or stopped, or held until the user has decided what happens
        without a sandbox; ``"failed"``: died so often that it was given up, or kept stopped by the
        user, `failure` says why and `restart` tries again.
    failure
        Why the state is ``"failed"``; ``None`` otherwise.
    memory_limit
        Bytes that the next child may have, and all that it starts together; ``None`` for any
        number. The engine, too, opens files that ask for more than there is.
    approved
        Returns the table of files that may run, which the child is to have before each request;
        the same object as long as it says the same. ``None`` where any may.
    sandbox
        What the next child runs in, if it is on; ``None`` for none.

    Parameters
    ----------
    role
        Which child.
    command
        Program and arguments; by default this installation's own server, within `memory_limit`.
    methods
        What the child can be asked for.
    """

    state_changed = Signal(str)
    log = Signal(str)
    printed = Signal(object)
    unseen = Signal(object)
    killed = Signal()
    crashed = Signal(object)

    def __init__(
        self,
        role: Role,
        *,
        command: Sequence[str] | None = None,
        methods: Mapping[str, MethodType] = METHODS,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.role = role
        self.state: State = "stopped"
        self.failure: Problem | None = None
        self.memory_limit: int | None = usual_limit()
        self.approved: Callable[[], Mapping[str, str] | None] | None = None
        self.sandbox: Sandboxing | None = None
        self._told: Mapping[str, str] | None = None
        """The table that the child has."""
        self._command = command
        self._methods = methods
        self._child: ChildProcess | None = None
        self._children = 0
        self._ready = False
        self._fatal: Problem | None = None
        self._outstanding = Unanswered(role, methods, self)
        self._outstanding.answered.connect(self._update_state)
        # Whether it is not started because there is no sandbox, and the user has not decided yet.
        self._held = False
        self._decisions = 0
        self._restarting = Restarting()
        self._restart_timer = QTimer(self, singleShot=True)
        self._restart_timer.timeout.connect(self._start_child)

    @property
    def pid(self) -> int | None:
        """The child's process, which is also its process group; ``None`` when there is none."""
        return None if self._child is None else self._child.pid

    @property
    def call(self) -> RunningCall:
        """Which call of a run the child is in."""
        return RunningCall() if self._child is None else self._child.call

    @property
    def hands_over(self) -> bool:
        """Whether the child may not write into folders of the user: see `children.handing_over`."""
        return self.sandbox is not None and self.sandbox.is_on

    # --- the child ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the child, unless it runs, or the user is to decide about its sandbox."""
        if self.state in ("stopped", "failed") and not self._held:
            self._restarting.forget()
            self._start_child()

    def stop(self) -> None:
        """End the child and all that it started, within half a second; forget all requests."""
        self._restart_timer.stop()
        self._outstanding.clear()
        if self._child is not None:
            self._child.close()
            self._child = None
        self._ready = False
        self._let_go()
        self._set_state("stopped")

    def dismiss(self) -> None:
        """Kill the child and all that it started, and wait for nothing; forget all requests."""
        self._restart_timer.stop()
        self._outstanding.clear()
        if self._child is not None:
            # It outlives this object until it has ended.
            self._child.setParent(self.parent())
        self._abandon_child()
        self._let_go()
        self._set_state("stopped")

    def restart(self) -> None:
        """Kill the child and start anew; requests that were sent are reported as cancelled."""
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
        """Start no child until the user has decided: there is no sandbox, for `reason`.

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
        """Start the child as the user has decided, or fail."""
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
        """Wait for no decision any more."""
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
        method: str,
        params: msgspec.Struct,
        on_result: OnResult,
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Ask for `method`; it waits until there is a child that is ready for it.

        Parameters
        ----------
        method, params
            A name in the table of methods, and the struct that it takes.
        on_result
            Called with the result.
        on_problem
            Called instead, with the problem; its code is ``"cancelled"`` after a cancel and
            ``"crashed"`` when the child died. Where the child was killed in a call of a run,
            ``where`` of the cancelled problem is that call. Neither is ever called before this
            returns.
        on_progress
            Called with what is being done and the share of it that is done, or ``None``.

        Returns
        -------
        int
            The request's id, for `cancel` and `drop`.
        """
        assert isinstance(params, self._methods[method].params)
        request = self._outstanding.add(method, params, on_result, on_problem, on_progress)
        if self.failure is not None:
            self._outstanding.fail_soon(request, self.failure)
        elif self._ready:
            self._send(request)
        return request.id

    def cancel(self, request_id: int, grace_ms: int = CANCEL_MS) -> None:
        """Stop a request: its problem, with the code ``"cancelled"``, comes within a second.

        A child that does not stop by itself is killed; the other requests are sent to the next.
        Nothing happens if the request has been answered, cancelled or dropped.

        Parameters
        ----------
        grace_ms
            Time that the child has to stop by itself.
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

    def under_way(self) -> dict[int, str]:
        """Return the methods of the requests whose answers are still wanted, by id."""
        return {
            each.id: each.method
            for each in self._outstanding.all()
            if not (each.cancelled or each.dropped or each.settled)
        }

    def drop(self, request_id: int) -> None:
        """Forget a request: none of its callbacks is called any more.

        The child is asked to stop it, and is not killed if it does not.
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
        """Forget a request: none of its callbacks is called any more.

        A child that is still at it after `grace_ms` is killed.
        """
        # In this order: what was dropped cannot be cancelled any more.
        self.cancel(request_id, grace_ms)
        self.drop(request_id)

    def _send_waiting(self) -> None:
        for request in self._outstanding.all():
            # A slot that hears of the new state may have sent some, or stopped the child.
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
            self._child.send(Request(request.id, request.method, to_raw(request.params)))
        except ProtocolError as error:
            self._outstanding.fail_soon(
                request, Problem(what=f"The request cannot be sent: {error}")
            )
            return
        request.sent = True
        self._set_state("busy")

    def _ask_to_stop(self, request: Outstanding) -> None:
        assert self._child is not None
        self._child.send(Cancel(request.id))

    def _kill_for(self, request: Outstanding) -> None:
        """Kill the child, if it is still at work on what was cancelled."""
        if self._outstanding.get(request.id) is not request or not request.sent:
            return
        call = self.call
        for each in self._outstanding.all():
            if each.sent and (each.cancelled or each.dropped):
                stopped = msgspec.structs.replace(CANCELLED, where=call.text, calls=call.names)
                self._outstanding.fail_soon(each, stopped)
            each.sent = False  # what was not cancelled is sent again, to the next child
        doing = request.at or self._methods[request.method].doing
        text = (
            f"Cancelled: {doing}. The {self.role} did not stop by itself and was killed. It is"
            " started anew, and what is open is derived once more.\n"
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
                self._outstanding.take(message)
            case Failure(id=0):
                self._fatal = message.problem
            case Failure():
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
        ending = dataclasses.replace(ending, during=doing(lost, self._methods, ready=self._ready))
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
