"""Opening Python files: entries, neighbours, and what goes wrong in them."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch

from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources.opened_model import LoadedModel
from tests.opening import load
from tests.problems import problem_of

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(2, width)
    def forward(self, x):
        return self.linear(x)
"""
INPUT = (InputSpec(shape=(1, 2)),)


def write(folder: Path, text: str, name: str = "net.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def opened(file: Path, entry: str = "", args: str = "{}", seed: int = 0) -> LoadedModel:
    return load(Source(spec=str(file), entry=entry, args=args), INPUT, seed)


def problem(file: Path, entry: str = "", args: str = "{}") -> Problem:
    found = problem_of(opened, file, entry, args)
    assert "Traceback" not in found.line()
    return found


def test_a_model_that_needs_gradients_enables_them(tmp_path: Path) -> None:
    slope = """
class Slope(Net):
    def forward(self, x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(self.linear(x).square().sum(), x)[0]
"""
    model = opened(write(tmp_path, NET + slope), "Slope").model
    assert model is not None
    x = torch.randn(1, 2)
    with torch.no_grad():
        weight, bias = model.linear.weight, model.linear.bias
        expected = 2 * (x @ weight.T + bias) @ weight
        torch.testing.assert_close(copy.deepcopy(model)(x), expected)


def test_the_seed_makes_the_weights_whatever_came_before(tmp_path: Path) -> None:
    file = write(tmp_path, "import torch\ntorch.randn(5)\n" + NET)
    first = opened(file, seed=7)
    torch.randn(3)
    second, third = opened(file, seed=7), opened(file, seed=8)
    assert first.model is not None
    assert second.model is not None
    assert third.model is not None
    weight = first.model.linear.weight
    assert torch.equal(weight, second.model.linear.weight)
    assert not torch.equal(weight, third.model.linear.weight)
    assert torch.equal(first.inputs[0].value, second.inputs[0].value)
    torch.manual_seed(7)
    assert torch.equal(weight, torch.nn.Linear(2, 3).weight)


@pytest.mark.parametrize(
    ("more", "entry"),
    [
        ("def build(): return Net()", "build"),
        ("def tiny() -> Net: return Net(1)", "tiny"),
        ("def tiny() -> 'nn.Module': return Net(1)", "tiny"),
        ("class Other(Net): pass", "Other"),
    ],
)
def test_several_candidates_are_listed(tmp_path: Path, more: str, entry: str) -> None:
    file = write(tmp_path, f"{NET}\n{more}\n")
    found = problem(file)
    assert found.code == "choose-entry"
    assert found.choices == ("Net", entry)
    assert f"several candidates: Net, {entry}" in found.what
    assert opened(file, entry).title == entry


def test_the_only_model_of_a_file_is_meant_before_its_classes(tmp_path: Path) -> None:
    file = write(tmp_path, f"{NET}\nclass Other(Net): pass\nother = Net(4)\n")
    assert opened(file).title == "other"


PARTS = """
class Inner(nn.Module):
    def forward(self, x):
        return x + self.inner.weight.sum()
class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Net() for _ in range(2))
        self.last = layers()
    def forward(self, x):
        return sum(layer(x) for layer in self.layers)
def layers():
    return [Inner()]
"""


def test_classes_that_another_one_is_made_of_are_not_meant(tmp_path: Path) -> None:
    file = write(tmp_path, NET + PARTS)
    assert opened(file, "Net").title == "Net"
    assert opened(file).title == "Loop"
    # The two are made of one another: neither is the whole.
    both = NET + "class Tree(nn.Module):\n    def grow(self): return Net, Leaf\n"
    both += "class Leaf(nn.Module):\n    def grow(self): return Tree\n"
    assert problem(write(tmp_path, both)).choices == ("Net", "Tree", "Leaf")


def test_the_model_that_a_builder_has_made_is_meant(tmp_path: Path) -> None:
    text = f"{NET}\ndef build(): return Net(5)\nbody = Net(3)\n"
    assert opened(write(tmp_path, text)).title == "body"
    longer = f"{text}whole = nn.Sequential(body, nn.Linear(3, 3))\n"
    assert opened(write(tmp_path, longer)).title == "whole"


@pytest.mark.parametrize(
    "lines",
    ["net = Net(5)\nmodel = Net(4)", "def model(): return Net(4)", "model = Net(4)\nb = Net()"],
)
def test_what_a_file_calls_its_model_is_meant(tmp_path: Path, lines: str) -> None:
    found = opened(write(tmp_path, f"{NET}\n{lines}\n")).model
    assert found is not None
    assert found.linear.out_features == 4


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("model = Net()", "Net"),
        ("model = torch.nn.Sequential(Net())", "digits"),
    ],
)
def test_a_name_that_says_nothing_is_not_the_title(tmp_path: Path, line: str, title: str) -> None:
    assert opened(write(tmp_path, f"{NET}\n{line}\n", "digits.py")).title == title


def test_an_array_beside_two_classes_is_no_part_of_them(tmp_path: Path) -> None:
    other = "class Other(Net):\n    def forward(self, x): return x + torch.from_numpy(M)\n"
    found = problem(write(tmp_path, f"import numpy\nM = numpy.arange(3.0)\n{NET}\n{other}"))
    assert found.code == "choose-entry"


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, hidden, *, depth, scale=1.0): super().__init__()\n"
        "    def forward(self, x): return x\n"
        "made = nn.Linear(2, 2)\n",
    )
    found = problem(file, "Net")
    assert found.what == "Net needs the arguments hidden, depth"
    assert found.todo == """Give its arguments: --args '{"hidden": ..., "depth": ...}'"""
    found = problem(file, "Net", '{"hidden": 1, "dept": 2}')
    assert found.what == "Net takes no argument dept"
    assert found.todo == "It takes hidden, depth, scale"
    assert opened(file, "Net", '{"hidden": 1, "depth": 2}').title == "Net"
    assert "takes no arguments" in problem(file, "made", '{"a": 1}').what
    assert "this is not JSON" in problem(file, "Net", "{hidden: 1}").what
    assert "not a JSON object" in problem(file, "Net", "[1]").what


def test_an_error_is_told_in_the_users_own_frames(tmp_path: Path) -> None:
    file = write(
        tmp_path, "import json\ndef parse(text):\n    return json.loads(text)\nparse('{')\n"
    )
    found = problem(file)
    assert found.where == f"{file}:3"
    assert "running the file failed: JSONDecodeError: Expecting property name" in found.what
    assert found.details.count("File ") == 2
    assert "json/decoder" not in found.details
    assert "lowerscope/" not in found.details
    assert found.details.endswith(found.what.partition("run: ")[2])


def test_files_that_are_not_python(tmp_path: Path) -> None:
    binary = tmp_path / "binary.py"
    binary.write_bytes(bytes(range(128, 256)))
    assert "this is not Python: it is not text" in problem(binary).what
    nul = tmp_path / "nul.py"
    nul.write_bytes(b"x = 1\0")
    assert "null bytes" in problem(nul).what
    assert "there is no such file" in problem(tmp_path / "none.py").what
    assert "a folder" in problem(tmp_path).what


def test_two_files_with_a_core_of_their_own(tmp_path: Path) -> None:
    for name, width in (("one", 4), ("two", 6)):
        write(tmp_path / name / "core", f"WIDTH = {width}\n", "__init__.py")
        write(tmp_path / name / "core", "def late(): return WIDTH\nfrom core import WIDTH", "b.py")
        write(tmp_path / name, "from core.b import late", "beside.py")
        net = NET.replace("width=3", "width=core.WIDTH")
        lazy = "    def lazy(self):\n        import beside\n        return beside.late()\n"
        write(tmp_path / name, f"import core\n{net}\n{lazy}")
    one = opened(tmp_path / "one" / "net.py").model
    assert one is not None
    assert one.lazy() == 4
    two = opened(tmp_path / "two" / "net.py").model
    assert two is not None
    assert (one.linear.out_features, two.linear.out_features) == (4, 6)
    assert two.lazy() == 6
    assert sys.path.count(str(tmp_path / "one")) == 0
    assert sys.path[-1] == str(tmp_path / "two")
    assert not list(tmp_path.rglob("__pycache__"))
    assert (tmp_path / "two/core/__init__.py") in opened(tmp_path / "two" / "net.py").files


def test_a_neighbour_that_was_edited_is_read_anew(tmp_path: Path) -> None:
    neighbour = write(tmp_path, "WIDTH = 4\n", "widths.py")
    file = write(tmp_path, "import widths\n" + NET.replace("width=3", "width=widths.WIDTH"))
    first = opened(file).model
    neighbour.write_text("WIDTH = 5\n")
    second = opened(file).model
    assert first is not None
    assert second is not None
    assert (first.linear.out_features, second.linear.out_features) == (4, 5)


IR_MODULE = """
import numpy as np
import tvm
from tvm.script import ir as I, relax as R

@I.ir_module
class Double:
    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2, "n"), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y
"""


def test_a_file_that_builds_an_ir_module(tmp_path: Path) -> None:
    file = write(tmp_path, IR_MODULE + "def example_inputs(): return (np.ones((2, 3), 'f4'),)\n")
    loaded = load(Source(spec=str(file)), (), 0)
    assert loaded.title == "Double"
    assert loaded.model is None
    assert loaded.module is not None
    assert loaded.inputs[0].name == "x"
    assert loaded.inputs[0].value.dtype == torch.float32
    assert loaded.inputs[0].origin == "example_inputs of net.py"


@pytest.mark.parametrize(
    "line", ["entry = Net", "entry = 'Net'", "entry = Net()", "def entry(): return Net()"]
)
def test_a_file_says_which_entry_is_meant(tmp_path: Path, line: str) -> None:
    path = tmp_path / "two.py"
    path.write_text(
        "import torch\n"
        "class Other(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
        f"{line}\n"
        "def example_inputs():\n    return (torch.ones(2),)\n"
    )
    loaded = load(Source(spec=str(path)), (), 0)
    assert type(loaded.model).__name__ == "Net"
    assert loaded.title == "Net"


def test_a_model_that_trains_itself_is_opened_with_its_own_weights(tmp_path: Path) -> None:
    path = tmp_path / "trains.py"
    path.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.ones(2))\n"
        "    def forward(self, x):\n"
        "        y = (x * self.weight).sum()\n"
        "        y.backward()\n"
        "        with torch.no_grad():\n"
        "            self.weight.sub_(self.weight.grad, alpha=0.1)\n"
        "        return x * self.weight\n"
        "def example_inputs():\n    return (torch.ones(2),)\n"
    )
    model = load(Source(spec=str(path)), (), 0).model
    assert model is not None
    assert torch.equal(model.weight, torch.ones(2))
    assert model.weight.grad is None
