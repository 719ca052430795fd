"""The command line, in process: stages that are shown, and files that are exported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi

from lowerscope.core.cli.main import main
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.core.programs import module_of

FAST = ("matmul_relu", "fashion_mlp", "conv_net", "transformer_block", "mlp_tvmscript")


def test_the_fx_table_is_torchs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "sample:fashion_mlp", "--stage", "fx"]) == 0
    lines = capsys.readouterr().out.splitlines()
    columns = ["opcode", "name", "target", "args", "kwargs", "shape", "dtype", "lowered"]
    assert lines[0].split() == columns
    row = next(line for line in lines if " linear0 " in line)
    assert row.split()[:3] == ["call_module", "linear0", "linear0"]
    assert "(x,)" in row
    assert "float32" in row
    assert row.endswith("high-level, linear: R.permute_dims, R.matmul, R.add")


def test_show_translation_lists_the_node_map_and_tells_of_one_node(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["show", "sample:fashion_mlp", "--lowering", "te", "--stage", "translation"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("2  linear0"))
    assert re.search(r"te +linear: topi.nn.dense, topi.add +lv1 +1×128 float32 +dense, add$", row)
    assert main([*arguments, "--node", "linear0"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 linear0: Lowered to tensor expressions by linear")
    assert "    def linear(b: NodeBuilder, input: Value" in out
    steps = ("1 placeholders", "2 expression", "3 function dense", "4 call_tir")
    places = [out.index(f"  {step}") for step in steps]
    assert places == sorted(places)
    assert main([*arguments, "--node", "linear0", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["function"] for each in record["calls"]] == ["dense", "add"]
    assert main([*arguments, "--json"]) == 0
    assert [each["value"] for each in json.loads(capsys.readouterr().out)][1] == "lv1"
    assert main([*arguments, "--node", "nothing"]) == 2
    assert "there is no node nothing" in capsys.readouterr().err


def test_a_function_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["show", "sample:matmul_relu", "--stage", "tensorir", "--function", "nope"]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "nope" in error
    assert "matmul" in error


@pytest.mark.parametrize("sample", FAST)
def test_the_exported_module_reads_back(
    sample: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert main(["export", f"sample:{sample}", "--output", str(folder)]) == 0
    capsys.readouterr()
    module = tvm.script.from_source((folder / "module.py").read_text())
    recipe = Recipe(source=Source(spec=f"sample:{sample}"))
    expected = Pipeline().stages(recipe).transformed.module
    assert tvm_ffi.structural_equal(module, expected)
    constants = dict(np.load(folder / "constants.npz"))
    made = module_of(folder / "builder.py", constants)
    assert tvm_ffi.structural_equal(made, expected)
    assert (folder / "fx.txt").exists() == (sample != "mlp_tvmscript")


def test_the_exported_program_makes_the_module_by_itself(tmp_path: Path) -> None:
    arguments = ["export", "sample:fashion_mlp", "--output", str(tmp_path), "--lowering", "te"]
    assert main(arguments) == 0
    with np.load(tmp_path / "constants.npz") as constants:
        names = {"linear0_weight", "linear0_bias", "linear1_weight", "linear1_bias"}
        assert set(constants.files) == names
    program = [sys.executable, "-W", "ignore", "builder.py"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "te_relu" in done.stdout


@pytest.mark.parametrize(
    ("stage", "function", "first"),
    [
        ("builder", "", '"""A module, made with a block builder."""'),
        ("numpy", "te_relu", "import numpy as np"),
        ("te", "dense", "from tvm import te"),
        ("te", "", "from tvm import te"),
    ],
)
def test_programs_are_printed(
    stage: str, function: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--function", function] if function else []
    arguments = ["show", "sample:fashion_mlp", "--lowering", "te", "--stage", stage, *options]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith(first)
    compile(out, stage, "exec")
    names = {"builder": "bb.emit_func_output(gv)", "numpy": "def lnumpy_te_relu("}
    assert names.get(stage, "def te_dense(") in out
    assert ("def te_add(" in out) == (stage == "te" and not function)


@pytest.mark.parametrize(
    ("stage", "function", "there", "not_there"),
    [
        ("bytecode", "", ("@main:", "call  dense "), ("__tvm_ffi_",)),
        ("llvm", "dense", ("@__tvm_ffi_dense(", "for_body_k:"), ("@__tvm_ffi_add(",)),
        ("asm", "dense", ("__tvm_ffi_dense:", "# %for_body_k"), ("__tvm_ffi_add:",)),
        ("asm", "", ("__tvm_ffi_dense:", "__tvm_ffi_add:"), ()),
    ],
)
def test_what_is_compiled_is_printed(
    stage: str,
    function: str,
    there: tuple[str, ...],
    not_there: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--function", function] if function else []
    arguments = ["show", "sample:fashion_mlp", "--lowering", "te", "--stage", stage, *options]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert all(each in out for each in there)
    assert not any(each in out for each in not_there)


def test_only_compiled_functions_have_assembly(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["show", "sample:fashion_mlp", "--lowering", "te", "--stage", "asm"]
    assert main([*arguments, "--function", "main"]) == 2
    assert "Choose one of add, add1, dense, dense1, te_relu" in capsys.readouterr().err


def test_export_does_not_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", "sample:matmul_relu", "--output", str(tmp_path)]
    assert main(arguments) == 0
    before = (tmp_path / "module.py").read_text()
    (tmp_path / "module.py").write_text("mine")
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "module.py").read_text() == "mine"
    assert main([*arguments, "--force"]) == 0
    assert (tmp_path / "module.py").read_text() == before


def test_a_folder_may_be_given_from_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A shell leaves the tilde of --output=~/out as it is.
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["export", "sample:matmul_relu", "--output=~/out"]) == 0
    assert (tmp_path / "out" / "module.py").is_file()
    values = ["show", "sample:matmul_relu", "--constant", "x", "--save=~/x.npy"]
    assert main(values) == 0, capsys.readouterr().err
    assert (tmp_path / "x.npy").is_file()
