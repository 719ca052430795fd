"""Looking through pickles without running them, and an unpickler for NumPy arrays alone."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_STRINGS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_PROTO = 0x80
_EXTENSIONS = frozenset({"EXT1", "EXT2", "EXT4"})
_NAME = re.compile(r"[A-Za-z_][\w.]* [A-Za-z_][\w.]*")

HIDDEN = "a name that is hidden"
"""Stands for an import whose name cannot be told without running the pickle."""


def imports_of(data: bytes) -> frozenset[str]:
    """Return what the pickles in `data`, one after the other, import, as ``module.name``.

    Nothing is run. A name that is put together on the stack is followed through the memo, as
    pickles are really written; one that cannot be followed is `HIDDEN`. Data that is damaged, or
    no pickle at all, gives what stands before the damage, since that much would be run.

    A single byte is enough for a hidden name, and one weight in a hundred has that byte early on:
    hidden names count only in data that starts with the mark of a pickle. Whoever unpickles what
    has been looked through must not allow more than what was found.
    """
    found: set[str] = set()
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            # It decodes names as Python text, and warns of backslashes in what is no name.
            warnings.simplefilter("ignore", DeprecationWarning)
            while stream.tell() < len(data):
                _scan(stream, found)
    except (ValueError, IndexError, OverflowError):
        # pickletools reports damage by these.
        pass
    if not (len(data) > 1 and data[0] == _PROTO and data[1] <= pickle.HIGHEST_PROTOCOL):
        found.discard(HIDDEN)
    return frozenset(found)


def _scan(stream: io.BytesIO, found: set[str]) -> None:
    """Add to `found` what the next pickle imports.

    ``recent`` follows the stack as far as strings are pushed on it in a row; every opcode that
    does anything else ends the row.
    """
    recent: list[str | None] = []
    memo: dict[int, str | None] = {}
    for opcode, argument, _ in pickletools.genops(stream):
        top = recent[-1] if recent else None
        match opcode.name:
            case "GLOBAL" | "INST":
                # In bytes that are no pickle, what stands here is no name.
                if _NAME.fullmatch(str(argument)):
                    found.add(str(argument).replace(" ", ".", 1))
                recent.append(None)
            case "STACK_GLOBAL":
                names = [name for name in recent[-2:] if name is not None]
                found.add(".".join(names) if len(names) == 2 else HIDDEN)
                recent.append(None)
            case name if name in _EXTENSIONS:
                found.add(HIDDEN)
            case "MEMOIZE":
                memo[len(memo)] = top
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                memo[int(str(argument))] = top
            case "GET" | "BINGET" | "LONG_BINGET":
                recent.append(memo.get(int(str(argument))))
            case name if name in _STRINGS:
                recent.append(str(argument))
            case "PROTO" | "FRAME":
                pass
            case _:
                recent.append(None)


def import_text(imports: frozenset[str]) -> str:
    """Return what a pickle would import in words, the first few; empty for nothing.

    What arrays are made of is not what it is refused for, and comes last.
    """
    own = {".".join(each) for each in _ARRAYS}
    names = sorted(imports, key=lambda name: (name in own, name))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def load_arrays(data: bytes) -> object:
    """Unpickle what holds NumPy arrays, and containers, strings and numbers; nothing else.

    Raises
    ------
    ForbiddenImport
        If the pickle would import anything else; nothing of that has been run.
    pickle.UnpicklingError, EOFError, ValueError, …
        If the data is damaged.
    """
    return _ArrayUnpickler(io.BytesIO(data)).load()


class ForbiddenImport(Exception):
    """A pickle imports what it must not; the argument is the name."""


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ARRAYS[module, name]
        except KeyError:
            raise ForbiddenImport(f"{module}.{name}") from None


def _encode(text: str, encoding: str) -> bytes:
    """Stand for ``_codecs.encode``, by which old protocols write bytes."""
    if encoding != "latin1":
        raise ForbiddenImport(f"_codecs.encode to {encoding}")
    return text.encode("latin1")


def _array_parts() -> dict[tuple[str, str], Callable[..., Any]]:
    """Return what NumPy's own pickles import, of NumPy 1 and 2."""
    from numpy._core import multiarray, numeric

    parts: dict[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("_codecs", "encode"): _encode,
    }
    for core in ("numpy.core", "numpy._core"):
        parts[f"{core}.multiarray", "_reconstruct"] = multiarray._reconstruct
        parts[f"{core}.multiarray", "scalar"] = multiarray.scalar
        parts[f"{core}.numeric", "_frombuffer"] = numeric._frombuffer  # type: ignore[attr-defined]
    return parts


_ARRAYS = _array_parts()
