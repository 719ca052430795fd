"""The user's preferences as one value: read from the settings, and applied."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lowerscope.app.document.settings import Settings
from lowerscope.app.kit import theme
from lowerscope.app.kit.commands import Commands
from lowerscope.app.kit.typefaces import CODE_PIXELS
from lowerscope.app.shell.features import Features
from lowerscope.app.shell.sandbox_commands import SandboxCommands
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.machines import usual_limit
from lowerscope.core.model.texts import _


@dataclass(frozen=True)
class Preferences:
    """All preferences of the settings dialog."""

    scheme: str  # One of ``theme.SCHEMES``.
    code_pixels: float  # Font size of code, in logical pixels; 0 for the default.
    # Scale of the whole window in per cent, from the next start on; 0 to follow the system.
    scale: int
    asks_first: bool  # Whether the user confirms a code file before it runs for the first time.
    watching: bool  # Whether open files are reloaded when they are saved.
    sandbox: bool  # Whether code runs in a sandbox where the system has one.
    memory_limit: int  # Memory limit of a worker, in bytes; 0 for the default.
    keep: int  # Size of the cache of a run's values, in bytes.


class PreferenceStore:
    """The preferences as stored, and their effect on a window."""

    def __init__(
        self, settings: Settings, features: Features, sandbox: SandboxCommands, commands: Commands
    ) -> None:
        self.settings = settings
        self.features = features
        self.sandbox = sandbox
        self.commands = commands

    def current(self) -> Preferences:
        names = (each.name for each in fields(Preferences))
        return Preferences(**{name: getattr(self.settings, name) for name in names})

    def start(self) -> None:
        """Apply to a new window the preferences that concern its worker."""
        limit = self.settings.memory_limit or usual_limit()
        self.features.processes.worker.memory_limit = limit
        self.features.runs.keep = self.settings.keep

    def change(self, wanted: Preferences) -> None:
        """Store preferences, and apply those that changed."""
        settings, features, document = self.settings, self.features, self.features.document
        before = self.current()
        if wanted.scheme != before.scheme:
            self.commands.action(wanted.scheme).trigger()
        if wanted.code_pixels != before.code_pixels:
            settings.code_pixels = wanted.code_pixels
            theme.set_code_pixels(wanted.code_pixels or CODE_PIXELS)
        if wanted.watching != before.watching:
            self.commands.action("watch").trigger()
        if wanted.sandbox != before.sandbox:
            self.sandbox.set_wanted(wanted.sandbox)
        settings.scale = wanted.scale
        settings.asks_first = wanted.asks_first
        said = []
        if wanted.keep != before.keep:
            settings.keep = wanted.keep
            features.runs.keep = wanted.keep
            words = _(
                "From the next run on, {keep} of values are kept", keep=bytes_text(wanted.keep)
            )
            said.append(words)
        if wanted.memory_limit != before.memory_limit:
            settings.memory_limit = wanted.memory_limit
            limit = wanted.memory_limit or usual_limit()
            features.processes.worker.memory_limit = limit
            features.processes.worker.restart()
            words = _(
                "The worker restarts with a limit of {limit} of memory", limit=bytes_text(limit)
            )
            said.append(words)
        if wanted.scale != before.scale:
            said.append(_("The new scaling takes effect when Lowerscope is started again"))
        if said:
            document.notify(". ".join(said), "info")
