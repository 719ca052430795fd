"""The server of the engine and the worker with short measurements.

What the tests are about is what is measured, not how exactly: a run would take two seconds for it,
on all processors.
"""

from __future__ import annotations

from lowerscope.core.model import run_records

SECONDS = 0.03
run_records.BUDGET = SECONDS

from lowerscope.core.engine import server  # noqa: E402

open_pipeline = server._open_pipeline


def open_quickly() -> server.Answers:
    """Import torch and TVM, shorten the measurements, and return a pipeline."""
    pipeline = open_pipeline()
    from lowerscope.core.run import implementations, node_runs, standalone, torch_interpreter

    for module in (implementations, node_runs, standalone, torch_interpreter):
        module.BUDGET = SECONDS
    return pipeline


if __name__ == "__main__":
    server._open_pipeline = open_quickly
    server.main()
