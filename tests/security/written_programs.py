"""Exporting a recipe, and checking that each file is what it says, and nothing of it is run."""

from __future__ import annotations

import ast
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi

from lowerscope.core.export.folder import export
from lowerscope.core.model.artifacts import Wanted
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import loaded
from tests.core.programs import module_of
from tests.security.hostile_names import it_ran

KINDS = ("module", "script", "builder", "step", "patch", "function", "schedule", "reproduce")
MORE = ("report", "fx")


def check(pipeline: Pipeline, recipe: Recipe, folder: Path) -> None:
    """Export all that is text; parse it, run the programs, and compare what they make."""
    wanted = tuple(Wanted(name=name, asked=False) for name in (*KINDS, *MORE))
    written = export(pipeline, recipe, folder, force=False, wanted=wanted)
    programs = [path for path in map(Path, written.paths) if path.suffix == ".py"]
    for path in programs:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
        assert all(each == "\n" or each.isprintable() for each in text), path.name
    module = pipeline.stages(recipe).completed
    read = tvm.script.from_source((folder / "module.py").read_text(encoding="utf-8"))
    assert set(map(str, read.get_global_vars())) == set(map(str, module.get_global_vars()))
    # What has constants inside of its functions has no such program.
    assert all("cannot express" in each for each in written.left_out), written.left_out
    if (folder / "builder.py").exists():
        constants: dict[str, Any] = dict(np.load(folder / "constants.npz"))
        made = module_of(folder / "builder.py", constants)
        assert tvm_ffi.structural_equal(made, module)
    schedules = [path for path in programs if path.parent.name == "schedules"]
    assert len(schedules) == len(recipe.schedules)
    said = [loaded(path, "schedule").apply_trace.__doc__ for path in schedules]
    for schedule in recipe.schedules:
        assert any(f"Schedule {schedule.function}: " in each for each in said)
    kept = json.loads((folder / "schedules.json").read_text(encoding="utf-8"))
    assert {each["function"] for each in kept["schedules"]} == {
        each.function for each in recipe.schedules
    }
    report = Tags()
    report.feed((folder / "report.html").read_text(encoding="utf-8"))
    assert not report.foreign
    loaded(folder / "reproduce.py").main()
    assert not it_ran()


class Tags(HTMLParser):
    """Finds the tag that the names bring."""

    foreign = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.foreign = self.foreign or tag == "hostile"
