"""The children's sandbox: whether it is used, and what it gives access to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.settings import Settings
from lowerscope.core.files.in_memory import handed_descriptors
from lowerscope.core.model.machines import Remote
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Role
from lowerscope.core.model.texts import _, sentences
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.bubblewrap import NoSandbox
from lowerscope.core.sandbox.folder import own_folder

State = Literal["on", "off", "missing", "held", "refused"]


class Sandboxing(QObject):
    """The sandbox of the engine, of the worker, and of the tuning process."""

    # `state` or `has_network` changed: children have to be restarted for it.
    changed = Signal()
    # The system could not create a sandbox, `availability` says why: no child starts until the user
    # has decided.
    held = Signal()
    # The user has decided: waiting children may be started, or report `problem`.
    decided = Signal()
    # The user has to decide whether the worker may reach the network for a `Remote`.
    network_wanted = Signal(object)

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._program = bubblewrap.program()
        self._is_wanted = settings.sandbox
        # Why there is none, and whether the user has let code run without one in this session.
        self._reason = ""
        self._goes_without = False
        self._stays_stopped = False
        self._asked: tuple[Remote, Callable[[], object]] | None = None
        self._declined: set[str] = set()
        self.has_network = False  # Whether the worker reaches the network from its sandbox.
        self.decisions = 0  # Number of decisions about running without a sandbox.

    @property
    def state(self) -> State:
        """``"on"``; ``"off"`` by choice; ``"missing"`` from the system.

        If the system could not create one, ``"held"`` until the user has decided, and ``"refused"``
        when code may run without one.
        """
        if self._program is None:
            return "missing"
        if not self._is_wanted:
            return "off"
        if self._goes_without:
            return "refused"
        return "held" if self._reason else "on"

    @property
    def is_on(self) -> bool:
        """Return whether the next child runs in a sandbox, or not at all."""
        return self.state in ("on", "held")

    @property
    def availability(self) -> str:
        """Status of the sandbox in one line, for tool tips and settings."""
        anything = _("Opened code has all of your permissions.")
        match self.state:
            case "on":
                return self._said_on()
            case "off":
                return anything
            case "missing":
                missing = _("There is no sandbox: install bubblewrap (bwrap).")
                return sentences(missing, anything)
            case "refused":
                return sentences(self.reason, anything)
            case "held":
                return _("{reason} No code runs until you decide.", reason=self.reason)

    @property
    def reason(self) -> str:
        """The reason that the system cannot create a sandbox, as a sentence."""
        return _("The system cannot create a sandbox ({reason}).", reason=self._reason)

    @property
    def problem(self) -> Problem:
        """The problem of requests while no code may run without a sandbox."""
        what = _("no code runs: the system cannot create a sandbox ({reason})", reason=self._reason)
        todo = _("Retry with Tools → Restart engine and worker")
        return Problem(what=what, todo=todo, code="sandbox")

    def _said_on(self) -> str:
        if self.has_network:
            return _(
                "Opened code can write only temporary files; the worker has network access, to "
                "reach another machine."
            )
        return _("Opened code can write only temporary files, and has no network.")

    def set_wanted(self, on: bool) -> None:
        """Enable or disable the sandbox from now on, and store that."""
        self._settings.sandbox = on
        self._is_wanted = on
        self.try_again()

    def enclose(
        self,
        role: Role,
        command: Sequence[str],
        calls_file: int | None = None,
        memory: int | None = None,
    ) -> tuple[str, ...] | None:
        """Return the command that starts a child in the sandbox; ``None`` if it runs in none.

        A window that is itself in a sandbox starts its children in the same one.

        Raises:
            NoSandbox: If it has to run in a sandbox that cannot be created. See `hold`.
        """
        if not self.is_on or self._program is None or bubblewrap.is_inside():
            return None
        if self._stays_stopped:
            self._reason, self._stays_stopped = "", False
            self.changed.emit()
        try:
            folder = own_folder()
        except OSError as error:
            raise NoSandbox(f"{error.filename}: {error.strerror}") from error
        network: bubblewrap.Network = "open" if self.has_network and role == "worker" else "none"
        return bubblewrap.enclosed(
            self._program,
            command,
            (folder.path,),
            network,
            folder.variables,
            memory=memory,
            calls_file=calls_file,
            kept=handed_descriptors(),
        )

    def take_over(self) -> None:
        """Copy the tuning and measuring results of the sandbox to the user's cache, in a thread."""
        if self.is_on:
            threading.Thread(target=own_folder().take_over, name="taking over").start()

    # Systems without a sandbox

    @property
    def waits(self) -> bool:
        """Return whether no child may start before the user has decided."""
        return self.state == "held" and not self._stays_stopped

    def hold(self, reason: str) -> None:
        """Request a decision, once for all children, on running without a sandbox."""
        was_asked = self.waits
        self._reason, self._stays_stopped = reason, False
        self.changed.emit()
        if not was_asked:
            self.held.emit()

    def try_again(self) -> None:
        """Start children as configured: with a sandbox, if enabled."""
        self._reason, self._goes_without, self._stays_stopped = "", False, False
        self._tell_decision()

    def go_without(self) -> None:
        """Start children without a sandbox, in this session."""
        self._goes_without, self._stays_stopped = True, False
        self._tell_decision()

    def stay_stopped(self) -> None:
        """Start no child, unless the user requests it: then the sandbox is tried again."""
        self._stays_stopped = True
        self._tell_decision()

    def _tell_decision(self) -> None:
        self.decisions += 1
        self.changed.emit()
        self.decided.emit()

    # Network access, for remote machines

    def look_at(self, remote: Remote | None) -> None:
        """Request a decision, once, about the remote machine that the recipe runs on."""
        if remote is not None and remote.tracker not in self._declined:
            self.ask(remote, _nothing)

    def ask(self, remote: Remote, go: Callable[[], object]) -> None:
        """Call `go` when the worker reaches the network: at once, after consent, or never."""
        if not self.is_on or self.has_network:
            go()
        elif remote.tracker in self._settings.reached():
            self._open_network()
            go()
        elif self._asked is None:
            self._asked = remote, go
            self.network_wanted.emit(remote)

    def allow(self) -> None:
        """Grant the requested network access to the worker, and store that."""
        asked, self._asked = self._asked, None
        if asked is not None:
            remote, go = asked
            self._settings.add_reached(remote.tracker)
            self._open_network()
            go()

    def decline(self) -> None:
        """Deny it, and do not ask again unless the user requests it."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._declined.add(asked[0].tracker)

    def _open_network(self) -> None:
        self.has_network = True
        self.changed.emit()


def _nothing() -> None:
    """Do nothing: the request waits for the worker by itself."""
