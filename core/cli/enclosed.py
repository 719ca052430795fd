"""The option ``--sandbox``: runs the user's code in a sandbox, as the window does.

This module imports neither torch nor TVM: the command itself runs in another process.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lowerscope.core.files import console
from lowerscope.core.files.atomic_write import WRITES
from lowerscope.core.files.paths import cannot_write, is_same_file, user_path
from lowerscope.core.files.sources import neighbours
from lowerscope.core.model.artifacts import announced, parse_wanted
from lowerscope.core.model.explanation_records import PROGRAM, REPORT
from lowerscope.core.model.machines import usual_limit
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _, _n
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.folder import SandboxFolder, SandboxOutput, only, own_folder

OPTION = "--sandbox"

_FILES = ("output", "save", "html")
"""Options that name an output file."""

_MOST_NAMES = 20
"""Most unannounced files that are named in a message."""

_PARENT_DEATH_SIGNAL = 1
"""Of Linux's ``prctl``."""

WITHOUT = _("leave {option} out", option=OPTION)
"""Way to run the code all the same."""


def add_sandbox_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        OPTION,
        action="store_true",
        help=_(
            "run in a sandbox: no network, and code can write temporary files only; the files of "
            "the command are copied out at its end"
        ),
    )


def run_enclosed(
    arguments: Sequence[str], parse: Callable[[Sequence[str]], argparse.Namespace]
) -> int | None:
    """Run a command in a sandbox, if the options request one, and return its exit code.

    Its output files are written to a folder of the sandbox, and copied to their destinations when
    the command has ended: see `SandboxOutput`.

    Raises a `LowerscopeError` if there is no sandbox here, or the output cannot be copied.

    Returns:
        ``None`` if this process is to run the command: no sandbox is requested, or it is in one.
    """
    if bubblewrap.is_inside():
        bubblewrap.enter()
        # The process that made the sandbox waits for the effect of an interrupt: see below.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return None
    if not any(each.startswith("--s") for each in arguments):
        return None
    options = parse(arguments)
    if not getattr(options, "sandbox", False):
        return None
    try:
        return _run(arguments, options)
    except OSError as error:
        raise cannot_write(error, error.filename or "") from None


def _run(arguments: Sequence[str], options: argparse.Namespace) -> int:
    program = bubblewrap.program()
    if program is None:
        raise _refused(
            _("bwrap is missing"),
            _("Install bubblewrap (bwrap), or leave {option} out", option=OPTION),
        )
    network: bubblewrap.Network = "open" if getattr(options, "tracker", "") else "none"
    folder = own_folder()
    output = _output(options, folder)
    variables = dict(folder.variables)
    if output is not None:
        variables[WRITES] = f"{os.path.realpath(output.target)}\n{output.folder}"

    limit = getattr(options, "memory_limit", None) or usual_limit()

    def enclosed(*command: str) -> tuple[str, ...]:
        return bubblewrap.enclosed(
            program, command, (folder.path,), network, variables, memory=limit
        )

    # Keep the error of a system that forbids sandboxes apart from the command's output.
    try:
        tried = subprocess.run(enclosed("true"), capture_output=True, text=True, check=False)
    except bubblewrap.NoSandbox as error:
        raise _refused(str(error)) from None
    if tried.returncode:
        reason = tried.stderr.strip().splitlines()
        raise _refused(
            _("the system cannot create one: {reason}", reason=reason[-1])
            if reason
            else _("the system cannot create one")
        )
    # The command in the sandbox handles an interrupt itself, and reports the outcome.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    command = (sys.executable, "-P", "-m", "lowerscope.app", *arguments)
    with subprocess.Popen(enclosed(*command), preexec_fn=_end_with_parent) as process:
        code = process.wait()
    if output is not None:
        output.copy_out(lambda _unused: getattr(options, "force", True))
        others = output.others()
        for name in others[:_MOST_NAMES]:
            console.say(_("note: {name} was not copied out of the sandbox", name=name))
        if len(others) > _MOST_NAMES:
            console.say(
                _n(
                    "note: {count:,} more file was not copied out of the sandbox",
                    "note: {count:,} more files were not copied out of the sandbox",
                    len(others) - _MOST_NAMES,
                )
            )
    return code if code >= 0 else 128 - code


def _end_with_parent() -> None:
    """Have the kernel kill this process, which is about to make the sandbox, with its parent."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _output(options: argparse.Namespace, folder: SandboxFolder) -> SandboxOutput | None:
    """Return the output of a command's announced files; ``None`` if it writes none."""
    if options.command == "export":
        kinds = tuple(each.strip() for each in options.picture.split(","))
        libraries = [user_path(each.path) for each in options.extensions]
        takes = announced(parse_wanted(options.what), kinds, libraries)
        target, source = user_path(options.output).absolute(), user_path(options.source)
        # The command never replaces its source, and neither may the code that it runs.
        return SandboxOutput(
            folder, target, lambda name: takes(name) and not is_same_file(target / name, source)
        )
    if options.command == "bisect":
        paths = [user_path(each.path).absolute() for each in options.extensions]
        own = [
            str(each.relative_to(path.parent))
            for path in paths
            for each in (path, *neighbours(path))
            if each.is_relative_to(path.parent)
        ]
        names = (PROGRAM, REPORT, "reproduce.npz", "reproduce.json", "compiling.py", *own)
        return SandboxOutput(folder, user_path(options.output).absolute(), only(names))
    files = [user_path(found) for name in _FILES if (found := getattr(options, name, ""))]
    for file in files:
        path = Path(os.path.realpath(file))
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
        return SandboxOutput(folder, path.parent, only((path.name,)))
    return None


def _refused(reason: str, todo: str = "") -> LowerscopeError:
    return LowerscopeError(
        _("the sandbox is not available: {reason}", reason=reason),
        where=OPTION,
        todo=todo or WITHOUT,
    )
