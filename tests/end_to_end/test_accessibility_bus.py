"""The window as an accessibility client sees it, through the bus: needs one, and a display."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SYSTEM_PYTHON = "/usr/bin/python3"
"""The interpreter that the distribution's ``pyatspi`` is for."""

CLIENT = Path(__file__).with_name("accessibility_client.py")

RUN = """
set -u
"$1" -m lowerscope.app sample:fashion_mlp &
window=$!
timeout 100 "$2" "$3" Lowerscope "# from tvm" "5 nodes" "Parts of the model"
status=$?
kill $window
wait $window 2>/dev/null
exit $status
"""


def has_client() -> bool:
    """Whether there is a bus that can be started, a display, and a client for it."""
    if not all(shutil.which(each) for each in ("dbus-run-session", "Xvfb", "timeout")):
        return False
    if not Path(SYSTEM_PYTHON).exists():
        return False
    probe = [SYSTEM_PYTHON, "-c", "import pyatspi"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def display() -> Iterator[str]:
    """Start a display of its own, and give its name when it can be connected to."""
    command = ("Xvfb", "-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        number = server.stdout.readline().strip()
        assert number, "Xvfb has not started"
        try:
            yield f":{number}"
        finally:
            server.terminate()


@pytest.mark.skipif(not has_client(), reason="no accessibility bus, display or client here")
def test_every_pane_is_on_the_bus(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "XAUTHORITY": "",
        "QT_QPA_PLATFORM": "xcb",
        "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    shell = ["bash", "-c", RUN, "run", sys.executable, SYSTEM_PYTHON, str(CLIENT)]
    with display() as name:
        done = subprocess.run(
            ["dbus-run-session", "--", *shell],
            env={**environment, "DISPLAY": name},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    nodes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    panes = {each["name"] for each in nodes if each["role"] == "panel"}
    wanted = {"Model", "FX", "Relax", "TensorIR", "Inspector"}
    assert wanted <= panes, panes
    named = {each["name"]: each for each in nodes if each["name"]}
    assert "5 nodes" in named["FX graph"]["description"]
    texts = {
        each["name"]: each["line"] for each in nodes if each["role"] == "text" and "line" in each
    }
    # A text is read from its first line.
    assert texts["TensorIR script"].startswith("# from tvm")
    assert named["Parts of the model"]["rows"] > 5
