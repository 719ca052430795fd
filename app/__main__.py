"""The ``lowerscope`` command: opens the window, or delegates to `lowerscope.core.cli`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowerscope.app.pictures import GraphPictures

COMMANDS = frozenset(
    (
        *("samples", "targets", "show", "run", "compare", "export", "rule", "passes", "schedule"),
        *("tune", "course", "cache"),
    )
)
"""Commands of `lowerscope.core.cli`, which the window does not import because that is slow."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``lowerscope`` with `arguments`, without the program's name; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in COMMANDS:
        from lowerscope.core import cli
        from lowerscope.core.command_line.console import ERROR, say
        from lowerscope.core.command_line.enclosed import run_enclosed
        from lowerscope.core.engine.temporary_files import own_folder, sweep
        from lowerscope.core.errors import LowerscopeError

        sweep()
        try:
            code = run_enclosed(given, cli.parse)
        except LowerscopeError as error:
            say(error.problem.line())
            return ERROR
        if code is not None:
            return code
        with own_folder():
            return _command(given)
    from lowerscope.app.start import open_window

    return open_window(given)


def _command(given: Sequence[str]) -> int:
    from lowerscope.core import cli

    if given[0] in cli.WITHOUT_CODE:
        return cli.main(given)
    from lowerscope.core.command_line.supervised import run_supervised

    return run_supervised(given, _painter)


def _painter() -> GraphPictures:
    """Return the painter of graphs for the command line; it imports Qt."""
    from lowerscope.app.system_libraries import explain_missing_libraries
    from lowerscope.core.errors import LowerscopeError

    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    missing = explain_missing_libraries()
    if missing:
        raise LowerscopeError(missing, where="--picture", todo="Or take --picture dot")
    from lowerscope.app.pictures import GraphPictures

    return GraphPictures()


if __name__ == "__main__":
    sys.exit(main())
