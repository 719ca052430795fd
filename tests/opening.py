"""Opening a source with its inputs, as the first stage of a recipe does."""

from __future__ import annotations

from lowerscope.core.model.dimensions import Sizes
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources.loading import open_model, with_inputs
from lowerscope.core.sources.opened_model import LoadedModel


def load(
    source: Source, inputs: tuple[InputSpec, ...], seed: int, sizes: Sizes | None = None
) -> LoadedModel:
    """Open a source with its inputs: see `open_model` and `with_inputs`."""
    return with_inputs(open_model(source, seed), inputs, seed, sizes)
