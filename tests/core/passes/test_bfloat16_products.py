"""Products of bfloat16: weights stay as they are where the processor multiplies them so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import tvm

from lowerscope.core.build.build import build
from lowerscope.core.build.targets import make_target
from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe, Source
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.unchanged import why_unchanged

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 96), nn.Linear(96, 48, bias=False)
        self.odd = nn.Linear(48, 7)

    def forward(self, x):
        y = self.second(nn.functional.silu(self.first(x)))
        return self.odd(y), y


torch.manual_seed(0)
model = Net().eval().bfloat16()
example_inputs = (torch.randn(2, ROWS, 64).bfloat16(),)
"""

OF_CONSTANTS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.Parameter(torch.randn(64, 64))
        self.start = nn.Parameter(torch.randn(12, 64))

    def forward(self, x):
        first, second = self.both.chunk(2)
        start = self.start.chunk(2)[0]
        return nn.functional.linear(x, first) @ first, x @ second.T, start @ self.both + x


torch.manual_seed(0)
model = Net().eval().bfloat16()
example_inputs = (torch.randn(6, 64).bfloat16(),)
"""

PRODUCTS = """
import torch


class Net(torch.nn.Module):
    def forward(self, a, b, c):
        return a @ b, a @ c.mT, b.mT @ b


torch.manual_seed(0)
model = Net()
example_inputs = tuple(
    torch.randn(2, 3, *each).bfloat16() for each in ((ROWS, 15), (15, 37), (21, 15))
)
"""

SERVER = '{"kind": "llvm", "mcpu": "sapphirerapids", "num-cores": 2}'
HAS_INSTRUCTION = bool(
    tvm.get_global_func("target.target_has_feature")("avx512bf16", make_target("native", 1))
)
needs_instruction = pytest.mark.skipif(
    not HAS_INSTRUCTION, reason="the processor cannot multiply bfloat16"
)


def recipe_of(folder: Path, target: str, rows: int = 12, **others: object) -> Recipe:
    (folder / "net.py").write_text(NET.replace("ROWS", str(rows)), encoding="utf-8")
    steps = find_pipeline("optimise-cpu").steps
    source = Source(spec=str(folder / "net.py"))
    return Recipe(source=source, steps=steps, target=target, **others)  # type: ignore[arg-type]


def test_schedules_multiply_pairs_of_bfloat16_and_weights_stay(tmp_path: Path) -> None:
    stages = Pipeline().stages(recipe_of(tmp_path, SERVER))
    (run,) = (each for each in stages.transformed.runs if each.name == "MultiplyBfloat16")
    assert run.after is not None
    script = run.after.script()
    assert script.count('out_dtype="float32"') == 2
    # The product with 7 columns, fewer than the instruction's sums, reads float32.
    assert script.count('R.astype(metadata["ir.GenericConst"]') == 3
    text = stages.transformed.module.script(show_meta=False)
    assert text.count('"dot_16x2_bf16"') == 2


def test_without_the_instruction_products_are_in_float32(tmp_path: Path) -> None:
    stages = Pipeline().stages(recipe_of(tmp_path, "llvm"))
    (run,) = (each for each in stages.transformed.runs if each.name == "MultiplyBfloat16")
    assert run.after is not None
    assert run.after.script() == run.before.script()
    unmet = why_unchanged("MultiplyBfloat16", run.before)
    assert unmet is not None
    assert "avx512bf16" in unmet.text


def test_what_is_computed_from_constants_alone_is_one(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, SERVER)
    (tmp_path / "net.py").write_text(OF_CONSTANTS, encoding="utf-8")
    stages = Pipeline().stages(recipe)
    (run,) = (each for each in stages.transformed.runs if each.name == "MultiplyBfloat16")
    assert run.after is not None
    # Not the product of two constants: FoldConstant computes it, and has no such instruction.
    assert run.after.script().count('out_dtype="float32"') == 3
    # Two of the products are one function.
    text = stages.transformed.module.script(show_meta=False)
    assert text.count('"dot_16x2_bf16"') == 2
    if HAS_INSTRUCTION:
        native = msgspec.structs.replace(recipe, target="native")
        assert Pipeline().answer(RunQuery(native)).verdict == "match"


def test_a_target_without_the_instruction_is_an_error_and_no_end_of_the_process(
    tmp_path: Path,
) -> None:
    stages = Pipeline().stages(recipe_of(tmp_path, SERVER))
    with pytest.raises(LowerscopeError, match="has no instruction dot_16x2_bf16"):
        build(stages.transformed.module, make_target("llvm", 1))


@needs_instruction
@pytest.mark.parametrize("rows", [1, 12, 29])
def test_values_are_those_of_torch(tmp_path: Path, rows: int) -> None:
    record = Pipeline().answer(RunQuery(recipe_of(tmp_path, "native", rows)))
    assert record.verdict == "match"
    assert {each.status for each in record.nodes if "second" in each.id} == {"matches"}


@pytest.mark.parametrize(("rows", "count"), [(8, 3), (7, 1)])
def test_products_of_two_inputs_are_those_of_pairs_too(
    tmp_path: Path, rows: int, count: int
) -> None:
    recipe = recipe_of(tmp_path, SERVER)
    (tmp_path / "net.py").write_text(PRODUCTS.replace("ROWS", str(rows)), encoding="utf-8")
    text = Pipeline().stages(recipe).transformed.module.script(show_meta=False)
    # With fewer rows, the second factor takes longer to lay out than to multiply.
    assert text.count('"dot_16x2_bf16"') == count
    if HAS_INSTRUCTION:
        native = msgspec.structs.replace(recipe, target="native")
        assert Pipeline().answer(RunQuery(native)).verdict == "match"


@needs_instruction
def test_the_summed_size_may_be_named(tmp_path: Path) -> None:
    recipe = recipe_of(
        tmp_path,
        "native",
        inputs=(
            InputSpec(name="a", shape=(2, 3, 12, "terms"), dtype="bfloat16"),
            InputSpec(name="b", shape=(2, 3, "terms", 37), dtype="bfloat16"),
            InputSpec(name="c", shape=(2, 3, 21, "terms"), dtype="bfloat16"),
        ),
        dimensions=(Dimension(name="terms", low=1, high=64, sizes=(1, 12, 29)),),
    )
    (tmp_path / "net.py").write_text(PRODUCTS.replace("ROWS", "12"), encoding="utf-8")
    record = Pipeline().answer(RunQuery(recipe))
    assert record.verdict == "match"
    assert [each.verdict for each in record.sizes] == ["match"] * 3
    text = Pipeline().stages(recipe).transformed.module.script(show_meta=False)
    assert text.count('"dot_16x2_bf16"') == 3


@needs_instruction
def test_one_build_multiplies_any_number_of_rows(tmp_path: Path) -> None:
    recipe = recipe_of(
        tmp_path,
        "native",
        inputs=(InputSpec(name="x", shape=(2, "rows", 64), dtype="bfloat16"),),
        dimensions=(Dimension(name="rows", low=1, high=64, sizes=(1, 12, 29)),),
    )
    record = Pipeline().answer(RunQuery(recipe))
    assert record.verdict == "match"
    assert [each.verdict for each in record.sizes] == ["match"] * 3
    text = Pipeline().stages(recipe).transformed.module.script(show_meta=False)
    assert text.count('"dot_16x2_bf16"') == 2


@needs_instruction
def test_the_program_that_reproduces_it_has_the_instruction(tmp_path: Path) -> None:
    recipe_of(tmp_path, "native", 29)
    arguments = ["--pipeline", "optimise-cpu", "--target", "native", "--what", "reproduce"]
    assert main(["export", str(tmp_path / "net.py"), *arguments, "--output", str(tmp_path)]) == 0
    program = [sys.executable, str(tmp_path / "reproduce.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "matches torch" in done.stdout


def test_the_program_of_a_schedule_registers_the_instruction(tmp_path: Path) -> None:
    recipe_of(tmp_path, SERVER)
    arguments = ["--pipeline", "optimise-cpu", "--target", SERVER, "--what", "schedule"]
    assert main(["export", str(tmp_path / "net.py"), *arguments, "--output", str(tmp_path)]) == 0
    programs = [each for each in tmp_path.glob("schedules/*.py") if "dot_16x2" in each.read_text()]
    assert len(programs) == 2
    code = (
        "import runpy, sys; from tvm.s_tir import TensorIntrin; "
        "runpy.run_path(sys.argv[1]); TensorIntrin.get('dot_16x2_bf16')"
    )
    subprocess.run([sys.executable, "-c", code, str(programs[0])], check=True)
