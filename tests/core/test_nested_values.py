"""Inputs and outputs that are nests of tensors: named by their paths, and equal to torch's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source, TracerName
from lowerscope.core.sources.pytree import flattened, leaves, unflattened
from lowerscope.core.stages import Pipeline, Stages

FILE = Path(__file__).with_name("nested_models.py")

CASES: dict[str, tuple[list[str], list[str]]] = {
    "DictInDictOut": (
        ["batch_image", "batch_more_0"],
        ["logits 2×3 float32", "hidden[0] 2×3 float32", "hidden[1][0] 2×3 float32"],
    ),
    "DataclassInAndOut": (
        ["batch_image", "pair_first", "pair_second"],
        ["logits 2 float32", "hidden[0] 2×3 float32", "hidden[1] 2×3 float32"],
    ),
    "KeywordsAndOptions": (
        ["x", "scale"],
        [
            "output[0] 2×3 float32",
            "output[2]  int64",
            "output[3]  float32",
            "output[4].first 2×3 float32",
            "output[4].second 2×3 float32",
        ],
    ),
    "ByKeyword": (["x", "bias"], ["output 2×3 float32"]),
    "AnyKeywords": (["left", "right"], ["output 2×3 float32"]),
}


def recipe(entry: str, tracer: TracerName = "fx", *options: str) -> Recipe:
    inputs = tuple(map(parse_input, options))
    return Recipe(source=Source(spec=str(FILE), entry=entry), tracer=tracer, inputs=inputs)


def placeholders(stages: Stages) -> list[str]:
    assert stages.traced is not None
    nodes = stages.traced.graph_module.graph.nodes
    return [node.name for node in nodes if node.op == "placeholder"]


@pytest.mark.diagonal
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("entry", CASES)
def test_a_nest_of_tensors_goes_in_and_comes_out(
    pipeline: Pipeline, entry: str, tracer: TracerName
) -> None:
    names, outputs = CASES[entry]
    stages = pipeline.stages(recipe(entry, tracer))
    assert [each.name for each in stages.loaded.inputs] == names
    assert placeholders(stages) == names
    assert [variable.name for variable in stages.module["main"].params] == names
    assert stages.traced is not None
    calls = [node for node in stages.traced.graph_module.graph.nodes if node.op.startswith("call")]
    assert any(stages.traced.modules[node.name] == "body" for node in calls)
    lines = {stages.traced.lines[node.name].file for node in calls}
    assert lines == {str(FILE)}
    record = pipeline.answer(RunQuery(recipe(entry, tracer)))
    assert record.verdict == "match", record.reason
    assert record.max_abs_error is not None
    found = [
        f"{each.name} {'×'.join(map(str, each.shape))} {each.dtype}" for each in record.outputs
    ]
    assert found == outputs


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_a_leaf_is_given_by_its_name(pipeline: Pipeline, tracer: TracerName) -> None:
    given = recipe("DictInDictOut", tracer, "batch_more_0=1,4")
    first, second = pipeline.stages(given).loaded.inputs
    assert (first.origin, second.origin) == ("example_inputs of nested_models.py", "random, seed 0")
    assert tuple(second.value.shape) == (1, 4)
    assert pipeline.answer(RunQuery(given, quick=True)).verdict == "match"


def test_the_output_that_differs_is_named(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lowerscope.core.run import execution

    def add_one_to_a_member(value: object) -> torch.Tensor:
        made = to_torch(value)
        count.append(1)
        return made + 1 if len(count) == 2 else made

    count: list[int] = []
    to_torch: Callable[[object], torch.Tensor] = execution.to_torch
    monkeypatch.setattr(execution, "to_torch", add_one_to_a_member)
    record = pipeline.answer(RunQuery(recipe("DictInDictOut")))
    assert record.verdict == "differ"
    assert record.reason.startswith("hidden[0]: 6 of 6 elements differ")
    assert [output.matches for output in record.outputs] == [True, False, True]


def test_an_exported_program_keeps_its_nests(pipeline: Pipeline, tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def forward(self, batch: dict[str, torch.Tensor], k: int, *, bias: torch.Tensor) -> object:
            return {"sum": batch["a"] + batch["b"] * k, "rest": [bias.relu(), None]}

    batch = {"a": torch.ones(2, 3), "b": torch.randn(2, 3)}
    program = torch.export.export(Net(), (batch, 3), {"bias": torch.randn(3)})
    torch.export.save(program, tmp_path / "net.pt2")
    exported = Recipe(source=Source(spec=str(tmp_path / "net.pt2")))
    assert placeholders(pipeline.stages(exported)) == ["batch_a", "batch_b", "bias"]
    record = pipeline.answer(RunQuery(exported))
    assert record.verdict == "match", record.reason
    assert [output.name for output in record.outputs] == ["sum", "rest[0]"]


@dataclass
class Guarded:
    """A field that is not to be read, and one that is not set."""

    kept: torch.Tensor
    guarded: int = 3
    late: torch.Tensor = field(init=False)

    def __getattribute__(self, name: str) -> Any:
        if name == "guarded":
            raise RuntimeError("read it of a layer")
        return super().__getattribute__(name)


def test_fields_that_cannot_be_read_are_kept() -> None:
    value = [Guarded(torch.ones(2))]
    assert [path for path, _leaf in leaves(value)] == [(0, "kept"), (0, "guarded")]
    found, structure = flattened(value)
    (copied,) = unflattened([each * 2 for each in found], structure)
    assert torch.equal(copied.kept, torch.full((2,), 2.0))
    assert vars(copied)["guarded"] == 6
    assert not hasattr(copied, "late")
