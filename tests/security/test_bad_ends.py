"""Code that ends its process, raises what is no `Exception`, or never ends."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from tvm import relax

from lowerscope.core.cli.main import main
from lowerscope.core.passes.transforming import compiled_once
from tests.warm_processes import run_warm

MODEL = """
import atexit, os, pathlib, sys, threading, time
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        {forward}
        return x + 1


def example_inputs():
    return (torch.ones(2, 3),)


def forever():
    while True:
        time.sleep(60)

{end}
"""


def model(folder: Path, forward: str = "pass", end: str = "") -> Path:
    path = folder / "model.py"
    path.write_text(MODEL.format(forward=forward, end=end), encoding="utf-8")
    return path


def lowerscope(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_warm("-m", "lowerscope.app", *arguments, environment={**os.environ, **environment})


@pytest.mark.diagonal
@pytest.mark.parametrize(
    ("forward", "end", "said"),
    [
        ("os._exit(0)", "", "model.py:9: the code ends its process by os._exit"),
        ("", "os._exit(0)", "the code ends its process by os._exit"),
        ("os.closerange(0, 65536)", "", "the code has closed or replaced standard output"),
        ("os.execv('/bin/true', ['true'])", "", "ends its process before the command is done"),
        ("os.kill(os.getpid(), 9)", "", "crashed with SIGKILL|was terminated by SIGKILL"),
    ],
)
@pytest.mark.parametrize("command", [("run",), ("show", "--stage", "fx")])
def test_an_end_of_the_process_is_one_line(
    tmp_path: Path, command: tuple[str, ...], forward: str, end: str, said: str
) -> None:
    path = model(tmp_path, forward or "pass", end)
    done = lowerscope(command[0], str(path), *command[1:])
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("lowerscope: ")
    assert any(each in line for each in said.split("|"))
    assert path.name in line


@pytest.mark.diagonal
@pytest.mark.parametrize("raised", ["BaseException('mine')", "GeneratorExit", "KeyboardInterrupt"])
@pytest.mark.parametrize("tracer", ["fx", "export", "auto"])
def test_forward_may_raise_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], raised: str, tracer: str
) -> None:
    path = model(tmp_path, f"raise {raised}")
    assert main(["show", str(path), "--stage", "fx", "--tracer", tracer]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lowerscope: {path}:9: the model fails at run time: ")
    assert raised.partition("(")[0] in line


@pytest.mark.diagonal
@pytest.mark.parametrize("returned", ["None", "(None, [None])", "{}"])
@pytest.mark.parametrize("tracer", ["fx", "export", "auto"])
def test_a_model_that_returns_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], returned: str, tracer: str
) -> None:
    path = model(tmp_path, f"return {returned}")
    assert main(["show", str(path), "--stage", "relax", "--tracer", tracer]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the model returns no" in line
    assert str(path) in line


@pytest.mark.parametrize("place", ["forward", "import"])
def test_a_message_of_many_lines_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    fails = "raise ValueError('\\n'.join(f'line {i}' for i in range(100000)))"
    path = model(tmp_path, fails) if place == "forward" else model(tmp_path, end=fails)
    assert main(["show", str(path), "--stage", "fx"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "line 0 (the first of 100,000 lines" in line


def test_a_fold_that_divides_by_zero_does_not_end_the_process() -> None:
    builder = relax.BlockBuilder()
    constants = [relax.const(np.array(each, np.int32)) for each in ([1, 2], [0, 1])]
    with builder.function("main", []):
        with builder.dataflow():
            output = builder.emit_output(relax.op.floor_divide(*constants))
        builder.emit_func_output(output)
    module = relax.transform.LegalizeOps()(builder.get())
    with compiled_once(lambda: None):
        folded = relax.transform.FoldConstant()(module)
    assert tvm_ffi.structural_equal(folded["main"], module["main"])


@pytest.mark.parametrize("of", ["model.py", "neighbour.py", "weights.npz", "link.py", "x.npy"])
def test_a_report_is_not_written_over_what_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], of: str
) -> None:
    path = model(tmp_path, end="import neighbour")
    (tmp_path / "neighbour.py").touch()
    (tmp_path / "link.py").symlink_to(path)
    np.savez(tmp_path / "weights.npz", w0=np.ones(1))
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    before = (tmp_path / of).read_bytes()
    given = ("--params", str(tmp_path / "weights.npz"), "--input", f"x={tmp_path / 'x.npy'}")
    assert main(["run", str(path), *given, "--html", str(tmp_path / of)]) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert (tmp_path / of).read_bytes() == before


QUOTA = """
import resource, sys
# Else Python keeps the first 2,000 bytes of what it compiles.
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from lowerscope.app.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_export_beyond_a_quota_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = ["export", "sample:fashion_mlp", "--what", "script,builder", "--output", str(output)]
    done = run_warm("-c", QUOTA, *command)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert os.strerror(errno.EFBIG) in line
    assert str(output) in line
    assert not [each for each in output.rglob("*") if each.name.startswith(".")]
