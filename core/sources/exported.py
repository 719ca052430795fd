"""Opening an exported program (``.pt2``), which is looked through before torch may touch it.

`torch.export.load` unpickles parts of the archive, falls back to unpickling without restrictions,
loads compiled libraries from it, and evaluates text as Python. Unless the user trusts the file, it
is refused when it holds any of that, and torch is held to restricted unpickling meanwhile.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.pickles import imports_of
from lowerscope.core.sources.program_text import suspects
from lowerscope.core.user_paths import check_readable

HARMLESS = frozenset(
    {
        "collections.OrderedDict",
        "torch.Size",
        "torch.Tensor",
        "torch.device",
        "torch.storage.TypedStorage",
        "torch.storage.UntypedStorage",
        "torch._utils._rebuild_tensor",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_tensor_v3",
        "torch._utils._rebuild_parameter",
        "torch.nn.parameter.Parameter",
        "torch.serialization._get_layout",
    }
)
"""What the pickles of an exported program import, besides storages and dtypes."""

_TORCH_TYPE = re.compile(r"torch\.(\w+Storage|b?float\d+\w*|u?int\d+|bool|complex\d+|q?u?int\d+)")
_LIBRARIES = "data/aotinductor/"
_OBJECTS = ("data/constants/custom_obj_", "data/constants/opaque_obj_")
_FORCE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_DEPTH = 4


def load_exported(
    path: Path, *, trust: bool
) -> tuple[torch.export.ExportedProgram, torch.nn.Module]:
    """Open an exported program; return it, and its module.

    Parameters
    ----------
    path
        The ``.pt2``.
    trust
        Open it even though it could run code.

    Raises
    ------
    LowerscopeError
        If the file is damaged or no exported program, or it could run code
        (``code="trust"``, with what it would run).
    """
    check_readable(path, "source")
    # Read once: what is loaded is what was looked through.
    data = path.read_bytes()
    members = _members(data, path)
    if not trust:
        refused = sorted(set(_refusals(members)))
        if refused:
            more = f" and {len(refused) - 3} more" if len(refused) > 3 else ""
            raise LowerscopeError(
                f"opening it would run code: it has {', '.join(refused[:3])}{more}",
                where=str(path),
                todo="Open it with --trust only if you know where it comes from",
                code="trust",
                choices=tuple(refused),
            )
    try:
        with _quiet_torch(trust=trust):
            program = torch.export.load(io.BytesIO(data))
            return program, program.module()
    except Exception as error:  # torch.export.load raises any type for a program it cannot read
        raise _unreadable(path, error) from None


def _members(data: bytes, path: Path) -> dict[str, bytes]:
    """Return the content of the archive, as torch's own reader sees it."""
    try:
        reader = torch._C.PyTorchFileReader(io.BytesIO(data))
        members = {name: bytes(reader.get_record(name)) for name in reader.get_all_records()}
    except (RuntimeError, ValueError) as error:
        raise _unreadable(path, error) from None
    if members.get("archive_format") != b"pt2":
        raise LowerscopeError(
            "this is not an exported program",
            where=str(path),
            todo="Save one with torch.export.save of torch 2.8 or later",
        )
    return members


def _refusals(members: dict[str, bytes]) -> Iterator[str]:
    for name, content in members.items():
        if name.startswith(_LIBRARIES):
            yield "a compiled library"
        elif name.startswith(_OBJECTS):
            yield f"an object of a class of its own ({name})"
        # By name, as torch does: one weight in two hundred begins with a brace.
        if name.endswith(".json") or name.startswith("models/"):
            yield from _refusals_of_text(content)
        else:
            yield from _refusals_of_bytes(content, 0)


def _refusals_of_text(content: bytes) -> Iterator[str]:
    try:
        yield from suspects(json.loads(content))
    except (ValueError, RecursionError):
        yield "text that cannot be read"


def _refusals_of_bytes(content: bytes, depth: int) -> Iterator[str]:
    """Yield what the pickles in a member, or in an archive inside of it, would import."""
    if depth > _DEPTH:
        yield "archives inside of archives"
        return
    if content.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for entry in archive.infolist():
                    yield from _refusals_of_bytes(archive.read(entry), depth + 1)
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, ValueError):
            yield "an archive that cannot be read"
        return
    yield from (
        f"an import of {name}"
        for name in imports_of(content)
        if name not in HARMLESS and not _TORCH_TYPE.fullmatch(name)
    )


@contextlib.contextmanager
def _quiet_torch(*, trust: bool) -> Iterator[None]:
    """Keep torch to restricted unpickling unless trusted, and its logging to itself."""
    before = os.environ.get(_FORCE)
    logs = [logging.getLogger(name) for name in ("torch.export", "torch._export")]
    disabled = [log.disabled for log in logs]
    if not trust:
        os.environ[_FORCE] = "1"
    for log in logs:
        # It logs the traceback of an error that it raises as well.
        log.disabled = True
    try:
        with warnings.catch_warnings():
            # Tensors are made from read-only bytes, and torch says so of its own doing.
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, was in zip(logs, disabled, strict=True):
            log.disabled = was
        if before is None:
            os.environ.pop(_FORCE, None)
        else:
            os.environ[_FORCE] = before


def _unreadable(path: Path, error: Exception) -> LowerscopeError:
    # torch goes on with a backtrace, and with advice on reporting the error to it.
    sentence = str(error).strip().partition("\n")[0].partition(". ")[0].partition("  (")[0]
    return LowerscopeError(
        "this exported program cannot be read: it is cut off, damaged or of another version "
        f"({sentence[:160].rstrip('. ') or type(error).__name__})",
        where=str(path),
        todo="Export it again with torch.export.save",
    )
