"""Language models with caches: any object that holds tensors goes in and comes out by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source, TracerName
from lowerscope.core.stages import Pipeline

FILE = Path(__file__).with_name("cached_models.py")

GROWN = ["logits", "cache.0.keys", "cache.0.values", "cache.1.keys", "cache.1.values"]


def recipe(entry: str, tracer: TracerName = "auto") -> Recipe:
    return Recipe(source=Source(spec=str(FILE), entry=entry), tracer=tracer)


def test_a_cache_comes_out_by_name(pipeline: Pipeline) -> None:
    record = pipeline.answer(RunQuery(recipe("Grows")))
    assert record.verdict == "match", record.reason
    assert [each.name for each in record.outputs] == [*GROWN, "kind", "of"]
    *tensors, kind, of = record.outputs
    assert all(each.matches for each in tensors)
    assert (kind.dtype, kind.verdict, of.dtype) == ("str", "not-comparable", "type")
    assert "'grows'" in kind.reason
    assert "class Cache" in of.reason


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_an_object_comes_out_of_both_tracers(pipeline: Pipeline, tracer: TracerName) -> None:
    record = pipeline.answer(RunQuery(recipe("Holds", tracer)))
    assert record.verdict == "match", record.reason
    assert [each.name for each in record.outputs] == ["state.a", "state.b[0]", "keys"]


def test_a_cache_goes_in_and_is_not_changed_by_a_call(pipeline: Pipeline) -> None:
    stages = pipeline.stages(recipe("Steps"))
    names = ["tokens", "cache_0_keys", "cache_0_values", "cache_1_keys", "cache_1_values"]
    assert [each.name for each in stages.loaded.inputs] == names
    record = pipeline.answer(RunQuery(recipe("Steps")))
    assert record.verdict == "match", record.reason
    assert record.outputs[1].shape == (1, 5, 8)
    _positional, given = stages.loaded.calling.arguments([None] * 5)
    assert given["tokens"] is None
    assert given["cache"].used == {"yet": False}


def test_a_cache_that_is_written_in_place(pipeline: Pipeline) -> None:
    record = pipeline.answer(RunQuery(recipe("InPlace")))
    assert record.verdict == "match", record.reason
    names = [each.name for each in record.outputs]
    assert names == ["output[0]", "output[1].keys", "output[1].place"]
