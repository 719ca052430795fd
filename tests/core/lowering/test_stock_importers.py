"""TVM's importers as the translator: the module is what the stock functions make, and tied."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch
import tvm_ffi
from tvm.relax.frontend.torch import from_exported_program, from_fx

from lowerscope.core.cli.main import main
from lowerscope.core.model.recipe import Override, Recipe, Source, Strategy, TracerName, Translator
from lowerscope.core.stages import Pipeline, Stages
from tests.diagonal import at_length

NORMED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.linear = nn.Linear(4 * 6 * 6, 3)
        self.register_buffer("steps", torch.arange(3))
        with torch.no_grad():
            self.norm.running_mean.uniform_(-1, 1)
            self.norm.running_var.uniform_(0.5, 2)
        self.eval()

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return torch.softmax(self.linear(x.flatten(1)), dim=-1) * self.steps


def example_inputs():
    return (torch.randn(2, 1, 8, 8),)


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)
        self.eval()

    def forward(self, x):
        return torch.fft.rfft(self.attend(x, x, x)[0]).real
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("importers") / "net.py"
    path.write_text(NORMED)
    return str(path)


def stages_of(
    pipeline: Pipeline,
    spec: str,
    translator: Translator,
    lowering: Strategy = "high-level",
    tracer: TracerName = "auto",
    overrides: tuple[Override, ...] = (),
) -> Stages:
    entry = "Net" if spec.endswith("net.py") else ""
    return pipeline.stages(
        Recipe(
            source=Source(spec=spec, entry=entry),
            translator=translator,
            tracer=tracer,
            lowering=lowering,
            overrides=overrides,
        )
    )


SPECS = ("", "sample:transformer_block")


@pytest.mark.parametrize("spec", SPECS)
def test_the_module_is_that_of_from_fx(pipeline: Pipeline, net: str, spec: str) -> None:
    stages = stages_of(pipeline, spec or net, "tvm-fx")
    assert stages.traced is not None
    given = [(tuple(each.shape), "float32") for each in stages.loaded.inputs]
    stock = from_fx(stages.traced.graph_module, given)
    assert tvm_ffi.structural_equal(stages.module["main"], stock["main"], map_free_vars=True)


@pytest.mark.parametrize("spec", SPECS)
def test_the_module_is_that_of_from_exported_program(
    pipeline: Pipeline, net: str, spec: str
) -> None:
    stages = stages_of(pipeline, spec or net, "tvm-export")
    model = stages.loaded.model
    assert model is not None
    with torch.no_grad(), warnings.catch_warnings():
        # torch warns of its own inner workings.
        warnings.simplefilter("ignore")
        program = torch.export.export(model, tuple(each.value for each in stages.loaded.inputs))
        stock = from_exported_program(program, unwrap_unit_return_tuple=True)
    assert tvm_ffi.structural_equal(stages.module["main"], stock["main"], map_free_vars=True)


@pytest.mark.parametrize("lowering", ["te", *at_length("high-level")])
def test_a_run_names_the_batch_norm(
    net: str, lowering: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = [f"{net}:Net", "--lowering", lowering]
    assert main(["run", *source, "--importer", "tvm-fx"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Differs from torch")
    assert "First difference: norm (from_fx torch.nn.BatchNorm2d" in out
    assert "passes on it: " in out

    # The export importer is right here, and so are the rules.
    assert main(["run", *source, "--importer", "tvm-export", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["tracer"], record["first_difference"]) == ("export", "")
    nodes = {each["id"]: each["matches"] for each in record["nodes"]}
    assert nodes["fx:convolution"] is True
    assert nodes["fx:addmm"] is True


@pytest.mark.parametrize(
    ("importer", "nodes"),
    [("tvm-fx", ("attend", "fft_rfft")), ("tvm-export", ("_fft_r2c", "view_as_real"))],
)
def test_what_an_importer_does_not_cover_is_one_line(
    net: str, importer: str, nodes: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", f"{net}:Attending", "--input", "x=2,3,4", "--importer", importer]
    assert main(arguments) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert all(f"(node {node}, net.py:" in line for node in nodes)
    assert "Choose Lowerscope's own translator: --importer lowerscope" in line
