"""Bounded reading of files of NumPy arrays and of pickles, without running what they hold.

The sizes in a file's header are checked against the file's own size and the machine's memory before
anything is allocated: an archive of a few kilobytes can expand to terabytes of zeros. Pickles are
inspected, and unpickled as NumPy arrays of numeric dtypes only.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.machines import usual_limit
from lowerscope.core.model.problems import listed
from lowerscope.core.model.texts import _

_STRINGS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_PROTO = 0x80
_EXTENSIONS = frozenset({"EXT1", "EXT2", "EXT4"})
_NAME = re.compile(r"[A-Za-z_][\w.]* [A-Za-z_][\w.]*")

HIDDEN = _("a hidden name")
"""Placeholder for an import whose name is unknown without running the pickle."""


def imports_of(data: bytes) -> frozenset[str]:
    """Return the imports of the concatenated pickles in `data`, as ``module.name``.

    Nothing is run. A name that is built on the stack is tracked through the memo, as pickles are
    written in practice; one that cannot be tracked is `HIDDEN`. For data that is damaged or no
    pickle, the imports before the damage are returned, since that much would be run.

    A single byte is enough for a hidden name, and one weight in a hundred has that byte early on:
    hidden names count only in data that starts with the signature of a pickle. An unpickler for
    inspected data must not allow more than the imports found.
    """
    found: set[str] = set()
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            # It decodes names as Python text, and warns of backslashes in bytes that are no names.
            warnings.simplefilter("ignore", DeprecationWarning)
            while stream.tell() < len(data):
                _scan(stream, found)
    except (ValueError, IndexError, OverflowError):
        # pickletools raises these for damage.
        pass
    if not (len(data) > 1 and data[0] == _PROTO and data[1] <= pickle.HIGHEST_PROTOCOL):
        found.discard(HIDDEN)
    return frozenset(found)


def _scan(stream: io.BytesIO, found: set[str]) -> None:
    """Add the imports of the next pickle to `found`.

    ``recent`` tracks consecutive pushes of strings on the stack; any other opcode resets it.
    """
    recent: list[str | None] = []
    memo: dict[int, str | None] = {}
    for opcode, argument, _other in pickletools.genops(stream):
        top = recent[-1] if recent else None
        match opcode.name:
            case "GLOBAL" | "INST":
                # In bytes that are no pickle, the argument is no name, and does not count.
                named = _NAME.fullmatch(str(argument)) is not None
                found.add(str(argument).replace(" ", ".", 1) if named else HIDDEN)
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
    """Format the first few imports of a pickle; empty for none.

    Those that arrays need are not the reason for a rejection, and come last.
    """
    own = {".".join(each) for each in _ARRAYS}
    names = sorted(imports, key=lambda name: (name in own, name))
    return listed(names, 3)


def load_arrays(data: bytes) -> object:
    """Unpickle NumPy arrays, containers, strings and numbers; nothing else.

    Raises:
        ForbiddenImport: If the pickle would import anything else; nothing of that has been run.
        pickle.UnpicklingError, EOFError, ValueError, …: If the data is damaged.
    """
    value = _ArrayUnpickler(io.BytesIO(data)).load()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return _plain(value)


def _plain(value: object) -> object:
    return value.value if isinstance(value, _Array) else value


class ForbiddenImport(Exception):
    """A pickle has a forbidden import; the argument is its name."""


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ARRAYS[module, name]
        except KeyError:
            raise ForbiddenImport(f"{module}.{name}") from None


def _encode(text: str, encoding: str) -> bytes:
    """Replace ``_codecs.encode``, by which old protocols write bytes."""
    if encoding != "latin1":
        raise ForbiddenImport(f"_codecs.encode to {encoding}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Replace ``bytes``, by which old protocols write empty bytes."""
    return b""


class _Kind:
    """Replacement for `numpy.dtype`, whose own state could make pointers of bytes."""

    def __init__(self, name: object, *_unused: object) -> None:
        if not isinstance(name, str) or _DTYPE.fullmatch(name) is None:
            raise ForbiddenImport(_("numpy.dtype of {name}", name=str(name)[:60]))
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])

    def array(self, shape: Any, data: Any, order: Any) -> np.ndarray[Any, Any]:
        """Return an array of numbers; for any other dtype only the type, without values."""
        if self.dtype.kind not in "biufc":
            return np.empty(0, self.dtype)
        made: np.ndarray[Any, Any] = np.ndarray(shape, self.dtype, bytes(data), order=order)
        return made.copy()


class _Array:
    """Replacement for `numpy.ndarray` during unpickling."""

    def __init__(self, *_unused: object) -> None:
        self.value: object = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _other, shape, kind, fortran, data = state
        self.value = kind.array(shape, data, "F" if fortran else "C")


def _of_buffer(data: Any, kind: _Kind, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.value = kind.array(shape, data, order)
    return array


def _scalar(kind: _Kind, data: Any) -> _Array:
    return _of_buffer(data, kind, (), "C")


def _array_parts() -> dict[tuple[str, str], object]:
    """Return the replacements for the imports of NumPy's own pickles, of NumPy 1 and 2."""
    parts: dict[tuple[str, str], object] = {
        # Only named, as the type of the array that is made.
        ("numpy", "ndarray"): "numpy.ndarray",
        ("numpy", "dtype"): _Kind,
        ("_codecs", "encode"): _encode,
        ("__builtin__", "bytes"): _no_bytes,
    }
    for core in ("numpy.core", "numpy._core"):
        parts[f"{core}.multiarray", "_reconstruct"] = _Array
        parts[f"{core}.multiarray", "scalar"] = _scalar
        parts[f"{core}.numeric", "_frombuffer"] = _of_buffer
    return parts


_DTYPE = re.compile(r"[<>=|]?(?:[biufcSUVMmO]\d{0,9}|\?)", re.ASCII)
_ARRAYS = _array_parts()


Array = np.ndarray[Any, Any]

_SHARE = 3
"""Divisor of a worker's memory limit: the values of a file are copied once or twice."""

_HEADERS: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}

_ENDING = ".npy"


class UnreadableArrays(Exception):
    """A file is damaged, of another format, or holds unsupported data; the argument says why."""


def most_bytes() -> int:
    """Return the largest size of the values of one file, in bytes."""
    return usual_limit() // _SHARE


def read_npy(path: Path) -> Array:
    """Read a ``.npy``.

    Raises `UnreadableArrays` if it cannot be read, is too large, or holds objects.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream, path.stat().st_size)
    except UnreadableArrays:
        raise
    except Exception as error:  # NumPy raises any type for a damaged header
        raise UnreadableArrays(_sentence(error)) from None


def is_archive(path: Path) -> bool:
    """Return whether a file starts with the signature of an archive."""
    with path.open("rb") as stream:
        return stream.read(2) == b"PK"


def read_npz(
    path: Path, choose: Callable[[Sequence[str]], Collection[str]] | None = None
) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Return the names of the arrays in an ``.npz``, and the arrays selected by `choose`.

    Raises `UnreadableArrays` if it cannot be read, or the selected arrays are too large or hold
    objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {
                each.filename.removesuffix(_ENDING): each
                for each in archive.infolist()
                if each.filename.endswith(_ENDING)
            }
            if not entries:
                raise UnreadableArrays(_("it holds no arrays"))
            names = tuple(entries)
            chosen = names if choose is None else tuple(choose(names))
            check_bytes(sum(entries[each].file_size for each in chosen))
            arrays = {}
            for name in chosen:
                with archive.open(entries[name]) as stream:
                    arrays[name] = _read(stream, entries[name].file_size)
            return names, arrays
    except UnreadableArrays:
        raise
    except Exception as error:  # zipfile and its decompressors raise any type for damage
        raise UnreadableArrays(_sentence(error)) from None


def check_bytes(count: int) -> None:
    """Raise `UnreadableArrays` if `count` bytes exceed the limit for one file."""
    if count > most_bytes():
        raise UnreadableArrays(
            _(
                "it would take {count} of memory, and the limit for a file on this machine is "
                "{most_bytes}",
                count=bytes_text(count),
                most_bytes=bytes_text(most_bytes()),
            )
        )


def _read(stream: IO[bytes], size: int) -> Array:
    """Read an array from a stream of `size` bytes, as far as the size is known."""
    start = stream.read(1)
    stream.seek(0)
    if start == b"\x80":
        raise _objects(stream, size)
    version = npy.read_magic(stream)
    header = _HEADERS.get(version)
    if header is None:
        raise UnreadableArrays(
            _("version {version} of its format is not for arrays of numbers", version=version[0])
        )
    shape, _other, dtype = header(stream)
    if dtype.hasobject:
        raise _objects(stream, size)
    count = math.prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or count > size:
        raise UnreadableArrays(
            _("it declares {count} bytes of values, and has {size}", count=count, size=size)
        )
    check_bytes(count)
    stream.seek(0)
    array: Array = npy.read_array(stream, allow_pickle=False)
    return array


def _objects(stream: IO[bytes], size: int) -> UnreadableArrays:
    """Return the error for an array of objects, with the imports that unpickling it would make."""
    # A file makes room for all that is asked for, however short it is.
    found = import_text(imports_of(stream.read(min(size, most_bytes()))))
    return UnreadableArrays(
        _(
            "it holds objects of Python, which would import {found}: only numbers are read",
            found=found,
        )
        if found
        else _("it holds objects of Python: only numbers are read")
    )


def _sentence(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".: ")
    return line[:160] or type(error).__name__
