"""The ``lowerscope`` command: it opens the window, or hands over to `lowerscope.core.cli`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

COMMANDS = frozenset(
    (
        *("samples", "targets", "show", "run", "compare", "export", "rule", "passes", "schedule"),
        "course",
    )
)
"""Those of `lowerscope.core.cli`, which the window does not import: it takes its time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``lowerscope`` with `arguments`, without the program's name; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in COMMANDS:
        if given[0] == "run":
            from lowerscope.core.supervised import run_supervised

            return run_supervised(given)
        from lowerscope.core import cli

        return cli.leave(cli.main(given))
    from lowerscope.app.start import open_window

    return open_window(given)


if __name__ == "__main__":
    sys.exit(main())
