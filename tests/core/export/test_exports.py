"""What is exported is used: parsed back, run, opened."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import tvm_ffi

from lowerscope.app.kit.canvas.graph_painting import GraphPictures
from lowerscope.core.cli import main
from lowerscope.core.export import module_files
from lowerscope.core.export.folder import Pictures, export
from lowerscope.core.model.artifacts import parse_wanted
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import loaded, recipe_of
from tests.core.export.using import use_all

MLP = "sample:fashion_mlp"


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
    monkeypatch.setattr(module_files, "MOST_INSIDE", 1000)
    recipe = recipe_of("sample:transformer_block", "--pipeline", "fuse")
    export(pipeline, recipe, tmp_path, force=False, wanted=parse_wanted(["module,script"]))
    assert (tmp_path / "module.npz").stat().st_size > 1_000_000
    assert (tmp_path / "module.py").stat().st_size < 200_000
    expected = pipeline.stages(recipe).completed
    made = loaded(tmp_path / "module.py", "module")
    assert tvm_ffi.structural_equal(made.Module, expected)
    assert "class Module:" in (tmp_path / "script.py").read_text()


def test_a_missing_compiler_is_named(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    wanted = parse_wanted(["library"])
    done = export(pipeline, recipe_of(MLP), tmp_path, force=False, wanted=wanted)
    assert done.paths == ()
    assert "no-such-compiler is not there" in done.left_out[0]
    assert "apt-get install g++" in done.left_out[0]


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
