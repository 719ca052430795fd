"""The ``lowerscope`` command: opens the window, or delegates to `lowerscope.core.cli.main`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowerscope.core.model.texts import _, set_language

if TYPE_CHECKING:
    from lowerscope.app.kit.canvas.graph_painting import GraphPictures

COMMANDS = frozenset(
    (
        *("samples", "targets", "show", "run", "compare", "export", "rule", "passes", "schedule"),
        *("tune", "why", "bisect", "referee", "course", "cache"),
    )
)
"""Commands of `lowerscope.core.cli.main`, which the window does not import because that is slow."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``lowerscope`` with `arguments`, without the program's name; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if any(each.startswith("--j") for each in given):
        # What programs read is the same everywhere; an option may be abbreviated.
        set_language("en")
    if given and given[0] in COMMANDS:
        from lowerscope.core.cli import main as cli
        from lowerscope.core.cli.enclosed import run_enclosed
        from lowerscope.core.files.console import ERROR, say
        from lowerscope.core.model.problems import LowerscopeError
        from lowerscope.core.sandbox.temporary_files import own_folder, sweep

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
    from lowerscope.app.shell.start import open_window

    return open_window(given)


def _command(given: Sequence[str]) -> int:
    from lowerscope.core.cli import main as cli

    if given[0] in cli.WITHOUT_CODE:
        return cli.main(given)
    from lowerscope.core.cli.supervised import run_supervised

    return run_supervised(given, _painter)


def _painter() -> GraphPictures:
    """Return the painter of graphs for the command line; it imports Qt."""
    from lowerscope.app.shell.start import explain_missing_libraries
    from lowerscope.core.model.problems import LowerscopeError

    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    missing = explain_missing_libraries()
    if missing:
        raise LowerscopeError(missing, where="--picture", todo=_("Or use --picture dot"))
    from lowerscope.app.kit.canvas.graph_painting import GraphPictures

    return GraphPictures()


if __name__ == "__main__":
    sys.exit(main())
