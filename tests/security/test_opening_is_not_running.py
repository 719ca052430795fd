"""Opening is not running: whatever stands in a file that is data, nothing of it is executed.

Each test leaves a file behind if anything of what it opens is run.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from tvm.script import from_source

from lowerscope.app.panes.sessions.trust import code_of
from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.pipelines_and_schedules import load_preset, load_schedules
from lowerscope.core.files.sessions import load_session
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import InputSpec, Recipe
from lowerscope.core.sources.array_files import load_arrays
from lowerscope.core.sources.input_values import read
from lowerscope.core.sources.parameters import read_arrays
from lowerscope.core.stages import Pipeline
from tests.problems import problem_of
from tests.soak.bad_files import Shell


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "it_ran"


def saved_by_torch(value: object, *, legacy: bool = False) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


def saved_by_numpy(value: object, *, archive: bool) -> bytes:
    buffer = io.BytesIO()
    array = np.array([value], dtype=object)
    np.savez(buffer, x=array) if archive else np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


PICKLES: dict[str, Callable[[object], bytes]] = {
    "plain.pt": pickle.dumps,
    "tensor.pt": saved_by_torch,
    "tensor.pth": saved_by_torch,
    "legacy.pt": lambda value: saved_by_torch({"w": value}, legacy=True),
    "objects.npy": lambda value: saved_by_numpy(value, archive=False),
    "pickle.npy": pickle.dumps,
    "objects.npz": lambda value: saved_by_numpy(value, archive=True),
}


def refusal(path: Path, call: Callable[[], object]) -> Problem:
    problem = problem_of(call)
    assert len(problem.line()) < 500
    assert str(path) in problem.where
    return problem


@pytest.mark.parametrize("name", PICKLES)
def test_an_input_names_what_it_would_import_in_little_memory(
    tmp_path: Path, marker: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(PICKLES[name](Shell(f"touch {marker}")))
    tracemalloc.start()
    try:
        problem = refusal(path, lambda: read(InputSpec(file=str(path)), "x", (1,)))
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "would import posix.system" in problem.what
    assert not marker.exists()
    assert most < 2**24


@pytest.mark.parametrize("name", ["p.pkl", "state.pt", "checkpoint.pth", "legacy.pt", "p.npz"])
def test_parameters_name_what_they_would_import(tmp_path: Path, marker: Path, name: str) -> None:
    shell = Shell(f"touch {marker}")
    weights = {"w0": torch.zeros(2), "more": shell}
    content = {
        "p.pkl": lambda: pickle.dumps({"w0": shell}),
        "state.pt": lambda: saved_by_torch(weights),
        "checkpoint.pth": lambda: saved_by_torch({"state_dict": weights}),
        "legacy.pt": lambda: saved_by_torch(weights, legacy=True),
        "p.npz": lambda: saved_by_numpy(shell, archive=True),
    }
    path = tmp_path / name
    path.write_bytes(content[name]())
    problem = refusal(path, lambda: read_arrays(path))
    assert "would import posix.system" in problem.what
    assert not marker.exists()


def test_a_picture_is_no_program(tmp_path: Path, marker: Path) -> None:
    """Pillow starts Ghostscript for PostScript, whatever the file is called."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        (tools / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (tools / name).chmod(0o755)
    path = tmp_path / "boot.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{tools}{os.pathsep}{before}"
    try:
        assert shutil.which("gs") == str(tools / "gs")
        refusal(path, lambda: read(InputSpec(file=str(path)), "x", (1, 1, 9, 9)))
    finally:
        os.environ["PATH"] = before
    assert not marker.exists()


def test_a_session_runs_nothing_whatever_stands_in_it(
    tmp_path: Path, marker: Path, pipeline: Pipeline
) -> None:
    code = f"open({str(marker)!r}, 'w').close()\n"
    for name in ("net.py", "rules.py", "lib.py", "passes.py"):
        (tmp_path / name).write_text(code)
    shell = f'"); __import__("os").system("touch {marker}"); ("'
    recipe = {
        "source": {"spec": "net.py", "entry": "os:system", "args": shell, "trust": True},
        "inputs": [{"name": shell, "file": "net.py"}],
        "dimensions": [{"name": shell}],
        "extensions": [
            {"path": "rules.py", "kind": "rules"},
            {"path": "lib.py", "kind": "library"},
            {"path": "passes.py", "kind": "passes"},
        ],
        "overrides": [{"pattern": shell, "strategy": "te"}],
        "steps": [{"name": "os:system", "options": {"func_name": f"touch {marker}"}}],
        "schedules": [
            {
                "function": "matmul",
                "primitives": [{"id": "s1", "name": "os:system", "arguments": {"loop": shell}}],
            }
        ],
        "target": shell,
        "compiler": f"touch {marker}",
    }
    path = tmp_path / "a.lowerscope"
    path.write_text(json.dumps({"recipe": recipe, "compiler": f"touch {marker}"}))
    read_back = load_session(path, Hashes()).recipe
    assert read_back.source.spec == str(tmp_path / "net.py")
    assert not marker.exists()
    # On the command line, its source is what was asked for; that it is trusted, it cannot say.
    assert not recipe_of_command(("run", str(path))).source.trust
    assert recipe_of_command(("run", str(path), "--trust")).source.trust
    assert not marker.exists()


def trouble_with(pipeline: Pipeline, recipe: Recipe) -> Problem:
    """Return what is wrong with a recipe, once all has been derived that can be."""
    stages = pipeline.stages(recipe)
    try:
        _ = stages.target
        problem = stages.transformed.problem
    except LowerscopeError as error:
        return error.problem
    assert problem is not None
    return problem


def test_a_session_calls_no_other_machine(tmp_path: Path, pipeline: Pipeline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tracker:
        tracker.setblocking(False)
        remote = {"tracker": f"127.0.0.1:{tracker.getsockname()[1]}", "key": "board"}
        recipe = {"source": {"spec": "sample:matmul_relu"}, "remote": remote}
        path = tmp_path / "a.lowerscope"
        path.write_text(json.dumps({"recipe": recipe}))
        opened = load_session(path, Hashes()).recipe
        assert opened.remote is not None
        assert pipeline.answer(SnapshotQuery(opened, DEFAULT)).functions
        with pytest.raises(BlockingIOError):
            tracker.accept()


BODY = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
        for i in range({extent}):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                b[vi] = a[vi] + T.float32(1)
"""


def test_tvmscript_is_code(marker: Path) -> None:
    """TVM's parser evaluates what stands in a script as Python: who reads one has to be asked."""
    extent = f'16 + (print.__self__.__import__("os").system("touch {marker}"))'
    assert isinstance(from_source(BODY.format(extent=extent)), tvm.IRModule)
    assert marker.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files")
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path, pipeline: Pipeline) -> None:
    """They would hold up whoever reads them for ever: the window, which looks at what may run."""
    for suffix in (".py", ".npz", ".lowerscope", ".json"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    sample = {"spec": "sample:matmul_relu"}
    for name in ("pipe", "zero"):
        for recipe in (
            {"source": {"spec": f"{name}.py"}},
            {"source": sample, "extensions": [{"path": f"{name}.py", "kind": "rules"}]},
            {"source": sample | {"params": f"{name}.npz"}},
            {"source": sample, "inputs": [{"name": "x", "file": f"{name}.npz"}]},
        ):
            path = tmp_path / "a.lowerscope"
            path.write_text(json.dumps({"recipe": recipe}))
            session = load_session(path, Hashes())
            for file in code_of(session.recipe):
                assert Hashes().of(Path(file)) == ""
            said = trouble_with(pipeline, session.recipe)
            assert said.where.startswith(str(tmp_path / name))
            assert "cannot be opened (it is no plain file)" in said.what
        reading: tuple[tuple[str, Callable[[Path], object]], ...] = (
            (".lowerscope", load_session),
            (".json", lambda path: load_preset(str(path))),
            (".json", lambda path: load_schedules(str(path))),
        )
        for suffix, read_one in reading:
            with pytest.raises(LowerscopeError, match="it is no plain file"):
                read_one(tmp_path / f"{name}{suffix}")


# Pickles of arrays whose parts would make NumPy take bytes of the file for pointers


class Reduced:
    """Is pickled as a call, and a state."""

    def __init__(self, call: Callable[..., object], *args: object, state: object = None) -> None:
        self.made = (call, args) if state is None else (call, args, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.made


POINTER = b"\x41" * 8
FLAGLESS = (3, "|", None, None, None, -1, -1, 0)
HIDING = (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)


def _reconstructed(kind: object, data: object) -> Reduced:
    reconstruct = np._core.multiarray._reconstruct  # type: ignore[attr-defined]
    return Reduced(reconstruct, np.ndarray, (0,), b"b", state=(1, (1,), kind, False, data))


CASES: dict[str, Callable[[], object]] = {
    "an array over bytes": lambda: Reduced(np.ndarray, (1,), np.dtype("O"), POINTER),
    "a type without its flags": lambda: _reconstructed(
        Reduced(np.dtype, "O", False, True, state=FLAGLESS), POINTER
    ),
    "a type that hides objects": lambda: _reconstructed(
        Reduced(np.dtype, "V8", False, True, state=HIDING), POINTER
    ),
    "a buffer": lambda: Reduced(
        np._core.numeric._frombuffer,  # type: ignore[attr-defined]
        POINTER,
        Reduced(np.dtype, "O", False, True, state=FLAGLESS),
        (1,),
        "C",
    ),
    "a scalar": lambda: Reduced(
        np._core.multiarray.scalar,  # type: ignore[attr-defined]
        Reduced(np.dtype, "V8", False, True, state=HIDING),
        POINTER,
    ),
    "more than there is": lambda: Reduced(
        np._core.numeric._frombuffer,  # type: ignore[attr-defined]
        POINTER,
        np.dtype("f8"),
        (1 << 40,),
        "C",
    ),
}


@pytest.mark.diagonal
@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", sorted(CASES))
def test_no_bytes_become_pointers(tmp_path: Path, name: str, protocol: int) -> None:
    file = tmp_path / "a.pkl"
    file.write_bytes(pickle.dumps({"w0": CASES[name]()}, protocol=protocol))
    assert "\n" not in problem_of(read_arrays, file).line()
    try:
        found = load_arrays(file.read_bytes())
    except Exception:
        return
    assert isinstance(found, dict)
    # To show the array would follow the pointer.
    made = isinstance(found["w0"], np.ndarray | np.void) and found["w0"].size > 0
    assert not made
