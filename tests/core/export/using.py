"""Every export of a recipe, used: parsed back, run, opened. `reproduce.py` has tests of its own."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx
import numpy as np
import tvm
import tvm_ffi
from PySide6.QtGui import QImage
from tvm import s_tir, tirx

from lowerscope.app.kit.canvas.graph_painting import GraphPictures
from lowerscope.core.export.folder import Pictures, export
from lowerscope.core.files.pipelines_and_schedules import load_schedules
from lowerscope.core.ir.script import function_text, module_text
from lowerscope.core.model.artifacts import PICTURES, Wanted
from lowerscope.core.stages import Pipeline, Stages
from tests.core.export.exporting import loaded, recipe_of
from tests.core.export.test_report import Page
from tests.warm_processes import run_warm

USED = (
    *("module", "script", "builder", "fx", "parameters", "step", "patch", "function", "schedule"),
    *("library", "fx-graph", "relax-graph", "report"),
)


def use_all(pipeline: Pipeline, arguments: list[str], folder: Path) -> list[str]:
    """Export all there is of a command line's recipe, and use each; return what was left out."""
    recipe = recipe_of(*arguments)
    stages = pipeline.stages(recipe)
    wanted = [Wanted(name=each, asked=False) for each in USED]
    pictures = Pictures(kinds=PICTURES, painter=GraphPictures())
    done = export(pipeline, recipe, folder, force=False, wanted=wanted, pictures=pictures)
    written = {Path(path).relative_to(folder).parts[0] for path in done.paths}
    use_module(stages, folder)
    use_builder(stages, folder)
    use_steps(stages, folder)
    use_patches(stages, folder)
    use_functions(stages, folder)
    if "schedules.json" in written:
        use_schedules(stages, folder)
    use_library(stages, folder)
    use_pictures(folder, written)
    use_report(folder)
    if stages.traced is not None:
        table = (folder / "fx.txt").read_text().splitlines()
        assert len(table) > len(stages.traced.graph_module.graph.nodes)
    if "parameters.npz" in written:
        with np.load(folder / "parameters.npz") as values:
            assert set(values) == set(stages.parameters)
    return list(done.left_out)


def same(found: tvm.IRModule, expected: tvm.IRModule) -> bool:
    return bool(tvm_ffi.structural_equal(found, expected))


def read_module(path: Path) -> tvm.IRModule:
    """Return a module from its script, or from the program that it is with large constants."""
    if path.with_suffix(".npz").exists():
        return loaded(path, "module").Module
    return tvm.script.from_source(path.read_text())


def use_module(stages: Stages, folder: Path) -> None:
    assert same(read_module(folder / "module.py"), stages.completed)
    text = (folder / "script.py").read_text()
    assert text.strip() == module_text(stages.completed).text.strip()


def use_builder(stages: Stages, folder: Path) -> None:
    program = folder / "builder.py"
    if program.exists():
        constants = folder / "constants.npz"
        given = dict(np.load(constants)) if constants.exists() else {}
        assert same(loaded(program, "builder").build(given), stages.completed)


def use_steps(stages: Stages, folder: Path) -> None:
    runs = [run for run in stages.transformed.runs if run.depth == 0]
    for path in sorted((folder / "steps").glob("*.py")):
        number = int(path.name.partition("-")[0])
        expected = runs[number - 1].after if number else stages.module
        assert same(read_module(path), expected), path.name


def use_patches(stages: Stages, folder: Path) -> None:
    """Apply each patch to the functions before the step: it makes those after it."""
    runs = [run for run in stages.transformed.runs if run.depth == 0]
    for patch in sorted((folder / "patches").glob("*.patch")):
        run = runs[int(patch.name.partition("-")[0]) - 1]
        place = folder / "patched" / patch.stem
        place.mkdir(parents=True)
        before, after = texts(run.before), texts(run.after)
        for name, text in before.items():
            (place / name).write_text(text)
        parts = re.findall(r"^--- .+\n\+\+\+ .+\n(?:[@ +-].*\n?)+", patch.read_text(), re.MULTILINE)
        if parts:
            content = "\n".join(each.rstrip("\n") for each in parts) + "\n"
            command = ["patch", "-s", "-p0", "--no-backup-if-mismatch"]
            subprocess.run(command, input=content, text=True, cwd=place, check=True)
        found = {each.name: each.read_text() for each in place.iterdir()}
        assert found == after, patch.name


def texts(module: tvm.IRModule) -> dict[str, str]:
    names = [str(each.name_hint) for each in module.get_global_vars()]
    return {name: bare(function_text(module, name).text) for name in names}


def bare(script: str) -> str:
    """Return a function without what a script says besides: imports, and that there is more."""
    lines = script.strip().splitlines()
    kept = [each for each in lines if not each.startswith(("# from ", "# Metadata "))]
    return "\n".join(kept).strip() + "\n"


def use_functions(stages: Stages, folder: Path) -> None:
    for variable, function in stages.completed.functions.items():
        name = str(variable.name_hint)
        if not isinstance(function, tirx.PrimFunc):
            continue
        made = tvm.script.from_source((folder / "functions" / f"{name}.py").read_text())
        bare = (each.without_attr("global_symbol") for each in (made, function))
        assert tvm_ffi.structural_equal(*bare), name


def use_schedules(stages: Stages, folder: Path) -> None:
    for schedule in load_schedules(str(folder / "schedules.json")):
        name = schedule.function
        program = loaded(folder / "schedules" / f"{name}.py", f"schedule_{name}")
        sch = s_tir.Schedule(tvm.IRModule({name: stages.functions.by_name[name]}))
        sch.work_on(name)
        program.apply_trace(sch)
        assert tvm_ffi.structural_equal(sch.mod[name], stages.completed[name]), name


def use_library(stages: Stages, folder: Path) -> None:
    """Run the library by its loader, without Lowerscope, beside torch or the reference."""
    place = folder / "library"
    code = (
        "import sys, numpy; sys.modules['lowerscope'] = None; sys.path.insert(0, '.'); import load;"
        "given = numpy.load('arguments.npz');"
        "out = load.main(*map(load.tvm.runtime.tensor, given.values()));"
        "out = [out] if hasattr(out, 'numpy') else list(out);"
        "numpy.savez('out.npz', *[each.numpy() for each in out])"
    )
    done = run_warm("-c", code, folder=place)
    assert done.returncode == 0, done.stderr
    inputs = [each.value for each in stages.loaded.inputs]
    if stages.loaded.model is not None:
        expected = stages.loaded.model(*inputs).detach().numpy()
    else:
        assert stages.loaded.reference is not None
        expected = stages.loaded.reference(*(each.numpy() for each in inputs))
    (found,) = np.load(place / "out.npz").values()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def use_pictures(folder: Path, written: set[str]) -> None:
    for name in ("fx", "relax"):
        if f"{name}.svg" in written:
            root = ET.parse(folder / f"{name}.svg").getroot()
            _, _, width, height = map(float, root.attrib["viewBox"].split())
            image = QImage(str(folder / f"{name}.png"))
            assert not image.isNull()
            assert abs(image.width() / image.height() - width / height) < 0.02
            assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF-")
            text = (folder / f"{name}.dot").read_text()
            nodes = set(re.findall(r'^  ("(?:[^"\\]|\\.)*") \[label=', text, re.MULTILINE))
            edges = re.findall(r'^  ("(?:[^"\\]|\\.)*") -> ("(?:[^"\\]|\\.)*")', text, re.MULTILINE)
            assert {end for edge in edges for end in edge} <= nodes
            read = networkx.read_graphml(folder / f"{name}.graphml")
            assert {json.loads(each) for each in nodes} == set(read)
            data = json.loads((folder / f"{name}.json").read_text("utf-8"))
            again = networkx.node_link_graph(data, edges="edges")
            assert (read.nodes, read.adj) == (again.nodes, again.adj)


def use_report(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    assert Page(text).references == []
    assert "✓ matches" in text
