"""Files of sessions, each locked by one window at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from PySide6.QtCore import QLockFile

from lowerscope.core.session_files import SUFFIX

AUTOMATIC = 5
"""Number of files kept for unnamed documents."""

Hindrance = Literal["", "window", "folder"]
"""Reason for not saving: another window has the file, or its folder is not writable."""


@dataclass(frozen=True)
class Place:
    """A session's file.

    Attributes
    ----------
    path
        Path of the file.
    automatic
        Whether Lowerscope chose the path.
    lock
        Held by the window that saves to it; ``None`` if this one may not.
    hindrance
        Reason why it may not.
    written
        Content of the file: see `save_session`.
    """

    path: Path
    automatic: bool
    lock: QLockFile | None
    hindrance: Hindrance = ""
    written: dict[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> Path | None:
        """The file, if the user chose it."""
        return None if self.automatic else self.path


def place_at(path: Path, *, automatic: bool, written: dict[str, Any] | None = None) -> Place:
    """Return the place of a file, locked for this window unless another holds it."""
    lock = QLockFile(f"{path}.lock")
    # A window that crashed leaves its lock; Qt detects that its process is gone.
    lock.setStaleLockTime(0)
    hindrance: Hindrance = ""
    if not lock.tryLock(0):
        taken = lock.error() == QLockFile.LockError.LockFailedError
        hindrance = "window" if taken else "folder"
    return Place(path, automatic, None if hindrance else lock, hindrance, written or {})


def new_place(folder: Path) -> Place:
    """Return a new place for an unnamed document; the oldest ones are deleted.

    Raises
    ------
    OSError
        If the folder cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob(f"[!.]*{SUFFIX}"))[: -AUTOMATIC + 1]:
        old = place_at(path, automatic=True)
        if old.lock is not None:
            path.unlink(missing_ok=True)
            old.lock.unlock()
    name = f"{datetime.now():%Y-%m-%d %H.%M.%S} {os.getpid()}"
    path, count = folder / f"{name}{SUFFIX}", 1
    while path.exists():
        count += 1
        path = folder / f"{name} {count}{SUFFIX}"
    return place_at(path, automatic=True)
