"""``--sandbox``: a command's code may write where its output goes, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lowerscope.app.__main__ import main
from lowerscope.core import sandbox
from tests.sandboxes import needs_sandbox

NET = """
import sys
from pathlib import Path
import torch

for each in ({allowed!r}, {refused!r}):
    Path(each, "written").write_text("mine")

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

example_inputs = (torch.ones(2, 3),)
"""


def test_without_a_sandbox_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda _: None)
    assert main(["show", "sample:matmul", "--stage", "fx", "--sandbox"]) == 2
    assert capsys.readouterr().err == (
        "lowerscope: --sandbox: there is no sandbox: bwrap is not there."
        " Install bubblewrap (bwrap), or leave --sandbox out.\n"
    )


@needs_sandbox
def test_code_may_write_where_the_output_goes_and_nowhere_else(tmp_path: Path) -> None:
    output, home = tmp_path / "output", tmp_path / "home"
    home.mkdir()
    file = tmp_path / "net.py"

    def export(allowed: Path, refused: Path) -> subprocess.CompletedProcess[str]:
        file.write_text(NET.format(allowed=str(allowed), refused=str(refused)))
        command = [sys.executable, "-m", "lowerscope.app", "export", str(file), "--what", "fx"]
        given = [*command, "--output", str(output), "--force", "--sandbox"]
        return subprocess.run(given, capture_output=True, text=True, check=False)

    done = export(output, home)
    assert done.returncode == 2
    assert f"the sandbox does not let it write to {home / 'written'}." in done.stderr
    assert "leave --sandbox out" in done.stderr
    assert [each.name for each in output.iterdir()] == ["written"]
    done = export(output, output)
    assert (done.returncode, done.stderr) == (0, "")
    assert {each.name for each in output.iterdir()} == {"written", "fx.txt"}
    assert not list(home.iterdir())
