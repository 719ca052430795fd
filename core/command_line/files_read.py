"""Input files of a command, which it must not overwrite."""

from __future__ import annotations

import argparse
from pathlib import Path

from lowerscope.core.passes.databases import database_files
from lowerscope.core.recipe import Recipe
from lowerscope.core.session_files import files_of
from lowerscope.core.sources.files import source_files
from lowerscope.core.user_paths import user_path


def files_read(options: argparse.Namespace, recipe: Recipe) -> tuple[Path, ...]:
    """Return the files that a command on a recipe reads, as far as they are known before it runs.

    They include those named by options only: a session, a pipeline and files of schedules.
    """
    pipelines = options.pipeline or ()
    named = (
        options.source,
        *files_of(recipe).values(),
        *database_files(recipe),
        *((pipelines,) if isinstance(pipelines, str) else pipelines),
        *options.schedules,
    )
    return (*map(user_path, named), *source_files(recipe.source, recipe.inputs))
