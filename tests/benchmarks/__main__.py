"""``python -m tests.benchmarks [NAME …] [--json]``: ratios, each measured in one run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from tests.benchmarks import (
    code,
    comparing,
    difference,
    graph,
    lowering,
    opening,
    passes,
    redrawing,
    running,
    scheduling,
    selecting,
    startup,
    stepping,
    steps,
)
from tests.benchmarks.figures import Figure

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "compare": comparing.measure,
    "difference": difference.measure,
    "startup": startup.measure,
    "open": opening.measure,
    "lower": lowering.measure,
    "redraw": redrawing.measure,
    "select": selecting.measure,
    "code": code.measure,
    "graph": graph.measure,
    "passes": passes.measure,
    "steps": steps.measure,
    "stepping": stepping.measure,
    "schedule": scheduling.measure,
    "run": running.measure,
}


def main() -> None:
    """Run the benchmarks that are named, or all, and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    figures = [each for name in options.names or BENCHMARKS for each in BENCHMARKS[name]()]
    if options.json:
        print(json.dumps([figure.as_dict() for figure in figures], indent=2))
        return
    for figure in figures:
        print(figure.line())


if __name__ == "__main__":
    main()
