"""Exports in use: parsed back, run, opened."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import tvm_ffi

from lowerscope.app.kit.canvas.graph_painting import GraphPictures
from lowerscope.core.export import files as export_files
from lowerscope.core.export.folder import Pictures, export
from lowerscope.core.model.artifacts import parse_wanted
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import loaded, recipe_of
from tests.core.export.using import use_all

MLP = "sample:fashion_mlp"


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


def test_a_missing_compiler_is_named(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    wanted = parse_wanted(["library"])
    done = export(pipeline, recipe_of(MLP), tmp_path, force=False, wanted=wanted)
    assert done.paths == ()
    assert "no-such-compiler is missing" in done.left_out[0]
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


@pytest.mark.parametrize(
    ("option", "remedy"),
    [("--pipeline=fuse", "--params-as-inputs"), ("--bind-params", "BindParams")],
)
def test_why_there_are_no_parameters_is_said(
    pipeline: Pipeline, tmp_path: Path, option: str, remedy: str
) -> None:
    wanted = parse_wanted(["module,parameters"])
    done = export(
        pipeline, recipe_of("sample:matmul_relu", option), tmp_path, force=False, wanted=wanted
    )
    (reason,) = done.left_out
    assert remedy in reason
