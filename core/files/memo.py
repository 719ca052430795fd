"""Cache of stage results, by the key of their inputs."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from lowerscope.core.files.approved import raise_refused, refusals
from lowerscope.core.files.paths import open_plain
from lowerscope.core.model.encoding import to_bytes

T = TypeVar("T")


def key_of(*parts: object) -> str:
    """Return a key made of values that msgspec can encode."""
    return hashlib.blake2b(to_bytes(parts), digest_size=16).hexdigest()


class Hashes:
    """Content hashes of files, recomputed only where size or modification time differ."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], str]] = {}

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file in hexadecimal; ``""`` where it cannot be read."""
        try:
            status = path.stat()
            stamp = (status.st_size, status.st_mtime_ns)
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                with open_plain(path) as file:
                    known = (stamp, hashlib.file_digest(file, "sha256").hexdigest())
                self._known[path] = known
        except (OSError, ValueError):
            return ""
        return known[1]


class FileHashes(Hashes):
    """Content hashes of the files of results.

    The files that a result read and the form of its inputs, known once it is computed, are recorded
    here as well, under its key. Other keys depend on them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._read: dict[str, tuple[Path, ...]] = {}
        self._forms: dict[str, str] = {}

    def note_read(self, key: str, paths: tuple[Path, ...]) -> bool:
        """Record the files that were read for the result of a key; return whether they are new."""
        news = self._read.get(key, ()) != paths
        self._read[key] = paths
        return news

    def read_for(self, key: str) -> tuple[Path, ...]:
        """Return the files that were read for the result of a key; none before it was computed."""
        return self._read.get(key, ())

    def note_form(self, key: str, form: str) -> None:
        """Record the form of the inputs of the result of a key."""
        self._forms[key] = form

    def form_of(self, key: str) -> str | None:
        """Return the form of the inputs of the result of a key; ``None`` before it was computed."""
        return self._forms.get(key)

    def all_of(self, paths: Iterable[Path]) -> tuple[tuple[str, str], ...]:
        """Return paths with the hashes of the files' contents."""
        return tuple((str(path), self.of(path)) for path in paths)


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """`functools.cached_property` without the lock that all objects of a class share.

        Python 3.12 has none either. Objects of one request each would wait for one another.
        """

        def __init__(self, function):
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._function(instance)
            return value


class Memo:
    """LRU cache of values by key, bounded in bytes.

    Concurrent requests for the same key share one computation.

    Args:
        limit: Bound on the sum of the sizes, in bytes. The newest value stays, however large it is.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[str, tuple[object, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._values

    def get(self, key: str, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value under `key`, computed now if it is missing.

        Args:
            make: Computes the value; its exceptions propagate, and nothing is cached. Neither is a
                value that was computed while a file was rejected as not approved.
            size: Cost of caching the value, in bytes, beyond what it shares with others.
        """
        while True:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return cast(T, self._values[key][0])
                making = self._making.setdefault(key, threading.Lock())
            with making:
                with self._lock:
                    if self._making.get(key) is not making:
                        # It was computed, or failed, while this thread waited: check again.
                        continue
                before = refusals()
                try:
                    value = make()
                    raise_refused(before)
                    self._keep(key, value, size(value))
                finally:
                    with self._lock:
                        del self._making[key]
                return value

    def values(self) -> list[object]:
        """Return the cached values."""
        with self._lock:
            return [value for value, _size in self._values.values()]

    def forget(self, key: str) -> None:
        """Remove `key` from the cache."""
        with self._lock:
            self._forget(key)

    def rename(self, key: str, other: str) -> None:
        """Move the value under `key` to another key."""
        with self._lock:
            if key in self._values and key != other:
                entry = self._values.pop(key)
                self._forget(other)
                self._values[other] = entry

    def _forget(self, key: str) -> None:
        entry = self._values.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]

    def _keep(self, key: str, value: object, size: int) -> None:
        with self._lock:
            # Another value may have been given this key while this one was computed.
            self._forget(key)
            self._values[key] = (value, size)
            self._bytes += size
            while self._bytes > self._limit and len(self._values) > 1:
                _, (_, freed) = self._values.popitem(last=False)
                self._bytes -= freed
