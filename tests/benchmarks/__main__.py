"""``python -m tests.benchmarks [NAME …] [--json]``: ratios, each measured in one run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.benchmarks import (
    code,
    comparing,
    difference,
    flooding,
    graph,
    lowering,
    opening,
    passes,
    redrawing,
    running,
    scheduling,
    selecting,
    speed,
    startup,
    stepping,
    steps,
)
from tests.benchmarks.figures import Shown

BENCHMARKS: dict[str, Callable[[], Sequence[Shown]]] = {
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
    "speed": speed.measure,
    "flooding": flooding.measure,
}


def main() -> None:
    """Run the benchmarks that are named, or all, and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--models",
        nargs="+",
        default=[],
        choices=speed.GOALS,
        metavar="MODEL",
        help=f"of the benchmark speed, which has {', '.join(speed.GOALS)}",
    )
    parser.add_argument(
        "--tuned", action="store_true", help="in the benchmark speed, what tuning has found as well"
    )
    options = parser.parse_args()
    own = {"speed": partial(speed.measure, options.models, tuned=options.tuned)}
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    measured = BENCHMARKS | own
    # Each in a process of its own: there is one application in a process, and what is imported for
    # one benchmark is not there for the next.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        running = [processes.submit(measured[name]) for name in options.names or measured]
        figures = [each for ended in running for each in ended.result()]
    if options.json:
        print(json.dumps([figure.as_dict() for figure in figures], indent=2))
        return
    for figure in figures:
        print(figure.line())


if __name__ == "__main__":
    main()
