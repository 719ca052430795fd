"""``python -m tests.benchmarks [NAME …] [--json]``: times against what they are held to."""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.benchmarks import coach, rivals, stages, views, window
from tests.benchmarks.figures import BENCHMARKS, measured

__all__ = ["coach", "rivals", "stages", "views", "window"]


def main() -> None:
    """Run the benchmarks that are named, or all, and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    # Each in a process of its own: there is one application in a process, and what is imported for
    # one benchmark is not there for the next.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        running = [processes.submit(measured, name) for name in options.names or BENCHMARKS]
        figures = [each for ended in running for each in ended.result()]
    if options.json:
        print(json.dumps([figure.as_dict() for figure in figures], indent=2))
        return
    for figure in figures:
        print(figure.line())


if __name__ == "__main__":
    main()
