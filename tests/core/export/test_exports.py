"""What is exported is used: parsed back, run, opened."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi

from lowerscope.app.kit.canvas.graph_painting import GraphPictures
from lowerscope.core.cli import main
from lowerscope.core.export import files as export_files
from lowerscope.core.export.folder import Pictures, export
from lowerscope.core.model.artifacts import EXPORTS, parse_wanted
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import imports_of, loaded, recipe_of
from tests.core.export.using import use_all

MLP = "sample:fashion_mlp"


def texts_of(folder: Path) -> dict[str, str]:
    found = folder.glob("*")
    return {each.name: each.read_text(encoding="utf-8") for each in found if each.is_file()}


def test_each_export_has_a_name_of_its_own_and_is_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main.main(["export", "--help"])
    listed = capsys.readouterr().out
    assert all(f"  {each.name} " in listed for each in EXPORTS)
    assert len({each.name for each in EXPORTS}) == len(EXPORTS)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("modul", ["modul", "Did you mean module?"]),
        ("report:x", ["report is one thing"]),
        ("step:", ["the number of a step"]),
    ],
)
def test_what_cannot_be_exported_is_said(text: str, parts: list[str]) -> None:
    with pytest.raises(LowerscopeError) as caught:
        parse_wanted([text])
    assert all(part in caught.value.problem.line() for part in parts)


def test_steps_patches_and_functions(pipeline: Pipeline, tmp_path: Path) -> None:
    recipe = recipe_of(MLP, "--pipeline", "fuse")
    stages = pipeline.stages(recipe)
    wanted = parse_wanted(["step,patch,function"])
    assert export(pipeline, recipe, tmp_path, force=False, wanted=wanted).left_out == ()
    steps = texts_of(tmp_path / "steps")
    runs = [run for run in stages.transformed.runs if run.depth == 0]
    assert len(steps) == 1 + sum(not run.after.same_as(run.before) for run in runs if run.after)
    for name, text in steps.items():
        number = int(name.partition("-")[0])
        expected = runs[number - 1].after if number else stages.module
        assert tvm_ffi.structural_equal(tvm.script.from_source(text), expected), name
    functions = texts_of(tmp_path / "functions")
    assert set(functions) == {f"{each.name_hint}.py" for each in stages.completed.get_global_vars()}
    for name, function in stages.functions.by_name.items():
        made = tvm.script.from_source(functions[f"{name}.py"])
        assert tvm_ffi.structural_equal(
            made.without_attr("global_symbol"), function.without_attr("global_symbol")
        )
    # A patch makes of a function's script before the step that of the function after it.
    patch = texts_of(tmp_path / "patches")["5-FuseTIR.patch"]
    assert patch.startswith("# old: ")
    before, after = runs[3].after, runs[4].after
    (tmp_path / "main").write_text(function_script(before, "main"))
    part = re.search(r"^--- main\n\+\+\+ main\n(?:[@ +-].*\n)+", patch, re.MULTILINE)
    assert part is not None
    subprocess.run(["patch", "main"], input=part[0], text=True, cwd=tmp_path, check=True)
    assert (tmp_path / "main").read_text() == function_script(after, "main")


def function_script(module: tvm.IRModule, name: str) -> str:
    from lowerscope.core.ir.script import function_text

    return function_text(module, name).text + "\n"


def test_one_step_and_one_function(pipeline: Pipeline, tmp_path: Path) -> None:
    recipe = recipe_of(MLP, "--pipeline", "fuse")
    names = ["step:0,patch:4,function:main,function:nothing,step:99"]
    done = export(pipeline, recipe, tmp_path, force=False, wanted=parse_wanted(names))
    assert [str(Path(path).relative_to(tmp_path)) for path in done.paths] == [
        "steps/0-lowered.py",
        "patches/4-FuseOps.patch",
        "functions/main.py",
    ]
    assert not done.complete
    assert len(done.left_out) == 2
    assert "nothing" in done.left_out[0]
    assert "there is no step 99" in done.left_out[1]


def test_large_constants_lie_beside_the_module(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_files, "MOST_INSIDE", 1000)
    recipe = recipe_of("sample:transformer_block", "--pipeline", "fuse")
    export(pipeline, recipe, tmp_path, force=False, wanted=parse_wanted(["module,script"]))
    assert (tmp_path / "module.npz").stat().st_size > 1_000_000
    assert (tmp_path / "module.py").stat().st_size < 200_000
    expected = pipeline.stages(recipe).completed
    made = loaded(tmp_path / "module.py", "module")
    assert tvm_ffi.structural_equal(made.Module, expected)
    assert "class Module:" in (tmp_path / "script.py").read_text()


@pytest.mark.parametrize(
    "options",
    [[MLP, "--lowering", "library"], ["sample:mlp_tvmscript"]],
    ids=["library", "tvmscript"],
)
def test_the_compiled_library_runs_by_its_loader(
    options: list[str], pipeline: Pipeline, tmp_path: Path
) -> None:
    recipe = recipe_of(*options)
    wanted = parse_wanted(["library"])
    assert export(pipeline, recipe, tmp_path, force=False, wanted=wanted).left_out == ()
    folder = tmp_path / "library"
    program = folder / "load.py"
    beside = {path.stem for path in folder.glob("*.py")}
    assert imports_of(program) <= {"tvm", "numpy", *beside}
    code = (
        "import sys, numpy; sys.modules['lowerscope'] = None; sys.path.insert(0, '.'); import load;"
        "given = numpy.load('arguments.npz');"
        "out = load.main(*map(load.tvm.runtime.tensor, given.values()));"
        "numpy.save('out.npy', out.numpy())"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    loaded_model = pipeline.stages(recipe).loaded
    inputs = [each.value for each in loaded_model.inputs]
    if loaded_model.model is not None:
        expected = loaded_model.model(*inputs).detach().numpy()
    else:
        assert loaded_model.reference is not None
        expected = loaded_model.reference(*(each.numpy() for each in inputs))
    np.testing.assert_allclose(np.load(folder / "out.npy"), expected, rtol=1e-4, atol=1e-4)


def test_a_missing_compiler_is_named(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    wanted = parse_wanted(["library"])
    done = export(pipeline, recipe_of(MLP), tmp_path, force=False, wanted=wanted)
    assert done.paths == ()
    assert "no-such-compiler is not there" in done.left_out[0]
    assert "apt-get install g++" in done.left_out[0]


def test_what_runs_elsewhere_is_not_made_here(pipeline: Pipeline, tmp_path: Path) -> None:
    target = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu"}'
    wanted = parse_wanted(["reproduce,library"])
    recipe = recipe_of("sample:matmul_relu", "--target", target)
    done = export(pipeline, recipe, tmp_path, force=False, wanted=wanted)
    assert done.paths == ()
    assert [each.partition(":")[0] for each in done.left_out] == ["reproduce", "library"]


def test_every_export_is_used(qapp: object, pipeline: Pipeline, tmp_path: Path) -> None:
    options = ["--pipeline", "fuse", "--schedule", "rules", "--params-as-inputs"]
    assert use_all(pipeline, [MLP, *options], tmp_path) == []


def test_a_part_of_a_graph_and_its_levels(qapp: object, pipeline: Pipeline, tmp_path: Path) -> None:
    recipe = recipe_of("sample:transformer_block")
    wanted = parse_wanted(["fx-graph"])
    boxes = {}
    for name, chosen in {
        "none": Pictures(kinds=("dot",), level="none"),
        "all": Pictures(kinds=("dot",), level="all"),
        "module": Pictures(kinds=("dot", "svg"), part="attention", painter=GraphPictures()),
        "node": Pictures(kinds=("dot",), level="all", part="norm0"),
    }.items():
        place = tmp_path / name
        export(pipeline, recipe, place, force=False, wanted=wanted, pictures=chosen)
        text = (place / "fx.dot").read_text()
        boxes[name] = set(re.findall(r'^  "([^"]*)" \[label=', text, re.MULTILINE))
    assert "module:attention" in boxes["none"]
    assert "module:attention" not in boxes["all"]
    # What is inside of a module is what is there with it and not without it.
    assert boxes["module"] == boxes["all"] - boxes["none"]
    assert {"fx:x", "fx:norm0"} < boxes["node"] < boxes["all"]
    words = "".join(ET.parse(tmp_path / "module" / "fx.svg").getroot().itertext())
    assert "attention" in words
    assert "norm1" not in words
    done = export(
        pipeline,
        recipe,
        tmp_path / "no",
        force=False,
        wanted=wanted,
        pictures=Pictures(kinds=("dot",), part="atention"),
    )
    assert "Did you mean attention?" in done.left_out[0]


def test_all_of_it_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", "sample:mlp_tvmscript", "--what", "all", "--picture", "dot"]
    assert main.main([*arguments, "--output", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    written = set(captured.out.split())
    names = {str(Path(each).relative_to(tmp_path)) for each in written}
    assert {"module.py", "reproduce.py", "library/load.py", "relax.dot", "report.html"} <= names
    # There is no FX graph, and no parameter is kept apart: nobody asked for these by name.
    assert not names & {"fx.txt", "fx.dot", "parameters.npz"}
    assert main.main([*arguments, "--output", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main.main(["export", MLP, "--what", "parameters", "--output", str(tmp_path)]) == 2
    assert "not written: parameters" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["library", "module"])
def test_what_no_run_has_compared_is_said(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", MLP, "--output", str(tmp_path), "--force", "--what"]
    assert main.main([*arguments, name]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert name in line
    assert "not compared" in line
    assert main.main([*arguments, f"{name},report"]) == 0
    assert capsys.readouterr().err == ""
    assert main.main([*arguments, "builder"]) == 0
    assert capsys.readouterr().err == ""
