"""``--sandbox``: only the files that a command announces leave the sandbox."""

from __future__ import annotations

import errno
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lowerscope.app.__main__ import main
from lowerscope.core.sandbox import bubblewrap
from tests.sandboxes import needs_sandbox

NET = """
import os
from pathlib import Path
import torch

# Where the command's own files are left for the user's folder.
folder = os.environ["LOWERSCOPE_WRITES"].rpartition("\\n")[2]
Path(folder, "Makefile").write_text("all: ; touch evil")
Path(folder, "steps").mkdir()
Path(folder, "steps", "conftest.py").write_text("evil")

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        return torch.relu(x * self.weight)

example_inputs = (torch.ones(2, 3),)
"""


def test_without_a_sandbox_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _: None)
    assert main(["show", "sample:matmul", "--stage", "fx", "--sandbox"]) == 2
    assert capsys.readouterr().err == (
        "lowerscope: --sandbox: the sandbox is not available: bwrap is missing."
        " Install bubblewrap (bwrap), or leave --sandbox out.\n"
    )


@needs_sandbox
def test_what_the_command_writes_gets_out_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A variable does not undo the option.
    monkeypatch.setenv("LOWERSCOPE_SANDBOX", "none")
    assert not bubblewrap.is_inside()
    output, file = tmp_path / "output", tmp_path / "net.py"
    file.write_text(NET)
    command = [sys.executable, "-m", "lowerscope.app", "export", str(file), "--what", "fx"]
    given = [*command, "--output", str(output), "--force", "--sandbox"]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == f"{output / 'fx.txt'}\n"
    assert done.stderr == (
        "lowerscope: note: Makefile was not copied out of the sandbox\n"
        "lowerscope: note: steps/conftest.py was not copied out of the sandbox\n"
    )
    assert [each.name for each in output.iterdir()] == ["fx.txt"]
    assert "relu" in (output / "fx.txt").read_text()
    assert stat.S_IMODE((output / "fx.txt").stat().st_mode) == 0o644


@needs_sandbox
@pytest.mark.at_length
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("run", "--html"), "report.html"),
        (("show", "--constant", "weight", "--save"), "values.npy"),
        (("rule", "--node", "relu", "--output"), "rules.py"),
    ],
)
def test_a_file_that_a_command_writes_comes_alone(
    tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    """Its folder, such as the home folder, is not written to besides."""
    file, home = tmp_path / "net.py", tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text("mine")
    file.write_text(NET)
    command, *options = arguments
    given = [command, str(file), *options, str(home / name), "--sandbox"]
    done = subprocess.run(
        [sys.executable, "-m", "lowerscope.app", *given], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert str(home / name) in done.stdout or command == "show"
    assert {each.name for each in home.iterdir()} == {".bashrc", name}
    assert (home / ".bashrc").read_text() == "mine"
    assert stat.S_IMODE((home / name).stat().st_mode) == 0o644


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
    tmp_path: Path, network: bubblewrap.Network
) -> None:
    """A process that may connect to a terminal multiplexer or a desktop acts outside."""
    program = bubblewrap.program()
    assert program is not None
    path, abstract = str(tmp_path / "socket"), f"\0{tmp_path.name}-{network}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(path)
        other.bind(abstract)
        one.listen()
        other.listen()
        code = REACHING.format(path=path, abstract=abstract)
        command = bubblewrap.enclosed(program, (sys.executable, "-c", code), (), network)
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    unknown = errno.EAFNOSUPPORT
    assert done.stderr == ""
    assert done.stdout.split("\n") == [
        *(f"{each} {unknown}" for each in ("path", "abstract", "machine")),
        f"type {errno.EPERM}",
        "pair",
        "",
    ]
