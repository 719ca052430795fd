"""Whether children run in a sandbox, and what they may reach from there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Signal

from lowerscope.app.settings import Settings
from lowerscope.core import sandbox
from lowerscope.core.engine.protocol import Role
from lowerscope.core.errors import Problem
from lowerscope.core.records.remote import Remote
from lowerscope.core.sandbox import NoSandbox
from lowerscope.core.sandbox_folder import own_folder
from lowerscope.core.shared_folder import NotShared, SharedFolder, shared_folder
from lowerscope.core.sources.handed_over import handed_descriptors
from lowerscope.core.twin_file import make_twin, twin_of

State = Literal["on", "off", "missing", "held", "refused"]


class Sandboxing(QObject):
    """The sandbox of the engine, of the worker, and of the process that tunes.

    Signals
    -------
    changed
        `state`, `has_network` or `shared` is new: children that are to be started are started in
        another way.
    held
        The system has made no sandbox, `availability` says why: no child starts until the user has
        decided.
    decided
        The user has: children that wait may be started, or are to say `problem`.
    network_wanted(object)
        The user is to say whether the worker may reach the network for a `Remote`.

    Attributes
    ----------
    has_network
        Whether the worker reaches the network from its sandbox.
    decisions
        How often the user has decided what happens without a sandbox.
    """

    changed = Signal()
    held = Signal()
    decided = Signal()
    network_wanted = Signal(object)

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._program = sandbox.program()
        self._is_wanted = settings.sandbox()
        # Why there is none, and whether the user has let code run without one in this session.
        self._reason = ""
        self._goes_without = False
        self._stays_stopped = False
        self._asked: tuple[Remote, Callable[[], object]] | None = None
        self._declined: set[str] = set()
        self._shares = settings.shares_folder()
        self._session: Path | None = None
        # Why the session's file cannot be kept from code that writes beside it.
        self._twin_fails = ""
        self.has_network = False
        self.decisions = 0

    @property
    def state(self) -> State:
        """``"on"``; ``"off"`` by choice; ``"missing"`` from the system.

        Where the system has refused to make one, ``"held"`` until the user has decided, and
        ``"refused"`` when code may run without one.
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
        """True if the next child runs in a sandbox, or not at all."""
        return self.state in ("on", "held")

    @property
    def availability(self) -> str:
        """What there is to say of it in one line, for tool tips and settings."""
        anything = self.tr("Code that is opened may do all that you may.")
        match self.state:
            case "on":
                return self._said_on()
            case "off":
                return anything
            case "missing":
                return f"{self.tr('There is no sandbox: install bubblewrap (bwrap).')} {anything}"
            case "refused":
                return f"{self.reason} {anything}"
            case "held":
                return f"{self.reason} {self.tr('No code runs until you decide.')}"

    @property
    def reason(self) -> str:
        """Why the system makes no sandbox, as a sentence."""
        return self.tr("The system makes no sandbox ({0}).").format(self._reason)

    @property
    def problem(self) -> Problem:
        """The problem of requests where no code may run without a sandbox."""
        what = self.tr("no code runs: the system makes no sandbox ({0})").format(self._reason)
        todo = self.tr("Try again with Run, Restart engine and worker")
        return Problem(what=what, todo=todo, code="sandbox")

    def _said_on(self) -> str:
        shared, why_not = self._look_at_folder()
        text = self.tr("Opened code can write only temporary files; {0}.")
        network = self.tr("it has no network")
        if self.has_network:
            network = self.tr("the worker has network, for another machine")
        if shared is not None:
            text = self.tr(
                "Opened code can write only temporary files, and to {1}, but for what is hidden "
                "there and the session; {0}."
            )
        said = text.format(network, "" if shared is None else shared.path)
        return f"{said} {why_not}" if why_not else said

    # The folder of the session

    @property
    def shared(self) -> Path | None:
        """The folder of the session that code may write to, where it may."""
        folder, _ = self._look_at_folder()
        return folder.path if folder is not None and self.is_on else None

    @property
    def session(self) -> Path | None:
        """The file that the user gave the session; ``None`` where it has none."""
        return self._session

    def set_session(self, path: Path | None) -> None:
        """Take note of the session's file, and keep it from code that may write beside it."""
        if path != self._session:
            self._drop_twin()
            self._session = path
            self._make_twin()
            self.changed.emit()

    def set_shares(self, on: bool) -> None:
        """Let code write to the folder of the session, or not, and remember it."""
        self._settings.set_shares_folder(on)
        self._drop_twin()
        self._shares = on
        self._make_twin()
        self.changed.emit()

    def finish(self) -> None:
        """Leave nothing beside the session: the window is being closed."""
        self._drop_twin()

    def _make_twin(self) -> None:
        self._twin_fails = ""
        if self._look_at_folder()[0] is None or self._session is None:
            return
        try:
            if not make_twin(self._session):
                self._twin_fails = self.tr("lets no files exchange their names")
        except OSError as error:
            self._twin_fails = self.tr("cannot be written ({0})").format(error.strerror)

    def _drop_twin(self) -> None:
        if self._session is not None:
            # What a window that was killed has left goes as well.
            with contextlib.suppress(OSError):
                twin_of(self._session).unlink(missing_ok=True)

    def _look_at_folder(self) -> tuple[SharedFolder | None, str]:
        """Return the folder that code may write to; or why it may not, where it shall."""
        if not self._shares or self._session is None:
            return None, ""
        why_not = self._twin_fails
        if not why_not:
            try:
                return shared_folder(self._session, self._settings.folder()), ""
            except NotShared as error:
                why_not = str(error)
        text = self.tr("The session's folder stays read-only: {0} {1}.")
        return None, text.format(self._session.parent, why_not)

    def set_wanted(self, on: bool) -> None:
        """Use a sandbox, or none, from now on, and remember it."""
        self._settings.set_sandbox(on)
        self._is_wanted = on
        self.try_again()

    def enclose(
        self,
        role: Role,
        command: Sequence[str],
        calls_file: int | None = None,
        memory: int | None = None,
    ) -> tuple[str, ...] | None:
        """Return the command that starts a child in the sandbox; ``None`` where it runs in none.

        A child of a window that is in a sandbox itself is in that one.

        Raises
        ------
        NoSandbox
            If it is to run in one that cannot be had. See `hold`.
        """
        if not self.is_on or self._program is None or sandbox.is_inside():
            return None
        if self._stays_stopped:
            self._reason, self._stays_stopped = "", False
            self.changed.emit()
        try:
            folder = own_folder()
        except OSError as error:
            raise NoSandbox(f"{error.filename}: {error.strerror}") from error
        network: sandbox.Network = "open" if self.has_network and role == "worker" else "none"
        shared, _ = self._look_at_folder()
        return sandbox.enclosed(
            self._program,
            command,
            (folder.path,),
            network,
            shared,
            folder.variables,
            memory=memory,
            calls_file=calls_file,
            kept=handed_descriptors(),
        )

    def take_over(self) -> None:
        """Copy what was tuned and measured in the sandbox to the user's cache, in a thread."""
        if self.is_on:
            threading.Thread(target=own_folder().take_over, name="taking over").start()

    # Where the system makes none

    @property
    def waits(self) -> bool:
        """True while no child may start before the user has decided."""
        return self.state == "held" and not self._stays_stopped

    def hold(self, reason: str) -> None:
        """Have the user decide, once for all children, what becomes of the code: none runs yet."""
        was_asked = self.waits
        self._reason, self._stays_stopped = reason, False
        self.changed.emit()
        if not was_asked:
            self.held.emit()

    def try_again(self) -> None:
        """Start children as is wanted: with a sandbox, if it is."""
        self._reason, self._goes_without, self._stays_stopped = "", False, False
        self._tell_decision()

    def go_without(self) -> None:
        """Start children without a sandbox, in this session."""
        self._goes_without, self._stays_stopped = True, False
        self._tell_decision()

    def stay_stopped(self) -> None:
        """Start no child, unless the user asks for it: then it is tried again."""
        self._stays_stopped = True
        self._tell_decision()

    def _tell_decision(self) -> None:
        self.decisions += 1
        self.changed.emit()
        self.decided.emit()

    # The network, for other machines

    def look_at(self, remote: Remote | None) -> None:
        """Have the user asked, once, about another machine that the recipe runs on."""
        if remote is not None and remote.tracker not in self._declined:
            self.ask(remote, _nothing)

    def ask(self, remote: Remote, go: Callable[[], object]) -> None:
        """Call `go` when the worker reaches the network: at once, if the user says so, or never."""
        if not self.is_on or self.has_network:
            go()
        elif remote.tracker in self._settings.reached():
            self._open_network()
            go()
        elif self._asked is None:
            self._asked = remote, go
            self.network_wanted.emit(remote)

    def allow(self) -> None:
        """Let the worker reach the network, as was asked, and remember it."""
        asked, self._asked = self._asked, None
        if asked is not None:
            remote, go = asked
            self._settings.add_reached(remote.tracker)
            self._open_network()
            go()

    def decline(self) -> None:
        """Let it not, and do not ask again by itself."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._declined.add(asked[0].tracker)

    def _open_network(self) -> None:
        self.has_network = True
        self.changed.emit()


def _nothing() -> None:
    """Do nothing more: what is wanted waits for the worker by itself."""
