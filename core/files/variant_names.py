"""Names of variants, by the differences of their recipes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath

import msgspec

from lowerscope.core.files.pipelines_and_schedules import longest_preset
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.recipe import BIND_PARAMS, Recipe, applies_schedules, overrides_on
from lowerscope.core.model.schedule import APPLY_RULES, APPLY_TUNED, SCHEDULING

_LOWERINGS = {"high-level": "high-level", "te": "TE", "library": "library"}
_PIPELINES = {
    "none": "no passes",
    "legalise": "legalised",
    "fuse": "fused",
    "default-build": "default build",
    "cpu": "CPU pipeline",
}
_TRANSLATORS = {"tvm-fx": "from_fx", "tvm-export": "from_exported_program"}


def variant_names(recipes: Sequence[Recipe]) -> tuple[str, ...]:
    """Return a name for each recipe, such as ``TE · fused``: the parts that differ between them.

    Recipes without differences are named by their lowering, and equal names are numbered.
    """
    words = [[part(recipe) for part in _PARTS] for recipe in recipes]
    differing = [len(set(column)) > 1 for column in zip(*words, strict=True)]
    names = [
        " · ".join(word for word, differs in zip(row, differing, strict=True) if differs and word)
        or _lowering(recipe)
        for row, recipe in zip(words, recipes, strict=True)
    ]
    counts, seen = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return tuple(numbered)


def target_name(target: str) -> str:
    """Return a short name of a target: for JSON, the processor or its features."""
    try:
        fields = msgspec.json.decode(target)
    except UNREADABLE:
        return target
    if not isinstance(fields, dict):
        return target
    features = fields.get("mattr")
    if isinstance(features, list):
        features = ",".join(str(each).lstrip("+") for each in features)
    parts = (fields.get("mcpu"), features)
    return " ".join(str(each) for each in parts if each) or str(fields.get("kind", target))


def _lowering(recipe: Recipe) -> str:
    return _LOWERINGS[recipe.lowering]


def _overrides(recipe: Recipe) -> str:
    overrides = overrides_on(recipe)
    if len(overrides) > 2:
        return f"{len(overrides)} overrides"
    named = (
        f"{each.pattern.removeprefix('fx:')} {_LOWERINGS[each.strategy]}" for each in overrides
    )
    return ", ".join(named)


def _pipeline(recipe: Recipe) -> str:
    apart = (*SCHEDULING, BIND_PARAMS)
    steps = tuple(step for step in recipe.steps if step.name not in apart)
    # Later steps were added by hand.
    preset = longest_preset(steps)
    added = [step.name for step in steps[len(preset.steps) :] if step.on]
    if len(added) > 2:
        count = sum(step.on for step in steps)
        return f"{count} steps of your own"
    return " + ".join((_PIPELINES[preset.name], *added))


def _schedules(recipe: Recipe) -> str:
    on = [each for each in recipe.schedules if each.on] if applies_schedules(recipe) else []
    by = {APPLY_RULES: "by rules", APPLY_TUNED: "tuned"}
    steps = [by[step.name] for step in recipe.steps if step.on and step.name in by]
    if len(on) > 2:
        named = [f"{len(on)} schedules"]
    else:
        named = [f"{each.function} {each.variant or 'scheduled'}" for each in on]
    return ", ".join([*named, *steps])


def _threads(recipe: Recipe) -> str:
    count = recipe.threads
    return "all threads" if not count else f"{count} thread{'s' if count > 1 else ''}"


def _parameters(recipe: Recipe) -> str:
    if not recipe.params_as_inputs:
        return ""
    bound = any(step.name == BIND_PARAMS and step.on for step in recipe.steps)
    return "parameters bound" if bound else "parameters as inputs"


def _extensions(recipe: Recipe) -> str:
    return ", ".join(PurePath(each.path).name for each in recipe.extensions if each.on)


def _inputs(recipe: Recipe) -> str:
    parts = (shape_text(each.shape or (), "") or PurePath(each.file).name for each in recipe.inputs)
    return ", ".join(part for part in parts if part)


_PARTS: tuple[Callable[[Recipe], str], ...] = (
    _lowering,
    _overrides,
    lambda recipe: _TRANSLATORS.get(recipe.translator, ""),
    lambda recipe: "" if recipe.tracer == "auto" else f"traced by {recipe.tracer}",
    _pipeline,
    _schedules,
    _parameters,
    _extensions,
    lambda recipe: target_name(recipe.target),
    _threads,
    _inputs,
    lambda recipe: f"seed {recipe.seed}",
)
"""Parts of a name, in this order."""
