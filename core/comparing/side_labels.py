"""Labels of the sides of a comparison. This module imports neither torch nor TVM."""

from __future__ import annotations

from pathlib import PurePath

import msgspec

from lowerscope.core.model.labels import STRATEGY_NAMES
from lowerscope.core.recipe import Recipe, overrides_on
from lowerscope.core.records.difference import Side
from lowerscope.core.records.steps import Clock, Moment
from lowerscope.core.schedules import Schedule
from lowerscope.core.sources.spec import is_file, source_label

_STARTS: dict[Clock, str] = {
    "translate": "before the translation",
    "passes": "before all passes",
    "schedule": "before the schedule of {function}",
    "build": "before the build",
}

_CLOCKS: dict[Clock, str] = {
    "translate": "translation ",
    "passes": "",
    "schedule": "schedule of {function} ",
    "build": "build ",
}

_SAID = ("source", "lowering", "overrides", "version")


def side_labels(old: Side, new: Side, old_step: str, new_step: str) -> tuple[str, str]:
    """Return the labels of both sides: the source, the lowering, the moment.

    Other differences of the recipes are added to both labels.

    Parameters
    ----------
    old_step, new_step
        Number and name of the step before the moment of either side.
    """
    fields = [
        name
        for name in Recipe.__struct_fields__
        if name not in _SAID and getattr(old.recipe, name) != getattr(new.recipe, name)
    ]
    return _label(old, old_step, fields), _label(new, new_step, fields)


def moment_label(moment: Moment | None, step: str, before: bool = False) -> str:
    """Return ``after 15 FuseOps``; ``step`` is number and name of the step before it."""
    if moment is None:
        return "after all passes"
    if moment.index == 0:
        return _STARTS[moment.clock].format(function=moment.function)
    clock = _CLOCKS[moment.clock].format(function=moment.function)
    return f"{clock}{'before' if before else 'after'} {step}"


def _label(side: Side, step: str, fields: list[str]) -> str:
    recipe = side.recipe
    parts = [_source(recipe), _lowering(recipe), moment_label(side.moment, step, side.before)]
    parts += [f"{name.replace('_', ' ')}: {_written(recipe, name)}" for name in fields]
    return " · ".join(parts)


def _source(recipe: Recipe) -> str:
    spec = recipe.source.spec
    name = PurePath(source_label(spec)).stem if is_file(spec) else source_label(spec)
    return f"{name}:{recipe.source.entry}" if recipe.source.entry else name


def _lowering(recipe: Recipe) -> str:
    count = len(overrides_on(recipe))
    more = f" + {count} override{'s' if count > 1 else ''}" if count else ""
    return STRATEGY_NAMES[recipe.lowering] + more


def _written(recipe: Recipe, name: str) -> str:
    if name == "steps":
        on = [step.name for step in recipe.steps if step.on]
        return " → ".join(on) if on else "none"
    if name == "schedules":
        schedules = [_schedule(each) for each in recipe.schedules if each.on]
        return ", ".join(schedules) if schedules else "none"
    return msgspec.json.encode(getattr(recipe, name)).decode().strip('"')


def _schedule(schedule: Schedule) -> str:
    count = sum(primitive.on for primitive in schedule.primitives)
    variant = f" {schedule.variant}" if schedule.variant else ""
    return f"{schedule.function}{variant} in {count} step{'' if count == 1 else 's'}"
