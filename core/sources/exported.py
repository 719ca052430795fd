"""Opening an exported program (``.pt2``), audited before torch reads it.

Torch unpickles parts of the archive, falls back to unpickling without restrictions, loads compiled
libraries from it, and evaluates text as Python. Unless the user trusts the file, it is rejected
when it holds anything that is not known to be data, and torch is restricted to safe unpickling
meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from lowerscope.core.files.paths import check_readable
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.texts import _
from lowerscope.core.sources.array_files import UnreadableArrays, check_bytes, imports_of
from lowerscope.core.sources.program_text import harmless_paths, suspects, suspects_of_payload

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
"""Imports allowed in the pickles of an exported program, besides storages and dtypes."""

_TORCH_TYPE = re.compile(r"torch\.(\w+Storage|b?float\d+\w*|u?int\d+|bool|complex\d+|q?u?int\d+)")
_PARTS = re.compile(
    r"archive_format|archive_version|byteorder|version|\.data/(?:version|serialization_id)"
    r"|models/[\w\-]+\.json"
    r"|data/weights/(?:weight_\d+|[\w\-]+_weights_config\.json|[\w\-]+\.pt)"
    r"|data/constants/(?:tensor_\d+|[\w\-]+_constants_config\.json|[\w\-]+\.pt)"
    r"|data/sample_inputs/[\w\-]+\.pt|extra/.+",
    re.ASCII,
)
"""The known members of the archive."""

_LIBRARIES = "data/aotinductor/"
_OBJECTS = ("data/constants/custom_obj_", "data/constants/opaque_obj_")
_PAYLOADS = {"data/weights/": "weight_", "data/constants/": "tensor_"}
_FORCE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_DEPTH = 4
_LOGS = (
    "torch.export",
    "torch._export",
    "torch.export.pt2_archive._package",
    "torch._export.serde.serialize",
)


def load_exported(
    path: Path, *, trust: bool
) -> tuple[torch.export.ExportedProgram, torch.nn.Module]:
    """Open an exported program; return it, and its module.

    Args:
        trust: Open it even though it could run code.

    Raises `LowerscopeError` if the file is damaged or no exported program, or it could run code
    (``code="trust"``, with the code it would run).
    """
    check_readable(path)
    # Read once: the bytes loaded are the bytes audited.
    data = path.read_bytes()
    members = _members(data, path)
    if not trust:
        _refuse(_refusals(members), path)
    # Imported here since it takes a second.
    from torch.export.pt2_archive._package import load_pt2

    try:
        with _quiet_torch(trust=trust):
            # On failure, torch.export.load would fall back to another reader.
            program = load_pt2(io.BytesIO(data)).exported_programs["model"]
            if not (trust or harmless_paths(program.example_inputs)):
                _refuse([_("names of values in its example inputs")], path)
            return program, program.module()
    except LowerscopeError:
        raise
    except Exception as error:  # torch raises any type for a program it cannot read
        raise _unreadable(path, error) from None


def _refuse(reasons: Iterable[str], path: Path) -> None:
    """Raise a `LowerscopeError` with the reasons why a file counts as code, if any."""
    refused = sorted(set(reasons))
    if refused:
        raise LowerscopeError(
            _("opening it would run code: it has {refused}", refused=listed(refused, 3)),
            where=str(path),
            todo=_("Open it only if you know where it comes from: --trust"),
            code="trust",
            choices=tuple(refused),
        )


def _members(data: bytes, path: Path) -> list[tuple[str, bytes]]:
    """Return the members of the archive as torch's own reader sees them."""
    try:
        members = _archive(data)
    except UnreadableArrays as error:
        raise LowerscopeError(
            str(error), where=str(path), todo=_("Make the model smaller")
        ) from None
    except (RuntimeError, ValueError) as error:
        raise _unreadable(path, error) from None
    if ("archive_format", b"pt2") not in members:
        raise LowerscopeError(
            _("this is not an exported program"),
            where=str(path),
            todo=_("Save one with torch.export.save of torch 2.8 or later"),
        )
    return members


def _archive(data: bytes) -> list[tuple[str, bytes]]:
    reader = torch._C.PyTorchFileReader(io.BytesIO(data))
    # A few kilobytes can expand to gigabytes of zeros.
    check_bytes(sum(reader.get_record_size(name) for name in reader.get_all_records()))
    return [(name, bytes(reader.get_record(name))) for name in reader.get_all_records()]


def _refusals(members: list[tuple[str, bytes]]) -> Iterator[str]:
    if len({name.lower() for name, _other in members}) < len(members):
        # Torch's reader distinguishes names neither by folder nor by case.
        yield _("two parts of the same name")
    for name, content in members:
        if name.startswith(_LIBRARIES):
            yield _("a compiled library")
        elif name.startswith(_OBJECTS):
            yield _("an object of a custom class ({name!r:.60})", name=name)
        elif _PARTS.fullmatch(name) is None:
            yield _("the unknown part {name!r:.60}", name=name)
        folder = name[: name.rfind("/") + 1]
        if folder == "models/":
            yield from _refusals_of_text(content, suspects)
        elif folder in _PAYLOADS and name.endswith(".json"):
            listed = functools.partial(suspects_of_payload, file=_PAYLOADS[folder])
            yield from _refusals_of_text(content, listed)
        else:
            yield from _refusals_of_bytes(content, 0)


def _refusals_of_text(
    content: bytes, suspects_of: Callable[[object], Iterator[str]]
) -> Iterator[str]:
    try:
        yield from suspects_of(json.loads(content.decode("utf-8")))
    except (ValueError, RecursionError):
        yield _("unreadable text")


def _refusals_of_bytes(content: bytes, depth: int) -> Iterator[str]:
    """Yield the imports of the pickles in a member, or in an archive inside it."""
    if depth > _DEPTH:
        yield _("archives inside of archives")
        return
    if content.startswith(b"PK\x03\x04"):
        try:
            for _other, inner in _archive(content):
                yield from _refusals_of_bytes(inner, depth + 1)
        except (RuntimeError, ValueError, UnreadableArrays):
            yield _("an unreadable archive")
        return
    yield from (
        _("an import of {name}", name=name)
        for name in imports_of(content)
        if name not in HARMLESS and not _TORCH_TYPE.fullmatch(name)
    )


@contextlib.contextmanager
def _quiet_torch(*, trust: bool) -> Iterator[None]:
    """Restrict torch to safe unpickling unless trusted, and silence its logging."""
    before = os.environ.get(_FORCE)
    logs = [logging.getLogger(name) for name in _LOGS]
    disabled = [log.disabled for log in logs]
    if not trust:
        os.environ[_FORCE] = "1"
    for log in logs:
        # It logs the traceback of an error that it also raises.
        log.disabled = True
    try:
        with warnings.catch_warnings():
            # torch itself makes tensors from read-only bytes, and warns of it.
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
    # torch appends a backtrace, and advice on reporting the error.
    sentence = str(error).strip().partition("\n")[0].partition(". ")[0].partition("  (")[0]
    return LowerscopeError(
        _(
            "this exported program cannot be read: it is truncated, damaged or of another "
            "version ({rstrip})",
            rstrip=sentence[:160].rstrip(". ") or type(error).__name__,
        ),
        where=str(path),
        todo=_("Export it again with torch.export.save"),
    )
