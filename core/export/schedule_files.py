"""Files of a recipe's schedules: loadable JSON, and a Python program for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.files import File, file_names, text_file
from lowerscope.core.recipe import Recipe
from lowerscope.core.schedule_files import schedules_text
from lowerscope.core.schedules import Applied, Schedule
from lowerscope.core.scheduling.code import Code, program, program_by_name
from lowerscope.core.stages import Stages


def schedule_files(stages: Stages, recipe: Recipe, which: str) -> Iterator[File]:
    """Yield the schedules of all functions, or of one.

    They are those that were applied to the model, by hand or by rules; and the recipe's other
    schedules. Programs of the latter fetch blocks by name.

    Raises
    ------
    LowerscopeError
        If there is none, or none of that function.
    """
    applied: dict[str, Applied] = {
        each.schedule.function: each for step in stages.transformed.schedules for each in step
    }
    kept = _kept(recipe)
    names = [which] if which else list(dict.fromkeys((*applied, *kept)))
    missing = [name for name in names if name not in applied and name not in kept]
    if missing or not names:
        there = ", ".join(dict.fromkeys((*applied, *kept)))
        raise LowerscopeError(
            f"{which or 'no function'} has {'no' if which else 'a'} schedule",
            where=f"schedule:{which}" if which else "schedule",
            todo=f"There are those of {there}"
            if there
            else "Schedule a function, or give --schedule",
        )
    schedules = [applied[name].schedule if name in applied else kept[name] for name in names]
    yield text_file("schedules.json", schedules_text(schedules))
    files = file_names((*applied, *kept))
    for name, schedule in zip(names, schedules, strict=True):
        text = (
            program(name, replace(Code(), lines=applied[name].lines))
            if name in applied
            else program_by_name(schedule)
        )
        yield text_file(f"schedules/{files[name]}.py", text)


def _kept(recipe: Recipe) -> dict[str, Schedule]:
    """Return the enabled schedules of a recipe, by function."""
    return {each.function: each for each in recipe.schedules if each.on and each.primitives}
