"""Persistent settings of the window: layout, recent sources, colours."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

from lowerscope.core.model.texts import LANGUAGES

RECENT_MOST = 10
TRUSTED_MOST = 500
CODE_MOST = 40.0
_MOST_DIGITS = 16
SCALES = ("100", "125", "150", "175", "200")
"""Scales in per cent of the default sizes."""


class Settings:
    """Typed access to the settings file of this user."""

    def __init__(self) -> None:
        # An ini file on every system: it can be read, moved and repaired.
        self._store = QSettings(
            QSettings.Format.IniFormat, QSettings.Scope.UserScope, "lowerscope", "lowerscope"
        )

    def recent(self) -> list[str]:
        """Return the recently opened sources, the newest first."""
        return [source for source, _ in self._recent()]

    def recipe_of(self, source: str) -> str:
        """Return the recipe that a recent source was opened with, as JSON, or ``""``."""
        return dict(self._recent()).get(source, "")

    def add_recent(self, source: str, recipe: str) -> None:
        """Add a source with its recipe, as JSON, at the head of the recent ones."""
        others = [each for each in self._recent() if each[0] != source]
        entries = [(source, recipe), *others][:RECENT_MOST]
        self._store.setValue("recent", [part for entry in entries for part in entry])

    def _recent(self) -> list[tuple[str, str]]:
        value = self._store.value("recent", [])
        parts = [str(each) for each in value] if isinstance(value, list) else []
        return list(zip(parts[::2], parts[1::2], strict=False))

    def last_session(self) -> str:
        """Return the file of the last session; empty the first time."""
        return str(self._store.value("last-session", ""))

    def set_last_session(self, path: str) -> None:
        """Store the file of the open session."""
        self._store.setValue("last-session", path)
        # Flush now, in case the window crashes.
        self._store.sync()

    def language(self) -> str:
        """Return the code of the window's language; empty for that of the system."""
        code = str(self._store.value("language", ""))
        return code if code in LANGUAGES else ""

    def set_language(self, code: str) -> None:
        """Store the window's language."""
        self._store.setValue("language", code)

    def asks_first(self) -> bool:
        """Return whether the user confirms a code file before it runs for the first time."""
        return str(self._store.value("ask-first", "true")) == "true"

    def set_asks_first(self, on: bool) -> None:
        """Store whether the user confirms a code file before it runs for the first time."""
        self._store.setValue("ask-first", "true" if on else "false")

    def trusted(self) -> dict[str, str]:
        """Return the trusted files, each with the hash of its content."""
        value = self._store.value("trusted", [])
        parts = [str(each) for each in value] if isinstance(value, list) else []
        return dict(zip(parts[::2], parts[1::2], strict=False))

    def set_trusted(self, hashes: dict[str, str]) -> None:
        """Store trusted files; the oldest of very many are dropped."""
        entries = list(hashes.items())[-TRUSTED_MOST:]
        self._store.setValue("trusted", [part for entry in entries for part in entry])

    def sandbox(self) -> bool:
        """Return whether code runs in a sandbox where the system has one."""
        return str(self._store.value("sandbox", "true")) == "true"

    def set_sandbox(self, on: bool) -> None:
        """Store whether code runs in a sandbox where the system has one."""
        self._store.setValue("sandbox", "true" if on else "false")

    def reached(self) -> tuple[str, ...]:
        """Return the trackers for which the worker may reach the network from its sandbox."""
        value = self._store.value("reached", [])
        if isinstance(value, str):  # a list of one is read as a string
            return (value,)
        return tuple(str(each) for each in value) if isinstance(value, list) else ()

    def add_reached(self, tracker: str) -> None:
        """Store that the worker may reach the network for a tracker."""
        others = [each for each in self.reached() if each != tracker]
        self._store.setValue("reached", [*others, tracker][-RECENT_MOST:])

    def watching(self) -> bool:
        """Return whether open files are reloaded when they are saved."""
        return str(self._store.value("watching", "true")) == "true"

    def set_watching(self, on: bool) -> None:
        """Store whether open files are reloaded when they are saved."""
        self._store.setValue("watching", "true" if on else "false")

    def folder(self) -> Path:
        """Return the folder of the settings file."""
        return Path(self._store.fileName()).parent

    def scheme(self) -> str:
        """Return ``"system"``, ``"light"`` or ``"dark"``."""
        value = str(self._store.value("scheme", "system"))
        return value if value in ("system", "light", "dark") else "system"

    def set_scheme(self, scheme: str) -> None:
        """Store the colour scheme."""
        self._store.setValue("scheme", scheme)

    def code_pixels(self) -> float:
        """Return the font size of code in logical pixels; 0 for the default."""
        value = str(self._store.value("code-pixels", "0"))
        try:
            return float(value) if 0 <= float(value) <= CODE_MOST else 0.0
        except ValueError:
            return 0.0

    def set_code_pixels(self, pixels: float) -> None:
        """Store the font size of code."""
        self._store.setValue("code-pixels", str(pixels))

    def code_form(self, usual: dict[str, bool]) -> dict[str, bool]:
        """Return the switches of the form of code, by name."""
        value = self._store.value("code-form", None)
        if not isinstance(value, str):
            return usual
        on = value.split()
        return {name: name in on for name in usual}

    def set_code_form(self, form: dict[str, bool]) -> None:
        """Store the switches of the form of code."""
        self._store.setValue("code-form", " ".join(name for name, on in form.items() if on))

    def scale(self) -> int:
        """Return the scale of the window in per cent; 0 to follow the system."""
        value = str(self._store.value("scale", "0"))
        return int(value) if value in SCALES else 0

    def set_scale(self, scale: int) -> None:
        """Store the scale of the window in per cent, applied at the next start."""
        self._store.setValue("scale", str(scale))

    def memory_limit(self) -> int:
        """Return a worker's memory limit in bytes; 0 for the default."""
        # Imported here to keep the window's start fast.
        from lowerscope.core.model.machines import LEAST

        limit = self._number("memory-limit", 0)
        return limit if limit >= LEAST else 0

    def set_memory_limit(self, limit: int) -> None:
        """Store a worker's memory limit, in bytes."""
        self._store.setValue("memory-limit", str(limit))

    def keep(self) -> int:
        """Return the size of the cache of a run's values, in bytes."""
        # Imported here to keep the window's start fast.
        from lowerscope.core.model.run_records import KEEP

        return self._number("keep", KEEP)

    def set_keep(self, keep: int) -> None:
        """Store the size of the cache of a run's values, in bytes."""
        self._store.setValue("keep", str(keep))

    def geometry(self) -> QByteArray:
        """Return the window's geometry; empty the first time."""
        return self._bytes("geometry")

    def layout(self) -> str:
        """Return the layout of the panes, as JSON; empty the first time."""
        return str(self._store.value("panes", ""))

    def save(self, geometry: QByteArray, layout: str) -> None:
        """Store geometry and layout; if the panes were not shown, the previous layout stays."""
        self._store.setValue("geometry", geometry)
        if layout:
            self._store.setValue("panes", layout)
        self._store.sync()

    def _number(self, key: str, usual: int) -> int:
        """Return a number; the default if it is missing or invalid."""
        value = str(self._store.value(key, ""))
        return int(value) if value.isdecimal() and len(value) < _MOST_DIGITS else usual

    def _bytes(self, key: str) -> QByteArray:
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()
