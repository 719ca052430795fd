"""``--sandbox``: a command's code may write where its output goes, and nowhere else."""

from __future__ import annotations

import errno
import signal
import socket
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


REACHING = """
import fcntl, os, socket, termios

def refused(name, call):
    try:
        call()
    except OSError as error:
        print(name, error.errno)
    else:
        print(name, "went through")

refused("path", lambda: socket.socket(socket.AF_UNIX).connect({path!r}))
refused("abstract", lambda: socket.socket(socket.AF_UNIX).connect({abstract!r}))
refused("machine", lambda: socket.socket(socket.AF_VSOCK))
refused("type", lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"))
one, other = socket.socketpair()
one.send(b"pair")
print(other.recv(9).decode())
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname())
"""


@needs_sandbox
@pytest.mark.parametrize("network", ["none", "open"])
def test_no_other_program_is_reached_by_a_socket_or_by_the_terminal(
    tmp_path: Path, network: sandbox.Network
) -> None:
    """Who may connect to a terminal multiplexer or to a desktop has it run things outside."""
    program = sandbox.program()
    assert program is not None
    path, abstract = str(tmp_path / "socket"), f"\0{tmp_path.name}-{network}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(path)
        other.bind(abstract)
        one.listen()
        other.listen()
        code = REACHING.format(path=path, abstract=abstract)
        command = sandbox.enclosed(program, (sys.executable, "-c", code), (), network)
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    unknown = errno.EAFNOSUPPORT
    assert done.stderr == ""
    assert done.stdout.split("\n") == [
        *(f"{each} {unknown}" for each in ("path", "abstract", "machine")),
        f"type {errno.EPERM}",
        "pair",
        "",
    ]


@needs_sandbox
def test_how_a_command_ends_is_told_and_what_it_reads_comes(tmp_path: Path) -> None:
    program = sandbox.program()
    assert program is not None

    def ended(script: str) -> subprocess.CompletedProcess[str]:
        command = sandbox.enclosed(program, ("/bin/sh", "-c", script), (), "none")
        return subprocess.run(command, capture_output=True, text=True, input="given")

    assert ended("cat; exit 3").stdout == "given"
    assert ended("cat; exit 3").returncode == 3
    assert ended("kill -SEGV $$").returncode == 128 + signal.SIGSEGV
