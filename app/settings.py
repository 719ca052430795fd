"""What the window remembers from one start to the next: layout, recent sources, colours."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSettings

RECENT_MOST = 10

LAYOUT_VERSION = 1
"""Of the set of docks; a layout saved with another one is not restored."""


class Settings:
    """Typed access to the settings file of this user."""

    def __init__(self) -> None:
        # An ini file on every system: it can be read, moved and mended.
        self._store = QSettings(
            QSettings.Format.IniFormat, QSettings.Scope.UserScope, "lowerscope", "lowerscope"
        )

    def recent(self) -> list[str]:
        """Return the sources that were opened last, the newest first."""
        value = self._store.value("recent", [])
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]

    def add_recent(self, source: str) -> None:
        """Put a source at the head of the recent ones."""
        sources = [source, *(each for each in self.recent() if each != source)]
        self._store.setValue("recent", sources[:RECENT_MOST])

    def clear_recent(self) -> None:
        """Forget the recent sources."""
        self._store.remove("recent")

    def scheme(self) -> str:
        """Return ``"system"``, ``"light"`` or ``"dark"``."""
        value = str(self._store.value("scheme", "system"))
        return value if value in ("system", "light", "dark") else "system"

    def set_scheme(self, scheme: str) -> None:
        """Remember the colour scheme."""
        self._store.setValue("scheme", scheme)

    def geometry(self) -> QByteArray:
        """Return the window's place and size; empty the first time."""
        return self._bytes("geometry")

    def layout(self) -> QByteArray:
        """Return the arrangement of the docks; empty the first time."""
        return self._bytes(f"layout-{LAYOUT_VERSION}")

    def save(self, geometry: QByteArray, layout: QByteArray) -> None:
        """Remember place, size and docks."""
        self._store.setValue("geometry", geometry)
        self._store.setValue(f"layout-{LAYOUT_VERSION}", layout)
        self._store.sync()

    def _bytes(self, key: str) -> QByteArray:
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()
