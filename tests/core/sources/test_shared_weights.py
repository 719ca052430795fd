"""Weights are shared between torch and TVM, in all lowerings and passes; folding alone copies."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.lowering.partial_module import constants_of
from lowerscope.core.model.problems import Cancelled
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.recipe import Recipe, Source, Strategy
from lowerscope.core.run.execution import copied
from lowerscope.core.stages import SMALL, Pipeline, Stages, copied_bytes
from tests.soak.large_models import write_deep_mlp, write_heavy

LAYERS, WIDTH = 3, 256


def own_bytes(stages: Stages) -> int:
    """Return the bytes of the constants of ``main`` that are not the model's own memory."""
    model = stages.loaded.model
    assert model is not None
    theirs = {each.data_ptr() for each in model.parameters()}
    tensors = [torch.utils.dlpack.from_dlpack(each.value) for each in _large(stages)]
    return sum(each.nbytes for each in tensors if each.data_ptr() not in theirs)


def _large(stages: Stages) -> list[object]:
    main = stages.recorded.module["main"]
    return [each for each in constants_of(main) if hasattr(each.value, "numpy")]


@pytest.mark.parametrize("lowering", ["high-level", "te", "library"])
def test_constants_are_the_memory_of_the_parameters_until_they_are_folded(
    lowering: Strategy, pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = write_heavy(tmp_path_factory.getbasetemp(), LAYERS, WIDTH)
    recipe = Recipe(source=Source(spec=str(file)), lowering=lowering)
    stages = pipeline.stages(recipe)
    assert stages.lowered is not None
    assert len(_large(stages)) == LAYERS
    assert copied_bytes(stages.lowered) == SMALL
    assert own_bytes(stages) == 0
    folded = pipeline.stages(
        Recipe(source=recipe.source, lowering=lowering, steps=find_pipeline("fuse").steps)
    )
    # High-level operators transpose the weights; folding does it once, and the rest stays shared.
    copies = LAYERS * WIDTH * WIDTH * 4 if lowering == "high-level" else 0
    assert own_bytes(folded) == copies


def test_torchs_side_of_a_run_has_the_parameters_themselves_and_buffers_of_its_own() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    copy = copied(model)
    assert [each.data_ptr() for each in copy.parameters()] == [
        each.data_ptr() for each in model.parameters()
    ]
    mine = {each.data_ptr() for each in model.buffers()}
    assert not mine & {each.data_ptr() for each in copy.buffers()}
    lazy = nn.LazyLinear(3)
    copied(lazy)(torch.ones(2, 5))
    assert nn.parameter.is_lazy(lazy.weight), "a copy that is called does not make it"


class StopAt(Silent):
    """Progress that is stopped at its ``count``-th check while something is done."""

    def __init__(self, text: str, count: int) -> None:
        self._at, self._left, self._now = text, count, ""

    def report(self, text: str, fraction: float | None = None) -> None:
        self._now = text
        self.check()

    def check(self) -> None:
        if self._now.startswith(self._at):
            self._left -= 1
            if self._left == 0:
                raise Cancelled


@pytest.mark.parametrize(("text", "count"), [("Lowering", 7), ("Applying", 2), ("Applying", 30)])
def test_what_was_stopped_is_made_whole_the_next_time(
    text: str, count: int, tmp_path: Path
) -> None:
    # FoldConstant goes on without what it could not compile: nothing of that may be kept.
    pipeline = Pipeline()
    recipe = Recipe(
        source=Source(spec=str(write_deep_mlp(tmp_path, 3))), steps=find_pipeline("fuse").steps
    )
    with pytest.raises(Cancelled):
        _ = pipeline.stages(recipe, StopAt(text, count)).completed
    module = pipeline.stages(recipe).completed
    assert module["main"].same_as(pipeline.stages(recipe).completed["main"])
    whole = Pipeline().stages(recipe).completed
    assert module.script() == whole.script()
