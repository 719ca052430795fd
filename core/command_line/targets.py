"""The command ``lowerscope targets``: the properties of each target."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lowerscope.core.command_line.recipe_from_options import check_threads
from lowerscope.core.command_line.recipe_options import add_remote_options
from lowerscope.core.encoding import to_json
from lowerscope.core.progress import Silent
from lowerscope.core.records.remote import Remote, RemoteState, key_text, machine_text, remote_of
from lowerscope.core.records.target import TargetRecord

_HEADINGS = ("target", "processor", "vectors", "float32", "registers", "threads", "features")


def add_targets_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``lowerscope targets``."""
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="a target as --target takes it; without one, those that there are to choose from",
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="of TVM (default: all that there are)"
    )
    add_remote_options(parser)
    parser.add_argument("--json", action="store_true", help="print records as JSON")


def targets(options: argparse.Namespace) -> str:
    """Return the table of the targets, or their records as JSON; for a remote, its state.

    Raises
    ------
    LowerscopeError
        If TVM or LLVM does not know one of them, or there is no such remote.
    """
    check_threads(options.threads)
    remote = remote_of(options.tracker, options.key, options.remote_timeout)
    from lowerscope.core.target_catalogue import target_records

    if remote is not None:
        from lowerscope.core.remote.machine import remote_state

        state = remote_state(remote, Silent())
        return to_json(state) if options.json else _state(remote, state)
    records = target_records(options.targets, options.threads)
    return to_json(records) if options.json else _table(records)


def _state(remote: Remote, state: RemoteState) -> str:
    lines = map(key_text, state.keys)
    return "\n".join([*lines, f"{remote.key}: {machine_text(state)}"])


def _table(records: Sequence[TargetRecord]) -> str:
    """Return a line for each target, and one with its purpose and whether it runs here."""
    rows = [_HEADINGS, *map(_row, records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = [
        "  ".join(
            text.rjust(width) if 2 <= column < 6 else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    told = [lines[0]]
    for record, line in zip(records, lines[1:], strict=True):
        about = f"does not run here: {record.hindrance}" if record.hindrance else "runs here"
        told += [line, "    " + "; ".join(each for each in (record.title, about) if each)]
    return "\n".join(told)


def _row(record: TargetRecord) -> tuple[str, ...]:
    return (
        record.text,
        f"{record.architecture} {record.cpu}",
        f"{record.vector_bits} bits",
        str(record.lanes),
        str(record.registers),
        str(record.threads),
        ", ".join(record.features) or "-",
    )
