"""Values of tensors in figures, held against NumPy; and how they are found, shown and saved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lowerscope.core.cli.main import main
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import SnapshotQuery, ValuesQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.run.compare.tensor_values import BINS, values_of
from lowerscope.core.stages import Pipeline
from tests.problems import problem_of

pytestmark = pytest.mark.usefixtures("shared_results")

FILE = Path(__file__).with_name("weighted_models.py")


def recipe(entry: str) -> Recipe:
    return Recipe(source=Source(spec=str(FILE), entry=entry), tracer="fx")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_the_figures_are_numpys(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowerscope.core.run.compare.tensor_values._CHUNK", 1000)
    tensor = torch.randn(70, 50).to(dtype)
    tensor[0, :3], tensor[1, :2], tensor[2, :5] = torch.nan, torch.inf, 0
    tensor[3, 0] = -torch.inf
    found = values_of("w", tensor.T)
    array = tensor.T.double().numpy()
    finite = array[np.isfinite(array)]
    assert (found.shape, found.dtype) == ((50, 70), str(dtype).removeprefix("torch."))
    assert (found.count, found.size) == (3500, 3500 * tensor.element_size())
    assert (found.nans, found.infinities, found.zeros) == (3, 3, int((array == 0).sum()))
    assert (found.low, found.high) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean(), rel=1e-9)
    assert found.deviation == pytest.approx(finite.std(), rel=1e-9)
    counts, edges = np.histogram(finite, BINS)
    assert found.counts == tuple(counts)
    assert found.edges == pytest.approx(edges)
    assert found.first[3] == f"{array.reshape(-1)[3]:.6g}"


def test_whole_numbers_have_a_bar_each() -> None:
    found = values_of("n", torch.tensor([3, -1, 3, 5]))
    assert found.counts == (1, 0, 0, 0, 2, 0, 1)
    assert found.edges[0] == -1.5
    assert found.first == ("3", "-1", "3", "5")
    truth = values_of("mask", torch.tensor([True, False, True]))
    assert (truth.counts, truth.mean, truth.first[0]) == ((1, 2), pytest.approx(2 / 3), "True")
    wide = values_of("wide", torch.arange(1000))
    assert len(wide.counts) == BINS
    assert sum(wide.counts) == 1000


def test_parameters_buffers_and_constants_are_listed_and_found(pipeline: Pipeline) -> None:
    tied = pipeline.answer(SnapshotQuery(recipe("Tied"), DEFAULT))
    listed = {each.name: each for each in tied.model.parameters}
    assert listed["encode.weight"].aliases == ("decode.weight",)
    assert list(listed) == ["again", "encode.weight"]
    node = next(each for each in tied.fx if each.name == "decode")
    assert any(first == node.id and "param:encode.weight" in rest for first, *rest in tied.links)

    buffers = pipeline.answer(SnapshotQuery(recipe("Buffers"), DEFAULT))
    assert [each.kind for each in buffers.model.parameters] == ["buffer"] * 4
    plain = next(each for each in buffers.constants if each.shape == (6, 6))
    model = pipeline.stages(recipe("Buffers")).loaded.model
    assert model is not None
    found = pipeline.answer(ValuesQuery(recipe("Buffers"), plain.id))
    assert found.mean == pytest.approx(float(model.plain.double().mean()))  # type: ignore[arg-type]
    assert pipeline.answer(ValuesQuery(recipe("Buffers"), "param:order")).first[:3] == (
        "3",
        "1",
        "0",
    )
    assert pipeline.answer(ValuesQuery(recipe("Buffers"), "x")).count == 24
    problem = problem_of(pipeline.answer, ValuesQuery(recipe("Tied"), "decoder"))
    assert "Available: again, encode.weight, decode.weight" in problem.line()


def test_the_command_line_shows_and_saves_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mask.npy"
    source = f"{FILE}:Buffers"
    shown = ["show", source, "--constant", "mask", "--save", str(file), "--json"]
    assert main(shown) == 0
    record = json.loads(capsys.readouterr().out)
    saved = np.load(file)
    assert (record["shape"], record["zeros"]) == ([4, 6], int((saved == 0).sum()))
    assert saved.dtype == np.bool_
    assert np.array_equal(saved.reshape(-1), np.arange(24) % 3 == 0)
    assert main(["show", source, "--stage", "parameters"]) == 0
    assert "order" in capsys.readouterr().out
    for arguments, expected in (
        (["--constant", "mask", "--stage", "fx"], "a stage and a tensor cannot be shown together"),
        ([], "the stage is missing"),
        (["--stage", "fx", "--show-meta"], "--show-meta: the option has no effect here"),
        (["--constant", "mask", "--save", "mask.txt"], "Give a file that ends in .npy"),
        (["--constant", "mask", "--save", str(tmp_path / "no/m.npy")], "it cannot be written"),
    ):
        assert main(["show", source, *arguments]) == 2
        assert expected in capsys.readouterr().err
