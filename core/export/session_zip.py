"""Archive of a recipe's session with all files that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from lowerscope.core.export.files import File
from lowerscope.core.extensions import extension_files
from lowerscope.core.passes.databases import database_files
from lowerscope.core.recipe import Recipe, applies_tuned
from lowerscope.core.schedules import APPLY_SCHEDULES, APPLY_TUNED, SCHEDULING, named_apart
from lowerscope.core.session_archives import pack_session
from lowerscope.core.session_files import Layout
from lowerscope.core.sources.files import input_files, neighbours
from lowerscope.core.sources.spec import PREFIX, is_in_memory, not_in_a_file
from lowerscope.core.stages import Stages
from lowerscope.core.user_paths import check_readable, user_path

NAME = "session.zip"


def session_zip(stages: Stages, recipe: Recipe, layout: Layout) -> Iterator[File]:
    """Yield the archive.

    Schedules that tuning has found on this machine are stored in its recipe; trust in files that
    may run code has to be given again when it is opened.

    Raises
    ------
    LowerscopeError
        If a file of the recipe does not exist, or the model is in none.
    """
    source = recipe.source
    if is_in_memory(recipe):
        raise not_in_a_file(source.spec)
    inputs = input_files(recipe.inputs)
    params = [user_path(source.params).absolute()] if source.params else []
    of_model: list[Path] = []
    if not source.spec.startswith(PREFIX):
        read = (*stages.loaded.files, *neighbours(stages.loaded.path))
        of_model = [each for each in dict.fromkeys(read) if each not in (*inputs, *params)]
    kept = tuple(each for each in recipe.extensions if each.on or user_path(each.path).is_file())
    groups = [of_model, *([each] for each in (*params, *inputs)), *map(extension_files, kept)]
    groups.append([Path(each) for each in database_files(recipe)])
    for each in (file for group in groups for file in group):
        check_readable(each, "session")
    own = msgspec.structs.replace(
        _with_tuned(stages, recipe),
        source=msgspec.structs.replace(source, trust=False),
        extensions=kept,
    )

    def write(path: Path) -> None:
        pack_session(path, own, layout, groups)

    yield File(NAME, write)


def _with_tuned(stages: Stages, recipe: Recipe) -> Recipe:
    """Return a recipe with the schedules found by tuning, which another machine lacks.

    Raises
    ------
    LowerscopeError
        If the steps could not be applied.
    """
    if not applies_tuned(recipe):
        return recipe
    transformed = stages.transformed
    transformed.check()
    scheduling = [step.name for step in recipe.steps if step.on and step.name in SCHEDULING]
    found = [
        applied.schedule
        for name, step in zip(scheduling, transformed.schedules, strict=False)
        if name == APPLY_TUNED
        for applied in step
    ]
    # Schedules precede rules: at the step of tuning, or with the applied ones.
    there = any(step.name == APPLY_SCHEDULES and step.on for step in recipe.steps)
    steps = tuple(
        msgspec.structs.replace(step, name=APPLY_SCHEDULES) if step.name == APPLY_TUNED else step
        for step in recipe.steps
        if step.name != APPLY_TUNED or not there
    )
    return msgspec.structs.replace(
        recipe, steps=steps, schedules=named_apart((*recipe.schedules, *found))
    )
