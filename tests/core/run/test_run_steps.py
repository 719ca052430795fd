"""The calls of a run: which line of the bytecode each of them is, and what it computes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lowerscope.core.model.queries import RunQuery, RunStepQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.run_records import KEEP, RunRecord
from lowerscope.core.stages import Pipeline

AGAIN = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(8, 8)
        self.two = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.one(x).relu()
        y = self.two(y).relu()
        return self.one(y).reshape(-1).relu()

def example_inputs():
    return (torch.randn(3, 8),)
"""


def ran(pipeline: Pipeline, recipe: Recipe) -> tuple[RunRecord, list[str]]:
    """Run, and return the record and the lines of the bytecode of ``main``."""
    record = pipeline.answer(RunQuery(recipe))
    text = pipeline.answer(TextQuery(recipe, "main", "bytecode")).text
    return record, text.split("\n")


def called(line: str) -> str:
    """Return what an instruction calls: ``dense``; empty for another one."""
    words = line.split()
    return words[1] if words[:1] == ["call"] else ""


OWN = ("vm.builtin.", "shape_func")
"""Beginnings of the names of functions that no binding calls."""


def check_lines(record: RunRecord, lines: list[str]) -> None:
    """Check that the calls are those of the bytecode, in order, and that none is left out."""
    assert record.calls
    names = [called(lines[each.line - 1]) for each in record.calls]
    assert names == [each.function for each in record.calls]
    numbers = [each.line for each in record.calls]
    own = [number for number, line in enumerate(lines, start=1) if called(line)]
    between = [
        sum(before < number < after for number in own)
        for before, after in zip((0, *numbers), numbers, strict=False)
    ]
    assert [each.own for each in record.calls] == between
    assert all(number in numbers or called(lines[number - 1]).startswith(OWN) for number in own)


def test_a_function_that_is_called_again_has_a_line_for_each_call(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    path = tmp_path / "again.py"
    path.write_text(AGAIN)
    steps = (Step(name="LegalizeOps"), Step(name="FoldConstant"))
    record, lines = ran(pipeline, Recipe(source=Source(spec=str(path)), steps=steps))
    check_lines(record, lines)
    matmuls = [each for each in record.calls if each.function == "matmul"]
    assert len(matmuls) == 3
    # The first and the last are of the same layer: what they read tells which is which.
    reads = [lines[each.line - 1].split("in:")[1].split(",")[1].strip() for each in matmuls]
    assert reads[0] == reads[2] != reads[1]
    assert [each.nodes for each in matmuls] == [("fx:one",), ("fx:two",), ("fx:one_1",)]
    assert all(each.entity == "tir:matmul" and each.bindings for each in matmuls)
    (reshape,) = (each for each in record.calls if each.nodes == ("fx:reshape",))
    assert reshape.function in ("vm.builtin.reshape", "reshape")


def test_fused_calls_have_the_bindings_of_all_that_was_fused(pipeline: Pipeline) -> None:
    names = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
    recipe = Recipe(
        source=Source(spec="sample:fashion_mlp"), steps=tuple(Step(name=each) for each in names)
    )
    record, lines = ran(pipeline, recipe)
    check_lines(record, lines)
    fused = next(each for each in record.calls if len(each.nodes) > 1)
    assert len(fused.bindings) > 1


@pytest.mark.parametrize("keep", [KEEP, 0])
def test_a_call_has_what_it_read_and_wrote_within_the_budget_and_figures_beyond(
    pipeline: Pipeline, tmp_path: Path, keep: int
) -> None:
    path = tmp_path / "again.py"
    path.write_text(AGAIN)
    recipe = Recipe(source=Source(spec=str(path)), lowering="te")
    record = pipeline.answer(RunQuery(recipe, keep=keep))
    loaded = pipeline.stages(recipe).loaded
    assert loaded.model is not None
    layers = dict(loaded.model.named_children())
    x = loaded.inputs[0].value
    with torch.no_grad():
        given = torch.relu(layers["one"](x))
        expected = {"read": given, "written": given @ layers["two"].weight.T}
    index = next(i for i, call in enumerate(record.calls) if call.nodes == ("fx:two",))
    line = record.calls[index].line
    step = pipeline.answer(RunStepQuery(recipe, index, (line, line)))
    assert [called(text) for text in step.instructions] == [record.calls[index].function]
    assert [each.name for each in step.tensors if each.kind == "constant"] == ["two.weight"]
    for seen in step.tensors:
        if seen.kind == "constant":
            # Given, and nothing writes to it: there is nothing to copy.
            assert seen.first
            continue
        value = expected[seen.place.side]
        assert seen.statistics is not None
        assert seen.statistics.mean == pytest.approx(float(value.mean()), abs=1e-5)
        assert seen.statistics.zeros == int((value == 0).sum())
        assert len(seen.first) == (8 if keep else 0)
