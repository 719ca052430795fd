"""Fault options of the command ``run``: guarded memory, and the memory limit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowerscope.core.encoding import to_json
from lowerscope.core.memory_limit import limit_memory, parse_limit
from lowerscope.core.model.queries import GuardQuery
from lowerscope.core.progress import Progress, Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.running.running_call import CallWriter

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline


class _Told(Silent):
    """Progress that writes the current call to a file."""

    def __init__(self, file: int) -> None:
        self._calls = CallWriter(file)

    def begin_calls(self, names: Sequence[str]) -> None:
        self._calls.begin(names)

    def at_call(self, index: int, inside: bool) -> None:
        self._calls.at(index, inside)


def add_fault_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    parser.add_argument(
        "--guarded",
        action="store_true",
        help="run once, each call with guarded memory, and name those that write beside their own",
    )
    parser.add_argument(
        "--memory-limit",
        type=_limit,
        metavar="3GB",
        help="memory that the run may have; a call that asks for more fails",
    )
    # Descriptor from which `supervised` reads the current call.
    parser.add_argument("--calls", type=int, default=None, help=argparse.SUPPRESS)


def progress_of(options: argparse.Namespace) -> Progress:
    """Limit the memory, and return the progress of a run."""
    if options.memory_limit is not None:
        limit_memory(options.memory_limit)
    return Silent() if options.calls is None else _Told(options.calls)


def run_guarded(
    pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace, progress: Progress
) -> tuple[bool, str]:
    """Return whether every call kept to its memory, and the text to print."""
    found = pipeline.answer(GuardQuery(recipe), progress)
    done = not found.trespasses and not found.failure
    if options.json:
        return done, to_json(found)
    lines = [f"Call {each.call + 1}, {each.name}, {each.text}" for each in found.trespasses]
    if found.failure:
        lines.append(found.failure)
    return done, "\n".join(lines or [f"Each of {found.calls} calls kept to its own memory"])


def _limit(text: str) -> int:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
