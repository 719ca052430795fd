"""Models in the memory of a Python process, passed to the window that it opens.

The process writes model and inputs into a private file, and sends its path only to the window that
it starts. The window takes the file's descriptor and removes the file at once; the engine and the
worker, including restarted ones, read the model from that descriptor, which is closed with the
window. No copy remains. In the process itself, the same content is read from memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import linecache
import mmap
import os
import pickle
import secrets
import shutil
import stat
import sys
import tempfile
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from lowerscope.core.files.sources import MEMORY, not_in_a_file
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _

OPTION = "--handed-over"
"""Command-line option of the window; its order is read from stdin."""

TAKEN, SHOWN = b"taken\n", b"shown\n"
"""The window's answers on stdout: the file has been taken, and the window was painted."""


VARIABLE = "LOWERSCOPE_HANDED_OVER"
"""Environment variable of the window: the descriptor and the recipe's name of the model."""

FOLDER = "lowerscope-model-"
"""Prefix of the folder of a model that waits for its window; the process id follows."""

_TOKEN_BYTES = 32


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata that is needed before the model is read."""

    title: str
    path: tuple[str, ...] = ()  # search path of the modules that it names
    # Source text that is in no file, such as cells of a notebook, by file name.
    lines: dict[str, str] = {}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Message from the process to the window: the file, its first bytes, and the recipe."""

    file: str
    token: str
    recipe: Recipe


@dataclass(frozen=True, eq=False)
class Parcel:
    """A pickled model with its inputs."""

    spec: str  # the recipe's name of it, derived from the content
    content: bytes  # the header, a line of JSON, and the pickle of model and inputs


_here: WeakValueDictionary[str, Parcel] = WeakValueDictionary()
"""The parcels of this process."""


def pack(model: object, inputs: object, title: str) -> Parcel:
    """Pickle a model with its inputs in their current state.

    Raises `LowerscopeError` if they cannot be pickled.
    """
    try:
        pickled = _pickled((model, inputs))
    except Exception as error:
        # A model may hold anything, and raise any type.
        raise LowerscopeError(
            _(
                "the model cannot be passed to the window: {name}: {error}",
                name=type(error).__name__,
                error=error,
            ),
            where=title,
            todo=_("Write it as a Python file, and open that"),
        ) from None
    folders = tuple(os.path.abspath(each) for each in sys.path)
    header = Header(title=title, path=folders, lines=dict(_texts(model)))
    content = msgspec.json.encode(header) + b"\n" + pickled
    digest = hashlib.sha256(content).hexdigest()[:16]
    parcel = Parcel(f"{MEMORY}{title}-{digest}", content)
    return _here.setdefault(parcel.spec, parcel)


def _pickled(value: object) -> bytes:
    """Pickle a value by cloudpickle, whose code keeps the names of its files.

    Since 3.1.3, cloudpickle replaces them, and a node would not know its line in a cell.
    """
    import cloudpickle

    usual = cloudpickle.CloudPickler.dispatch_table

    def reduced(code: CodeType) -> Any:
        make, fields = usual[CodeType](code)
        name = code.co_filename
        return make, tuple(name if each == "<dynamic-code>" else each for each in fields)

    # The table is read from the class.
    table = {"dispatch_table": ChainMap({CodeType: reduced}, usual)}
    kind: Any = type("Pickler", (cloudpickle.CloudPickler,), table)
    with io.BytesIO() as file:
        kind(file).dump(value)
        return file.getvalue()


def _texts(model: object) -> Iterator[tuple[str, str]]:
    """Yield the source text of a model's classes that are in no file."""
    modules = getattr(model, "modules", None)
    kinds = {type(each) for each in modules()} if callable(modules) else set()
    for kind in kinds:
        for value in vars(kind).values():
            code = getattr(value, "__code__", None)
            if code is not None and not os.path.exists(code.co_filename):
                lines = linecache.getlines(code.co_filename)
                if lines:
                    yield code.co_filename, "".join(lines)


# In the process that has the model


@contextlib.contextmanager
def private_file(parcel: Parcel) -> Iterator[tuple[str, str]]:
    """Write a parcel to a file that only this user may read; yield its path and its token.

    The file is removed after the body, whether the window has taken it or never started.

    Raises `OSError` if it cannot be written.
    """
    folder = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-")
    try:
        token = secrets.token_hex(_TOKEN_BYTES)
        path = os.path.join(folder, "model")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(token.encode())
            file.write(parcel.content)
        yield path, token
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# In the window


def take(order: Order) -> None:
    """Take the file of an order: keep its descriptor open in this process, and remove it.

    Raises `LowerscopeError` if it is not the file that this window was started for.
    """
    try:
        descriptor = os.open(order.file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise _not_the_one(_("it cannot be read ({strerror})", strerror=error.strerror)) from None
    status = os.fstat(descriptor)
    token = os.pread(descriptor, 2 * _TOKEN_BYTES, 0)
    if (
        not stat.S_ISREG(status.st_mode)
        or status.st_uid != os.getuid()
        or status.st_mode & 0o077
        or not hmac.compare_digest(token, order.token.encode())
    ):
        os.close(descriptor)
        raise _not_the_one(_("it was not written for this window"))
    os.unlink(order.file)
    with contextlib.suppress(OSError):  # the process that made it removes it as well
        os.rmdir(os.path.dirname(order.file))
    descriptor = _out_of_the_way(descriptor)
    os.set_inheritable(descriptor, True)
    os.environ[VARIABLE] = f"{descriptor}:{order.recipe.source.spec}"


def _out_of_the_way(descriptor: int) -> int:
    """Move a descriptor above the numbers that shells use themselves, and return the new one."""
    if sys.platform == "win32":
        return descriptor
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved


def _not_the_one(reason: str) -> LowerscopeError:
    return LowerscopeError(
        _("the model was rejected: {reason}", reason=reason),
        where="--handed-over",
        todo=_("Call explore(model, inputs) in Python: it opens the window by itself"),
    )


def first_other_descriptor() -> int:
    """Return the lower bound of descriptors that the window's children do not need; 0 for all."""
    number = os.environ.get(VARIABLE, "").partition(":")[0]
    return int(number) + 1 if number.isdecimal() else 0


def handed_descriptors() -> tuple[int, ...]:
    """Return the descriptor to pass to the window's children, if there is one."""
    other = first_other_descriptor()
    return (other - 1,) if other else ()


# In the engine, the worker, and the process itself


def read_handed(spec: str) -> tuple[Header, Any, Any]:
    """Return the header, the model and the inputs of a model in memory.

    Raises `LowerscopeError` if it is not available: it was in the memory of another process.
    """
    with _opened(spec) as stream:
        try:
            header = msgspec.json.decode(stream.readline(), type=Header)
        except UNREADABLE as error:
            raise _not_the_one(_("it has no valid beginning ({error})", error=error)) from None
        sys.path.extend(each for each in header.path if each not in sys.path)
        for name, text in header.lines.items():
            # Entries without a modification time are never refreshed.
            linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        try:
            model, inputs = pickle.load(stream)
        except Exception as error:
            raise LowerscopeError(
                _(
                    "the model cannot be read: {name}: {error}",
                    name=type(error).__name__,
                    error=error,
                ),
                where=header.title,
                todo=_("Its imports must be available here as well; or write it as a file"),
            ) from error
    return header, model, inputs


@contextlib.contextmanager
def _opened(spec: str) -> Iterator[io.BytesIO | mmap.mmap]:
    parcel = _here.get(spec)
    number, _sep, name = os.environ.get(VARIABLE, "").partition(":")
    if parcel is not None:
        yield io.BytesIO(parcel.content)
    elif name == spec and number.isdecimal():
        # Descriptors are shared, and so are their positions; that of a map is its own.
        with mmap.mmap(int(number), 0, access=mmap.ACCESS_READ) as stream:
            stream.seek(2 * _TOKEN_BYTES)
            yield stream
    else:
        raise not_in_a_file(spec)
