"""Setup of all tests of the core: how scripts are parsed, and how long is measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lowerscope.core.remote import session
from lowerscope.core.run import implementations, node_runs, standalone, torch_interpreter
from lowerscope.core.run.tuning import measurers
from lowerscope.core.sources.loading import shorten_stacks
from tests.warm_processes import start_measuring

SECONDS = 0.02
"""Of the calls that are measured: the tests are about what is measured, not how exactly."""

for _module in (implementations, node_runs, session, standalone, torch_interpreter):
    _module.BUDGET = SECONDS

# A program of a test that tunes starts its own, as users' do.
measurers._start = start_measuring

shorten_stacks()

QUICK = {
    *("bisect", "dynamic", "export", "lowering", "passes", "sources", "views"),
    *("test_caches.py", "test_generation.py", "test_nested_values.py", "test_seeded_faults.py"),
    *("test_weights.py", "run/test_kept_values.py", "run/test_memory_plan.py"),
    *("run/test_node_runs.py", "test_notebook.py"),
}
"""Folders and files whose tests are of results; the others build what users run."""

OPTIMISED = {
    *("bisect", "lowering/test_special_values.py", "passes/test_integer_products.py"),
    "views/test_step_sentences.py",
}
"""Of these, those that are about optimised code."""


@pytest.fixture(scope="module", autouse=True)
def _quick_code(request: pytest.FixtureRequest) -> Iterator[None]:
    path = request.path.relative_to(Path(__file__).parent)
    places = {path.parts[0], path.as_posix()}
    if QUICK.isdisjoint(places):
        yield
        return
    from tests.core.quick_code import quick_builds

    with quick_builds(are_optimised=not OPTIMISED.isdisjoint(places)):
        yield


@pytest.fixture(scope="module")
def shared_results() -> Iterator[None]:
    """Let the pipelines of a file share what they derive, where many commands have one source."""
    from lowerscope.core import stages

    memo, files = stages.Memo(stages.KEPT_BYTES), stages.FileHashes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "Memo", lambda _limit: memo)
        patch.setattr(stages, "FileHashes", lambda: files)
        yield
