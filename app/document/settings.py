"""Persistent settings of the window: layout, recent sources, colours."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Generic, TypeVar

from PySide6.QtCore import QByteArray, QSettings

from lowerscope.core.model.texts import LANGUAGES

RECENT_MOST = 10
TRUSTED_MOST = 500
CODE_MOST = 40.0
_MOST_DIGITS = 16
SCALES = ("100", "125", "150", "175", "200")
"""Scales in per cent of the default sizes."""


T = TypeVar("T")


class Setting(Generic[T]):
    """An attribute of `Settings`, stored at once.

    Args:
        key: Its name in the file.
        read: Returns the value of a text, which is empty the first time, and may be anything.
    """

    def __init__(self, key: str, read: Callable[[str], T]) -> None:
        self._key = key
        self._read = read

    def __get__(self, settings: Settings, owner: type[Settings]) -> T:
        return self._read(str(settings.store.value(self._key, "")))

    def __set__(self, settings: Settings, value: T) -> None:
        settings.store.setValue(self._key, str(value))
        # Flush now, in case the window crashes.
        settings.store.sync()


def _is_on(text: str) -> bool:
    return text.lower() in ("", "true")


def _one_of(choices: Collection[str], usual: str) -> Callable[[str], str]:
    return lambda text: text if text in choices else usual


def _pixels(text: str) -> float:
    try:
        return float(text) if 0 <= float(text) <= CODE_MOST else 0.0
    except ValueError:
        return 0.0


def _number(text: str, usual: int) -> int:
    return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else usual


def _limit(text: str) -> int:
    # Imported here, as below, to keep the window's start fast.
    from lowerscope.core.model.machines import LEAST

    limit = _number(text, 0)
    return limit if limit >= LEAST else 0


def _keep(text: str) -> int:
    from lowerscope.core.model.run_records import KEEP

    return _number(text, KEEP)


class Settings:
    """Typed access to the settings file of this user."""

    last_session = Setting("last-session", str)  # File of the last session; empty the first time.
    language = Setting("language", _one_of(LANGUAGES, ""))  # Empty for that of the system.
    # Whether the user confirms a code file before it runs for the first time.
    asks_first = Setting("ask-first", _is_on)
    sandbox = Setting("sandbox", _is_on)  # Whether code runs in a sandbox where there is one.
    watching = Setting("watching", _is_on)  # Whether open files are reloaded when they are saved.
    scheme = Setting("scheme", _one_of(("system", "light", "dark"), "system"))
    code_pixels = Setting("code-pixels", _pixels)  # Font size of code; 0 for the default.
    # Scale of the window in per cent, from the next start on; 0 to follow the system.
    scale = Setting("scale", lambda text: int(text) if text in SCALES else 0)
    memory_limit = Setting("memory-limit", _limit)  # Of a worker, in bytes; 0 for the default.
    keep = Setting("keep", _keep)  # Size of the cache of a run's values, in bytes.

    def __init__(self) -> None:
        # An ini file on every system: it can be read, moved and repaired.
        self.store = QSettings(
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
        self.store.setValue("recent", [part for entry in entries for part in entry])

    def _recent(self) -> list[tuple[str, str]]:
        value = self.store.value("recent", [])
        parts = [str(each) for each in value] if isinstance(value, list) else []
        return list(zip(parts[::2], parts[1::2], strict=False))

    def trusted(self) -> dict[str, str]:
        """Return the trusted files, each with the hash of its content."""
        value = self.store.value("trusted", [])
        parts = [str(each) for each in value] if isinstance(value, list) else []
        return dict(zip(parts[::2], parts[1::2], strict=False))

    def set_trusted(self, hashes: dict[str, str]) -> None:
        """Store trusted files; the oldest of very many are dropped."""
        entries = list(hashes.items())[-TRUSTED_MOST:]
        self.store.setValue("trusted", [part for entry in entries for part in entry])

    def reached(self) -> tuple[str, ...]:
        """Return the trackers for which the worker may reach the network from its sandbox."""
        value = self.store.value("reached", [])
        if isinstance(value, str):  # a list of one is read as a string
            return (value,)
        return tuple(str(each) for each in value) if isinstance(value, list) else ()

    def add_reached(self, tracker: str) -> None:
        """Store that the worker may reach the network for a tracker."""
        others = [each for each in self.reached() if each != tracker]
        self.store.setValue("reached", [*others, tracker][-RECENT_MOST:])

    def folder(self) -> Path:
        """Return the folder of the settings file."""
        return Path(self.store.fileName()).parent

    def code_form(self, usual: dict[str, bool]) -> dict[str, bool]:
        """Return the switches of the form of code, by name."""
        value = self.store.value("code-form", None)
        if not isinstance(value, str):
            return usual
        on = value.split()
        return {name: name in on for name in usual}

    def set_code_form(self, form: dict[str, bool]) -> None:
        """Store the switches of the form of code."""
        self.store.setValue("code-form", " ".join(name for name, on in form.items() if on))

    def geometry(self) -> QByteArray:
        """Return the window's geometry; empty the first time."""
        return self._bytes("geometry")

    def layout(self) -> str:
        """Return the layout of the panes, as JSON; empty the first time."""
        return str(self.store.value("panes", ""))

    def save(self, geometry: QByteArray, layout: str) -> None:
        """Store geometry and layout; if the panes were not shown, the previous layout stays."""
        self.store.setValue("geometry", geometry)
        if layout:
            self.store.setValue("panes", layout)
        self.store.sync()

    def _bytes(self, key: str) -> QByteArray:
        value = self.store.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()
