"""Whether children run in a sandbox, and what they may reach from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Signal

from lowerscope.app.settings import Settings
from lowerscope.core import sandbox
from lowerscope.core.engine.protocol import Role
from lowerscope.core.records.remote import Remote
from lowerscope.core.user_cache import cache_folder

State = Literal["on", "off", "missing", "refused"]


class Sandboxing(QObject):
    """The sandbox of the engine, of the worker, and of the process that tunes.

    Signals
    -------
    changed
        `state` or `has_network` is new: children that are to be started are started in another way.
    refused
        The system has made no sandbox; `availability` says why.
    network_wanted(object)
        The user is to say whether the worker may reach the network for a `Remote`.

    Attributes
    ----------
    has_network
        Whether the worker reaches the network from its sandbox.
    """

    changed = Signal()
    refused = Signal()
    network_wanted = Signal(object)

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._program = sandbox.program()
        self._is_wanted = settings.sandbox()
        self._reason = ""
        self._asked: tuple[Remote, Callable[[], object]] | None = None
        self._declined: set[str] = set()
        self.has_network = False

    @property
    def state(self) -> State:
        """``"on"``; ``"off"`` by choice; ``"missing"``, or ``"refused"`` by the system."""
        if self._program is None:
            return "missing"
        if not self._is_wanted:
            return "off"
        return "refused" if self._reason else "on"

    @property
    def is_on(self) -> bool:
        """Whether the next child runs in a sandbox."""
        return self.state == "on"

    @property
    def availability(self) -> str:
        """What there is to say of it in one line, for tool tips and settings."""
        anything = self.tr("Code that is opened may do all that you may.")
        match self.state:
            case "on":
                text = self.tr(
                    "Opened code can write only to {0} and to its own temporary files; {1}."
                )
                network = self.tr("it has no network")
                if self.has_network:
                    network = self.tr("the worker has network, for another machine")
                return text.format(cache_folder(), network)
            case "off":
                return anything
            case "missing":
                return f"{self.tr('There is no sandbox: install bubblewrap (bwrap).')} {anything}"
            case "refused":
                text = self.tr("The system makes no sandbox ({0}).")
                return f"{text.format(self._reason)} {anything}"

    def set_wanted(self, on: bool) -> None:
        """Use a sandbox, or none, from now on, and remember it."""
        self._settings.set_sandbox(on)
        self._is_wanted, self._reason = on, ""
        self.changed.emit()

    def enclose(
        self, role: Role, command: Sequence[str], calls_file: str
    ) -> tuple[str, ...] | None:
        """Return the command that starts a child in the sandbox; ``None`` where it runs in none."""
        if not self.is_on or self._program is None:
            return None
        cache = cache_folder()
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.give_up(f"{cache}: {error.strerror}")
            return None
        writable = [cache, *((Path(calls_file).parent,) if calls_file else ())]
        network: sandbox.Network = "open" if self.has_network and role == "worker" else "none"
        return sandbox.enclosed(self._program, command, writable, network)

    def give_up(self, reason: str) -> None:
        """Start children without a sandbox from now on: the system has refused to make one."""
        self._reason = reason
        self.changed.emit()
        self.refused.emit()

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
