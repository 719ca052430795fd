"""Products of integers: quantised layers multiply bytes where the processor does so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tvm

from lowerscope.core.build.build import build
from lowerscope.core.build.targets import make_target
from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.unchanged import why_unchanged

pytestmark = pytest.mark.filterwarnings("ignore")

NET = """
import torch
from torch import nn
from torch.ao import quantization


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first = nn.Conv2d(3, 20, 7, stride=2, padding=3)
        self.second = nn.Conv2d(20, 32, 3, padding=(1, 2), dilation=2)
        self.single = nn.Conv2d(32, 20, 1, bias=False)
        self.pool, self.mean = nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d(1)
        self.added = torch.ao.nn.quantized.FloatFunctional()
        self.full = nn.Linear(40, 10)
        self.other = nn.Linear(10, 7)

    def forward(self, x):
        x = torch.relu(self.first(self.quant(x)))
        x = self.pool(x)
        y = self.single(torch.relu(self.second(x)))
        x = self.added.cat([y, self.added.add(y, y)], 1)
        x = torch.flatten(self.mean(x), 1)
        return self.dequant(self.other(self.full(x)))


torch.manual_seed(0)
net = Net().eval()
net.qconfig = quantization.get_default_qconfig("x86")
example_inputs = (torch.randn(2, 3, 21, 17) + 0.3,)
prepared = quantization.prepare(net)
prepared(*example_inputs)
model = quantization.convert(prepared)
"""

SERVER = '{"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2}'
HAS_INSTRUCTION = bool(
    tvm.get_global_func("target.target_has_feature")("avx512vnni", make_target("native", 1))
)
needs_instruction = pytest.mark.skipif(
    not HAS_INSTRUCTION, reason="the processor cannot multiply bytes"
)


def recipe_of(folder: Path, target: str, text: str = NET) -> Recipe:
    (folder / "net.py").write_text(text, encoding="utf-8")
    steps = find_pipeline("optimise-cpu").steps
    return Recipe(source=Source(spec=str(folder / "net.py")), steps=steps, target=target)


def test_schedules_add_four_products_of_bytes(tmp_path: Path) -> None:
    stages = Pipeline().stages(recipe_of(tmp_path, SERVER))
    (run,) = (each for each in stages.transformed.runs if each.name == "MultiplyIntegers")
    assert run.after is not None
    script = run.after.script()
    assert "R.nn.conv2d" not in script
    assert "R.matmul" not in script
    # Once into the layout of the channels, and out of it where they have one place alone: never.
    assert script.count("R.permute_dims") == 1
    text = stages.transformed.module.script(show_meta=False)
    assert text.count('"dot_16x4_u8s8"') == 5


def test_without_the_instruction_products_are_in_float32(tmp_path: Path) -> None:
    stages = Pipeline().stages(recipe_of(tmp_path, "llvm"))
    (run,) = (each for each in stages.transformed.runs if each.name == "MultiplyIntegers")
    assert run.after is not None
    assert run.after.script() == run.before.script()
    unmet = why_unchanged("MultiplyIntegers", run.before)
    assert unmet is not None
    assert "avx512vnni" in unmet.text


def test_a_target_without_the_instruction_is_an_error(tmp_path: Path) -> None:
    stages = Pipeline().stages(recipe_of(tmp_path, SERVER))
    with pytest.raises(LowerscopeError, match="has no instruction dot_16x4_u8s8"):
        build(stages.transformed.module, make_target("llvm", 1))


@needs_instruction
def test_values_are_those_of_torch(tmp_path: Path) -> None:
    record = Pipeline().answer(RunQuery(recipe_of(tmp_path, "native")))
    assert record.verdict == "match"
    assert record.max_abs_error == 0
    # With the channels last, values are those of the nodes as well.
    nodes = {each.id: each.status for each in record.nodes}
    assert {nodes[f"fx:{name}"] for name in ("pool", "relu_1", "single")} == {"matches"}


@needs_instruction
def test_the_program_that_reproduces_it_has_the_step(tmp_path: Path) -> None:
    recipe_of(tmp_path, "native")
    arguments = ["--pipeline", "optimise-cpu", "--target", "native", "--what", "reproduce"]
    assert main(["export", str(tmp_path / "net.py"), *arguments, "--output", str(tmp_path)]) == 0
    program = [sys.executable, str(tmp_path / "reproduce.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "matches torch" in done.stdout


DYNAMIC = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(96, 3000), nn.ReLU(), nn.Linear(3000, 30))
model = torch.ao.quantization.quantize_dynamic(net.eval(), {nn.Linear}, torch.qint8)
example_inputs = (torch.rand(8, 96) * 90,)
"""


@needs_instruction
def test_inputs_quantised_by_their_own_range_are_multiplied_as_bytes(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, "native", DYNAMIC)
    text = Pipeline().stages(recipe).transformed.module.script(show_meta=False)
    # The sums are beyond 2^24, and float32 does not hold them.
    assert text.count('"dot_16x4_u8s8"') == 2
    record = Pipeline().answer(RunQuery(recipe))
    assert record.verdict == "match"


NARROW = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(16, 1, bias=False)
model = torch.ao.quantization.quantize_dynamic(nn.Sequential(net).eval(), {nn.Linear}, torch.qint8)
example_inputs = (torch.randn(15, 16),)
"""


@needs_instruction
def test_sums_of_a_single_column_are_right(tmp_path: Path) -> None:
    record = Pipeline().answer(RunQuery(recipe_of(tmp_path, "native", NARROW)))
    assert record.max_abs_error == 0


ROWS = """
import torch

class Rows(torch.nn.Module):
    def forward(self, x, y):
        return torch.einsum("ij,ij->i", x.int(), y.int())

model = Rows()
example_inputs = (
    torch.randint(0, 256, (15, 16)).to(torch.uint8),
    torch.randint(-128, 128, (15, 16)).to(torch.int8),
)
"""


@needs_instruction
def test_sums_of_rows_of_as_many_bytes_as_a_register_are_right(tmp_path: Path) -> None:
    assert Pipeline().answer(RunQuery(recipe_of(tmp_path, "native", ROWS))).verdict == "match"
