"""Models with named dimensions, run at several sizes with one build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.dimensions import parse_dimension, parse_sizes, with_sizes
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Override, Recipe, Source, Strategy
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.stages import Pipeline

MODELS = Path(__file__).with_name("dynamic_models.py")


@pytest.fixture
def recipe_of() -> Callable[..., Recipe]:
    """Return the recipe of a model of `dynamic_models` with the options of the command line."""

    def recipe_of(
        entry: str, inputs: tuple[str, ...], dims: tuple[str, ...] = (), sizes: tuple[str, ...] = ()
    ) -> Recipe:
        return Recipe(
            source=Source(spec=str(MODELS), entry=entry),
            inputs=tuple(map(parse_input, inputs)),
            dimensions=with_sizes(map(parse_dimension, dims), map(parse_sizes, sizes)),
        )

    return recipe_of


@pytest.fixture
def run(pipeline: Pipeline) -> Callable[..., RunRecord]:
    """Run a recipe under a strategy, with overrides by pattern."""

    def run(recipe: Recipe, strategy: Strategy, **overrides: Strategy) -> RunRecord:
        changed = msgspec.structs.replace(
            recipe,
            lowering=strategy,
            overrides=tuple(
                Override(pattern=pattern, strategy=each) for pattern, each in overrides.items()
            ),
        )
        return pipeline.answer(RunQuery(changed, quick=True))

    return run
