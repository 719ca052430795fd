"""Tuning results in the user's cache, by function, target and machine.

Each function has a file with the best history and its known times, so results survive a crash of
the process. Beside these are two files in TVM's own format, with the measured traces:
`s_tir.meta_schedule.database.JSONDatabase` opens them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import tvm
from tvm import tirx
from tvm.s_tir import meta_schedule

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.cache import SANDBOXED, TRACES, adding_traces, read_kept, write_kept
from lowerscope.core.files.memo import key_of
from lowerscope.core.files.paths import cache_folder, fallback_of, user_cache_folder
from lowerscope.core.ir.tensorir import LAYOUT_FREE, structure_of
from lowerscope.core.lowering.legal_forms import make_known
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.machines import processor_name
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import VERSIONS
from lowerscope.core.model.schedule import Primitive
from lowerscope.core.model.texts import _
from lowerscope.core.model.tuning_records import TunedTime


class Tried(msgspec.Struct, frozen=True):
    """Measured decisions of a rule: ``seconds`` is ``None`` where they failed."""

    decisions: dict[str, int]
    seconds: float | None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Tuning result of a function.

    `unscheduled`, `by_rules`, `torch`: seconds of a call; ``None`` where it is not known.
    `best`, `primitives`: the shortest time, and the history that has it; no primitives where no
        schedule is faster than none.
    `trials`, `failed`: number of measured candidates, and of those that failed.
    `tried`: those of them that rules have written.
    `disturbed`: the times among those above that were measured while other programs held the
        processors.
    """

    function: str
    unscheduled: float | None = None
    by_rules: float | None = None
    torch: float | None = None
    best: float | None = None
    primitives: tuple[Primitive, ...] = ()
    trials: int = 0
    failed: int = 0
    tried: tuple[Tried, ...] = ()
    disturbed: tuple[TunedTime, ...] = ()


class Database:
    """The functions that were tuned for one target with one number of threads.

    `where`: the machine that they were measured on: ``host:port key`` of a tracker; empty for this
    one.
    """

    def __init__(self, target: tvm.target.Target, threads: int, where: str = "") -> None:
        machine = where or processor_name()
        key = key_of("tuning", 1, machine, str(target), threads, VERSIONS)
        self.folder = cache_folder() / "tuning" / key
        self.about = {"machine": machine, "target": str(target), "threads": threads}
        self._using = ExitStack()

    def kept(self, function: tirx.PrimFunc) -> Kept | None:
        """Return the tuning result of an unscheduled function."""
        try:
            return msgspec.json.decode(read_kept(self._file(function)), type=Kept)
        except (OSError, *UNREADABLE):
            # Nothing was found yet, or by a version with another format, or the file is damaged.
            return None

    def keep(self, function: tirx.PrimFunc, kept: Kept) -> None:
        """Replace the tuning result of a function."""
        self._prepare()
        write_kept(self._file(function), msgspec.json.encode(kept))

    @property
    def state(self) -> Mapping[str, int]:
        """A value that changes with each write: the modification times of the files."""
        found = {}
        for folder in filter(None, (fallback_of(self.folder), self.folder)):
            for each in sorted(folder.glob("f-*.json")):
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    found[each.name] = each.stat().st_mtime_ns
        return found

    @property
    def place(self) -> Path:
        """The folder in the user's cache that results are copied to in the end."""
        return fallback_of(self.folder) or self.folder

    @cached_property
    def traces(self) -> meta_schedule.database.Database:
        """TVM's own database, with the measured traces.

        Where another process adds to it already, traces of this one are not kept. Lines that cannot
        be read, such as one that a killed process leaves, are dropped.

        Raises `LowerscopeError` if one of the files is not text, and thus not TVM's.
        """
        if not self._using.enter_context(adding_traces(self.folder)):
            return meta_schedule.database.MemoryDatabase()
        self._prepare()
        records, workloads = (self.folder / each for each in TRACES)
        self._copy_traces()
        for file in (workloads, records):
            if file.exists() and not _is_text(file.read_bytes()):
                raise LowerscopeError(
                    _("the file contains no traces of TVM's search: it is not text"),
                    where=str(file),
                    todo=_("Remove it, or all results of tuning: lowerscope cache --clear"),
                )
            _without_torn_line(file)
        _without_other_lines(workloads, records)
        try:
            return _opened(workloads, records)
        except _DAMAGED:  # TVM quotes bytes that are no text
            _without_what_cannot_be_replayed(workloads, records)
            return _opened(workloads, records)

    def close(self) -> None:
        """Add no more traces, so that another process may add or remove them."""
        self._using.close()

    def _copy_traces(self) -> None:
        """In a sandbox, copy the traces that an earlier one has left."""
        before = user_cache_folder() / SANDBOXED / "tuning" / self.folder.name
        if fallback_of(self.folder) is None or (self.folder / TRACES[0]).exists():
            return
        for name in TRACES:
            with suppress(FileNotFoundError):
                data = (before / name).read_bytes()
                if _is_text(data):
                    atomic_write(self.folder / name, data, private=True)

    def _prepare(self) -> None:
        if not (self.folder / "about.json").exists():
            atomic_write(self.folder / "about.json", msgspec.json.encode(self.about), private=True)

    def _file(self, function: tirx.PrimFunc) -> Path:
        return self.folder / f"f-{identity_of(function)}.json"


def identity_of(function: tirx.PrimFunc) -> str:
    """Return the key of a function: its structure, and whether its weights are packed.

    Where they are packed at build, packing takes no time.
    """
    packs = "-packed" if LAYOUT_FREE in (function.attrs or {}) else ""
    return structure_of(function) + packs


def _opened(workloads: Path, records: Path) -> meta_schedule.database.Database:
    """Open the files as TVM's database.

    Its threads replay the traces, and call Python for the registered reducers. So this thread must
    release the interpreter lock meanwhile, as a call of the function does; the constructor of
    `JSONDatabase` holds it, and would deadlock.
    """
    make_known()
    make = tvm.get_global_func("s_tir.meta_schedule.DatabaseJSONDatabase")
    return make(str(workloads), str(records), True, "structural")


def _without_other_lines(workloads: Path, records: Path) -> None:
    """Remove lines that are not traces of one of the functions: TVM crashes on some of them."""
    if not records.exists():
        return
    known = len(workloads.read_bytes().splitlines()) if workloads.exists() else 0
    _keep_lines(records, lambda line: 0 <= _trace(line)[0] < known)


def _without_what_cannot_be_replayed(workloads: Path, records: Path) -> None:
    """Remove the traces that cannot be replayed, or all where a function cannot be read."""
    try:
        functions = [
            meta_schedule.database.Workload.from_json(json.loads(each))
            for each in workloads.read_bytes().splitlines()
        ]
    except _DAMAGED:
        workloads.unlink()
        records.unlink(missing_ok=True)
        return

    def is_replayed(line: bytes) -> bool:
        number, record = _trace(line)
        meta_schedule.database.TuningRecord.from_json(record, functions[number])
        return True

    _keep_lines(records, is_replayed)


_DAMAGED = (RuntimeError, ValueError, TypeError)
"""Exceptions of TVM and JSON for foreign lines, such as those of another version."""


def _trace(line: bytes) -> tuple[int, list[Any]]:
    return msgspec.convert(json.loads(line), tuple[int, list[Any]])


def _keep_lines(file: Path, is_kept: Callable[[bytes], bool]) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    kept = []
    for line in lines:
        with suppress(*_DAMAGED):
            if is_kept(line):
                kept.append(line)
    if kept != lines:
        atomic_write(file, b"".join(kept), private=True)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # The last character may have been written in part.
        return error.reason == "unexpected end of data"
    return True


def _without_torn_line(file: Path) -> None:
    """Remove an incomplete last line: TVM opens no file that has one."""
    if not file.exists():
        return
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        atomic_write(file, whole, private=True)
