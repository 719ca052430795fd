"""The pipeline: answers queries about recipes, with cached results.

The engine, the worker, the command line, the tests and a notebook all use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

import psutil

from lowerscope.core.files.memo import FileHashes, Memo
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import SILENT, Progress
from lowerscope.core.model.queries import ANSWERING, Query
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.schedule.replay import Replays
from lowerscope.core.stages import Stages

KEPT_BYTES = max(2 << 30, psutil.virtual_memory().total // 4)
"""Bound on the size of a pipeline's cached results, in bytes."""

_ANSWERING = (
    "build.targets",
    "export.answer",
    "export.rule_files",
    "remote.running",
    "run.compare.agreement",
    "run.compare.tensor_values",
    "run.compare.variants",
    "run.guarded_runs",
    "run.kept_run",
    "schedule.function_metrics",
    "schedule.tuning.tuning",
    "schedule.workbench",
    "views.functions",
    "views.graphs",
    "views.module_difference",
    "views.snapshot",
    "views.source_text",
    "views.translation",
)
"""The modules of `core` with functions that answer queries."""

A = TypeVar("A")
T = TypeVar("T")


class Pipeline:
    """The stages of recipes, with results cached for recipes that share them.

    Parameters
    ----------
    limit
        Bound on the size of these results, in bytes.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._memo = Memo(limit)
        self._files = FileHashes()
        self.replays = Replays()
        self._parts: dict[type, Any] = {}
        for name in _ANSWERING:
            import_module(f"lowerscope.core.{name}")

    def stages(self, recipe: Recipe, progress: Progress = SILENT) -> Stages:
        """Return the stages of a recipe, each of which runs when its result is first needed."""
        return Stages(recipe, progress, self._memo, self._files, self.replays)

    def part(self, kind: type[T]) -> T:
        """Return the pipeline's single object of a class, such as the values of the last run."""
        part: T = self._parts.setdefault(kind, kind())
        return part

    def answer(self, query: Query[A], progress: Progress = SILENT) -> A:
        """Return the answer to a query; compute what is not cached.

        Raises
        ------
        LowerscopeError
            If there is none; see the function that answers.
        Cancelled
            If the progress says so.
        """
        answer: A = ANSWERING[type(query).__name__].answer(query, self, progress)
        return answer

    def is_cached(self, query: Query[Any], progress: Progress = SILENT) -> bool:
        """Return whether a query that is ``cached_first`` can be answered without deriving."""
        is_cached = ANSWERING[type(query).__name__].is_cached
        assert is_cached is not None
        try:
            return is_cached(query, self, progress)
        except LowerscopeError:
            # The derivation reports the problem.
            return False
