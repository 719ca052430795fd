"""Models in memory: handed over in private, explored as plain values, shown in a notebook."""

from __future__ import annotations

import copy
import math
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

from lowerscope.core.files import in_memory
from lowerscope.core.files.in_memory import (
    VARIABLE,
    Order,
    Parcel,
    pack,
    private_file,
    read_handed,
    take,
)
from lowerscope.core.model.comparison_records import ErrorBudget
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.notebook import Exploration, explore


class Net(nn.Module):
    """A small model, of this file and of no importable one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.drop(self.linear(x)))


@pytest.fixture(scope="module")
def explored() -> Exploration:
    torch.manual_seed(3)
    return explore(Net(), torch.ones(2, 8), window=False, lowering="te")


def test_importing_it_takes_neither_torch_nor_tvm() -> None:
    code = (
        "import sys; from lowerscope.core import explore; assert callable(explore);"
        "print(*{'torch', 'tvm', 'PySide6', 'pygments'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_is_asked_for_comes_as_plain_values() -> None:
    model = Net()
    x = torch.rand(2, 8)
    explored = explore(model, (x,), title="mine", window=False, lowering="te", pipeline="fuse")
    assert model.training  # what is looked at is a copy
    nodes = {node.name: node for node in explored.fx()}
    assert nodes["linear"].strategy == "te"
    assert nodes["relu"].line is not None
    assert nodes["relu"].line.file == __file__
    record = explored.run()
    assert record.verdict == "match"
    assert "fused_" in explored.tensorir()
    assert "R.nn.relu" in explored.change(lowering="high-level").relax()
    assert "R.nn.relu" not in explored.relax()
    assert repr(explored) == "<Exploration of mine: lowering='te', pipeline='fuse'>"
    # The model as it was then, whatever became of it.
    with torch.no_grad():
        model.linear.weight.zero_()
    assert explored.change(lowering="library").run().verdict == "match"
    _, kept, inputs = read_handed(explored.recipe.source.spec)
    assert torch.any(kept.linear.weight != 0)
    assert torch.equal(inputs[0], x)


class Cancels(nn.Module):
    """A sum of which no digit is left, then its sign."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.cat((x, -x.flip(-1)), -1).sum(-1)
        return total, torch.relu(x * 3)


def test_float64_referees_between_tvm_and_torch() -> None:
    x = torch.randn(4, 5000, generator=torch.Generator().manual_seed(0)) * 1000
    explored = explore(Cancels(), (x,), window=False)
    explored.change(lowering="te").run()  # not the run that is asked about
    errors = {each.id: each for each in explored.referee()}
    assert set(errors) == {f"fx:{name}" for name in ("flip", "neg", "cat", "sum_1", "mul", "relu")}
    # The sum is 0: an error is the value of the side.
    total = errors["fx:sum_1"]
    assert total.torch == Cancels()(x)[0].abs().max()
    assert 0 < total.tvm < 10
    tripled = (x * 3).double() - x.double() * 3
    assert errors["fx:mul"].torch == tripled.abs().max() > 0
    assert errors["fx:cat"].tvm == errors["fx:cat"].torch == 0
    assert explored.referee() == tuple(errors.values())


class Last(torch.nn.Module):
    """Products of complex numbers, and a recurrent layer whose last states nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4, dtype=torch.cfloat))
        self.layer = torch.nn.LSTM(4, 4, batch_first=True)
        self.last = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _states = self.layer((x.cfloat() @ self.weight).abs())
        return self.last(torch.relu(self.last(y)))


def test_the_referee_takes_complex_numbers_and_leaves_out_what_nothing_reads() -> None:
    torch.manual_seed(0)
    explored = explore(Last().eval(), (torch.randn(2, 3, 4),), window=False)
    errors = explored.referee()
    assert {"fx:cfloat", "fx:matmul", "fx:abs_1", "fx:last_1"} <= {each.id for each in errors}
    for each in errors:
        assert max(each.tvm, each.torch, each.relative) < 1e-5, each
    over = msgspec.structs.replace(errors[0], made=math.inf)
    made = ErrorBudget(nodes=(*errors, over)).by_operator
    assert sum(share for _name, share in made) == pytest.approx(1)


class Noisy(torch.nn.Module):
    """A layer, and noise that is drawn in three ways."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        noise = torch.randn_like(y) + torch.rand(2, 4) + torch.normal(y, 1.0)
        return torch.nn.functional.dropout(y.exp(), 0.5) * noise


def test_the_referee_draws_the_same_random_numbers() -> None:
    torch.manual_seed(0)
    explored = explore(Noisy(), (torch.randn(2, 4),), window=False)
    errors = explored.referee()
    assert {"fx:randn_like", "fx:rand", "fx:normal", "fx:dropout"} <= {each.id for each in errors}
    for each in errors:
        assert max(each.tvm, each.torch, each.relative, each.made or 0) < 1e-5, each


class Heads(torch.nn.Module):
    """A linear layer, a view, a sum, and a product with a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.scale = torch.nn.Parameter(torch.full((64,), 1.0 + 2**-13))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return y.transpose(0, 1).transpose(0, 1) * self.scale


def test_the_referee_tells_what_narrower_weights_would_cost() -> None:
    torch.manual_seed(0)
    model, x = Heads().eval(), torch.randn(8, 64)
    kept = {name: each.clone() for name, each in model.state_dict().items()}
    exact = copy.deepcopy(model).double()
    explored = explore(model, (x,), window=False)
    for dtype, digits in (("float16", 11), ("bfloat16", 8), ("int8", 7)):
        found = {each.operator: each for each in explored.referee(dtype=dtype)}
        linear = found["linear"]
        narrow = copy.deepcopy(exact)
        weight = narrow.first.weight
        with torch.no_grad():
            if dtype == "int8":
                step = weight.abs().amax(1, keepdim=True) / 127
                weight.copy_((weight / step).round() * step)
            else:
                for each in narrow.first.parameters():
                    each.copy_(each.to(getattr(torch, dtype)))
        right, other = (each.first(x.double()).detach() for each in (exact, narrow))
        cost = ((other - right).square().mean() / right.square().mean()).sqrt()
        assert linear.narrow_made == linear.narrow == pytest.approx(float(cost), rel=1e-6)
        assert 2.0 ** -(digits + 4) < cost < 2.0**-digits
        assert linear.made is not None
        assert 0 < linear.made < 1e-6
        # A view makes no error of its own, and has no weights.
        view = found["transpose"]
        assert (view.made, view.narrow_made) == (0, None)
        assert view.narrow == linear.narrow
        # 1 + 2**-13 is 1 in both floats; a vector stays as it is for int8.
        scaled = found["mul"].narrow_made
        assert scaled == pytest.approx(0 if dtype == "int8" else 2**-13, rel=1e-3, abs=1e-12)
    for name, each in model.state_dict().items():
        assert torch.equal(each, kept[name])


def test_a_notebook_shows_graph_and_scripts_in_light_and_dark(explored: Exploration) -> None:
    page = explored._repr_html_()
    svg = re.search(r"<svg.*</svg>", page, re.DOTALL)
    assert svg is not None
    root = ET.fromstring(svg[0])
    boxes = [each for each in root.iter() if each.get("class") == "box"]
    assert len(boxes) == len(explored.graph().boxes)
    assert {"x", "linear", "TE"} <= set(root.itertext())
    assert '<span class="k">def</span>' in page
    assert "T.prim_func" in re.sub(r"<[^>]*>", "", page)
    # Each colour is one of both themes, and all that are used are defined.
    defined = set(re.findall(r"(--[\w-]+): light-dark\(#\w{6}, #\w{6}\);", page))
    assert set(re.findall(r"var\((--[\w-]+)\)", page)) == defined
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page


# Handing over


@pytest.fixture
def parcel() -> Parcel:
    return pack(nn.Linear(2, 2), torch.ones(1, 2), "Linear")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    yield tmp_path
    number = os.environ.pop(VARIABLE, "").partition(":")[0]
    if number:
        os.close(int(number))


def order(file: str, token: str, parcel: Parcel) -> Order:
    return Order(file=file, token=token, recipe=Recipe(source=Source(spec=parcel.spec)))


def test_the_file_is_private_and_goes_when_it_is_taken(
    parcel: Parcel, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_file(parcel) as (file, token):
        status = os.stat(file)
        assert status.st_mode & 0o777 == 0o600
        assert os.stat(os.path.dirname(file)).st_mode & 0o777 == 0o700
        take(order(file, token, parcel))
        assert list(own_folder.iterdir()) == []
    # As another process has it, which holds nothing but the descriptor; again and again.
    monkeypatch.setattr(in_memory, "_here", {})
    for _ in range(2):
        header, model, inputs = read_handed(parcel.spec)
        assert header.title == "Linear"
        assert model(inputs).shape == (1, 2)
    # Another model is another one.
    with pytest.raises(LowerscopeError, match="Net exists only in the memory"):
        read_handed("memory:Net-0123456789abcdef")


@pytest.mark.parametrize("wrong", ["token", "mode", "link", "gone"])
def test_another_file_is_not_taken(wrong: str, parcel: Parcel, own_folder: Path) -> None:
    with private_file(parcel) as (file, token):
        if wrong == "token":
            token = token[:-1] + ("0" if token[-1] != "0" else "1")
        elif wrong == "mode":
            os.chmod(file, 0o640)
        elif wrong == "link":
            os.rename(file, f"{file}-2")
            os.symlink(f"{file}-2", file)
        else:
            os.unlink(file)
        with pytest.raises(LowerscopeError, match="rejected"):
            take(order(file, token, parcel))
        assert VARIABLE not in os.environ
    assert list(own_folder.iterdir()) == []


def test_a_model_in_memory_is_in_no_file(explored: Exploration, tmp_path: Path) -> None:
    from lowerscope.core.cli import main
    from lowerscope.core.export.folder import export
    from lowerscope.core.model.artifacts import parse_wanted
    from lowerscope.core.stages import Pipeline

    wanted = parse_wanted(["reproduce,module"])
    done = export(Pipeline(), explored.recipe, tmp_path, force=False, wanted=wanted)
    assert [Path(path).name for path in done.paths] == ["module.py"]
    assert all("in the memory of the Python process" in each for each in done.left_out)
    assert len(done.left_out) == 1
    assert main.main(["show", "memory:Net-0123456789abcdef", "--stage", "fx"]) == main.ERROR


def test_an_unknown_name_is_answered_with_those_that_there_are(explored: Exploration) -> None:
    with pytest.raises(LowerscopeError, match="no function, pass or node 'nothing'") as raised:
        explored.why("nothing")
    assert {"linear", "relu"} <= set(raised.value.problem.choices)
    with pytest.raises(LowerscopeError, match="Did you mean FuseOps"):
        explored.why("FuseOp")
    with pytest.raises(LowerscopeError, match="relu is a node"):
        explored.why("fx:relu")
