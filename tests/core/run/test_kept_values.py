"""The values of the last run, which can be looked at: held against torch's modules."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from lowerscope.core.model.comparison_records import TensorPlace
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import ComparisonQuery, RunQuery, SaveRunValuesQuery, WindowQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.run.float64 import narrowed, relative_error
from lowerscope.core.run.kept_run import LastRun
from lowerscope.core.stages import Pipeline

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)
        self.lstm = torch.nn.LSTM(5, 4, batch_first=True)

    def forward(self, x):
        once = self.linear(x)
        top, bottom = torch.split(torch.relu(once), 1)
        noise = torch.rand_like(once) + top
        steps, (_, _) = self.lstm(bottom)
        return steps[:, -1], noise * 0 + bottom

def example_inputs():
    return (torch.randn(2, 3, 6),)
"""

SHIFTED = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.relu)
def shifted(builder, node, x):
    nan = relax.const(float("nan"), "float32")
    return relax.op.where(relax.op.less(x, relax.const(-0.5, "float32")), nan, relax.op.nn.relu(x))
"""


class Ran:
    """A run, with the model as torch has it."""

    def __init__(self, recipe: Recipe, keep: int = 1 << 30) -> None:
        self.pipeline, self.recipe = Pipeline(), recipe
        self.record: RunRecord = self.pipeline.answer(RunQuery(recipe, quick=True, keep=keep))
        loaded = self.pipeline.stages(recipe).loaded
        assert loaded.model is not None
        self.model, (self.x,) = loaded.model.eval(), (each.value for each in loaded.inputs)

    def save(self, place: TensorPlace, side: str, folder: Path) -> np.ndarray:
        file = folder / f"{side}.npy"
        query = SaveRunValuesQuery(self.recipe, place, str(file), side)  # type: ignore[arg-type]
        path = self.pipeline.answer(query)
        assert path == str(file)
        return np.load(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept")
    (path / "net.py").write_text(MODEL)
    (path / "shifted.py").write_text(SHIFTED)
    return path


@pytest.fixture(scope="module")
def ran(folder: Path) -> Ran:
    return Ran(Recipe(source=Source(spec=str(folder / "net.py")), lowering="te"))


def test_what_a_node_gives_is_there_beside_torchs(ran: Ran, tmp_path: Path) -> None:
    with torch.inference_mode():
        linear = ran.model.linear(ran.x)
    for own in (False, True):
        place = TensorPlace(entity="fx:relu", own=own)
        found = ran.pipeline.answer(ComparisonQuery(ran.recipe, place))
        assert (found.matches, found.kept, found.items) == (True, True, 1)
        assert (found.shape, found.torch_shape) == ((2, 3, 5), (2, 3, 5))
        ours = ran.save(place, "tvm", tmp_path)
        theirs = ran.save(place, "torch", tmp_path)
        assert np.array_equal(theirs, linear.relu().numpy())
        assert ours == pytest.approx(theirs, abs=1e-5)
        assert np.array_equal(ran.save(place, "difference", tmp_path), ours.astype("f8") - theirs)
        assert found.max_abs_error == np.abs(ours.astype("f8") - theirs).max()
    record = next(each for each in ran.record.nodes if each.id == "fx:relu")
    assert (record.status, record.own_status) == ("matches", "matches")


def test_values_stand_beside_the_graph_in_float64(ran: Ran, tmp_path: Path) -> None:
    with torch.inference_mode():
        exact = copy.deepcopy(ran.model).double().linear(ran.x.double()).relu().numpy()
    for own, entity in ((False, "fx:relu"), (True, "fx:relu"), (False, "fx:linear")):
        place = TensorPlace(entity=entity, own=own, reference="float64")
        found = ran.pipeline.answer(ComparisonQuery(ran.recipe, place))
        assert (found.verdict, found.dtype, found.torch_dtype) == ("match", "float32", "float64")
        # The tolerances are those of what is compared, and not of the reference.
        assert (found.rtol, found.atol) == (1e-4, 1e-5)
        ours, theirs = (ran.save(place, side, tmp_path) for side in ("tvm", "torch"))
        assert ours.dtype == np.float32
        assert found.max_abs_error == np.abs(ours.astype("f8") - theirs).max()
        assert own == (found.max_abs_error == 0)
        shown = ran.pipeline.answer(WindowQuery(ran.recipe, place, leading=(1,)))
        assert np.frombuffer(shown.torch) == pytest.approx(theirs[1].reshape(-1), abs=0)
        if entity == "fx:relu" and not own:
            assert theirs == pytest.approx(exact, rel=1e-12, abs=1e-14)
    # In float64, the same random numbers are drawn.
    random = TensorPlace(entity="fx:rand_like", reference="float64")
    assert ran.pipeline.answer(ComparisonQuery(ran.recipe, random)).max_abs_error == 0


def test_values_that_are_read_are_those_that_were_written(ran: Ran) -> None:
    kept = ran.pipeline.part(LastRun).kept
    assert kept is not None
    calls = kept.values.calls
    assert ran.record.kept_calls == len(ran.record.calls) == len(calls)
    seen = [each for call in calls.values() for each in (*call.read, *call.written)]
    assert all(each.value is not None for each in seen)
    for call in calls.values():
        for tensor in call.read:
            if tensor.source is not None and not call.is_stale:
                index, item = tensor.source
                assert tensor is calls[index].written[item]
    # Each is kept once, and weights not at all.
    places = {each.value.data_ptr(): each.value for each in seen if each.value is not None}
    copied = [each for place, each in places.items() if place not in kept.values.given]
    assert ran.record.kept_bytes == sum(each.nbytes for each in copied)
    weights = sum(each.nbytes for each in ran.model.parameters())
    assert sum(each.nbytes for each in places.values()) >= ran.record.kept_bytes + weights // 2


def test_nan_is_said_first_and_where_it_starts(folder: Path) -> None:
    rules = Extension(path=str(folder / "shifted.py"), kind="rules")
    source = Source(spec=str(folder / "net.py"))
    ran = Ran(Recipe(source=source, lowering="te", extensions=(rules,)))
    assert ran.record.first_difference == "fx:relu"
    with torch.inference_mode():
        linear = ran.model.linear(ran.x)
    count = int((linear < -0.5).sum())
    nodes = {each.id: each for each in ran.record.nodes}
    assert nodes["fx:relu"].not_finite == nodes["fx:relu"].reason.split(";")[0] == f"{count} NaN"
    assert (nodes["fx:relu"].status, nodes["fx:relu"].own_status) == ("differs", "differs")
    # What comes after it is right alone.
    assert (nodes["fx:split"].status, nodes["fx:split"].own_status) == ("differs", "matches")
    found = ran.pipeline.answer(ComparisonQuery(ran.recipe, TensorPlace(entity="fx:relu")))
    assert found.not_finite_at == tuple((linear < -0.5).nonzero()[0].tolist())


def test_beyond_the_budget_there_are_figures_only(folder: Path, ran: Ran, tmp_path: Path) -> None:
    less = Ran(ran.recipe, keep=200)
    assert less.record.kept_budget == 200
    assert less.record.kept_bytes <= 200
    assert 0 < less.record.kept_calls < ran.record.kept_calls
    # The comparison is the same, whatever is kept.
    same = [(each.id, each.status, each.own_status) for each in ran.record.nodes]
    assert [(each.id, each.status, each.own_status) for each in less.record.nodes] == same
    place = TensorPlace(entity="fx:relu")
    found = less.pipeline.answer(ComparisonQuery(less.recipe, place))
    whole = ran.pipeline.answer(ComparisonQuery(ran.recipe, place))
    assert (found.kept, found.matches, found.ours) == (False, True, whole.ours)
    assert found.max_abs_error == whole.max_abs_error
    assert "200 B for a run" in found.reason
    shown = less.pipeline.answer(WindowQuery(less.recipe, place))
    assert (shown.ours, len(shown.torch)) == (b"", 3 * 5 * 8)
    with pytest.raises(LowerscopeError, match="were not kept"):
        less.save(place, "tvm", tmp_path)


def test_infinite_elements_are_neither_errors_nor_rounded() -> None:
    infinite = float("inf")
    mask = torch.tensor([[0.0, -infinite], [-1.0, 0.5]], dtype=torch.float64)
    assert torch.equal(narrowed(mask, "int8")[0], mask[0])
    assert relative_error(mask, mask) == 0
    assert relative_error(mask.new_zeros(2, 2), mask) == infinite
    near = torch.tensor([infinite, float("nan"), 3.0, 4.0])
    exact = torch.tensor([infinite, float("nan"), 3.0, 5.0], dtype=torch.float64)
    assert relative_error(near, exact) == pytest.approx(1 / 34**0.5)
